"""Anything through load, normalize and dump. ``nox -s fuzz`` runs the same laws for minutes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import golem

IDS = st.sampled_from(["", "a", "b", "c", "\ud800"])
TEXT = st.text(max_size=20) | st.sampled_from(["\ud800", "\x00", "\u2028", "a\nb"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e9, 1e9) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
CALL = st.fixed_dictionaries(
    {"id": IDS, "name": TEXT, "args": JSON}, optional={"signature": TEXT, "newer": JSON}
)
PART = st.fixed_dictionaries(
    {"kind": st.sampled_from(["image", "hologram"])}, optional={"url": TEXT, "newer": JSON}
)
COMMON: dict[str, st.SearchStrategy[Any]] = {
    "content": TEXT | st.none(),
    "runId": TEXT,
    "conversationId": TEXT,
    "newer": JSON,
}
MESSAGE = st.one_of(
    st.fixed_dictionaries({"role": st.just("system")}, optional=COMMON),
    st.fixed_dictionaries(
        {"role": st.just("user")}, optional={**COMMON, "parts": st.lists(PART, max_size=2)}
    ),
    st.fixed_dictionaries(
        {"role": st.just("assistant")},
        optional={**COMMON, "toolCalls": st.lists(CALL, max_size=3)},
    ),
    st.fixed_dictionaries(
        {"role": st.just("tool")}, optional={**COMMON, "toolCallId": IDS, "failed": st.booleans()}
    ),
)


def assert_laws(stored: bytes) -> None:
    """What holds for every document that `load_history` accepts."""
    messages = golem.load_history(stored)
    dumped = golem.dump_history(messages)
    assert golem.load_history(dumped) == messages
    assert golem.dump_history(golem.load_history(dumped)) == dumped
    repaired, report = golem.normalize_history(messages)
    again, second = golem.normalize_history(repaired)
    assert all(one is two for one, two in zip(again, repaired, strict=True))
    assert (second.synthesized, second.dropped, second.moved) == ((), (), ())
    assert second.truncated == golem.normalize_history(again)[1].truncated
    assert report.changes or all(one is two for one, two in zip(repaired, messages, strict=True))
    assert list(golem.repair(iter(messages))) == repaired
    written = golem.dump_history(repaired)
    assert golem.load_history(written) == repaired
    json.loads(written)


@given(st.lists(MESSAGE, max_size=8))
def test_broken_histories_keep_every_law(history: list[Any]) -> None:
    assert_laws(json.dumps(history).encode())


@given(st.binary(max_size=200) | st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace")))
def test_any_bytes_load_or_raise_a_history_error(data: bytes) -> None:
    try:
        golem.load_history(data)
    except golem.HistoryError:
        return
    assert_laws(data)


@given(st.lists(MESSAGE, min_size=1, max_size=4), st.data())
def test_a_damaged_document_loads_or_raises_a_history_error(
    history: list[Any], data: st.DataObject
) -> None:
    document = bytearray(json.dumps(history).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(document) - 1))
        document[place] = data.draw(st.integers(0, 255))
    try:
        golem.load_history(bytes(document))
    except golem.HistoryError:
        return
    assert_laws(bytes(document))


@pytest.mark.parametrize("depth", [200, 300, 5_000, 200_000])
def test_nesting_never_ends_in_a_recursion_error(depth: int) -> None:
    nested = "[" * depth + "]" * depth
    stored = (
        f'[{{"role":"assistant","toolCalls":[{{"id":"a","name":"f","args":{{"x":{nested}}}}}]}}]'
    )
    try:
        assert_laws_of_a_call(stored.encode())
    except golem.HistoryError:
        assert depth > golem.rawjson.MAX_DEPTH


def assert_laws_of_a_call(stored: bytes) -> None:
    messages = golem.load_history(stored)
    dumped = golem.dump_history(messages)
    assert golem.load_history(dumped) == messages
