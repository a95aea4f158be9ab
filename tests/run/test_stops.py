"""Stopping a stream where it is read, and from inside its run: a tool, an observer, their tasks."""

from __future__ import annotations

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from golem import Agent, Event, tool
from golem._run.rules import StopWhen
from golem.events import RunFinished, RunStopped
from golem.history.repair import NO_RESULT
from golem.testing import ScriptedModel, hangs
from tests.run.stopping import CALLS, contents, hang, read
from tests.run.support import Recorder, announced, asks, echo, resumes, well_formed

pytestmark = pytest.mark.virtual_time


# From the reader


@pytest.mark.parametrize(
    ("at", "when", "left"),
    [
        ("model_started", "now", None),
        ("text_delta", "now", ["p"]),
        ("tool_started", "now", ["p", "let me see", NO_RESULT, NO_RESULT]),
        ("tool_finished", "now", ["p", "let me see", "echoed", NO_RESULT]),
        ("text_delta", "after_model", ["p", "let me see", NO_RESULT, NO_RESULT]),
        ("text_delta", "after_tools", ["p", "let me see", "echoed", "echoed"]),
        ("tool_started", "after_model", ["p", "let me see", "echoed", "echoed"]),
        ("tool_started", "after_tools", ["p", "let me see", "echoed", "echoed"]),
    ],
)
async def test_a_reader_stops_its_stream(at: str, when: StopWhen, left: list[str] | None) -> None:
    recorder = Recorder()
    seen: list[Event] = []
    said: list[Any] = []
    stream = Agent(ScriptedModel([CALLS, "x"]), tools=[echo], on_event=recorder).stream("p")
    async with stream:
        async for event in stream:
            seen.append(event)
            if event.kind == at and not said:
                said.append(await stream.stop(when))
    assert isinstance(stream.outcome, RunStopped)
    assert [stream.outcome if when == "now" else None] == said
    assert recorder.events == seen
    well_formed(seen)
    if left is None:
        assert stream.partial is None
        return
    assert left == contents(stream)
    assert stream.partial is not None
    assert stream.partial.new_messages == announced(seen)
    await resumes(stream.partial)


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("at", ["run_started", "message_added", "tool_started", "tool_finished"])
async def test_nothing_is_said_to_begin_after_a_stop(at: str, parallel: bool) -> None:
    """It is not begun, so no reader is to wait for its end."""
    agent = Agent(ScriptedModel([CALLS]), tools=[echo], parallel_tool_calls=parallel)
    behind: list[str] | None = None
    stream = agent.stream("p")
    async with stream:
        async for event in stream:
            if behind is not None:
                behind.append(event.kind)
            elif event.kind == at:
                behind = []
                await stream.stop()
    assert behind is not None
    assert not {"model_started", "tool_started"} & set(behind)
    assert behind[-1] == "run_stopped"


async def test_the_evidence_of_a_stopped_answer_is_its_text() -> None:
    stream = Agent(ScriptedModel(["a longer answer"])).stream("p")
    async with stream:
        async for event in stream:
            if event.kind == "text_delta":
                await stream.stop()
    assert stream.partial is not None
    assert (stream.partial.text, contents(stream)) == ("a longer", ["p"])


async def test_a_stop_before_the_first_pull_runs_nothing() -> None:
    model, recorder = ScriptedModel(["x"]), Recorder()
    stream = Agent(model, on_event=recorder).stream("p")
    assert isinstance(await stream.stop(), RunStopped)
    seen: list[Event] = []
    await read(stream, seen)
    assert ([], recorder.events) == (model.requests, seen)
    well_formed(seen)


async def test_a_later_stop_lets_an_answer_come_first() -> None:
    for when in ("after_model", "after_tools"):
        stream = Agent(ScriptedModel(["a longer answer"])).stream("p")
        async with stream:
            async for event in stream:
                if event.kind == "text_delta":
                    await stream.stop(when)  # type: ignore[arg-type]
        assert isinstance(stream.outcome, RunFinished)


async def test_a_stop_after_the_end_says_how_it_ended() -> None:
    stream = Agent(ScriptedModel(["x"])).stream("p")
    await read(stream)
    for when in ("now", "after_model", "after_tools"):
        assert stream.outcome is await stream.stop(when)  # type: ignore[arg-type]
    assert isinstance(stream.outcome, RunFinished)


async def test_a_stop_at_the_last_moment_is_one_or_the_other() -> None:
    """Racing with the end, event by event: one terminal event, and the answer is kept."""
    for at in range(6):
        recorder = Recorder()
        stream = Agent(ScriptedModel(["x"]), on_event=recorder).stream("p")
        async with stream:
            async for event in stream:
                if event.seq == at:
                    assert await stream.stop() is stream.outcome
        well_formed(recorder.events)
        if isinstance(stream.outcome, RunStopped) and stream.partial is not None:
            await resumes(stream.partial)


@pytest.mark.parametrize(
    ("within", "error"), [(-1, ValueError), (float("nan"), ValueError), ("x", TypeError)]
)
async def test_within_is_a_number_of_seconds(within: Any, error: type[Exception]) -> None:
    async with Agent(ScriptedModel(["x"])).stream("p") as stream:
        with pytest.raises(error, match="within"):
            await stream.stop("after_tools", within=within)


async def test_a_reader_escalates_too() -> None:
    stream = Agent(ScriptedModel([asks(("1", "hang"))]), tools=[hang]).stream("p")
    async with stream:
        async for event in stream:
            if event.kind == "tool_started":
                assert await stream.stop("after_tools", within=0.01) is None
    assert contents(stream) == ["p", "", NO_RESULT]


