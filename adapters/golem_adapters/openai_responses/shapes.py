"""The JSON of Responses as structs, and the reader that takes what servers make of it.

Only what golem uses is declared; msgspec skips the rest without building it. Output items stay
raw, because they may have to go back to the byte; what they say is in ``items``. Decoding is
strict and fast first; what does not fit is decoded once more by the forgiving standard decoder
and put into the same structs, member by member.
"""

from __future__ import annotations

import json
import math
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from golem import rawjson
from golem_adapters._toolkit.lenient import (
    clean,
    elements,
    is_array,
    is_object,
    members,
    read_json,
    text,
    whole,
)

_NOTHING: Final = Raw(b"null")


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
    item: Raw = _NOTHING
    response: Raw = _NOTHING
    error: Raw = _NOTHING


_answers: Final = msgspec.json.Decoder(Answer)
_events: Final = msgspec.json.Decoder(Event)


def read_answer(data: bytes) -> Answer | None:
    """`data` as a response object; None where it is JSON but no object.

    Raises ValueError where it is no JSON at all.
    """
    try:
        return _answers.decode(data)
    except (msgspec.DecodeError, RecursionError):
        value = read_json(data)
    wrapped = elements(value)
    if len(wrapped) == 1:
        value = wrapped[0]
    if not is_object(value):
        return None
    try:
        # Items to the byte, as far as lone surrogate escapes allow.
        return _answers.decode(rawjson.without_lone_surrogates(data))
    except (msgspec.DecodeError, RecursionError):
        return Answer(
            id=text(value.get("id")),
            model=text(value.get("model")),
            status=text(value.get("status")),
            output=[_raw(item) for item in elements(value.get("output"))],
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
    except (msgspec.DecodeError, RecursionError):
        value = read_json(data)
    if value is None:
        return None
    if not is_object(value):
        raise ValueError("not an object")
    try:
        event = _events.decode(rawjson.without_lone_surrogates(data))
    except (msgspec.DecodeError, RecursionError):
        event = Event(
            type=text(value.get("type")),
            output_index=whole(value.get("output_index")),
            item_id=text(value.get("item_id")),
            content_index=whole(value.get("content_index")),
            summary_index=whole(value.get("summary_index")),
            item=_raw(value.get("item")),
            response=_raw(value.get("response")),
            error=_raw(value.get("error")),
        )
    for name in ("delta", "text", "refusal", "arguments", "input"):
        said = value.get(name)
        setattr(event, name, said if isinstance(said, str) else None)
    return event


def read_item(raw: Raw) -> dict[str, Any]:
    """The members of an output item; none where it is no object, or nested past every use."""
    data = bytes(raw)
    try:
        return members(msgspec.json.decode(data))
    except (msgspec.DecodeError, RecursionError):
        pass
    try:
        return members(read_json(data))  # a number past every range
    except ValueError:
        return {}


def _raw(value: Any) -> Raw:
    try:
        return Raw(json.dumps(clean(_finite(value)), separators=(",", ":")).encode())
    except RecursionError:
        return _NOTHING


def _finite(value: Any) -> Any:
    """`value` with null for every number that JSON cannot spell."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_object(value):
        return {name: _finite(member) for name, member in value.items()}
    return [_finite(item) for item in value] if is_array(value) else value
