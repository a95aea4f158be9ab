"""However a stream of `golem.web.sse` ends, its source is closed and no task is left."""

from __future__ import annotations

import asyncio
import contextvars
import gc
from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from golem import Agent, Event, RunError
from golem.closing import CLEANUP_SECONDS
from golem.events import RunFailed, RunStopped, decode_event
from golem.testing import ScriptedModel, Watch, hangs
from golem.web import sse
from golem.web.golem_events import NO_HEADERS
from golem.web.sse import EventStream
from tests.run import virtual_time
from tests.run.scenarios import SCENARIOS, World
from tests.web.sources import Source, alone, events, living, read, until_waiting


async def test_a_failed_run_ends_in_its_event_and_raises_nothing() -> None:
    """The client was told; a torn response would be one failure more."""
    stream = Agent(ScriptedModel([RuntimeError("no")]), retry=None).stream("hi")
    last = decode_event((await read(sse(stream)))[-1].data)
    assert isinstance(last, RunFailed)
    assert isinstance(stream.outcome, RunFailed)


async def test_any_other_exception_passes() -> None:
    """After what had come before it."""

    async def broken(error: Exception) -> AsyncIterator[Event]:
        yield events()[0]
        raise error

    chunks = sse(broken(LookupError("gone")))
    with pytest.raises(LookupError, match="gone"):
        await read(chunks)
    assert [chunk async for chunk in chunks] == []
    unsaid = RunError("no", stage="loop", run_id="r", conversation_id="c")
    with pytest.raises(RunError):  # no event has said it
        await read(sse(broken(unsaid)))


async def test_an_encoder_that_fails_closes_the_source() -> None:
    """As anything else that ends the stream does."""

    class Broken:
        headers = NO_HEADERS

        def feed(self, event: Any) -> Any:
            raise ZeroDivisionError

        def close(self) -> Any:
            return []

    source = Source()
    with pytest.raises(ZeroDivisionError):
        await read(sse(source, encode=Broken))
    assert source.closed.is_set()


async def test_a_cancelled_reader_closes_the_source() -> None:
    """Before the cancellation goes on, shielded from it."""
    before = living()
    source = Source()
    chunks = sse(source)
    with anyio.CancelScope() as scope:
        await until_waiting(chunks, 5)
        assert not source.closed.is_set()
        scope.cancel()
        await anext(chunks)
    assert source.closed.is_set()
    assert [chunk async for chunk in chunks] == []
    await alone(before)


async def test_a_run_whose_reader_is_cancelled_has_its_evidence() -> None:
    """`outcome` and `partial` say what became of it, and the model's stream is closed."""
    before = living()
    stream = Agent(ScriptedModel([hangs("a longer answer", 2)])).stream("hi")
    chunks = sse(stream)
    with anyio.CancelScope() as scope:
        await until_waiting(chunks, 5)
        scope.cancel()
        await anext(chunks)
    assert isinstance(stream.outcome, RunStopped)
    assert stream.partial is not None
    assert "a longer answer".startswith(stream.partial.text)
    assert stream.partial.text
    await alone(before)


async def test_closing_from_another_task_ends_the_read() -> None:
    """The reader's loop just ends."""
    before = living()
    source = Source()
    chunks: Any = sse(source)
    seen: list[bytes] = []

    async def reader() -> None:
        async for chunk in chunks:
            seen.append(chunk)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        while sum(chunk.count(b"data:") for chunk in seen) < 5:
            await anyio.lowlevel.checkpoint()
        await chunks.aclose()
    assert source.closed.is_set()
    await chunks.aclose()
    await alone(before)


async def test_leaving_between_two_pulls_and_closing() -> None:
    """What a handler does with ``aclosing``."""
    before = living()
    source = Source()
    chunks: Any = sse(source)
    async for _ in chunks:
        break
    await anext(chunks)
    await chunks.aclose()
    assert source.closed.is_set()
    with pytest.raises(StopAsyncIteration):
        await anext(chunks)
    await alone(before)


async def test_a_stream_that_is_dropped_closes_its_source() -> None:
    """As servers do that are cancelled while they send: they never close what they read."""
    before = living()
    source = Source()
    chunks = sse(source)
    await anext(chunks)
    await anext(chunks)
    del chunks
    gc.collect()
    await source.closed.wait()
    await alone(before)


async def test_a_stream_that_never_began_leaves_nothing() -> None:
    """Dropped, it warns of nothing; closed, it closes what it was given."""
    before = living()
    sse(Source())
    source = Source()
    chunks: Any = sse(source)
    await chunks.aclose()
    assert [chunk async for chunk in chunks] == []
    stream = Agent(ScriptedModel(["never"])).stream("hi")
    chunks = sse(stream)
    await chunks.aclose()
    assert isinstance(stream.outcome, RunStopped)
    await alone(before)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_source_that_hangs_in_closing_has_a_deadline(backend: str) -> None:
    """The reader is not held for ever."""

    class Hanging:
        def __aiter__(self) -> Hanging:
            return self

        async def __anext__(self) -> Event:
            await anyio.sleep_forever()
            raise AssertionError

        async def aclose(self) -> None:
            await anyio.sleep_forever()

    async def go() -> float:
        chunks = sse(Hanging())
        await anext(chunks)
        begun = anyio.current_time()
        with anyio.move_on_after(1):
            await anext(chunks)
        return anyio.current_time() - begun

    assert pytest.approx(virtual_time.run(go, backend=backend)) == 1 + CLEANUP_SECONDS


