"""`golem.web.sse`: frames with ids, heartbeats, and where a stream goes on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from golem import Agent, Event, RunStream
from golem.events import RunFinished, RunStarted, TextDelta, decode_event
from golem.testing import ScriptedModel
from golem.web import sse
from golem.web.sse import BURST, HELLO, PING
from tests.run import virtual_time
from tests.web.sources import Source, events, read, until_waiting

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
