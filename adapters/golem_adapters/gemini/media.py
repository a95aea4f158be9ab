"""Images, sound, video and documents in Gemini, out and in. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from golem.messages import PART_KINDS, Part
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.lenient import is_object, text
from golem_adapters._toolkit.media import WEB, inline_data, is_address, is_data_url

RESULT_TYPES: Final = frozenset(
    {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
)
"""The types of media that a tool's result may hold."""

_FETCHED: Final = (*WEB, "gs")
"""The schemes of addresses that Google fetches from: the web, its own files there, its storage."""

_TAKEN: Final = ("image/", "audio/", "video/", "text/", "application/pdf")
"""How the media types begin that Gemini takes; what else is text goes out as such."""

_TEXTS: Final = ("application/json", "application/xml", "application/yaml", "application/csv")
_ENDINGS: Final[Mapping[str, str]] = {
    "png": "image/png",
    "jpg": "image/jpeg",
    "jpeg": "image/jpeg",
    "webp": "image/webp",
    "heic": "image/heic",
    "heif": "image/heif",
    "gif": "image/gif",
    "pdf": "application/pdf",
    "txt": "text/plain",
    "md": "text/plain",
    "html": "text/html",
    "csv": "text/csv",
    "wav": "audio/wav",
    "mp3": "audio/mpeg",
    "aac": "audio/aac",
    "ogg": "audio/ogg",
    "flac": "audio/flac",
    "mp4": "video/mp4",
    "mov": "video/quicktime",
    "webm": "video/webm",
    "mpeg": "video/mpeg",
}
_USUAL: Final[Mapping[str, str]] = {
    "image": "image/jpeg",
    "document": "application/pdf",
    "audio": "audio/mpeg",
    "video": "video/mp4",
}


# --- out


def content_part(part: Part) -> Wire | str:
    """The content part for `part`, or why there is none."""
    if part.kind not in PART_KINDS:
        return f"{part.kind} part cannot be sent"
    data, media_type = part.data, part.media_type
    if is_data_url(part.url) and not data:
        read = inline_data(part.url)
        if read is None:
            return f"{part.kind} part has a data URL that cannot be read"
        data, media_type = read
    if not data and not part.url:
        return f"{part.kind} part has neither a URL nor data, which cannot be sent"
    if not data and not is_address(part.url, _FETCHED):
        return f"{part.kind} part with a URL that is no http(s) or gs address cannot be sent"
    if data and not media_type.strip():
        return f"{part.kind} part has data without a media type, which cannot be sent"
    kind = _sent_type(media_type) or _guessed(part)
    if not kind.lower().startswith(_TAKEN):
        return f"{part.kind} of type {media_type!r} cannot be sent"
    if not data:
        return {"fileData": {"mimeType": kind, "fileUri": part.url}}
    return {"inlineData": {"mimeType": kind, "data": base64.b64encode(data).decode()}}


def media_type_of(wire: Wire) -> str:
    """The bare media type that a content part of media names."""
    (source,) = wire.values()
    return text(source["mimeType"]).partition(";")[0].strip().lower()


def _sent_type(media_type: str) -> str:
    """How `media_type` is known here; parameters stay, a sound's rate is one."""
    bare = media_type.partition(";")[0].strip().lower()
    if bare == "image/jpg":
        return "image/jpeg"
    return "text/plain" if bare in _TEXTS else media_type


def _guessed(part: Part) -> str:
    """The media type of what an address leads to, which Vertex demands to know."""
    try:
        ending = urlsplit(part.url).path.rpartition(".")[2].lower()
    except ValueError:
        ending = ""
    found = _ENDINGS.get(ending, "")
    fits = found.startswith(f"{part.kind}/") or (part.kind == "document" and found)
    return found if fits else _USUAL[part.kind]


# --- in


def medium_in(members: Mapping[str, Any]) -> Part | None:
    """The media in the members of a part, if there are any that can be read."""
    inline, file = members.get("inlineData"), members.get("fileData")
    if is_object(inline):
        media_type = text(inline.get("mimeType"))
        data = _decoded(text(inline.get("data")))
        return Part(_kind(media_type), data=data, media_type=media_type) if data else None
    if is_object(file) and (url := text(file.get("fileUri"))):
        media_type = text(file.get("mimeType"))
        return Part(_kind(media_type), url=url, media_type=media_type)
    return None


def _kind(media_type: str) -> str:
    kind = media_type.partition("/")[0].lower()
    return kind if kind in PART_KINDS else "document"


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        return b""
