"""Server-sent events, as a push parser: bytes in, events out.

The rules are WHATWG's ("Server-sent events" in the HTML standard). What an event's data means
(JSON, ``[DONE]``) is an adapter's business, so data stays bytes: a JSON decoder takes them as
they are and nothing is decoded twice. No I/O, no clock.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, cast

from golem.errors import ProtocolError

MAX_EVENT: Final = 64 * 1024 * 1024
"""Most bytes of one event that are held while waiting for its end.

Twice the largest request body that providers document (32 MB), and room for a final event that
repeats a whole response with inline images (seen above 10 MB). Other clients stop at 1 MiB, and
then cut such responses; no limit at all lets a broken server fill the memory.
"""

_BOM: Final = b"\xef\xbb\xbf"
_BESIDE: Final = 48
"""Bytes that a line takes in memory beside its own: an event of a million empty `data` lines is a
few megabytes on the wire."""

_LONGEST_RETRY: Final = 18
"""Digits of a `retry` that are read: more than a machine word is no waiting time."""


class ServerSentEvent(NamedTuple):
    """One event: its `data` lines joined by a line feed, and what was said beside them.

    `event` is empty where the stream named none, `id` is the last one the stream has sent and
    `retry` is in milliseconds. `unfinished` marks the event that `SSEDecoder.close` found
    without the blank line that ends an event.
    """

    data: bytes
    event: str = ""
    id: str = ""
    retry: int | None = None
    unfinished: bool = False

    @property
    def text(self) -> str:
        """The data as text; bytes that are not UTF-8 become U+FFFD, as the standard says."""
        return self.data.decode("utf-8", "replace")


_new: Final[Callable[..., ServerSentEvent]] = cast("Any", tuple).__new__
"""Makes a named tuple in half the time that its own call takes."""


class SSEDecoder:
    """Cuts the bytes of one stream into events; splits may fall anywhere, inside CRLF too.

    Call `feed` with every chunk as it comes, then `close` once.
    """

    __slots__ = (
        "_after_cr",
        "_begun",
        "_data",
        "_data_size",
        "_event",
        "_id",
        "_line",
        "_retry",
    )

    def __init__(self) -> None:
        self._line = bytearray()  # the one that has not ended, in whatever pieces it comes
        self._data: list[bytes] = []  # the data lines of the event that has not ended
        self._data_size = 0
        self._event = ""
        self._id = ""
        self._retry: int | None = None
        self._after_cr = False
        self._begun = False

    def feed(self, chunk: bytes) -> list[ServerSentEvent]:
        """The events that `chunk` completes, in order.

        Raises `golem.errors.ProtocolError` when one event grows past `MAX_EVENT`.
        """
        if not chunk:
            return []
        # A carriage return ends its line at once, so that nothing waits for the next chunk; the
        # line feed that may belong to it is then dropped from there.
        if self._after_cr and chunk[0] == 0x0A:
            chunk = chunk[1:]
            self._after_cr = False
            if not chunk:
                return []
        if b"\r" in chunk:
            self._after_cr = chunk[-1] == 0x0D
            chunk = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        else:
            self._after_cr = False
        if b"\n" not in chunk:
            self._hold(chunk)
            return []
        if self._line:
            self._line += chunk
            chunk = bytes(self._line)
            self._line.clear()
        lines = chunk.split(b"\n")
        unended = lines.pop()
        if not self._begun:
            self._begun = True
            lines[0] = lines[0].removeprefix(_BOM)
        data = self._data
        before = len(data)
        events = self._read(lines)
        if data:
            # Count each line once: all of them are new after a dispatch, else those added now.
            new = data if events else data[before:]
            size = sum(map(len, new)) + _BESIDE * len(new)
            self._data_size = size if events else self._data_size + size
            self._hold(unended)
        else:
            self._data_size = 0
            if unended:
                self._hold(unended)
        return events

    def close(self) -> list[ServerSentEvent]:
        """The event that the end of the stream cut short, or nothing. Call it once, last.

        The standard discards an event without its blank line. Some servers never send that
        line after their last event, so it is given out all the same, marked `unfinished`: only
        the reader of the data can tell whether it is whole. Bytes that hold no data (half a
        field name, a comment) tell nothing and are dropped.
        """
        line = bytes(self._line)
        self._line.clear()
        if not self._begun:
            line = line.removeprefix(_BOM)
        events = self._read([line]) if line else []
        if self._data:
            events.append(self._dispatch(unfinished=True))
        return events

    def _read(self, lines: list[bytes]) -> list[ServerSentEvent]:
        events: list[ServerSentEvent] = []
        data = self._data
        for line in lines:
            if line[:6] == b"data: ":
                data.append(line[6:])
            elif line:
                self._field(line)
            elif data:
                if self._event or self._retry is not None or len(data) > 1:
                    events.append(self._dispatch())
                else:  # what practically every event of a model is: a line of data, nothing else
                    events.append(_new(ServerSentEvent, (data.pop(), "", self._id, None, False)))
            else:
                self._event = ""
                self._retry = None
        return events

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) <= _LONGEST_RETRY:
            self._retry = int(value)
        # Anything else is a comment (an empty name) or a field nobody knows: skipped.

    def _dispatch(self, *, unfinished: bool = False) -> ServerSentEvent:
        data = self._data
        whole = data[0] if len(data) == 1 else b"\n".join(data)
        event = ServerSentEvent(whole, self._event, self._id, self._retry, unfinished)
        data.clear()
        self._event = ""
        self._retry = None
        return event

    def _hold(self, piece: bytes) -> None:
        self._line += piece
        if len(self._line) + self._data_size > MAX_EVENT:
            raise ProtocolError(f"an event of the stream is larger than {MAX_EVENT} bytes")
