"""Stopping a stream from another task: while it hangs, after its reader has gone, many at once."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from golem import Agent, Event, RunError, tool
from golem._run.rules import StopWhen
from golem.events import RunFailed, RunStopped
from golem.history.repair import NO_RESULT
from golem.model import Delta, Request, Response, TextDelta
from golem.testing import ScriptedModel, hangs
from tests.run.stopping import CALLS, contents, hang, read
from tests.run.support import Gives, Recorder, SlowRecorder, asks, boom, echo, resumes, well_formed

pytestmark = pytest.mark.virtual_time


@pytest.mark.parametrize("script", [[hangs("a longer answer", 1)], [asks(("1", "hang"))]])
async def test_another_task_stops_what_hangs_and_learns_what_happened(script: list[Any]) -> None:
    recorder = SlowRecorder()
    stream = Agent(ScriptedModel(script), tools=[hang], on_event=recorder).stream("p")
    seen: list[Event] = []
    said: list[Any] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, stream, seen)
        for _ in range(60):
            await anyio.lowlevel.checkpoint()
        said.append(await stream.stop())
    assert [stream.outcome] == said
    assert recorder.events == seen
    well_formed(seen)
    assert isinstance(stream.outcome, RunStopped)
    assert stream.partial is not None
    await resumes(stream.partial)


async def test_a_later_stop_escalates_within_its_time() -> None:
    stream = Agent(ScriptedModel([asks(("1", "echo"), ("2", "hang"))]), tools=[echo, hang]).stream(
        "p"
    )
    said: list[Any] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(read, stream)
        for _ in range(60):
            await anyio.lowlevel.checkpoint()
        said.append(await stream.stop("after_tools", within=0.01))
    assert [stream.outcome] == said
    assert contents(stream) == ["p", "", "echoed", NO_RESULT]


@pytest.mark.parametrize("gone", [True, False])
async def test_a_later_stop_escalates_where_the_reader_does_not_come_back(gone: bool) -> None:
    """What is left of the run is read by who stops it, and kept for a reader who is only slow."""
    back, left = anyio.Event(), anyio.Event()
    stream = Agent(ScriptedModel([asks(("1", "hang"))]), tools=[hang]).stream("p")
    seen: list[Event] = []

    async def reader() -> None:
        async for event in stream:
            seen.append(event)
            if event.kind == "tool_started":
                left.set()
                if gone:
                    return
                await back.wait()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        await left.wait()
        stopped = await stream.stop("after_tools", within=0.01)
        back.set()
    assert isinstance(stopped, RunStopped)
    assert contents(stream) == ["p", "", NO_RESULT]
    rest = [event async for event in stream]
    well_formed([*seen, *rest])


@pytest.mark.parametrize("when", ["after_tools", "after_model"])
@pytest.mark.parametrize("late", [False, True])
async def test_who_stops_a_stream_whose_reader_has_gone_carries_out_the_rest(
    late: bool, when: StopWhen
) -> None:
    """Nobody would read on: a later stop without a time of its own must not wait for ever."""
    stream = Agent(ScriptedModel([CALLS, "x"]), tools=[echo]).stream("p")
    seen: list[Event] = []
    go = anyio.Event()

    async def reader() -> None:
        async for event in stream:
            seen.append(event)
            if event.kind == "tool_started":
                if late:
                    await go.wait()
                return

    said: list[Any] = []

    async def stop() -> None:
        said.append(await stream.stop(when))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
        while not seen or seen[-1].kind != "tool_started":
            await anyio.lowlevel.checkpoint()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        tasks.start_soon(stop)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        go.set()
    assert [stream.outcome] == said
    assert contents(stream) == ["p", "let me see", "echoed", "echoed"]
    well_formed([*seen, *[event async for event in stream]])


async def test_a_reader_whose_every_pull_is_a_task_of_its_own_may_stop_it_later() -> None:
    """As with ``asyncio.wait_for`` of Python 3.11: the task that has pulled is over each time."""
    stream = Agent(ScriptedModel([CALLS, "x"]), tools=[echo]).stream("p")
    seen: list[Event] = []

    async def pull() -> None:
        seen.append(await anext(stream))

    async with stream:
        while not seen or seen[-1].kind != "tool_started":
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(pull)
        assert await stream.stop("after_tools") is stream.outcome
        seen += [event async for event in stream]
    assert contents(stream) == ["p", "let me see", "echoed", "echoed"]
    well_formed(seen)


async def test_what_fails_while_another_carries_out_the_rest_is_raised_to_who_reads_it() -> None:
    stream = Agent(ScriptedModel([asks(("1", "boom"))]), tools=[boom]).stream("p")
    seen: list[Event] = []

    async def reader() -> None:
        while not seen or seen[-1].kind != "tool_started":
            seen.append(await anext(stream))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
    assert isinstance(await stream.stop("after_tools"), RunFailed)
    with pytest.raises(RunError, match="boom"):
        await read(stream, seen)
    well_formed(seen)
    assert [event async for event in stream] == []


async def test_the_time_of_a_later_stop_counts_where_the_reader_has_gone() -> None:
    stream = Agent(ScriptedModel([asks(("1", "hang"))]), tools=[hang]).stream("p")

    async def reader() -> None:
        while (await anext(stream)).kind != "tool_started":
            pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
    assert await stream.stop("after_tools", within=0.01) is stream.outcome
    assert contents(stream) == ["p", "", NO_RESULT]


async def test_who_is_cancelled_while_he_carries_out_the_rest_ends_the_run() -> None:
    recorder = Recorder()
    stream = Agent(ScriptedModel([asks(("1", "hang"))]), tools=[hang], on_event=recorder).stream(
        "p"
    )

    async def reader() -> None:
        while (await anext(stream)).kind != "tool_started":
            pass

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(reader)
    with anyio.move_on_after(0.01) as scope:
        await stream.stop("after_tools")
    assert scope.cancelled_caught
    assert isinstance(stream.outcome, RunStopped)
    well_formed(recorder.events)


async def test_a_stop_while_a_reader_pulls_and_goes_is_seen_to_its_end() -> None:
    stream = Agent(ScriptedModel([asks(("1", "hang"))]), tools=[hang]).stream("p")
    entered = anyio.Event()

    async def reader() -> None:
        while (await anext(stream)).kind != "tool_started":
            pass
        entered.set()
        await anext(stream)

    async with anyio.create_task_group() as tasks, stream:
        tasks.start_soon(reader)
        await entered.wait()
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        assert isinstance(await stream.stop(), RunStopped)


async def test_any_number_of_tasks_may_stop_one_stream() -> None:
    """While the reader is somewhere else, too: one ending, told to everybody."""
    recorder = SlowRecorder()
    stream = Agent(ScriptedModel([CALLS, "x"]), tools=[echo], on_event=recorder).stream("p")
    said: list[Any] = []

    async def stop(when: StopWhen) -> None:
        said.append(await stream.stop(when))

    seen: list[Event] = []
    async with anyio.create_task_group() as tasks, stream:
        async for event in stream:
            seen.append(event)
            if event.kind == "tool_started":
                for when in ("now", "after_tools", "now", "after_model"):
                    tasks.start_soon(stop, when)
                for _ in range(event.seq):
                    await anyio.lowlevel.checkpoint()
    assert [stream.outcome] * len(said) == said
    assert recorder.events == seen
    well_formed(seen)


@pytest.mark.parametrize("stops", [("after_model", "after_tools"), ("after_tools", "after_model")])
async def test_of_several_stops_the_soonest_stands(stops: tuple[StopWhen, ...]) -> None:
    """Who stops a run before its tools start must not see them run because another was patient."""
    ran: list[str] = []

    @tool
    async def effect() -> str:
        ran.append("effect")
        return ""

    async def answer(request: Request) -> AsyncIterator[Delta | Response]:
        yield TextDelta("on its way")
        for when in stops:
            tasks.start_soon(stream.stop, when)
        await anyio.sleep(1)  # all of them have said so
        yield Response(asks(("1", "effect")))

    model = Gives()
    model.stream = answer  # type: ignore[method-assign]
    stream = Agent(model, tools=[effect]).stream("p")
    async with anyio.create_task_group() as tasks:
        await read(stream)
    assert isinstance(stream.outcome, RunStopped)
    assert ran == []


async def test_leaving_while_somebody_stops_waits_for_the_end() -> None:
    recorder = SlowRecorder()
    stream = Agent(ScriptedModel([CALLS, "x"]), tools=[echo], on_event=recorder).stream("p")
    async with anyio.create_task_group() as tasks, stream:
        async for event in stream:
            if event.kind == "tool_started":
                tasks.start_soon(stream.stop)
                for _ in range(3):
                    await anyio.lowlevel.checkpoint()
                break
    well_formed(recorder.events)
    assert isinstance(stream.outcome, RunStopped)


async def test_a_second_reader_may_stop_it_later_without_waiting_for_itself() -> None:
    stream = Agent(ScriptedModel([CALLS, "x"]), tools=[echo]).stream("p")

    async def pull() -> None:
        await anext(stream)

    async def rest() -> None:
        async for event in stream:
            if event.kind == "tool_started":
                assert await stream.stop("after_tools") is None

    async with stream:
        for part in (pull, rest):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(part)
    assert isinstance(stream.outcome, RunStopped)


@pytest.mark.parametrize("ticks", range(12))
async def test_the_ending_reaches_the_reader_whatever_becomes_of_who_stopped_it(ticks: int) -> None:
    recorder = SlowRecorder()
    stream = Agent(ScriptedModel([CALLS, "x"]), tools=[echo], on_event=recorder).stream("p")
    scope = anyio.CancelScope()

    async def stop() -> None:
        with scope:
            await stream.stop()

    async def cancel() -> None:
        for _ in range(ticks):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    seen: list[Event] = []
    async with anyio.create_task_group() as tasks, stream:
        async for event in stream:
            seen.append(event)
            if event.kind == "tool_started" and event.call_id == "1":  # type: ignore[union-attr]
                tasks.start_soon(stop)
                tasks.start_soon(cancel)
                for _ in range(6):
                    await anyio.lowlevel.checkpoint()
    assert recorder.events == seen
    well_formed(seen)
