"""The executable cases of reading and writing."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from golem import (
    HistoryError,
    Message,
    dump_history,
    load_history,
)
from tests import cases
from tests.cases import Case
from tests.stored import assert_laws, strict_json


@pytest.mark.parametrize("case", cases.vectors("json_roundtrip"), ids=cases.name_of)
def test_round_trip_vector(case: Case) -> None:
    """Values compare, not bytes: the Go encoder escapes and compacts what we keep as it is."""
    expected = case["expected"]
    assert {"json", "fixedPoint", "decoded", "error"} >= expected.keys()
    document = case["input"]["json"]
    if "error" in expected:
        with pytest.raises(HistoryError):
            load_history(document)
        return
    history = load_history(document)
    data = dump_history(history)
    assert strict_json(expected["json"].encode()) == strict_json(data)
    assert expected["fixedPoint"] == (data == dump_history(load_history(data)))
    assert _values(cases.messages(expected["decoded"])) == _values(history)


def _values(history: list[Message]) -> list[Any]:
    """Messages as values, arguments decoded, so that only their meaning is compared."""
    values: list[Any] = json.loads(dump_history(history))
    return values


ENCODED: list[Case] = [
    *cases.vectors("json_encode"),
    {
        "name": "golem/what-the-go-library-cannot-write",
        "input": {
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "toolCalls": [{"id": "c", "name": "n", "argsRaw": '{"a":'}]},
                {"role": "tool", "toolCallId": "c", "toolName": "n", "failed": True},
            ]
        },
        "expected": {
            "json": '[{"role":"user","content":"go"},{"role":"assistant","toolCalls":[{"id":"c",'
            '"name":"n","args":"{\\"a\\":"}]},{"role":"tool","toolCallId":"c","toolName":"n",'
            '"failed":true}]'
        },
    },
]


@pytest.mark.parametrize("case", ENCODED, ids=cases.name_of)
def test_encode_vector(case: Case) -> None:
    """What the Go library writes, we write; what it cannot (a call cut off), we can (FIX)."""
    expected = case["expected"]
    assert {"json", "error"} >= expected.keys()
    history = cases.messages(case["input"]["messages"])
    if "error" in expected:
        assert any(c.truncated for m in history for c in getattr(m, "tool_calls", ()))
        assert_laws(history)
        return
    assert strict_json(expected["json"].encode()) == strict_json(dump_history(history))


@pytest.mark.parametrize("case", cases.field_reports("json"), ids=cases.name_of)
def test_field_report(case: Case) -> None:
    """A stored conversation that could not be written or read again can be."""
    history = cases.messages(case["messages"])
    data = dump_history(history)
    for name, wanted in case["expect"].items():
        assert wanted
        CHECKS[name](history, data)  # an unknown expectation is an error


def _equal(history: list[Message], data: bytes) -> None:
    assert history == load_history(data)


def _stable(history: list[Message], data: bytes) -> None:
    once = load_history(data)
    assert once == load_history(dump_history(once))
    assert data == dump_history(once)


def _utf_8(history: list[Message], data: bytes) -> None:
    assert data == data.decode().encode()


def _no_control(history: list[Message], data: bytes) -> None:
    assert all(byte >= 0x20 for byte in data)


def _strict(history: list[Message], data: bytes) -> None:
    strict_json(data)


def _nothing(history: list[Message], data: bytes) -> None:
    """Reaching this is the check."""


CHECKS: dict[str, Callable[[list[Message], bytes], None]] = {
    "roundTripEqual": _equal,
    "roundTripStable": _stable,
    "encodesUtf8": _utf_8,
    "noRawControl": _no_control,
    "strictJson": _strict,
    "orError": _nothing,  # allows more than we need
    "noException": _nothing,
    "loads": _equal,
    "unknownFieldsIgnoredOrKept": _equal,
}
