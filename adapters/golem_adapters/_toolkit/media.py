"""Media on their way to a provider: what an address alone says of them. Pure."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Collection
from typing import Final
from urllib.parse import unquote_to_bytes, urlsplit

WEB: Final = ("http", "https")
"""The schemes of addresses that every server fetches from which fetches anything."""


def is_data_url(url: str) -> bool:
    """Whether `url` holds the data itself."""
    return url[:5].lower() == "data:"


def is_address(url: str, schemes: Collection[str] = WEB) -> bool:
    """Whether `url` names a place, under one of these `schemes`."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in schemes and bool(parts.netloc)


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
