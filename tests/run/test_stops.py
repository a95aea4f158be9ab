"""Stopping a stream and steering it: from its reader, from elsewhere, from inside, at its end."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from golem import Agent, Event, Part, RunError, RunStream, ToolMessage, UserMessage, tool
from golem._run.rules import StopWhen
from golem.events import MessageAdded, RunFailed, RunFinished, RunStopped
from golem.history.repair import NO_RESULT
from golem.model import Delta, Request, Response, TextDelta
from golem.testing import FunctionModel, ScriptedModel, hangs
from tests.run.support import (
    Gives,
    Recorder,
    SlowRecorder,
    announced,
    asks,
    boom,
    echo,
    resumes,
    well_formed,
)

pytestmark = pytest.mark.virtual_time

CALLS = asks(("1", "echo"), ("2", "echo"), text="let me see")


@tool
async def hang() -> str:
    """Wait for ever."""
    await anyio.sleep_forever()
    return ""


async def read(stream: RunStream[Any], seen: list[Event] | None = None) -> None:
    async with stream:
        async for event in stream:
            if seen is not None:
                seen.append(event)


def contents(stream: RunStream[Any]) -> list[str]:
    assert stream.partial is not None
    return [message.content for message in stream.partial.messages]


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


# From another task


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


# Steering


async def test_what_is_said_meanwhile_joins_before_the_next_turn() -> None:
    recorder = Recorder()
    model = ScriptedModel([asks(("1", "echo"), ("2", "echo")), "x"])
    stream = Agent(model, tools=[echo], on_event=recorder).stream("p")
    async with stream:
        async for event in stream:
            if event.kind == "tool_started" and event.call_id == "1":  # type: ignore[union-attr]
                stream.enqueue("and hurry", parts=[Part.image_url("https://e/x")])
                stream.enqueue("please")
    result = stream.result
    assert result is not None
    said = ["p", "", "echoed", "echoed", "and hurry", "please", "x"]
    assert said == [m.content for m in result.messages]
    assert said[:-1] == [m.content for m in model.requests[1].messages]
    added = [e for e in recorder.events if isinstance(e, MessageAdded)]
    assert result.messages == [e.message for e in added]
    assert list(range(7)) == [e.index for e in added]
    assert {result.run_id} == {m.run_id for m in result.new_messages}


async def test_what_is_said_for_later_makes_the_run_go_on_when_it_would_be_over() -> None:
    model = ScriptedModel([asks(("1", "echo")), "first", "second"])
    stream = Agent(model, tools=[echo]).stream("p")
    async with stream:
        async for event in stream:
            if event.kind == "tool_started":
                stream.enqueue("one more thing", when="idle")
    result = stream.result
    assert result is not None
    assert [m.content for m in result.messages] == [
        "p",
        "",
        "echoed",
        "first",
        "one more thing",
        "second",
    ]
    assert result.output == "second"


async def test_what_is_said_before_the_run_begins_joins_behind_the_prompt() -> None:
    model = ScriptedModel(["x"])
    stream = Agent(model).stream("p")
    stream.enqueue("and this")
    await read(stream)
    assert [m.content for m in model.requests[0].messages] == ["p", "and this"]


@pytest.mark.parametrize("ends", ["leave", "cancel", "fail"])
async def test_what_has_joined_before_the_model_said_anything_is_evidence(ends: str) -> None:
    stream = Agent(ScriptedModel([LookupError("down")])).stream("p")
    stream.enqueue("and this")
    with anyio.CancelScope() as scope, contextlib.suppress(RunError):
        async with stream:
            async for event in stream:
                if event.kind == "message_added" and ends == "leave":
                    break
                if event.kind == "message_added" and ends == "cancel":
                    scope.cancel()
    assert contents(stream) == ["p", "and this"]
    assert stream.unsaid == []


async def test_structured_output_goes_on_too() -> None:
    model = ScriptedModel(["1", "2"])
    stream = Agent(model, decoder=int).stream("p")
    stream.enqueue("again", when="idle")
    await read(stream)
    assert stream.result is not None
    assert stream.result.output == 2


@pytest.mark.parametrize("where", ["tool", "observer"])
async def test_tools_and_observers_may_say_something(where: str) -> None:
    @tool
    async def says() -> str:
        if where == "tool":
            stream.enqueue("from inside")
        return "ok"

    def watch(event: Event) -> None:
        if where == "observer" and event.kind == "tool_started":
            stream.enqueue("from inside")

    agent = Agent(ScriptedModel([asks(("1", "says")), "x"]), tools=[says], on_event=watch)
    stream = agent.stream("p")
    await read(stream)
    assert stream.result is not None
    assert [m.content for m in stream.result.messages] == ["p", "", "ok", "from inside", "x"]


async def test_nothing_can_be_said_to_a_run_that_is_over_or_that_no_run_may_send() -> None:
    stream = Agent(ScriptedModel(["x"])).stream("p")
    with pytest.raises(ValueError, match="neither a URL nor"):
        stream.enqueue("look", parts=[Part("image")])
    await read(stream)
    with pytest.raises(ValueError, match="over"):
        stream.enqueue("too late")


async def test_what_is_said_while_the_run_pauses_waits_for_nobody() -> None:
    """The pause is an ending; pending calls come before anything else is said."""
    from tests.test_deferral import ask

    stream = Agent(ScriptedModel([asks(("1", "ask"))]), tools=[ask]).stream("p")
    async with stream:
        async for event in stream:
            if event.kind == "tool_started":
                stream.enqueue("hurry")
    assert stream.result is not None
    assert not any(isinstance(m, ToolMessage) for m in stream.result.messages)
    assert [UserMessage] == [type(m) for m in stream.result.messages[:1]]
    assert [message.content for message in stream.unsaid] == ["hurry"]


async def test_a_stop_leaves_unsaid_what_was_to_be_said() -> None:
    model = FunctionModel(lambda request: CALLS)
    stream = Agent(model, tools=[echo]).stream("p")
    async with stream:
        async for event in stream:
            if event.kind == "tool_started":
                if not stream.unsaid:
                    stream.enqueue("later", when="idle")
                    stream.enqueue("unsaid")
                await stream.stop("after_tools")
    assert "unsaid" not in contents(stream)
    assert [message.content for message in stream.unsaid] == ["unsaid", "later"]


async def test_what_is_said_during_the_last_answer_is_answered_too() -> None:
    """The end of an answer is a legal place: the run goes on instead of losing it."""
    stream = Agent(ScriptedModel(["first", "second"])).stream("p")
    async with stream:
        stream.enqueue("not yet", when="idle")
        assert [message.content for message in stream.unsaid] == ["not yet"]
        async for event in stream:
            if event.kind == "text_delta" and event.text == "first":
                stream.enqueue("late")
    assert contents(stream)[:2] == ["p", "first"]
    assert contents(stream)[2:4] == ["late", "not yet"]
    assert stream.unsaid == []


@pytest.mark.parametrize("decoded", [False, True])
async def test_who_has_read_the_last_answer_may_still_say_something(decoded: bool) -> None:
    options: dict[str, Any] = {"decoder": str} if decoded else {}
    stream = Agent(ScriptedModel(["first", "second"]), **options).stream("p")
    async with stream:
        async for event in stream:
            if event.kind == "message_added" and event.message.content == "first":
                stream.enqueue("one more thing")
    assert contents(stream) == ["p", "first", "one more thing", "second"]
    assert stream.unsaid == []


@pytest.mark.parametrize("when", ["next_turn", "idle"])
async def test_without_a_turn_left_an_answer_stands_and_the_rest_stays_unsaid(when: Any) -> None:
    stream = Agent(ScriptedModel(["first", "second"]), max_turns=1).stream("p")
    async with stream:
        async for event in stream:
            if event.kind == "text_delta":
                stream.enqueue("late", when=when)
    assert isinstance(stream.outcome, RunFinished)
    assert [message.content for message in stream.unsaid] == ["late"] * len(stream.unsaid) != []


@pytest.mark.parametrize(
    ("text", "options", "error"),
    [("", {}, ValueError), (5, {}, TypeError), ("x", {"parts": ["y"]}, TypeError)],
)
async def test_only_something_can_be_said(
    text: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    async with Agent(ScriptedModel(["x"])).stream("p") as stream:
        with pytest.raises(error):
            stream.enqueue(text, **options)


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
