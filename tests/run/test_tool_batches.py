"""Batches of calls: what runs together, in which order it is told, what it costs, what is left."""

from __future__ import annotations

import contextlib
import threading
import time
from typing import Any

import anyio
import anyio.from_thread
import anyio.lowlevel
import anyio.to_thread
import pytest

from golem import (
    Agent,
    AssistantMessage,
    DeferredResults,
    ModelRetry,
    RunContext,
    RunError,
    Timeouts,
    Tool,
    ToolCall,
    ToolCanceled,
    ToolDeferred,
    ToolMessage,
    UserMessage,
    tool,
)
from golem.history.repair import NO_RESULT
from golem.testing import ScriptedModel, read
from tests.run.support import Recorder, asks, boom, echo, well_formed


class Together:
    """Tools that tell who was running at the same time; each waits for `crowd` of them."""

    def __init__(self) -> None:
        self.running: set[str] = set()
        self.most: list[int] = []
        self.order: list[str] = []

    async def enter(self, name: str) -> str:
        self.running.add(name)
        for _ in range(10):
            await anyio.lowlevel.checkpoint()
            self.most.append(len(self.running))
        self.running.remove(name)
        self.order.append(name)
        return name

    @property
    def tools(self) -> list[Tool]:
        @tool
        async def quick(n: str) -> str:
            return await self.enter(n)

        @tool(sequential=True)
        async def alone(n: str) -> str:
            self.order.append(f"{n}<{len(self.running)}")
            return await self.enter(n)

        return [quick, alone]


def numbered(*names: str) -> list[tuple[str, str, str]]:
    return [(f"{n}", name, f'{{"n":"{n}"}}') for n, name in enumerate(names)]


BARRIERS = [
    (["quick"] * 3, 3),
    (["quick", "alone", "quick"], 1),
    (["quick", "quick", "alone", "quick", "quick", "quick"], 3),
    (["alone", "alone"], 1),
]


@pytest.mark.parametrize(("names", "most"), BARRIERS)
async def test_a_group_is_a_maximal_run_of_calls_without_a_barrier(
    names: list[str], most: int
) -> None:
    seen = Together()
    agent = Agent(
        ScriptedModel([asks(*numbered(*names)), "x"]), tools=seen.tools, parallel_tool_calls=True
    )
    result = await agent.run("p")
    assert most == max(seen.most)
    assert all(entry.endswith("<0") for entry in seen.order if "<" in entry)
    results = [m.content for m in result.messages if isinstance(m, ToolMessage)]
    assert [str(n) for n in range(len(names))] == results  # always in call order


async def test_without_parallel_tool_calls_nothing_runs_together() -> None:
    seen = Together()
    agent = Agent(ScriptedModel([asks(*numbered("quick", "quick")), "x"]), tools=seen.tools)
    await agent.run("p")
    assert {1} == set(seen.most)


async def test_a_group_tells_all_its_starts_then_all_its_ends_in_call_order() -> None:
    recorder = Recorder()
    calls = numbered("quick", "quick", "alone", "quick")
    agent = Agent(
        ScriptedModel([asks(*calls), "x"]),
        tools=Together().tools,
        parallel_tool_calls=True,
        on_event=recorder,
    )
    await agent.run("p")
    told = [
        f"{event.kind.removeprefix('tool_')} {event.call_id}"
        for event in recorder.events
        if event.kind in ("tool_started", "tool_finished")
    ]
    assert [
        *("started 0", "started 1", "finished 0", "finished 1"),
        *("started 2", "finished 2", "started 3", "finished 3"),
    ] == told


async def test_members_of_a_failing_group_finish_and_nothing_further_starts() -> None:
    seen = Together()
    calls = [*numbered("quick"), ("1", "boom"), ("2", "quick", '{"n":"2"}'), ("3", "alone", "{}")]
    agent = Agent(
        ScriptedModel([asks(*calls)]), tools=[*seen.tools, boom], parallel_tool_calls=True
    )
    with pytest.raises(RunError) as caught:
        await agent.run("p")
    partial = caught.value.partial
    assert partial is not None
    assert ["0", "2"] == sorted(seen.order) == [m.content for m in partial.batch_results]
    assert partial.tool_calls == 3


