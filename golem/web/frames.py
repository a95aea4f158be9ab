"""What an event stream is made of: frames, the encoders that make them, and the ids they carry.

Pure: bytes in a `Frame` are one server-sent event (WHATWG, "Server-sent events" in the HTML
standard), an `Encoder` makes them of a run's events, `Numbered` gives each its id and picks up
behind one that a reader already has. Which protocol the data speaks is the encoders' business;
when anything is sent is ``golem.web.sse``'s.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, Protocol
from urllib.parse import quote

import msgspec
from msgspec import Struct

from golem.events import Event, UnknownEvent

AnyEvent = Event | UnknownEvent

_BREAKS: Final = re.compile(rb"\r\n|\n|\r")
_NOT_IN_A_FIELD: Final = re.compile(r"[\r\n\0]")
_PLAIN: Final = "!\"#$&'()*+,/:;<=>?@[\\]^`{|}"
"""What an id may hold as it is, beside letters and digits: all of printable ASCII but ``%``."""

_ID: Final = re.compile(r"(?P<run>.+):(?P<seq>[0-9]{1,18})(?:\.(?P<sub>[0-9]{1,18}))?", re.DOTALL)


class Frame(Struct, frozen=True, gc=False):
    """One server-sent event: its data, and its `event` and `id` fields where they are not empty."""

    data: bytes
    event: str = ""
    id: str = ""

    def encode(self) -> bytes:
        """The frame as it is sent, its blank line included."""
        data = self.data
        if b"\n" in data or b"\r" in data:
            data = _BREAKS.sub(b"\ndata: ", data)
        name = b"event: %b\n" % _field(self.event) if self.event else b""
        number = b"id: %b\n" % _field(self.id) if self.id else b""
        return b"%b%bdata: %b\n\n" % (number, name, data)

    __bytes__ = encode


def _field(text: str) -> bytes:
    return _NOT_IN_A_FIELD.sub(" ", text).encode("utf-8", "replace")


class Encoder(Protocol):
    """Makes one stream's frames of one run's events. Push, pure: the same events, the same frames.

    Call `feed` with every event in order, then `close` once.
    """

    @property
    def headers(self) -> Mapping[str, str]:
        """Response headers of this protocol, beside those of every event stream."""
        ...

    def feed(self, event: AnyEvent) -> list[Frame]:
        """The frames of this event; behind the terminal one the protocol's own end (``[DONE]``)."""
        ...

    def close(self) -> list[Frame]:
        """What tells the reader that the events ended before the run did; nothing after a terminal.

        These frames are no part of the run and get no id: who has read them resumes behind the
        last event.
        """
        ...


EncoderFactory = Callable[[], Encoder]


class Place(Struct, frozen=True, gc=False):
    """Where in a run's frames an id points: behind frame `sub` of event `seq`; None: its last."""

    run: str
    seq: int
    sub: int | None = None


def place_of(id: str) -> Place:
    """What an id of ``RUN_ID:SEQ`` or ``RUN_ID:SEQ.K`` points at; `run` as `quoted` spells it.

    Raises ValueError for any other text.
    """
    found = _ID.fullmatch(id)
    if found is None:
        raise ValueError(f"not the id of an event: {id[:200]!r}")
    sub = found["sub"]
    return Place(found["run"], int(found["seq"]), None if sub is None else int(sub))


def quoted(run_id: str) -> str:
    """The run's id as it stands in frame ids: what no header and no SSE field may hold is %xx."""
    return quote(run_id, safe=_PLAIN, errors="replace")


class Numbered:
    """An encoder's frames with their ids: those that follow `after`, each of them once.

    The last frame of the event with number SEQ has the id ``RUN_ID:SEQ``, one before it
    ``RUN_ID:SEQ.K``, where K frames of that event came earlier: so a reader that has any frame is
    given the rest, however many frames an event is. Feed all events from the start.

    Raises ValueError for an `after` that is no id, and with the first event for one of another run.
    """

    def __init__(self, encoder: Encoder, after: str | None = None) -> None:
        self._encoder = encoder
        self._run = ""
        self._prefix = ""
        self._head = b""
        self._seq = -1
        self._after = None if after is None else place_of(after)

    def feed(self, event: AnyEvent) -> list[Frame]:
        """The frames of the event that the reader does not have."""
        frames = self._encoder.feed(event)
        seq = self._place(event)
        if self._after is not None:
            return self._behind(self._after, seq, frames)
        return self._with_ids(seq, frames)

    def wire(self, event: AnyEvent) -> bytes:
        """The same as bytes: what `feed` gives, encoded. The fast path of a stream."""
        frames = self._encoder.feed(event)
        seq = self._place(event)
        if len(frames) == 1 and self._after is None:
            frame = frames[0]
            data = frame.data
            if not frame.event and b"\n" not in data and b"\r" not in data:
                return b"id: %b%d\ndata: %b\n\n" % (self._head, seq, data)
        if self._after is not None:
            frames = self._behind(self._after, seq, frames)
        else:
            frames = self._with_ids(seq, frames)
        return b"".join([frame.encode() for frame in frames])

    def _place(self, event: AnyEvent) -> int:
        """The event's number; its run is entered."""
        if isinstance(event, UnknownEvent):
            run, seq = _unknown_place(event, self._run, self._seq)
        else:
            run, seq = event.run_id, event.seq
        if run != self._run:
            self._enter(run)
        self._seq = seq
        return seq

    def close(self) -> list[Frame]:
        """What the encoder still has to say, without ids."""
        return self._encoder.close()

    def expect(self, run_id: str) -> None:
        """Raise ValueError where `after` is the id of another run than this."""
        if self._after is not None and quoted(run_id) != self._after.run:
            raise ValueError(
                f"the id to go on behind is of run {self._after.run[:200]!r}, not {run_id!r}"
            )

    def _enter(self, run: str) -> None:
        self.expect(run)
        self._run, self._prefix = run, f"{quoted(run)}:"
        self._head = self._prefix.encode()

    def _behind(self, after: Place, seq: int, frames: list[Frame]) -> list[Frame]:
        if seq > after.seq:
            self._after = None
            return self._with_ids(seq, frames)
        if seq < after.seq or after.sub is None:
            return []
        return self._with_ids(seq, frames)[after.sub + 1 :]

    def _with_ids(self, seq: int, frames: list[Frame]) -> list[Frame]:
        last = len(frames) - 1
        return [
            Frame(frame.data, frame.event, f"{self._prefix}{seq}" + ("" if k == last else f".{k}"))
            for k, frame in enumerate(frames)
        ]


class _Stamp(Struct, rename="camel"):
    run_id: str = ""
    seq: int = -1


def _unknown_place(event: UnknownEvent, run: str, seq: int) -> tuple[str, int]:
    """Run and number of an event nobody here can read; by those before it where it says neither."""
    try:
        stamp = msgspec.json.decode(event.data, type=_Stamp)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        stamp = _Stamp()
    return stamp.run_id or run, stamp.seq if stamp.seq > seq else seq + 1