async def test_an_observer_that_is_slow_with_the_end_delays_no_escalation_into_an_error() -> None:
    async def slow(event: Event) -> None:
        if isinstance(event, (RunFinished, RunStopped)):
            await anyio.sleep(0.02)

    stream = Agent(ScriptedModel(["x"]), on_event=slow).stream("p")
    seen: list[Event] = []
    async with stream:
        async for event in stream:
            seen.append(event)
            if event.kind == "model_started":
                await stream.stop("after_model", within=0.01)
    well_formed(seen)
    assert isinstance(stream.outcome, RunFinished)


# From inside


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("when", ["now", "after_tools", "after_model"])
async def test_a_tool_may_stop_its_own_run(when: StopWhen, parallel: bool) -> None:
    said: list[Any] = []

    @tool
    async def enough() -> str:
        said.append(await stream.stop(when))
        await anyio.lowlevel.checkpoint()
        return "said so"

    agent = Agent(
        ScriptedModel([asks(("1", "enough"), ("2", "echo")), "x"]),
        tools=[enough, echo],
        parallel_tool_calls=parallel,
    )
    stream = agent.stream("p")
    await read(stream)
    assert said == [None]
    assert isinstance(stream.outcome, RunStopped)
    if when != "now":
        assert contents(stream) == ["p", "", "said so", "echoed"]
    await resumes(stream.partial)  # type: ignore[arg-type]


@pytest.mark.parametrize("when", ["now", "after_tools", "after_model"])
async def test_an_observer_may_stop_the_run_it_watches(when: StopWhen) -> None:
    async def watch(event: Event) -> None:
        if event.kind == "tool_finished":
            assert await stream.stop(when) is None

    recorder = Recorder()
    agent = Agent(ScriptedModel([CALLS, "x"]), tools=[echo], on_event=watch)
    stream = agent.stream("p", on_event=recorder)
    await read(stream)
    assert isinstance(stream.outcome, RunStopped)
    left = NO_RESULT if when == "now" else "echoed"
    assert ["p", "let me see", "echoed", left] == contents(stream)
    well_formed(recorder.events)


@pytest.mark.parametrize("script", [[asks(("1", "starts")), hangs("x", 1)], [asks(("1", "waits"))]])
@pytest.mark.parametrize("parallel", [False, True])
async def test_a_task_that_a_tool_has_started_learns_what_happened(
    parallel: bool, script: list[Any]
) -> None:
    """It inherits the tool's context, but the run does not wait for it."""
    said: list[Any] = []

    async def watch() -> None:
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        said.append(await stream.stop())

    async with anyio.create_task_group() as tasks:

        @tool
        async def starts() -> str:
            tasks.start_soon(watch)
            return "started"

        @tool
        async def waits() -> str:
            tasks.start_soon(watch)
            await anyio.sleep_forever()
            return "unreached"

        (call,) = script[0].tool_calls
        script = [asks(("1", call.name), ("2", "echo")), *script[1:]]
        agent = Agent(
            ScriptedModel(script), tools=[starts, waits, echo], parallel_tool_calls=parallel
        )
        stream = agent.stream("p")
        await read(stream)
    assert [stream.outcome] == said
    assert isinstance(stream.outcome, RunStopped)
    await resumes(stream.partial)  # type: ignore[arg-type]


async def test_a_task_of_a_tool_that_waits_for_it_is_not_kept_waiting_for_the_tools() -> None:
    said: list[Any] = []

    @tool
    async def enough() -> str:
        async def stop() -> None:
            said.append(await stream.stop("after_tools"))

        async with anyio.create_task_group() as group:
            group.start_soon(stop)
        return "said so"

    stream = Agent(ScriptedModel([asks(("1", "enough")), "x"]), tools=[enough]).stream("p")
    await read(stream)
    assert said == [None]
    assert contents(stream) == ["p", "", "said so"]


async def test_a_task_of_a_tool_that_is_over_waits_for_a_later_stop_too() -> None:
    said: list[Any] = []
    go = anyio.Event()

    async def watch() -> None:
        await go.wait()
        said.append(await stream.stop("after_tools"))

    @tool
    async def goes() -> str:
        go.set()
        for _ in range(20):
            await anyio.lowlevel.checkpoint()
        return "gone"

    async with anyio.create_task_group() as tasks:

        @tool
        async def starts() -> str:
            tasks.start_soon(watch)
            return "started"

        script = [asks(("1", "starts")), asks(("2", "goes")), "x"]
        stream = Agent(ScriptedModel(script), tools=[starts, goes]).stream("p")
        await read(stream)
    assert [stream.outcome] == said
    assert contents(stream) == ["p", "", "started", "", "gone"]


async def test_an_observer_may_close_the_stream_that_is_being_closed() -> None:
    async def watch(event: Event) -> None:
        if isinstance(event, RunStopped):
            await stream.aclose()
            assert await stream.stop() is stream.outcome

    stream = Agent(ScriptedModel(["x"]), on_event=watch).stream("p")
    async with stream:
        await anext(stream)
    assert isinstance(stream.outcome, RunStopped)


async def test_a_sub_agents_tool_may_stop_the_run_at_the_top() -> None:
    @tool
    async def enough() -> str:
        await stream.stop("after_tools")
        return "said so"

    helper = Agent(ScriptedModel([asks(("1", "enough")), "helped"]), tools=[enough])
    top = Agent(
        ScriptedModel([asks(("1", "helper", '{"prompt":"?"}')), "x"]),
        tools=[helper.as_tool("helper", "Help.")],
    )
    stream = top.stream("p")
    await read(stream)
    assert contents(stream) == ["p", "", "helped"]
