"""The JSON of Messages as structs, and the reader that takes what servers make of it.

Only what golem uses is declared; msgspec skips the rest without building it. Content blocks
stay raw, because they may have to go back to the byte; what they say is in ``blocks``.
Decoding is strict and fast first; what does not fit is decoded once more by the forgiving
standard decoder and put into the same structs, member by member.
"""

from __future__ import annotations

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


class Answer(Struct):
    """A message: the body of a plain answer, or what the first event of a stream holds."""

    id: str | None = None
    model: str | None = None
    content: list[Raw] | None = None
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None
    usage: dict[str, Any] | None = None
    type: str | None = None
    error: Any = None


class Piece(Struct):
    """What an event brings of a block, or of the message. Texts may hold half a surrogate pair."""

    type: str | None = None
    text: str | None = None
    thinking: str | None = None
    partial_json: str | None = None
    signature: str | None = None
    content: str | None = None
    encrypted_content: str | None = None
    citation: Raw = NOTHING
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None


class Event(Struct):
    """One event of a stream."""

    type: str | None = None
    index: int | None = None
    message: Raw = NOTHING
    content_block: Raw = NOTHING
    delta: Piece | None = None
    usage: dict[str, Any] | None = None
    error: Raw = NOTHING


_answers: Final = msgspec.json.Decoder(Answer)
_events: Final = msgspec.json.Decoder(Event)
_WORDS: Final = (
    *("type", "text", "thinking", "partial_json", "signature", "content", "encrypted_content"),
    "stop_reason",
)


def read_answer(data: bytes) -> Answer | None:
    """`data` as a message; None where it is JSON but no object.

    Raises ValueError where it is no JSON at all.
    """
    try:
        return _answers.decode(data)
    except MISFITS:
        value = read_json(data)
    return forgiven(data, value, _answers, _answer) if is_object(value) else None


def _answer(value: dict[str, Any]) -> Answer:
    content = value.get("content")
    return Answer(
        id=text(value.get("id")),
        model=text(value.get("model")),
        content=list(map(written, content)) if is_array(content) else None,
        stop_reason=text(value.get("stop_reason")),
        stop_details=members(value.get("stop_details")),
        usage=members(value.get("usage")),
        type=text(value.get("type")),
        error=value.get("error"),
    )


def read_event(data: bytes) -> Event | None:
    """`data` as an event; None where it is JSON but no object (a server's idle ``null``).

    Raises ValueError where it is no JSON at all.
    """
    try:
        return _events.decode(data)
    except MISFITS:
        value = read_json(data)
    if value is None:
        return None
    if not is_object(value):
        raise ValueError("not an object")
    event = forgiven(data, value, _events, _event)
    if is_object(delta := value.get("delta")):
        event.delta = _piece(delta)
    return event


def _event(value: dict[str, Any]) -> Event:
    return Event(
        type=text(value.get("type")),
        index=whole(value.get("index")),
        message=written(value.get("message")),
        content_block=written(value.get("content_block")),
        usage=members(value.get("usage")),
        error=written(value.get("error")),
    )


def _piece(delta: dict[str, Any]) -> Piece:
    said = {name: delta[name] for name in _WORDS if isinstance(delta.get(name), str)}
    details = delta.get("stop_details")
    return Piece(
        **said,
        citation=written(delta.get("citation")),
        stop_details=details if is_object(details) else None,
    )