async def test_the_first_deciding_outcome_in_call_order_wins() -> None:
    """Whatever finished first on the clock: a stop before a failure, or a failure before a stop."""

    @tool
    async def slow_stop() -> str:
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        raise ToolCanceled("late")

    for names, stage in ((["slow_stop", "boom"], "canceled"), (["boom", "slow_stop"], "tool")):
        calls = [(str(n), name) for n, name in enumerate(names)]
        agent = Agent(
            ScriptedModel([asks(*calls)]), tools=[slow_stop, boom], parallel_tool_calls=True
        )
        with pytest.raises(RunError) as caught:
            await agent.run("p")
        assert stage == caught.value.stage


async def test_a_stop_closes_what_comes_behind_it_and_keeps_its_siblings_results_aside() -> None:
    @tool
    async def stopper() -> str:
        raise ToolCanceled("enough")

    calls = [("1", "echo"), ("2", "stopper"), ("3", "echo"), ("4", "nope")]
    agent = Agent(ScriptedModel([asks(*calls)]), tools=[echo, stopper], parallel_tool_calls=True)
    with pytest.raises(RunError) as caught:
        await agent.run("p")
    partial = caught.value.partial
    assert partial is not None
    closed = [(m.tool_call_id, m.content) for m in partial.messages if isinstance(m, ToolMessage)]
    assert closed == [("1", "echoed"), ("2", NO_RESULT), ("3", NO_RESULT), ("4", NO_RESULT)]
    kept = [m for m in partial.batch_results if m.tool_call_id == "3"]
    assert [("echoed", partial.run_id)] == [(m.content, m.run_id) for m in kept]
    told = [m for m in partial.resume_messages if isinstance(m, ToolMessage)]
    assert [m.tool_call_id for m in told] == ["1", "2", "3", "4"]
    assert [m.content for m in told[:3]] == ["echoed", NO_RESULT, "echoed"]
    assert "There is no tool named nope" in told[3].content
    again = await Agent(ScriptedModel(["on"])).run("go on", history=partial.resume_messages)
    assert not again.repair
    assert partial.messages[-1].run_id == partial.run_id


async def test_a_pause_in_a_batch_that_is_stopped_is_discarded_and_closed() -> None:
    @tool
    async def ask() -> str:
        raise ToolDeferred("approval")

    @tool
    async def stopper() -> str:
        raise ToolCanceled("enough")

    calls = [("1", "ask"), ("2", "echo"), ("3", "stopper")]
    with pytest.raises(RunError) as caught:
        await Agent(ScriptedModel([asks(*calls)]), tools=[ask, echo, stopper]).run("p")
    partial = caught.value.partial
    assert partial is not None
    closed = [(m.tool_call_id, m.content) for m in partial.messages if isinstance(m, ToolMessage)]
    assert closed == [("2", "echoed"), ("1", NO_RESULT), ("3", NO_RESULT)]


# Budgets


@pytest.mark.parametrize(("retries", "attempts"), [(0, 1), (1, 2), (3, 4)])
async def test_a_tools_refusals_have_the_budget_it_was_given(retries: int, attempts: int) -> None:
    seen: list[int] = []

    @tool(retries=retries)
    async def fussy(context: RunContext[Any]) -> str:
        seen.append(context.attempt)
        raise ModelRetry("no")

    script = [asks((str(n), "fussy")) for n in range(9)]
    with pytest.raises(RunError, match="no") as caught:
        await Agent(ScriptedModel(script), tools=[fussy]).run("p")
    assert ("tool", list(range(1, attempts + 1))) == (caught.value.stage, seen)
    assert isinstance(caught.value.__cause__, ModelRetry)


@pytest.mark.parametrize("wrong", [("nope", "{}"), ("echo", '{"text": 5}'), ("echo", '{"te')])
async def test_a_call_that_cannot_be_run_is_corrected_once(wrong: tuple[str, str]) -> None:
    once = [asks(("1", *wrong)), "ok"]
    result = await Agent(ScriptedModel(once), tools=[echo]).run("p")
    assert (result.output, result.tool_calls) == ("ok", 0)
    twice = [asks(("1", *wrong)), asks(("2", *wrong)), "ok"]
    with pytest.raises(RunError) as caught:
        await Agent(ScriptedModel(twice), tools=[echo]).run("p")
    assert caught.value.stage == "tool"


