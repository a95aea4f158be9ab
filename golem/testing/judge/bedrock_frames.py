"""AWS event streams as a server writes them: frames, all numbers big-endian. Pure.

Written out a second time, beside the reader in `golem.wire.eventstream`, so that the two can
disagree.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Iterator
from typing import Final
from zlib import crc32

from golem.testing.judge.answers import spelled
from golem.testing.judge.findings import JSON

_BLOCK: Final = 65536
_HERE: Final = "HUGE"


def frame(name: str, payload: JSON, kind: str = "event") -> bytes:
    """One frame of an event stream: an event of this name, or an exception."""
    padded = {**payload, "p": "abcdefghijklm"} if kind == "event" else payload
    data = spelled(padded).encode("utf-8", "replace")
    body = _begun(name, kind, len(data)) + data
    return body + struct.pack(">I", crc32(body))


def large_frame(size: int) -> Iterator[bytes]:
    """A piece of text of `size` bytes as one frame, in pieces."""
    delta = spelled({"contentBlockIndex": 0, "delta": {"text": _HERE}}).encode()
    head, tail = delta.split(_HERE.encode())
    begun = _begun("contentBlockDelta", "event", len(head) + size + len(tail)) + head
    full = itertools.repeat(b"x" * _BLOCK, size // _BLOCK)
    check = 0
    for piece in itertools.chain([begun], full, [b"x" * (size % _BLOCK), tail]):
        check = crc32(piece, check)
        yield piece
    yield struct.pack(">I", check)


def _begun(name: str, kind: str, size: int) -> bytes:
    """All of a frame that stands before its payload of `size` bytes."""
    headers = b"".join(
        bytes([len(header)]) + header.encode() + b"\x07" + struct.pack(">H", len(value)) + value
        for header, value in (
            (f":{kind}-type", name.encode()),
            (":content-type", b"application/json"),
            (":message-type", kind.encode()),
        )
    )
    prelude = struct.pack(">II", 16 + len(headers) + size, len(headers))
    return prelude + struct.pack(">I", crc32(prelude)) + headers
