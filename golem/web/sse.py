"""A run as the body of an HTTP response: server-sent events, with heartbeats and ids.

`sse` is all a handler needs, in any framework; what the bytes mean is an encoder's business.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Self

import anyio

from golem.closing import CLEANUP_SECONDS
from golem.errors import RunError
from golem.events import TERMINAL
from golem.limits import check_number
from golem.web.background import Background, Bell, clock
from golem.web.frames import AnyEvent, EncoderFactory, Numbered
from golem.web.golem_events import golem_events

Events = AsyncIterable[AnyEvent] | Iterable[AnyEvent]

HEADERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "content-type": "text/event-stream; charset=utf-8",
        "cache-control": "no-cache, no-transform",
        "x-accel-buffering": "no",
    }
)
"""What a response with an event stream should say; an encoder may have more (`Encoder.headers`)."""

HELLO: Final = b": golem\n\n"
PING: Final = b": ping\n\n"

BURST: Final = 65_536
"""Bytes after which no more frames are put together that are ready at once.

A write of the size that servers hold before they wait for the socket (uvicorn's high-water mark,
asyncio's too).
"""

_LAST: Final = frozenset(TERMINAL)

_log = logging.getLogger("golem")


def sse(
    events: Events,
    *,
    encode: EncoderFactory = golem_events,
    ping: float | None = 15.0,
    after: str | None = None,
) -> EventStream:
    """The events of one run as the bytes of a ``text/event-stream`` (`HEADERS`).

    `events`: an entered or fresh ``agent.stream(...)``, or any iterable of events, sync or async.
    Nothing runs before the second chunk is pulled; the first is a comment and comes at once, so
    that a client sees the response begin. Chunks are whole frames; those that are ready together
    come together. A slow reader slows the run: at most one event is read ahead.

    `ping`: seconds without an event after which a comment goes out (None: never). It neither
    cancels nor hurries whoever makes the events. `after`: the id that a client has got last
    (``Last-Event-ID``): the events are encoded from the start, and what follows it is given out.

    A run that fails ends its stream in its terminal event; the `golem.RunError` behind it is not
    raised, since the client has been told and a torn response would be one more failure. Any other
    exception of `events` passes. The source is closed in any case, shielded and within
    `golem.closing.CLEANUP_SECONDS`: at its end, when the reader is cancelled, by ``aclose()`` from
    any task, and when the iterator is dropped.

    Raises ValueError for an `after` that is no id or (here for what has a `run_id`, else with the
    first event) of another run, and for a `ping` that is not positive; TypeError for what is no
    iterable, and for an `encode` that makes no encoder.
    """
    if ping is not None:
        check_number("ping", ping, positive=True)
    if isinstance(events, (str, bytes)) or not isinstance(events, (AsyncIterable, Iterable)):
        raise TypeError(
            f"agent.stream(...) or an iterable of events is wanted, not {type(events).__name__}"
        )
    if not callable(encode):
        raise TypeError(f"encode must be a function, such as ui_messages, not {encode!r:.80}")
    numbered = Numbered(encode(), after)
    if isinstance(run_id := getattr(events, "run_id", None), str):
        numbered.expect(run_id)
    return EventStream(events, numbered, ping)


class EventStream:
    """See `sse`. An async iterator of bytes with ``aclose()``; one task reads it."""

    def __init__(self, events: Events, numbered: Numbered, ping: float | None) -> None:
        self._feed = _Feed(events, numbered, ping)
        self._task: Background | None = None
        self._begun = False
        self._closed = False
        self._reading = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._reading:
            raise RuntimeError("the stream is being read by another task")
        if self._closed:
            raise StopAsyncIteration
        if not self._begun:
            self._begun = True
            return HELLO
        feed = self._feed
        if self._task is None:
            self._task = Background(feed.run)
        self._reading = True
        try:
            if not feed.ready and not feed.over:
                await feed.wait()
        except BaseException:
            await self.aclose()
            raise
        finally:
            self._reading = False
        if feed.ready and not self._closed:
            return feed.take()
        closed, self._closed = self._closed, True
        if feed.error is None or closed:
            raise StopAsyncIteration
        error, feed.error = feed.error, None
        raise error

    async def aclose(self) -> None:
        """End the stream and close its source; a read that another task is in ends at once."""
        self._closed = True
        with anyio.CancelScope(shield=True):  # closing the source has its own deadline
            if self._task is None:
                await self._feed.close()
            else:
                self._task.cancel()
                await self._task.ended()

    def __del__(self) -> None:
        # Dropped unread by a server that was cancelled at something else: servers rarely close
        # the iterators they read.
        task = getattr(self, "_task", None)
        if task is not None and not self._feed.over:
            task.abandon()


class _Feed:
    """What the task that reads the events and the reader of the bytes share.

    Events are read while the reader waits, and one beyond: nothing piles up behind its back.
    """

    def __init__(self, events: Events, numbered: Numbered, ping: float | None) -> None:
        self.ready: list[bytes] = []
        self.over = False
        self.error: BaseException | None = None
        self._given = events
        self._events = aiter(events) if isinstance(events, AsyncIterable) else _Each(events)
        self._numbered = numbered
        self._ping = ping
        self._size = 0
        self._ended = False  # a terminal event has been read
        self._clock: Callable[[], float] | None = None
        self._waiting_since: float | None = None
        self._reader_waits = False
        self._to_read = Bell()
        self._maker_waits = False
        self._to_make = Bell()

    # The reader

    async def wait(self) -> None:
        """Until there is something to take, or all is over."""
        self._reader_waits = True
        if self._ping is not None:
            self._clock = self._clock or clock()
            self._waiting_since = self._clock()
        try:
            await self._to_read.wait()
        finally:
            self._reader_waits, self._waiting_since = False, None

    def take(self) -> bytes:
        """What is ready, as one chunk."""
        chunk = self.ready[0] if len(self.ready) == 1 else b"".join(self.ready)
        self.ready.clear()
        self._size = 0
        if self._maker_waits:
            self._to_make.ring()
        return chunk

    def _put(self, chunk: bytes) -> None:
        self.ready.append(chunk)
        self._size += len(chunk)
        self._wake()

    def _wake(self) -> None:
        if self._reader_waits:
            self._to_read.ring()

    # The task

    async def run(self) -> None:
        """Read the events to their end; whatever happens is told to the reader."""
        try:
            if self._ping is None:
                await self._read()
            else:
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._beat, self._ping)
                    await self._read()
                    tasks.cancel_scope.cancel()
        finally:
            self.over = True
            self._wake()

    async def _read(self) -> None:
        try:
            async for event in self._events:
                if chunk := self._numbered.wire(event):
                    self._put(chunk)
                if type(event) in _LAST:
                    self._ended = True
                if self.ready and (not self._reader_waits or self._size >= BURST):
                    self._maker_waits = True
                    await self._to_make.wait()
                    self._maker_waits = False
            for frame in self._numbered.close():
                self._put(frame.encode())
        except RunError as error:
            if not self._ended:
                self.error = error
        except anyio.get_cancelled_exc_class() as error:
            if isinstance(error, asyncio.CancelledError):  # which the source may have made itself
                self.error = error
            raise
        except BaseException as error:  # noqa: BLE001 - for whoever reads
            self.error = error
        finally:
            await self.close()

    async def close(self) -> None:
        """Close the events, and what they came from where that is something else."""
        sources = [self._events] if self._given is self._events else [self._events, self._given]
        for source in sources:
            close: Callable[[], Any] | None = getattr(source, "aclose", None)
            if close is None:
                continue
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                try:
                    await close()
                except Exception:  # noqa: BLE001 - whatever a foreign source raises
                    _log.exception("the source of an event stream could not be closed")

    async def _beat(self, ping: float) -> None:
        """A comment, whenever the reader has waited so long for an event."""
        while True:
            now = anyio.current_time()
            since = self._waiting_since
            if since is None:
                await anyio.sleep(ping)
            elif since + ping > now:
                await anyio.sleep(since + ping - now)
            else:
                self._waiting_since = None
                self._put(PING)


class _Each:
    """The items of any iterable, as an async iterator. No generator: nothing is left open."""

    def __init__(self, items: Iterable[AnyEvent]) -> None:
        self._items = iter(items)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> AnyEvent:
        try:
            return next(self._items)
        except StopIteration:
            raise StopAsyncIteration from None

    async def aclose(self) -> None:
        close: Callable[[], Any] | None = getattr(self._items, "close", None)
        if close is not None:  # a generator's
            close()
