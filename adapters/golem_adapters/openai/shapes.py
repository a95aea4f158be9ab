"""The JSON of Chat Completions as structs, and the reader that takes what servers make of it.

Only what golem uses is declared; msgspec skips the rest without building it. Decoding is strict
and fast first. What does not fit (content as a list of chunks, arguments as an object, half a
surrogate pair, ``NaN``) is decoded once more by the forgiving standard decoder and put into the
same structs, member by member.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import Raw, Struct

from golem_adapters._toolkit.lenient import (
    elements,
    is_object,
    members,
    objects,
    read_json,
    text,
    whole,
)


class Function(Struct):
    """A function to call; in a stream a piece of one. Arguments are JSON text or an object."""

    name: str | None = None
    arguments: Raw = Raw(b"null")


class Custom(Struct):
    """A call of a free-text tool."""

    name: str | None = None
    input: str | None = None


class Call(Struct):
    """A tool call; in a stream a piece of one."""

    index: int | None = None
    id: str | None = None
    function: Function | None = None
    custom: Custom | None = None
    extra_content: Any = None


class Audio(Struct):
    """Spoken answer: base64 sound and what it says."""

    data: str | None = None
    transcript: str | None = None


class Said(Struct):
    """A message, or the piece of one that a stream's chunk brings (`delta`)."""

    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[Any] | None = None
    tool_calls: list[Call] | None = None
    function_call: Function | None = None
    audio: Audio | None = None
    images: list[Any] | None = None
    extra_content: Any = None


class Choice(Struct):
    """One of the alternatives; golem reads the first."""

    index: int | None = None
    delta: Said | None = None
    message: Said | None = None
    finish_reason: str | None = None
    error: Any = None


class GroqExtras(Struct):
    """Groq's own place for a stream's usage, its request id, and why it was broken off."""

    id: str | None = None
    usage: dict[str, Any] | None = None
    error: Any = None


class Chunk(Struct):
    """A whole answer, or one event of a stream."""

    id: str | None = None
    object: str | None = None
    model: str | None = None
    choices: list[Choice] | None = None
    usage: dict[str, Any] | None = None
    error: Any = None
    message: Any = None
    x_groq: GroqExtras | None = None


_strict = msgspec.json.Decoder(Chunk)
_string = msgspec.json.Decoder(str)


def read_chunk(data: bytes) -> Chunk | None:
    """`data` as a chunk; ``None`` where it is JSON but no object (a server's idle ``null``).

    Raises ValueError where it is no JSON at all.
    """
    try:
        return _strict.decode(data)
    except (msgspec.DecodeError, RecursionError):
        value = read_json(data)
    wrapped = elements(value)
    if len(wrapped) == 1:
        value = wrapped[0]  # Google wraps errors like this
    if is_object(value):
        return _chunk(value)
    if value is None:
        return None
    raise ValueError("not an object")


def arguments_text(raw: Raw) -> str:
    """The argument text in `raw`: a string's text, an object as it stands, null as nothing.

    A text may begin or end with half a character, as that of a `Said` may.
    """
    try:
        return _string.decode(raw)
    except msgspec.DecodeError:
        data = bytes(raw)
    if data[:1] == b'"':
        return _words(read_json(data))
    return "" if data == b"null" else data.decode("utf-8", "replace")


# --- the tolerant path: every member is taken if it fits, else left out


def _chunk(value: dict[str, Any]) -> Chunk:
    return Chunk(
        id=text(value.get("id")),
        object=text(value.get("object")),
        model=text(value.get("model")),
        choices=[_choice(item) for item in objects(value.get("choices"))],
        usage=members(value.get("usage")) or None,
        error=value.get("error"),
        message=value.get("message"),
        x_groq=_groq(members(value.get("x_groq"))),
    )


def _groq(value: dict[str, Any]) -> GroqExtras:
    return GroqExtras(text(value.get("id")), members(value.get("usage")), value.get("error"))


def _choice(value: dict[str, Any]) -> Choice:
    return Choice(
        index=whole(value.get("index")),
        delta=_said(value.get("delta")),
        message=_said(value.get("message")),
        finish_reason=text(value.get("finish_reason")),
        error=value.get("error"),
    )


def _said(said: object) -> Said | None:
    if not is_object(said):
        return None
    content = said.get("content")
    blocks = [content] if is_object(content) else elements(content)
    audio = members(said.get("audio"))
    return Said(
        content=_joined(blocks, "text") or _words(content),
        refusal=_joined(blocks, "refusal") or _words(said.get("refusal")),
        reasoning=_words(said.get("reasoning")),
        reasoning_content=_joined(blocks, "thinking") or _words(said.get("reasoning_content")),
        reasoning_details=elements(said.get("reasoning_details")),
        tool_calls=[_call(item) for item in objects(said.get("tool_calls"))],
        function_call=_function(said.get("function_call")),
        audio=Audio(text(audio.get("data")), text(audio.get("transcript"))),
        images=[*elements(said.get("images")), *_of_type(blocks, "image_url")],
        extra_content=said.get("extra_content"),
    )


def _call(value: dict[str, Any]) -> Call:
    custom = members(value.get("custom"))
    return Call(
        index=whole(value.get("index")),
        id=text(value.get("id")),
        function=_function(value.get("function")),
        custom=Custom(text(custom.get("name")), text(custom.get("input"))),
        extra_content=value.get("extra_content"),
    )


def _function(function: object) -> Function | None:
    if not is_object(function):
        return None
    # ASCII: half a surrogate pair stays an escape here and is settled where the text is read.
    raw = json.dumps(function.get("arguments"), separators=(",", ":")).encode()
    return Function(text(function.get("name")), Raw(raw))


def _joined(blocks: list[Any], kind: str) -> str:
    """The text of the content blocks of one type, which may hold blocks themselves."""
    texts: list[str] = []
    for block in blocks:
        if isinstance(block, str) and kind == "text":
            texts.append(block)
        texts.extend(
            _joined(elements(inner.get(kind)), "text") or _words(inner.get(kind))
            for inner in _of_type([block], kind)
        )
    return "".join(texts)


def _words(value: object) -> str:
    """`value` if it is a string. Halves of characters stay: the other may be in the next piece."""
    return value if isinstance(value, str) else ""


def _of_type(blocks: list[Any], kind: str) -> list[dict[str, Any]]:
    return [block for block in objects(blocks) if block.get("type", kind) == kind]
