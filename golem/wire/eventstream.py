"""AWS event streams (``application/vnd.amazon.eventstream``), as a push parser: bytes to frames.

A frame is, all numbers big-endian: its length and that of its headers (4 bytes each), the CRC-32
of those eight bytes, the headers, the payload, and the CRC-32 of everything before it. Both sums
are checked before a byte is believed. What a payload means is an adapter's business. No I/O, no
clock.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final, NamedTuple
from zlib import crc32

from golem.errors import ProtocolError, TransportError

MAX_FRAME: Final = 24 * 1024 * 1024
"""Most bytes of one frame: what AWS's own clients accept. Real frames hold a few hundred."""

MAX_HEADERS: Final = 128 * 1024
"""Most bytes of one frame's headers, as in AWS's own clients."""

_PRELUDE: Final = struct.Struct(">III")
_SUM: Final = struct.Struct(">I")
_SHORT: Final = struct.Struct(">H")
_FRAME_SIZE: Final = _PRELUDE.size + _SUM.size
_STRING: Final = 7
_SIZED: Final = (6, _STRING)
_SIZES: Final[Mapping[int, int]] = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4, 5: 8, 8: 8, 9: 16}
"""Bytes of a header's value by its type: true, false, integers, a time, a UUID."""


class Frame(NamedTuple):
    """One frame: the headers that are texts, by name, and the payload.

    `kind` is ``event``, ``exception`` (an error that the service's model has) or ``error`` (one
    that it has not), and `name` which one it is.
    """

    headers: Mapping[str, str]
    payload: bytes

    @property
    def kind(self) -> str:
        """The ``:message-type``; a frame that says none is an event."""
        return self.headers.get(":message-type", "event")

    @property
    def name(self) -> str:
        """The type of the event or exception, or the code of the error; empty where unsaid."""
        header = {"exception": ":exception-type", "error": ":error-code"}.get(self.kind)
        return self.headers.get(header or ":event-type", "")


class EventStreamDecoder:
    """Cuts the bytes of one stream into frames; splits may fall anywhere.

    Call `feed` with every chunk as it comes, then `close` once. Frames in front of a damaged
    one are given out first; the call after that raises, and so does every later one.
    """

    __slots__ = ("_failure", "_held", "_wanted")

    def __init__(self) -> None:
        self._held = bytearray()
        self._wanted = _PRELUDE.size  # bytes without which there is nothing to do
        self._failure: ProtocolError | None = None

    def feed(self, chunk: bytes) -> list[Frame]:
        """The frames that `chunk` completes, in order.

        Raises `golem.errors.ProtocolError` where the call before met a frame whose sums do not
        fit, whose lengths cannot be or whose headers cannot be read.
        """
        if self._failure is not None:
            raise self._failure
        self._held += chunk
        frames: list[Frame] = []
        place = 0
        try:
            while len(self._held) - place >= self._wanted:
                end = place + self._length(place)
                if len(self._held) < end:
                    self._wanted = end - place
                    break
                frames.append(_frame(bytes(memoryview(self._held)[place:end])))
                self._wanted, place = _PRELUDE.size, end
        except ProtocolError as error:
            self._failure = error
        del self._held[:place]
        return frames

    def close(self) -> list[Frame]:
        """Nothing more; raises where the stream did not end between two frames.

        `golem.errors.ProtocolError` as `feed`, `golem.errors.TransportError` for half a frame.
        """
        if self._failure is not None:
            raise self._failure
        if self._held:
            raise TransportError("the stream ended inside a frame")
        return []

    def _length(self, place: int) -> int:
        """The length of the frame that begins at `place`, of which the sums fit."""
        length, headers, check = _PRELUDE.unpack_from(self._held, place)
        if crc32(memoryview(self._held)[place : place + 8]) != check:
            raise ProtocolError("the beginning of a frame is damaged")
        if not _FRAME_SIZE + headers <= length <= MAX_FRAME or headers > MAX_HEADERS:
            raise ProtocolError(f"a frame of {length} bytes with {headers} bytes of headers")
        return int(length)


def _frame(data: bytes) -> Frame:
    """The frame whose bytes are `data`."""
    body, (check,) = data[: -_SUM.size], _SUM.unpack(data[-_SUM.size :])
    if crc32(body) != check:
        raise ProtocolError("a frame is damaged")
    start = _PRELUDE.size
    end = start + _PRELUDE.unpack_from(data)[1]
    try:
        headers = _headers(body[start:end])
    except (struct.error, IndexError, KeyError, UnicodeDecodeError) as error:
        raise ProtocolError("the headers of a frame cannot be read") from error
    return Frame(headers, body[end:])


def _headers(data: bytes) -> dict[str, str]:
    """The text headers in `data`; the others are passed over by their size."""
    found: dict[str, str] = {}
    place = 0
    while place < len(data):
        begin = place + 1
        end = begin + data[place]
        name, kind = data[begin:end].decode(), data[end]
        place = end + 1
        if kind in _SIZED:
            (size,) = _SHORT.unpack_from(data, place)
            place += _SHORT.size
        else:
            size = _SIZES[kind]
        if kind == _STRING:
            found[name] = data[place : place + size].decode()
        place += size
    if place != len(data):
        raise IndexError(place)
    return found
