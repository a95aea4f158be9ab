"""The JSON of Responses as structs, and the reader that takes what servers make of it.

Only what golem uses is declared; msgspec skips the rest without building it. Output items stay
raw, because they may have to go back to the byte; what they say is in ``items``. Decoding is
strict and fast first; what does not fit is decoded once more by the forgiving standard decoder
and put into the same structs, member by member.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from golem_adapters._toolkit.lenient import (
    NOTHING,
    elements,
    is_object,
    members,
    read_json,
    text,
    whole,
    written,
)
from golem_adapters._toolkit.reading import MISFITS, forgiven, verbatim_object


class Answer(Struct):
    """A response object: the body of a plain answer, or what the last event of a stream holds."""

    id: str | None = None
    model: str | None = None
    status: str | None = None
    output: list[Raw] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    incomplete_details: dict[str, Any] | None = None


class Event(Struct):
    """One event of a stream. `delta` and the whole texts may hold half a surrogate pair."""

    type: str | None = None
    output_index: int | None = None
    item_id: str | None = None
    content_index: int | None = None
    summary_index: int | None = None
    delta: str | None = None
    text: str | None = None
    refusal: str | None = None
    arguments: str | None = None
    input: str | None = None
    item: Raw = NOTHING
    response: Raw = NOTHING
    error: Raw = NOTHING


_answers: Final = msgspec.json.Decoder(Answer)
_events: Final = msgspec.json.Decoder(Event)


def read_answer(data: bytes) -> Answer | None:
    """`data` as a response object; None where it is JSON but no object.

    Raises ValueError where it is no JSON at all.
    """
    try:
        return _answers.decode(data)
    except MISFITS:
        value = read_json(data)
    wrapped = elements(value)
    if len(wrapped) == 1:
        value = wrapped[0]
    return forgiven(data, value, _answers, _answer) if is_object(value) else None


def _answer(value: dict[str, Any]) -> Answer:
    return Answer(
        id=text(value.get("id")),
        model=text(value.get("model")),
        status=text(value.get("status")),
        output=list(map(written, elements(value.get("output")))),
        usage=members(value.get("usage")),
        error=value.get("error"),
        incomplete_details=members(value.get("incomplete_details")),
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
    for name in ("delta", "text", "refusal", "arguments", "input"):
        said = value.get(name)
        setattr(event, name, said if isinstance(said, str) else None)
    return event


def _event(value: dict[str, Any]) -> Event:
    return Event(
        type=text(value.get("type")),
        output_index=whole(value.get("output_index")),
        item_id=text(value.get("item_id")),
        content_index=whole(value.get("content_index")),
        summary_index=whole(value.get("summary_index")),
        item=written(value.get("item")),
        response=written(value.get("response")),
        error=written(value.get("error")),
    )


def read_item(raw: Raw) -> dict[str, Any]:
    """The members of an output item; none where it is no object, or nested past every use."""
    return verbatim_object(raw)[1]
