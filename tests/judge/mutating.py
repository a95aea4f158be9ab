"""Requests with anything anywhere: valid ones, of which some value is any JSON at all."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

from golem.testing.judge import Provider
from golem.testing.judge.answers import response_of

_WORDS = st.sampled_from(
    ["", "type", "function", "json_object", "auto", "text", "a" * 600, "\ud800"]
)
_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | _WORDS | st.text()
)
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    _SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(_WORDS | st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)
"""Any JSON: the kinds of values that a rule may trip over, small."""


def places_in(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place in a JSON value, as what holds it and its name or number there."""
    if isinstance(value, dict | list):
        found: Any = value.items() if isinstance(value, dict) else enumerate(value)
        for name, inner in list(found):
            yield value, name
            yield from places_in(inner)


@st.composite
def mutated(draw: st.DrawFn, bodies: list[Any]) -> Any:
    """One of `bodies`, in which one to three values are others, or new ones."""
    body = copy.deepcopy(draw(st.sampled_from(bodies)))
    for _ in range(draw(st.integers(1, 3))):
        holder, name = draw(st.sampled_from(list(places_in(body))))
        if draw(st.booleans()):
            holder[name] = draw(ANY_JSON)
        elif isinstance(holder, dict):
            holder[draw(_WORDS)] = draw(ANY_JSON)
        else:
            holder.insert(name, draw(ANY_JSON))
    return body


def answered(provider: Provider, body: Any) -> None:
    """What the judge does with a body: it refuses it, or answers it plain and streamed."""
    found = provider.judge(body, {})
    for violation in found:
        provider.reply(violation.body, violation.status)
        assert 400 <= violation.status < 500
        assert str(violation)
        json.dumps(violation.body)
    if not found:
        said = response_of(provider.default(body))
        provider.reply(provider.answer(body, said))
        assert provider.events(body, said)