async def test_what_goes_wrong_in_closing_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """It takes the place of nothing."""

    class Broken:
        def __init__(self) -> None:
            self.left = events()

        def __aiter__(self) -> Broken:
            return self

        async def __anext__(self) -> Event:
            if not self.left:
                raise StopAsyncIteration
            return self.left.pop(0)

        async def aclose(self) -> None:
            raise LookupError("cannot be closed")

    assert len(await read(sse(Broken()))) == 5
    assert "could not be closed" in caplog.text


async def test_what_the_events_came_from_is_closed_too() -> None:
    """A container that makes its iterator, and a generator that is none of asyncio's."""
    closed: list[str] = []

    class Record(Source):
        async def aclose(self) -> None:
            closed.append("record")

    source = Record()
    source.go.set()
    await read(sse(source))
    assert source.closed.is_set()

    def generated() -> Iterator[Event]:
        try:
            yield from events()
        finally:
            closed.append("generator")

    chunks = sse(generated())
    await until_waiting(chunks, 1)
    await chunks.aclose()
    assert closed == ["record", "generator"]


async def test_a_stream_that_its_own_source_closes() -> None:
    """As a tool of the run may: nobody waits for himself."""
    kept: list[EventStream] = []

    async def closing() -> AsyncIterator[Event]:
        yield events()[0]
        await kept[0].aclose()
        await anyio.sleep_forever()

    kept.append(sse(closing()))
    assert len(await read(kept[0])) <= 1
    assert [chunk async for chunk in kept[0]] == []


async def test_two_readers_are_refused() -> None:
    """One task reads a stream."""
    source = Source()
    chunks: Any = sse(source)
    await until_waiting(chunks, 5)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anext, chunks, None)
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(RuntimeError, match="another task"):
            await anext(chunks)
        source.go.set()


async def test_the_events_are_made_in_the_readers_context() -> None:
    """So that traces and request-scoped values reach the tools."""
    who: contextvars.ContextVar[str] = contextvars.ContextVar("who", default="nobody")
    seen: list[str] = []

    async def looking() -> AsyncIterator[Event]:
        for event in events():
            seen.append(who.get())
            yield event

    who.set("a reader")
    await read(sse(looking()))
    assert seen == ["a reader"] * 5


def test_a_natively_cancelled_task_closes_the_source() -> None:
    """asyncio's own cancellation, which strikes once."""

    async def go() -> None:
        before = living()
        source = Source()

        async def handler() -> None:
            async for _ in sse(source):
                pass

        task = asyncio.create_task(handler())
        for _ in range(20):
            await asyncio.sleep(0)
        assert source.pulled == 5
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert source.closed.is_set()
        await alone(before)

    asyncio.run(go())


def test_a_cancellation_that_the_source_has_made_itself_passes() -> None:
    """Nobody has cancelled the reader, who must not take it for the end of the events."""

    async def go() -> None:
        async def awaits_a_cancelled_future() -> AsyncIterator[Event]:
            yield events()[0]
            future = asyncio.get_running_loop().create_future()
            future.cancel()
            await future

        with pytest.raises(asyncio.CancelledError):
            await read(sse(awaits_a_cancelled_future()))

    asyncio.run(go())


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_an_event_loop_that_ends_ends_the_stream(backend: str) -> None:
    """Its source is closed, and dropping the stream afterwards is harmless."""
    kept: list[Any] = []

    async def go() -> None:
        source = Source()
        chunks = sse(source)
        await until_waiting(chunks, 5)
        kept.extend([chunks, source])

    anyio.run(go, backend=backend)
    assert kept[1].closed.is_set()
    kept.clear()
    gc.collect()


@pytest.mark.parametrize("name", SCENARIOS)
@pytest.mark.parametrize("after", [0, 1, 2, 3, 5, 8])
async def test_a_run_of_any_kind_survives_the_loss_of_its_reader(name: str, after: int) -> None:
    """Cancelled while it waits for the chunk after that many: settled, and nothing left."""
    before = living()
    stream = World(SCENARIOS[name]).open(Watch())
    chunks: Any = sse(stream)
    with anyio.CancelScope() as scope:
        try:
            for _ in range(after):
                await anext(chunks)
            scope.cancel()
            await anext(chunks)
        except StopAsyncIteration:
            pass
    await chunks.aclose()
    assert stream.outcome is not None
    await alone(before)
