"""Images and documents in Messages. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from golem.messages import Part
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.media import inline_data, is_data_url

_IMAGES: Final[Mapping[str, str]] = {
    "image/jpeg": "image/jpeg",
    "image/jpg": "image/jpeg",
    "image/png": "image/png",
    "image/gif": "image/gif",
    "image/webp": "image/webp",
}
_PDF: Final = ("application/pdf", "application/x-pdf")
_TEXTS: Final = ("application/json", "application/xml", "application/yaml", "application/csv")


def content_block(part: Part) -> Wire | str:
    """The content block for `part`, or why there is none."""
    if part.kind not in ("image", "document"):
        return f"{part.kind} part cannot be sent"
    data, media_type = part.data, part.media_type
    if is_data_url(part.url) and not data:
        read = inline_data(part.url)
        if read is None:
            return f"{part.kind} part has a data URL that cannot be read"
        data, media_type = read
    if not data and not part.url:
        return f"{part.kind} part has neither a URL nor data, which cannot be sent"
    if not data:
        if not _fetched(part.url):
            return f"{part.kind} part with a URL that is no http(s) address cannot be sent"
        return {"type": part.kind, "source": {"type": "url", "url": part.url}}
    kind = media_type.partition(";")[0].strip().lower()
    source = _image(data, kind) if part.kind == "image" else _document(data, kind)
    if source is None:
        return f"{part.kind} of type {media_type!r} cannot be sent"
    return {"type": part.kind, "source": source}


def _fetched(url: str) -> bool:
    """Whether the provider would fetch from `url`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def _image(data: bytes, kind: str) -> Wire | None:
    known = _IMAGES.get(kind)
    return None if known is None else _base64(data, known)


def _document(data: bytes, kind: str) -> Wire | None:
    if kind in _PDF:
        return _base64(data, "application/pdf")
    if kind.startswith("text/") or kind in _TEXTS:
        words = data.decode("utf-8", "replace")
        return {"type": "text", "media_type": "text/plain", "data": words}
    return None


def _base64(data: bytes, kind: str) -> Wire:
    return {"type": "base64", "media_type": kind, "data": base64.b64encode(data).decode()}
