"""Sources of events for streams, and whether a stream has left anything behind."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator

import anyio
import anyio.lowlevel
import sniffio

from golem import Event
from golem.events import RunFinished, RunStarted, TextDelta
from golem.result import Result
from golem.wire.sse import ServerSentEvent, SSEDecoder

RESULT: Result[str] = Result("ok", [], [], "r", "c")


def events(deltas: int = 3) -> list[Event]:
    """A small run."""
    said: list[Event] = [TextDelta("r", "c", n + 1, "x") for n in range(deltas)]
    return [RunStarted("r", "c", 0, 0, 0, 0), *said, RunFinished("r", "c", deltas + 1, RESULT)]


async def read(chunks: AsyncIterator[bytes]) -> list[ServerSentEvent]:
    """All frames of a stream."""
    decoder = SSEDecoder()
    return [frame async for chunk in chunks for frame in decoder.feed(chunk)]


class Source:
    """Gives events when it is let, and remembers what became of it."""

    def __init__(self, given: list[Event] | None = None) -> None:
        self.given = events() if given is None else given
        self.go = anyio.Event()
        self.pulled = 0
        self.cancelled = False
        self.closed = anyio.Event()

    def __aiter__(self) -> AsyncIterator[Event]:
        return self._events()

    async def _events(self) -> AsyncGenerator[Event, None]:
        try:
            for event in self.given:
                self.pulled += 1
                yield event
            await self.go.wait()
        except anyio.get_cancelled_exc_class():
            self.cancelled = True
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await anyio.lowlevel.checkpoint()
            self.closed.set()


def living() -> int:
    """How many tasks there are."""
    if sniffio.current_async_library() == "trio":
        living: int = sys.modules["trio"].lowlevel.current_statistics().tasks_living
        return living
    return len(asyncio.all_tasks())


async def alone(before: int) -> None:
    """Wait until no more tasks than that are left."""
    for _ in range(20):
        if living() <= before:
            return
        await anyio.lowlevel.checkpoint()
    raise AssertionError("a task was left behind")


async def until_waiting(chunks: AsyncIterator[bytes], frames: int) -> None:
    """Read that many frames; the next pull will wait."""
    seen = b""
    while seen.count(b"data:") < frames:
        seen += await anext(chunks)
