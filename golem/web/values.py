"""Values of a run as JSON members of a frame: outputs, arguments, what tools have answered."""

from __future__ import annotations

import msgspec

from golem.codec import encode_json
from golem.rawjson import MAX_DEPTH, depth


def plain(value: object) -> msgspec.Raw:
    """A run's output as JSON; one that JSON cannot carry as ``{"unencodable": "its type"}``."""
    try:
        return msgspec.Raw(encode_json(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.Raw(encode_json({"unencodable": type(value).__qualname__}))


def embedded(text: str) -> msgspec.Raw | str:
    """A tool's result for a program: the JSON object or array that the text is, else the text."""
    data = text.strip().encode("utf-8", "replace")
    if data[:1] not in (b"{", b"["):
        return text
    try:
        msgspec.json.decode(data, type=msgspec.Raw)
        return msgspec.Raw(data) if depth(data) <= MAX_DEPTH else text
    except (msgspec.DecodeError, RecursionError):
        return text
