"""The JSON of Converse as structs, and the reader that takes what servers make of it.

Only what golem uses is declared; msgspec skips the rest without building it. Content blocks
stay raw, because they may have to go back to the byte; what they say is in ``blocks``.
Decoding is strict and fast first; what does not fit is decoded once more by the forgiving
standard decoder and put into the same structs, member by member.
"""

# ruff: noqa: N815 - the members have the wire's own names

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from golem_adapters._toolkit.lenient import (
    NOTHING,
    is_array,
    is_object,
    members,
    read_json,
    text,
    whole,
    written,
)
from golem_adapters._toolkit.reading import MISFITS, forgiven


class Message(Struct):
    """The model's turn."""

    content: list[Raw] | None = None


class Output(Struct):
    """What holds the model's turn."""

    message: Message | None = None


class Answer(Struct):
    """The body of a plain answer."""

    output: Output | None = None
    stopReason: str | None = None
    usage: dict[str, Any] | None = None
    trace: dict[str, Any] | None = None


class Thought(Struct):
    """A piece of reasoning. Texts may hold half a surrogate pair."""

    text: str | None = None
    signature: str | None = None
    redactedContent: str | None = None


class Argued(Struct):
    """A piece of a call's argument text."""

    input: str | None = None


class Piece(Struct):
    """What an event brings of a block. Texts may hold half a surrogate pair."""

    text: str | None = None
    toolUse: Argued | None = None
    reasoningContent: Thought | None = None
    citation: Raw = NOTHING


class Event(Struct):
    """What any event of a stream may hold; its name says which of it."""

    contentBlockIndex: int | None = None
    start: Raw = NOTHING
    delta: Raw = NOTHING
    stopReason: str | None = None
    usage: dict[str, Any] | None = None
    trace: dict[str, Any] | None = None


_answers: Final = msgspec.json.Decoder(Answer)
_events: Final = msgspec.json.Decoder(Event)
_pieces: Final = msgspec.json.Decoder(Piece)


def read_answer(data: bytes) -> Answer | None:
    """`data` as an answer; None where it is JSON but no object.

    Raises ValueError where it is no JSON at all.
    """
    try:
        return _answers.decode(data)
    except MISFITS:
        value = read_json(data)
    return forgiven(data, value, _answers, _answer) if is_object(value) else None


def _answer(value: dict[str, Any]) -> Answer:
    content = members(members(value.get("output")).get("message")).get("content")
    return Answer(
        output=Output(Message(list(map(written, content))) if is_array(content) else None),
        stopReason=text(value.get("stopReason")),
        usage=members(value.get("usage")),
        trace=members(value.get("trace")),
    )


def read_event(data: bytes) -> Event:
    """`data` as an event. Raises ValueError where it is no JSON object."""
    try:
        return _events.decode(data)
    except MISFITS:
        value = read_json(data)
    if not is_object(value):
        raise ValueError("not an object")
    return Event(
        contentBlockIndex=whole(value.get("contentBlockIndex")),
        start=written(value.get("start")),
        delta=_kept(value.get("delta")),
        stopReason=text(value.get("stopReason")),
        usage=members(value.get("usage")),
        trace=members(value.get("trace")),
    )


def read_piece(raw: Raw) -> Piece:
    """What the delta in `raw` brings of text, reasoning, arguments and citations."""
    try:
        return _pieces.decode(raw)
    except MISFITS:
        found = read_members(raw)
    thoughts = found.get("reasoningContent")
    use = found.get("toolUse")
    return Piece(
        text=_string(found.get("text")),
        toolUse=Argued(_argument(use.get("input"))) if is_object(use) else None,
        reasoningContent=_thought(thoughts) if is_object(thoughts) else None,
        citation=written(found.get("citation")),
    )


def read_members(raw: Raw) -> dict[str, Any]:
    """The members of the object in `raw`; none where it is no object, or nested past every use."""
    try:
        return members(read_json(bytes(raw)))
    except ValueError:
        return {}


def _thought(found: dict[str, Any]) -> Thought:
    return Thought(*(_string(found.get(name)) for name in Thought.__struct_fields__))


def _argument(value: object) -> str | None:
    """Argument text, also where a server sends the value itself."""
    return bytes(written(value)).decode() if is_object(value) else _string(value)


def _string(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _kept(value: object) -> Raw:
    """`value` as JSON again, halves of surrogate pairs and all."""
    try:
        return Raw(json.dumps(value).encode())
    except RecursionError:
        return NOTHING
