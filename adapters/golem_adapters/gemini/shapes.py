"""The JSON of Gemini's answers as structs, and the reader that takes what servers make of it.

Only what golem uses is declared; msgspec skips the rest without building it. Parts stay raw,
because they may have to go back to the byte; what they say is in ``parts``. Decoding is strict
and fast first; what does not fit is decoded once more by the forgiving standard decoder and put
into the same structs, member by member.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from golem import rawjson
from golem_adapters._toolkit.lenient import (
    elements,
    is_array,
    is_object,
    members,
    objects,
    read_json,
    text,
    whole,
    written,
)
from golem_adapters._toolkit.reading import MISFITS


class Content(Struct):
    """What a candidate says."""

    parts: list[Raw] | None = None


class Candidate(Struct, rename="camel"):
    """One of the answers that were asked for; golem asks for one."""

    index: int | None = None
    content: Content | None = None
    finish_reason: str | None = None
    finish_message: str | None = None


class Feedback(Struct, rename="camel"):
    """What the server says about a prompt that it does not answer."""

    block_reason: str | None = None
    block_reason_message: str | None = None


class Chunk(Struct, rename="camel"):
    """A whole plain answer, or one event of a stream: they have the same shape."""

    candidates: list[Candidate] | None = None
    prompt_feedback: Feedback | None = None
    usage_metadata: dict[str, Any] | None = None
    model_version: str | None = None
    response_id: str | None = None
    error: Any = None


_chunks: Final = msgspec.json.Decoder(Chunk)
_TEXT_ONLY: Final = frozenset({"text", "thought"})


def read_chunks(data: bytes) -> list[Chunk]:
    """The chunks in `data`: one object, an array of them, or none in a server's idle ``null``.

    Raises ValueError where it is no JSON, or anything else.
    """
    try:
        return [_chunks.decode(data)]
    except MISFITS:
        value = read_json(data)
    if value is None:
        return []
    if is_array(value):
        return [_tolerated(item) for item in objects(value)]
    if not is_object(value):
        raise ValueError("not an object")
    try:
        # Parts to the byte, as far as lone surrogate escapes allow.
        chunk = _chunks.decode(rawjson.without_lone_surrogates(data))
        return [_with_halves(chunk, value)]
    except MISFITS:
        return [_tolerated(value)]


def _with_halves(chunk: Chunk, value: dict[str, Any]) -> Chunk:
    """`chunk` with texts as they came in `value`: the other half may be in the next chunk."""
    for candidate, given in zip(
        chunk.candidates or (), elements(value.get("candidates")), strict=True
    ):
        parts = candidate.content.parts if candidate.content is not None else None
        came = elements(members(members(given).get("content")).get("parts"))
        for at, part in enumerate(came if parts else ()):
            words = members(part).get("text")
            if parts and set(members(part)) <= _TEXT_ONLY and words != text(words):
                parts[at] = Raw(json.dumps(part).encode())
    return chunk


def _tolerated(value: dict[str, Any]) -> Chunk:
    feedback = members(value.get("promptFeedback"))
    usage = members(value.get("usageMetadata"))
    return Chunk(
        candidates=[_candidate(item) for item in objects(value.get("candidates"))],
        prompt_feedback=Feedback(
            text(feedback.get("blockReason")), text(feedback.get("blockReasonMessage"))
        ),
        usage_metadata=usage,
        model_version=text(value.get("modelVersion")),
        response_id=text(value.get("responseId")),
        error=value.get("error"),
    )


def _candidate(value: dict[str, Any]) -> Candidate:
    parts = members(value.get("content")).get("parts")
    return Candidate(
        index=whole(value.get("index")),
        content=Content(list(map(written, objects(parts)))),
        finish_reason=text(value.get("finishReason")),
        finish_message=text(value.get("finishMessage")),
    )
