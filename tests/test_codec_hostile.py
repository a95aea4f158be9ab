"""Hostile documents are read or refused with a place, whatever the stack and in linear time."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem import (
    HistoryError,
    Message,
    load_history,
)
from golem.rawjson import MAX_DEPTH
from tests.stored import DOCUMENT, PLAIN, outcome
from tests.strategies import json_text


@pytest.mark.parametrize("document", [DOCUMENT, PLAIN])
def test_every_cut_of_a_document_is_a_history_error(document: bytes) -> None:
    for cut in range(len(document)):
        assert outcome(document[:cut]).startswith("history: not ")
    assert outcome(document) == "loaded"


@pytest.mark.parametrize("document", [DOCUMENT, PLAIN])
@pytest.mark.parametrize("byte", b'\x00\x1f"\\{}[],:5nu\xff\xed\xc3 ')
def test_every_damaged_byte_is_read_or_refused_with_a_place(document: bytes, byte: int) -> None:
    for place in range(len(document)):
        damaged = bytearray(document)
        damaged[place] = byte
        outcome(bytes(damaged))


@given(st.binary(max_size=30) | json_text(lone_surrogates=True).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    outcome(data)
    outcome(b'[{"role":"user","later":' + data + b"}]")
    outcome(b'[{"role":"assistant","toolCalls":[{"id":"","name":"","args":' + data + b"}]}]")
    outcome(b'[{"role":"assistant","native":{"provider":"","items":[' + data + b"]}}]")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"", "history: not valid JSON at byte 0"),
        (b" \n", "history: not valid JSON at byte 0"),
        (b"nul", "history: not valid JSON at byte 0"),
        (b"5", "history: expected an array, not a scalar"),
        (b'"[]"', "history: expected an array, not a string"),
        (b"{}", "history: expected an array, not an object"),
        (b'{"role":"user"}', "history: expected an array, not an object"),
        (b"NaN", "history: not valid JSON at byte 0"),
        (b"[] []", "history: not valid JSON at byte 2: text after the value"),
        (b"[]\x00", "history: not valid JSON at byte 2: text after the value"),
        (b"\xef\xbb\xbf[]", "history: not valid JSON at byte 0"),
        ("[]".encode("utf-16"), "history: not UTF-8 at byte 0"),
        ('["é"]'.encode("latin-1"), "history: not UTF-8 at byte 2"),
        (b'[{"role":"user",}]', "history: not valid JSON at byte 16"),
    ],
)
def test_what_is_no_history_says_why(document: bytes, said: str) -> None:
    assert said == outcome(document)


VALUES = {
    "deep arrays": "[" * 20_000 + "]" * 20_000,
    "deep objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "deep and cut": "[" * 100_000,
    "a bit deep": "[" * 1_100 + "]" * 1_100,
    "long number": "9" * 200_000,
    "huge number": "1e99999",
    "long text": f'"{"x" * 1_000_000}"',
    "long odd text": '"' + "\\ud800" * 50_000 + '"',
    "many members": "{" + ",".join(f'"{i}":{i}' for i in range(5_000)) + "}",
    "one member often": "{" + ",".join(['"a":1'] * 5_000) + "}",
    "many items": f"[{'1,' * 20_000}1]",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize(
    "document",
    [
        "%s",
        "[%s]",
        '[{"role":%s}]',
        '[{"role":"user","content":%s}]',
        '[{"role":"user","later":%s}]',
        '[{"role":"user","parts":%s}]',
        '[{"role":"user","parts":[{"kind":"x","later":%s}]}]',
        '[{"role":"user","parts":[{"kind":"x","data":%s}]}]',
        '[{"role":"tool","toolCallId":%s}]',
        '[{"role":"assistant","toolCalls":[{"id":%s,"name":"","args":{}}]}]',
        '[{"role":"assistant","toolCalls":[{"id":"","name":"","args":%s}]}]',
        '[{"role":"assistant","toolCalls":[{"id":"","name":"","args":{"a":%s}}]}]',
        '[{"role":"assistant","native":{"provider":"","items":[%s]}}]',
        '[{"role":"assistant","native":%s}]',
    ],
)
def test_monsters_are_read_or_refused(document: str, value: str) -> None:
    said = outcome(document.replace("%s", value))
    assert len(said) < 500


def under(frames: int, work: Callable[[], Any]) -> Any:
    return work() if frames <= 0 else under(frames - 1, work)


def frames_left() -> int:
    frame, used = sys._getframe(), 0
    while frame := frame.f_back:  # type: ignore[assignment]
        used += 1
    return sys.getrecursionlimit() - used


@pytest.mark.parametrize("depth", [1, 50, 100, MAX_DEPTH - 2, MAX_DEPTH, 5_000])
@pytest.mark.parametrize(
    "document",
    [
        '[{"role":"user","later":%s}]',
        '[{"role":"assistant","toolCalls":[{"id":"","name":"","args":{"a":%s}}]}]',
        '[{"role":"assistant","native":{"provider":"","items":[%s]}}]',
        '[{"role":"tool"},{"role":"user","content":%s}]',
    ],
)
def test_what_is_read_does_not_depend_on_the_stack(document: str, depth: int) -> None:
    """Fifty frames are enough, however the document is nested."""
    text = document.replace("%s", "[" * depth + "]" * depth)

    def read() -> list[Message] | str:
        try:
            return load_history(text)
        except HistoryError as error:
            return str(error)

    expected = read()
    for room in (600, 200, 50):
        assert expected == under(frames_left() - room, read)


def test_the_tolerant_path_is_linear() -> None:
    def document(n: int) -> bytes:
        message = b'{"role":"user","content":"\\ud800","later":{"a":[1,{"b":"x"}]},"parts":null}'
        return b"[" + b",".join([message] * n) + b"]"

    def steps(data: bytes) -> int:
        count = 0

        def profile(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(profile)
        try:
            load_history(data)
        finally:
            sys.setprofile(None)
        return count

    assert steps(document(1_000)) < 12 * steps(document(100))