async def test_an_unknown_tool_is_told_which_there_are() -> None:
    result = await Agent(ScriptedModel([asks(("1", "nope")), "ok"]), tools=[echo, boom]).run("p")
    assert result.messages[2].content == "There is no tool named nope. Available: echo, boom."


async def test_the_tools_of_a_run_replace_the_agents_and_are_the_only_ones_known() -> None:
    """A tool that is registered but not advertised is unknown."""
    model = ScriptedModel([asks(("1", "echo")), "ok"])
    result = await Agent(model, tools=[echo]).run("p", tools=[boom])
    assert [spec.name for spec in model.requests[0].tools] == ["boom"]
    assert result.messages[2].content == "There is no tool named echo. Available: boom."
    none = ScriptedModel(["ok"])
    await Agent(none, tools=[echo]).run("p", tools=[])
    assert tuple(none.requests[0].tools) == ()


# Timeouts and threads


async def test_a_tools_own_timeout_goes_before_the_runs() -> None:
    @tool(timeout=0.001)
    async def short() -> str:
        await anyio.sleep_forever()
        return ""

    for timeouts in (Timeouts(tool=60), Timeouts()):
        with pytest.raises(RunError, match=r"tool timeout of 0.001 s") as caught:
            await Agent(ScriptedModel([asks(("1", "short"))]), tools=[short]).run(
                "p", timeout=timeouts
            )
        assert isinstance(caught.value.__cause__, TimeoutError)
        assert caught.value.partial.abandoned == ()  # type: ignore[union-attr]


async def test_a_thread_that_outlives_its_call_is_reported() -> None:
    release = threading.Event()
    finished = threading.Event()

    @tool(timeout=0.1)
    def block() -> str:
        release.wait(30)
        finished.set()
        return "too late"

    try:
        with pytest.raises(RunError) as caught:
            await Agent(
                ScriptedModel([asks(("1", "echo"), ("2", "block"))]), tools=[echo, block]
            ).run("p")
    finally:
        release.set()
    partial = caught.value.partial
    assert partial is not None
    assert (partial.abandoned, [m.content for m in partial.batch_results]) == (("2",), ["echoed"])
    finished.wait(30)


async def test_threads_that_were_left_behind_keep_no_other_tool_from_running() -> None:
    """More of them than a backend runs threads at once: 40, unless it is told otherwise."""
    release = threading.Event()
    entered: list[anyio.Event] = []

    @tool
    def block(n: int) -> str:
        anyio.from_thread.run_sync(entered[n].set)
        release.wait(60)
        return "too late"

    @tool
    def work() -> str:
        return "worked"

    def hanging(n: int) -> Agent[Any, Any]:
        script = [asks(("1", "block", f'{{"n": {n}}}'))]
        return Agent(ScriptedModel(script), tools=[block])

    try:
        for _ in range(3):
            async with anyio.create_task_group() as tasks:
                for _ in range(15):
                    entered.append(anyio.Event())
                    tasks.start_soon(hanging(len(entered) - 1).run, "p")
                for event in entered:
                    await event.wait()
                tasks.cancel_scope.cancel()
        result = await Agent(ScriptedModel([asks(("1", "work")), "x"]), tools=[work]).run("p")
    finally:
        release.set()
    assert len(entered) == 45
    assert result.messages[2].content == "worked"


async def test_as_many_threads_run_at_once_as_the_backend_allows() -> None:
    limiter = anyio.to_thread.current_default_thread_limiter()
    before, limiter.total_tokens = limiter.total_tokens, 2
    now, most = 0, 0
    lock = threading.Lock()

    @tool
    def work() -> str:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.001)
        with lock:
            now -= 1
        return ""

    calls = [asks(*((str(n), "work") for n in range(12))), "x"]
    try:
        await Agent(ScriptedModel(calls), tools=[work], parallel_tool_calls=True).run("p")
    finally:
        limiter.total_tokens = before
    assert most == 2


