"""`golem.web.sse`: frames with ids, heartbeats, and a source that is closed whatever happens."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import sniffio

from golem import Agent, Event, RunError, RunStream
from golem.closing import CLEANUP_SECONDS
from golem.events import RunFailed, RunFinished, RunStarted, RunStopped, TextDelta, decode_event
from golem.result import Result
from golem.testing import ScriptedModel, Watch, hangs
from golem.web import sse
from golem.web.golem_events import NO_HEADERS
from golem.web.sse import BURST, HELLO, PING, EventStream
from golem.wire.sse import ServerSentEvent, SSEDecoder
from tests.run import virtual_time
from tests.run.scenarios import SCENARIOS, World

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


# What comes out


async def test_a_run_comes_out_as_its_events() -> None:
    """Each event is one frame, whose id is its run and its number."""
    stream = Agent(ScriptedModel(["Hello, you."])).stream("hi")
    frames = await read(sse(stream))
    told = [decode_event(frame.data) for frame in frames]
    assert told[-1].kind == "run_finished"
    assert [f"{stream.run_id}:{n}" for n in range(len(told))] == [f.id for f in frames]
    assert isinstance(stream.outcome, RunFinished)
    assert frames[3:] == await read(sse(told, after=frames[2].id))


async def test_the_first_bytes_come_before_anything_runs() -> None:
    """A client sees the response begin, however long the model takes."""
    source = Source()
    chunks = sse(source)
    assert await anext(chunks) == HELLO
    assert source.pulled == 0
    await chunks.aclose()


async def test_events_that_are_there_come_in_one_chunk_within_a_bound() -> None:
    """And those that are not are not waited for."""
    chunks = sse(events(5_000))
    sizes = [len(chunk) async for chunk in chunks]
    assert max(sizes) < BURST + 200
    assert len(sizes) < 20


async def test_a_slow_reader_slows_the_run() -> None:
    """At most one event is read ahead of what was handed over."""
    source = Source(events(100))

    async def paced() -> AsyncIterator[Event]:
        async with aclosing(aiter(source)) as given:
            async for event in given:
                yield event
                await anyio.lowlevel.checkpoint()

    chunks = sse(paced())
    seen = 0
    while seen < 50:
        seen += (await anext(chunks)).count(b"data:")
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert source.pulled <= seen + 2  # one ahead, one being made
    await chunks.aclose()


async def test_anything_iterable_will_do() -> None:
    """A list, a generator, an async generator."""

    async def generated() -> AsyncIterator[Event]:
        for event in events():
            yield event

    expected = await read(sse(events()))
    assert expected == await read(sse(iter(events())))
    assert expected == await read(sse(generated()))
    assert len(expected) == 5


async def test_a_source_without_a_terminal_event_ends_without_one() -> None:
    """golem's own reader needs no more to know."""
    assert len(await read(sse(events()[:2]))) == 2


# Heartbeats


async def test_heartbeats_go_out_and_cancel_nobody() -> None:
    """The producer waits on, in one and the same pull, and gives its event afterwards."""
    source = Source(events()[:2])
    chunks = sse(source, ping=0.001)
    await until_waiting(chunks, 2)
    assert [await anext(chunks), await anext(chunks)] == [PING, PING]
    assert not source.cancelled
    source.go.set()
    rest = [chunk async for chunk in chunks]
    assert {PING} >= set(rest)
    assert source.closed.is_set()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_heartbeats_keep_the_time_since_the_last_event(backend: str) -> None:
    """On the event loop's clock; none while events come, none while nobody reads."""

    async def go() -> list[tuple[float, bytes]]:
        async def slow() -> AsyncIterator[Event]:
            for event, pause in zip(events(), (0.0, 10.0, 40.0, 0.0, 0.0), strict=True):
                await anyio.sleep(pause)
                yield event

        begun = anyio.current_time()
        chunks = sse(slow(), ping=15.0)
        seen = []
        async for chunk in chunks:
            seen.append((round(anyio.current_time() - begun), chunk))
            if chunk is PING and len(seen) < 6:
                await anyio.sleep(1)
        return seen

    times = [(at, chunk) for at, chunk in virtual_time.run(go, backend=backend) if chunk == PING]
    # the event at 10 s, a ping 15 s later, the reader away for 1 s, a ping 15 s after that
    assert times == [(25, PING), (41, PING)]


async def test_no_heartbeat_without_ping() -> None:
    """``ping=None``: nothing but events."""
    assert [c async for c in sse(events(), ping=None) if c.startswith(b":")] == [HELLO]


@pytest.mark.parametrize("ping", [0, -1, float("nan"), True, "15"])
def test_a_ping_is_a_positive_number(ping: Any) -> None:
    """Refused at once."""
    with pytest.raises((ValueError, TypeError), match="ping"):
        sse([], ping=ping)


@pytest.mark.parametrize("given", ["events", b"events", None, 5])
def test_what_is_no_run_is_refused_at_once(given: Any) -> None:
    """And not when the response has begun."""
    with pytest.raises(TypeError, match=r"an iterable of events is wanted, not "):
        sse(given)


def test_an_encoding_is_a_function() -> None:
    """Its name is none."""
    name: Any = "ui_messages"
    with pytest.raises(TypeError, match="encode must be a function, such as ui_messages, not 'ui"):
        sse([], encode=name)


# Endings


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


# Resuming


@pytest.mark.parametrize("id", ["", "run", "run:", "run:x", ":3", "run:-1", "run:1.", "run:1.2.x"])
def test_what_is_no_id_is_refused_at_once(id: str) -> None:
    """The handler can still answer with a status."""
    with pytest.raises(ValueError, match="not the id of an event"):
        sse([], after=id)


async def test_the_id_of_another_run_is_refused() -> None:
    """At once where the run is known, else with its first event."""
    stream: RunStream[str] = Agent(ScriptedModel(["x"])).stream("hi")
    with pytest.raises(ValueError, match="of run 'other'"):
        sse(stream, after="other:3")
    await stream.aclose()
    with pytest.raises(ValueError, match="of run 'other'"):
        await read(sse(events(), after="other:3"))


@pytest.mark.parametrize("run_id", ["a:b:1", "ü/%25 \n\r\0", "日本", "1.2:3.4"])
async def test_any_run_id_makes_ids_that_can_be_sent_back(run_id: str) -> None:
    """As an HTTP header too: ASCII, nothing that ends a line."""
    given = [RunStarted(run_id, "c", 0, 0, 0, 0), TextDelta(run_id, "c", 1, "x")]
    frames = await read(sse(given))
    assert all(frame.id.isascii() and frame.id.isprintable() for frame in frames)
    assert frames[1:] == await read(sse(given, after=frames[0].id))


async def test_an_id_further_than_the_events_leaves_nothing_to_give() -> None:
    """A reader that has it all."""
    assert await read(sse(events(), after="r:4")) == []
    assert await read(sse(events(), after="r:999")) == []
