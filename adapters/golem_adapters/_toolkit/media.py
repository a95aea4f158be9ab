"""Media on their way to a provider: what an address alone says of them. Pure."""

from __future__ import annotations

import base64
import binascii
from urllib.parse import unquote_to_bytes


def is_data_url(url: str) -> bool:
    """Whether `url` holds the data itself."""
    return url[:5].lower() == "data:"


def inline_data(url: str) -> tuple[bytes, str] | None:
    """Data and media type of a data URL; None where it holds nothing that can be read."""
    head, comma, rest = url[5:].partition(",")
    media_type, semicolon, coding = head.rpartition(";")
    try:
        data = unquote_to_bytes(rest)
        if semicolon and coding.strip().lower() == "base64":
            data = base64.b64decode(data, validate=True)
        else:
            media_type = head
    except (binascii.Error, ValueError):
        return None
    return (data, media_type or "text/plain") if comma and data else None