async def test_a_thread_of_a_cancelled_run_is_reported() -> None:
    release, entered = threading.Event(), threading.Event()

    @tool
    def block() -> str:
        entered.set()
        release.wait(30)
        return "too late"

    stream = Agent(ScriptedModel([asks(("1", "block"))]), tools=[block]).stream("p")
    try:
        async with anyio.create_task_group() as tasks:

            async def read() -> None:
                async with stream:
                    async for _ in stream:
                        pass

            tasks.start_soon(read)
            await anyio.to_thread.run_sync(entered.wait, 30)
            tasks.cancel_scope.cancel()
    finally:
        release.set()
    assert stream.partial is not None
    assert stream.partial.abandoned == ("1",)


async def test_only_a_thread_that_may_still_run_is_reported() -> None:
    """Neither a call that waits for a thread, nor what a thread has raised or handed over."""
    release, entered = threading.Event(), anyio.Event()

    @tool
    def block() -> str:
        anyio.from_thread.run_sync(entered.set)
        release.wait(30)
        return "too late"

    stream = Agent(
        ScriptedModel([asks(("1", "block"), ("2", "block"))]),
        tools=[block],
        parallel_tool_calls=True,
    ).stream("p")
    limiter = anyio.to_thread.current_default_thread_limiter()
    before, limiter.total_tokens = limiter.total_tokens, 1
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(read, stream)
            await entered.wait()
            tasks.cancel_scope.cancel()
    finally:
        limiter.total_tokens = before
        release.set()
    assert stream.partial is not None
    assert len(stream.partial.abandoned) == 1


@pytest.mark.parametrize("way", ["raises", "hands over"])
async def test_a_thread_that_has_ended_is_not_reported(way: str) -> None:
    async def hangs() -> str:
        await anyio.sleep(3600)
        return "never"

    @tool
    def ends() -> Any:
        if way == "raises":
            raise SystemExit
        return hangs()

    stream = Agent(ScriptedModel([asks(("1", "ends"))]), tools=[ends]).stream("p")
    with contextlib.suppress(SystemExit), anyio.move_on_after(0.2):
        await read(stream)
    assert stream.partial is not None
    assert stream.partial.abandoned == ()


# What a tool may know


async def test_the_context_of_a_call_tells_its_place() -> None:
    seen: list[RunContext[Any]] = []

    @tool
    async def look(context: RunContext[Any]) -> str:
        seen.append(context)
        return "seen"

    model = ScriptedModel([asks(("1", "look"), ("2", "look")), "x"])
    result = await Agent(model, tools=[look]).run("p", deps={"user": 7}, conversation_id="c")
    assert [(c.call_id, c.idempotency_key) for c in seen] == [("1", "c:1"), ("2", "c:2")]
    for context in seen:
        assert ({"user": 7}, result.run_id, "look", 1, False) == (
            context.deps,
            context.run_id,
            context.tool_name,
            context.attempt,
            context.approved,
        )
        assert [message.content for message in context.messages] == ["p", ""]
        assert isinstance(context.messages, tuple)


async def test_the_idempotency_key_is_the_same_when_the_call_is_resumed() -> None:
    keys: list[str] = []

    @tool
    async def pay(context: RunContext[Any]) -> str:
        keys.append(context.idempotency_key)
        if not context.approved:
            raise ToolDeferred("approval", "money")
        return "paid"

    agent = Agent(ScriptedModel([asks(("1", "pay")), "done"]), tools=[pay])
    paused = await agent.run("p")
    await agent.run(None, history=paused.messages, deferred=DeferredResults(approvals={"1": True}))
    assert len(keys) == 2
    assert len(set(keys)) == 1


async def test_requires_approval_defers_without_entering_the_tool() -> None:
    entered: list[bool] = []

    @tool(requires_approval=True)
    async def wipe(context: RunContext[Any], path: str) -> str:
        entered.append(context.approved)
        return f"wiped {path}"

    recorder = Recorder()
    agent = Agent(
        ScriptedModel([asks(("1", "wipe", '{"path":"/"}'), ("2", "echo")), "done"]),
        tools=[wipe, echo],
        on_event=recorder,
    )
    paused = await agent.run("p")
    assert entered == []
    (call,) = paused.pending.approvals
    assert (
        call.call_id,
        call.tool_name,
        call.args,
        paused.tool_calls,
    ) == ("1", "wipe", '{"path":"/"}', 1)
    well_formed(recorder.events)
    result = await agent.run(
        None, history=paused.messages, deferred=DeferredResults(approvals={"1": True})
    )
    assert (entered, result.output, result.tool_calls) == ([True], "done", 1)
    assert result.messages[2].content == "wiped /"


