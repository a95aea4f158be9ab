"""Writes AWS event-stream frames, for tests: the counterpart of `golem.wire.eventstream`."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from typing import Any
from zlib import crc32


def header(name: str, value: str) -> bytes:
    """One header whose value is a text."""
    spelled = value.encode()
    return typed(name, 7, struct.pack(">H", len(spelled)) + spelled)


def typed(name: str, kind: int, value: bytes) -> bytes:
    """One header with the bytes of a value of `kind`."""
    return bytes([len(name.encode())]) + name.encode() + bytes([kind]) + value


def frame(headers: Mapping[str, str] | bytes, payload: bytes) -> bytes:
    """A frame with good sums."""
    if not isinstance(headers, bytes):
        headers = b"".join(header(name, value) for name, value in headers.items())
    length = 16 + len(headers) + len(payload)
    prelude = struct.pack(">II", length, len(headers))
    body = prelude + struct.pack(">I", crc32(prelude)) + headers + payload
    return body + struct.pack(">I", crc32(body))


def event(name: str, payload: Any, kind: str = "event") -> bytes:
    """A frame as Bedrock sends it."""
    headers = {
        f":{kind}-type": name,
        ":content-type": "application/json",
        ":message-type": kind,
    }
    return frame(headers, json.dumps(payload, separators=(",", ":")).encode())
