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

from golem import rawjson


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
    """Groq's own place for usage in a stream."""

    usage: dict[str, Any] | None = None


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


def read_chunk(data: bytes) -> Chunk | None:
    """`data` as a chunk; ``None`` where it is JSON but no object (a server's idle ``null``).

    Raises ValueError where it is no JSON at all.
    """
    try:
        return _strict.decode(data)
    except (msgspec.DecodeError, RecursionError):
        value = read_json(data)
    if isinstance(value, list) and len(value) == 1:
        value = value[0]  # Google wraps errors like this
    if isinstance(value, dict):
        return _chunk(value)
    if value is None:
        return None
    raise ValueError("not an object")


def read_json(data: bytes) -> Any:
    """Any JSON, however careless: bad UTF-8, raw control characters, NaN. Raises ValueError."""
    try:
        return json.loads(data.decode("utf-8", "replace"), strict=False)
    except RecursionError:
        raise ValueError("nested too deep") from None


# --- the tolerant path: every member is taken if it fits, else left out


def _chunk(value: dict[str, Any]) -> Chunk:
    groq = value.get("x_groq")
    return Chunk(
        id=_str(value.get("id")),
        object=_str(value.get("object")),
        model=_str(value.get("model")),
        choices=[_choice(item) for item in _dicts(value.get("choices"))],
        usage=_dict(value.get("usage")),
        error=value.get("error"),
        message=value.get("message"),
        x_groq=GroqExtras(_dict(groq.get("usage"))) if isinstance(groq, dict) else None,
    )


def _choice(value: dict[str, Any]) -> Choice:
    return Choice(
        index=_int(value.get("index")),
        delta=_said(value.get("delta")),
        message=_said(value.get("message")),
        finish_reason=_str(value.get("finish_reason")),
        error=value.get("error"),
    )


def _said(value: Any) -> Said | None:
    if not isinstance(value, dict):
        return None
    content = value.get("content")
    blocks = content if isinstance(content, list) else []
    said = Said(
        content=_joined(blocks, "text") or _str(content),
        refusal=_joined(blocks, "refusal") or _str(value.get("refusal")),
        reasoning=_str(value.get("reasoning")),
        reasoning_content=_joined(blocks, "thinking") or _str(value.get("reasoning_content")),
        reasoning_details=_list(value.get("reasoning_details")),
        tool_calls=[_call(item) for item in _dicts(value.get("tool_calls"))],
        function_call=_function(value.get("function_call")),
        images=[*(_list(value.get("images")) or []), *_of_type(blocks, "image_url")],
        extra_content=value.get("extra_content"),
    )
    audio = value.get("audio")
    if isinstance(audio, dict):
        said.audio = Audio(_str(audio.get("data")), _str(audio.get("transcript")))
    return said


def _call(value: dict[str, Any]) -> Call:
    custom = value.get("custom")
    return Call(
        index=_int(value.get("index")),
        id=_str(value.get("id")),
        function=_function(value.get("function")),
        custom=Custom(_str(custom.get("name")), _str(custom.get("input")))
        if isinstance(custom, dict)
        else None,
        extra_content=value.get("extra_content"),
    )


def _function(value: Any) -> Function | None:
    if not isinstance(value, dict):
        return None
    arguments = value.get("arguments")
    # ASCII: half a surrogate pair stays an escape here and is settled where the text is read.
    raw = Raw(json.dumps(arguments, separators=(",", ":")).encode())
    return Function(_str(value.get("name")), raw)


def arguments_text(raw: Raw) -> str:
    """The argument text in `raw`: a string's text, an object as it stands, null as nothing."""
    data = bytes(raw)
    if data[:1] == b'"':
        return rawjson.text(data)
    return "" if data == b"null" else data.decode("utf-8", "replace")


def _joined(blocks: list[Any], kind: str) -> str:
    """The text of the content blocks of one type, which may hold blocks themselves."""
    texts: list[str] = []
    for block in _of_type(blocks, kind):
        inner = block.get(kind)
        texts.append(_joined(inner, "text") if isinstance(inner, list) else _str(inner) or "")
    if kind == "text":
        texts = texts or [_str(block) or "" for block in blocks if isinstance(block, str)]
    return "".join(texts)


def _of_type(blocks: list[Any], kind: str) -> list[dict[str, Any]]:
    return [block for block in _dicts(blocks) if block.get("type", kind) == kind]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _dict(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _list(value: Any) -> list[Any] | None:
    return value if isinstance(value, list) else None


def _str(value: Any) -> str | None:
    return rawjson.clean_text(value) if isinstance(value, str) else None


def _int(value: Any) -> int | None:
    return value if type(value) is int else None
