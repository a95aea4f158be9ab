"""Docstrings: the description, and what is said of each parameter, in every style in use."""

from __future__ import annotations

import inspect

import pytest

from golem.docstrings import read_docstring

GOOGLE = """Book a room.

    More about it.

    Args:
        city (str): Where to,
            in full: with the country.
        nights: How long
        it is meant to be.

        when (Optional[Tuple(int)]): The day.
        *rest: What else.

    Takes a while.

    Returns:
        The booking.

    Ask before.
    """

NUMPY = """Book a room.

    More about it.

    Parameters
    ----------
    city : str
        Where to.

        In full.
    nights : int, optional
        How long.
    when

    Other Parameters
    ----------------
    rest
        What else.

    Returns
    -------
    str
        The booking.
    """

REST = """Book a room.

    More about it.

    :param city: Where to,
        in full: with the country.
    :param int nights: How long.
    :type city: str
    :returns: The booking
        as text.
    :raises ValueError: Never.
    """


@pytest.mark.parametrize(
    ("text", "description", "explained"),
    [
        (
            GOOGLE,
            "Book a room.\n\nMore about it.\n\nTakes a while.\n\nAsk before.",
            {
                "city": "Where to, in full: with the country.",
                "nights": "How long it is meant to be.",
                "when": "The day.",
                "rest": "What else.",
            },
        ),
        (
            NUMPY,
            "Book a room.\n\nMore about it.",
            {"city": "Where to. In full.", "nights": "How long.", "when": "", "rest": "What else."},
        ),
        (
            REST,
            "Book a room.\n\nMore about it.",
            {"city": "Where to, in full: with the country.", "nights": "How long."},
        ),
    ],
    ids=["google", "numpy", "rest"],
)
def test_each_style_says_the_same(text: str, description: str, explained: dict[str, str]) -> None:
    assert (description, explained) == read_docstring(inspect.cleandoc(text))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Look it up.",
        "Look: this.",
        "Look.\n\nReturns:\n    What was found.",
        "Look.\n\nNote::\n\n    look()",
        "See :class:`Thing`: it is the one.",
        "Title\n-----\nText.",
    ],
)
def test_what_says_nothing_of_parameters_is_the_description_as_it_is(text: str) -> None:
    assert (text, {}) == read_docstring(text)


@pytest.mark.parametrize("text", ["Args:", "Parameters\n----------", ":param:", "Args:\n\n  \n"])
def test_an_empty_section_explains_nothing(text: str) -> None:
    assert read_docstring(text)[1] == {}
