"""Images, sound, documents and video in Chat Completions, out and in. Pure."""

from __future__ import annotations

import base64
import binascii
import contextlib
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from golem.messages import Part
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.lenient import members, text
from golem_adapters._toolkit.media import inline_data, is_address, is_data_url
from golem_adapters.openai.dialect import ChatDialect

_AUDIO_FORMATS: Final[Mapping[str, str]] = {
    "audio/wav": "wav",
    "audio/wave": "wav",
    "audio/x-wav": "wav",
    "audio/vnd.wave": "wav",
    "audio/mp3": "mp3",
    "audio/mpeg": "mp3",
}
_FILE_ENDINGS: Final[Mapping[str, str]] = {"plain": "txt", "markdown": "md"}
_SOUNDS: Final = (
    (b"RIFF", "audio/wav"),
    (b"ID3", "audio/mpeg"),
    (b"\xff\xfb", "audio/mpeg"),
    (b"\xff\xf3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"OggS", "audio/ogg"),
)


# --- out


def content_part(part: Part, dialect: ChatDialect) -> Wire | str:
    """The content part for `part`, or why there is none."""
    found = carried(part)
    if isinstance(found, str):
        return found
    part = found
    match part.kind:
        case "image":
            return {"type": "image_url", "image_url": {"url": link(part)}}
        case "audio":
            return audio_part(part)
        case "document":
            return _document(part, dialect)
        case "video" if dialect.videos:
            return {"type": "video_url", "video_url": {"url": link(part)}}
        case _:
            return f"{part.kind} part cannot be sent"


def carried(part: Part) -> Part | str:
    """`part`, inline where its URL holds the data itself; or why no server can get at it."""
    if is_data_url(part.url) and not part.data:
        read = inline_data(part.url)
        if read is None:
            return f"{part.kind} part has a data URL that cannot be read"
        part = Part(part.kind, data=read[0], media_type=read[1])
    if part.data:
        known = part.kind == "audio" or _has_its_type(part)  # a sound's are known one by one
        return part if known else f"{part.kind} of type {part.media_type!r} cannot be sent"
    if not part.url:
        return f"{part.kind} part has neither a URL nor data, which cannot be sent"
    if not is_address(part.url):
        return f"{part.kind} part with a URL that is no http(s) address cannot be sent"
    return part


def _has_its_type(part: Part) -> bool:
    """Whether the media type is one, and for pictures one of their kind."""
    family, _, name = part.media_type.lower().partition("/")
    return bool(family and name) and (part.kind == "document" or family == part.kind)


def audio_part(part: Part) -> Wire | str:
    """The content part for a sound, or why there is none."""
    if not part.data:
        return "audio by URL cannot be sent"
    kind = _AUDIO_FORMATS.get(part.media_type.partition(";")[0].strip().lower())
    if kind is None:
        return f"audio of type {part.media_type!r} cannot be sent (only wav and mp3)"
    return {"type": "input_audio", "input_audio": {"data": _base64(part.data), "format": kind}}


def _document(part: Part, dialect: ChatDialect) -> Wire | str:
    if not dialect.files:
        return "document part cannot be sent"
    if not part.data and not dialect.file_urls:
        return "document by URL cannot be sent"
    if dialect.document_part == "document_url":
        return {"type": "document_url", "document_url": link(part)}
    return {"type": "file", "file": {"filename": file_name(part), "file_data": link(part)}}


def file_name(part: Part) -> str:
    """A name for a document, which providers require beside its data.

    Made from the data, it is the same in every request.
    """
    subtype = part.media_type.partition(";")[0].rpartition("/")[2] or "pdf"
    digest = blake2b(part.data or part.url.encode("utf-8", "replace"), digest_size=4).hexdigest()
    return f"document-{digest}.{_FILE_ENDINGS.get(subtype, subtype)}"


def link(part: Part) -> str:
    """The address of `part`; inline data as a data URL."""
    return part.url or f"data:{part.media_type};base64,{_base64(part.data)}"


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


# --- in


def image_in(item: Any) -> Part | None:
    """The part for an image that a model made."""
    link = members(item).get("image_url")
    url = text(members(link).get("url")) or text(link)
    if not url:
        return None
    head, comma, data = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return Part.image_url(url)
    image = decoded([data])
    media_type = head[len("data:") : -len(";base64")] or "image/png"
    return Part.image(image, media_type) if image else None


def spoken(sounds: list[str]) -> tuple[Part, ...]:
    """The part for a spoken answer; its format is not in the answer, but in its first bytes."""
    data = decoded(sounds) if sounds else b""
    if not data:
        return ()
    kinds = (kind for head, kind in _SOUNDS if data.startswith(head))
    return (Part.audio(data, next(kinds, "audio/pcm")),)


def decoded(pieces: list[str]) -> bytes:
    """The bytes of base64 text that came in pieces, cut anywhere or each encoded by itself."""
    for cuts in (pieces, ["".join(pieces)]):
        with contextlib.suppress(binascii.Error, ValueError):
            return b"".join(base64.b64decode(piece, validate=True) for piece in cuts)
    return b""  # neither: the text of the answer is all there is
