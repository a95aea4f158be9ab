"""What an error quotes is blanked before it is cut: no part of a key is left at the cut."""

from __future__ import annotations

import functools

import pytest

from golem_adapters._toolkit.failures import words_of
from golem_adapters._toolkit.quoting import blanked, excerpt

KEY = "sk-proj-" + "kK3" * 50


def leaks(words: str) -> bool:
    """Whether eight characters of the key in a row are among the words."""
    return any(KEY[start : start + 8] in words for start in range(len(KEY) - 7))


@pytest.mark.parametrize("before", [0, 10, 40, 75, 79, 80, 81, 200])
def test_an_excerpt_holds_no_part_of_a_key(before: int) -> None:
    body = b"x" * before + KEY.encode() + b"y" * 500
    assert not leaks(excerpt(body, KEY))
    assert not leaks(excerpt(body, (KEY,)))


@pytest.mark.parametrize("before", [0, 400, 495, 499, 500, 60_000, 65_500, 65_535, 66_000])
@pytest.mark.parametrize("filling", [b"x", b"<br>"], ids=["text", "tags"])
def test_a_gateways_page_shows_no_part_of_a_key(before: int, filling: bytes) -> None:
    padding = (filling * before)[:before]
    body = b"<html>" + padding + KEY.encode() + b" and more" * 10
    assert not leaks(words_of(body, 502, functools.partial(blanked, KEY)))
