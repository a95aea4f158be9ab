"""A history with all that can be stored, and what tests ask of documents."""

from __future__ import annotations

import json
from typing import Any, NoReturn

import msgspec
from msgspec import Raw

from golem import (
    AssistantMessage,
    HistoryError,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
    dump_history,
    load_history,
    rawjson,
)

FULL = [
    SystemMessage("be brief", run_id="r", conversation_id="c", seal="s"),
    UserMessage(
        "look \U0001f600",
        parts=(Part.image_url("https://e.example/a.png"), Part.document(b"\x00\x01", "text/plain")),
        unknown=UnknownMembers({"later": b'{"a":[1.0,"\\u00e9"]}'}),
    ),
    AssistantMessage(
        "I'll look",
        parts=(Part.audio(b"abc", "audio/wav"),),
        tool_calls=(
            ToolCall.of("c1", "look", '{"b": 1,\t"a":2}', "sig"),
            ToolCall.of("c2", "look", '{"cut":'),
        ),
        thinking=(Thinking("hm", "sig", provider="p", id="i"), Thinking(redacted="xx")),
        native=Native("p", (Raw(b'{"type": "x"}'), Raw(b"null"))),
    ),
    ToolMessage("seen", tool_call_id="c1", tool_name="look", failed=True),
]
DOCUMENT = dump_history(FULL)
PLAIN = dump_history([msgspec.structs.replace(FULL[1], unknown=UnknownMembers()), *FULL[2:]])


def refuse(token: str) -> NoReturn:
    raise AssertionError(f"not strict JSON: {token}")


def strict_json(data: bytes) -> Any:
    """The value with members in order and numbers as spelled; fails on NaN and infinities."""
    return json.loads(
        data.decode(),
        object_pairs_hook=list,
        parse_int=lambda text: ("number", text),
        parse_float=lambda text: ("number", text),
        parse_constant=refuse,
    )


def assert_json(data: bytes) -> None:
    try:
        strict_json(data)
    except RecursionError:
        rawjson.children(data)  # which is held against the standard library in its own tests


def assert_laws(messages: list[Message]) -> None:
    """What holds for everything `load_history` returns."""
    data = dump_history(messages)
    again = load_history(data)
    assert messages == again
    assert data == dump_history(again)
    assert [hash(message) for message in messages] == [hash(message) for message in again]
    assert_json(data)
    assert b"\n" not in data
    assert b"\r" not in data


def outcome(document: bytes | str) -> str:
    """`loaded` (and the laws hold) or the text of the HistoryError; anything else is a failure."""
    try:
        messages = load_history(document)
    except HistoryError as error:
        return said_with_its_place(error)
    assert_laws(messages)
    return "loaded"


def said_with_its_place(error: HistoryError) -> str:
    place = "history" if error.index is None else f"history[{error.index}]"
    assert str(error) == f"{place}{'.' * bool(error.path)}{error.path}: {error.reason}"
    return str(error)