async def test_invalid_arguments_are_corrected_before_anybody_is_asked_for_approval() -> None:
    @tool(requires_approval=True)
    async def wipe(path: str) -> str:
        return path

    agent = Agent(ScriptedModel([asks(("1", "wipe", '{"path":5}')), "sorry"]), tools=[wipe])
    result = await agent.run("p")
    assert (result.output, bool(result.pending)) == ("sorry", False)


async def test_calls_without_an_id_and_calls_of_one_id_are_each_answered() -> None:
    """No adapter lets them through; a model of one's own may."""
    for ids in (["", ""], ["same", "same"]):
        script = [asks(*[(i, "echo", f'{{"text":"{n}"}}') for n, i in enumerate(ids)]), "ok"]
        journal: list[Any] = []

        async def write(message: Any) -> None:
            journal.append(message)  # noqa: B023

        result = await Agent(ScriptedModel(script), tools=[echo], journal=write).run("p")
        assert [m.content for m in result.messages if isinstance(m, ToolMessage)] == ["0", "1"]
        assert journal == result.new_messages
        again = await Agent(ScriptedModel(["x"])).run("q", history=journal)
        assert not again.repair.dropped


async def test_equal_results_of_equal_ids_are_journaled_each() -> None:
    journal: list[Any] = []

    async def write(message: Any) -> None:
        journal.append(message)

    script = [asks(("same", "echo"), ("same", "echo")), "ok"]
    for parallel in (False, True):
        journal.clear()
        agent = Agent(
            ScriptedModel(script), tools=[echo], journal=write, parallel_tool_calls=parallel
        )
        result = await agent.run("p")
        assert [type(m) for m in result.new_messages] == [type(m) for m in journal]
        assert journal == result.new_messages


async def test_a_history_is_never_changed_by_its_run() -> None:
    history: list[Any] = [UserMessage("q"), asks(("1", "echo"))]
    before = list(history)
    await Agent(ScriptedModel([asks(("2", "echo")), "x"]), tools=[echo]).run("p", history=history)
    assert before == history


@pytest.mark.parametrize("bad", ["nobody", "echo"], ids=["an unknown tool", "invalid arguments"])
async def test_nothing_runs_in_a_batch_that_is_known_to_fail(bad: str) -> None:
    """The whole batch is checked first: no effect happens for a run that cannot go on."""
    ran: list[str] = []

    async def echo(text: str) -> str:
        """Say it again."""
        ran.append(text)
        return text

    good = ("echo", '{"text":"x"}')
    calls = [good, (bad, "{}"), (bad, "{}")]
    asking = AssistantMessage(
        tool_calls=tuple(ToolCall.of(str(n), *call) for n, call in enumerate(calls))
    )
    kinds: list[str] = []
    with pytest.raises(RunError, match=r"\(call '2'\)") as caught:
        await Agent(ScriptedModel([asking]), tools=[echo]).run(
            "p", on_event=lambda event: kinds.append(event.kind)
        )
    assert ran == []
    assert [kind for kind in kinds if kind.startswith("tool_")] == ["tool_started", "tool_finished"]
    assert caught.value.partial is not None
    assert caught.value.partial.batch_results == []


async def test_a_correction_that_is_left_lets_the_rest_of_the_batch_run() -> None:
    ran: list[str] = []

    async def echo(text: str) -> str:
        """Say it again."""
        ran.append(text)
        return text

    asking = AssistantMessage(
        tool_calls=(ToolCall.of("1", "nobody", "{}"), ToolCall.of("2", "echo", '{"text":"x"}'))
    )
    result = await Agent(ScriptedModel([asking, "ok"]), tools=[echo]).run("p")
    assert (ran, result.output) == (["x"], "ok")
