"""An agent as a tool of another: usage, limits, pause, stop, failure, cancellation, ids."""

from __future__ import annotations

from typing import Any

import anyio
import msgspec
import pytest

from golem import (
    Agent,
    RunContext,
    RunError,
    SubAgentPausedError,
    ToolCanceled,
    ToolDeferred,
    TransportError,
    Usage,
    UsageLimitError,
    UsageLimits,
    partial_from,
    tool,
)
from golem.events import RunStarted
from golem.testing import ScriptedModel, hangs
from tests.run.support import Recorder, asks, boom, echo, resumes, well_formed

pytestmark = pytest.mark.virtual_time

EACH = Usage(10, 5)
ASKS = asks(("1", "helper", '{"prompt":"do it"}'))


@tool
async def stop() -> str:
    """Stop."""
    raise ToolCanceled("enough")


@tool
async def ask() -> str:
    """Wait for somebody."""
    raise ToolDeferred("approval", "sure?")


def top(
    helper: Agent[Any, Any], script: list[Any] | None = None, **options: Any
) -> Agent[Any, Any]:
    model = ScriptedModel(script or [ASKS, "done"], usage=EACH)
    tools = [helper.as_tool("helper", "Helps."), echo]
    return Agent(model, tools=tools, **options)


def sub(*script: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(
        ScriptedModel(script, usage=EACH), tools=[echo, boom, stop, ask], retry=None, **options
    )


async def test_the_output_of_the_helper_is_the_result_of_the_call() -> None:
    class Answer(msgspec.Struct):
        n: int

    result = await top(sub("text")).run("p")
    assert [m.content for m in result.messages] == ["p", "", "text", "done"]
    structured = Agent(ScriptedModel(['{"n": 1}']), output_type=Answer, output_mode="prompt")
    result = await top(structured).run("p")
    assert result.messages[2].content == '{"n":1}'


async def test_what_the_helper_consumes_counts_into_the_run() -> None:
    helper = sub(asks(("s", "echo")), "helped", price=lambda usage: 1.0)
    result = await top(helper, price=lambda usage: 0.25).run("p")
    assert (Usage(40, 20), 4, 2, 2.5) == (
        result.usage,
        result.requests,
        result.tool_calls,
        result.cost,
    )


async def test_ids_link_the_two_runs() -> None:
    inner, outer = Recorder(), Recorder()
    result = await top(sub("helped", on_event=inner), on_event=outer).run("p", deps="me")
    started = inner.events[0]
    assert isinstance(started, RunStarted)
    assert result.run_id == started.parent_run_id
    assert started.run_id != result.run_id
    assert started.conversation_id != result.conversation_id
    well_formed(inner.events)
    well_formed(outer.events)


async def test_the_helper_gets_the_dependencies() -> None:
    seen: list[Any] = []

    @tool
    async def look(context: RunContext[Any]) -> str:
        seen.append(context.deps)
        return ""

    helper = Agent(ScriptedModel([asks(("1", "look")), "x"]), tools=[look])
    await top(helper).run("p", deps={"user": 7})
    assert seen == [{"user": 7}]


async def test_a_limit_that_the_helper_crosses_ends_the_run_before_anything_more_is_sent() -> None:
    agent = top(sub(asks(("s", "echo")), "helped"), limits=UsageLimits(total_tokens=40))
    with pytest.raises(RunError) as caught:
        await agent.run("p")
    assert isinstance(caught.value.__cause__, UsageLimitError)
    partial = caught.value.partial
    assert partial is not None
    assert ("usage", 3, Usage(30, 15)) == (caught.value.stage, partial.requests, partial.usage)
    assert [m.content for m in partial.messages] == ["p", "", "helped"]
    await resumes(partial)


async def test_a_stop_in_the_helper_stops_the_run() -> None:
    recorder = Recorder()
    agent = top(sub(asks(("s", "stop"))), on_event=recorder)
    with pytest.raises(RunError, match="enough") as caught:
        await agent.run("p")
    assert caught.value.stage == "canceled"
    assert recorder.kinds[-2:] == ["run_canceled", "run_stopped"]
    assert Usage(20, 10) == caught.value.partial.usage  # type: ignore[union-attr]
    await resumes(caught.value.partial)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "script",
    [[asks(("s", "boom"))], [asks(("s", "echo")), TransportError("cut")]],
    ids=["tool", "model"],
)
async def test_a_failure_of_the_helper_is_the_failure_of_the_call(script: list[Any]) -> None:
    with pytest.raises(RunError) as caught:
        await top(sub(*script)).run("p")
    cause = caught.value.__cause__
    assert isinstance(cause, RunError)
    assert caught.value.stage == "tool"
    assert cause.run_id != caught.value.run_id
    partial = caught.value.partial
    assert partial is not None
    assert Usage(20, 10) == partial.usage
    assert partial is partial_from(caught.value)
    await resumes(partial, synthesized=("1",))


async def test_a_pause_of_the_helper_is_explicit() -> None:
    with pytest.raises(RunError, match="paused, waiting for an answer to: ask") as caught:
        await top(sub(asks(("s", "ask")))).run("p")
    cause = caught.value.__cause__
    assert isinstance(cause, SubAgentPausedError)
    assert [call.call_id for call in cause.pending.approvals] == ["s"]


@pytest.mark.parametrize("parallel", [False, True])
async def test_cancelling_the_run_cancels_the_helper_and_keeps_what_it_consumed(
    parallel: bool,
) -> None:
    inner, outer = Recorder(), Recorder()
    helper = sub(asks(("s", "echo")), hangs("x"), on_event=inner)
    script = [asks(("1", "helper", '{"prompt":"?"}'), ("2", "echo"))]
    agent = top(helper, script, on_event=outer, parallel_tool_calls=parallel)
    stream = agent.stream("p")
    with anyio.move_on_after(0.02):
        async with stream:
            async for _ in stream:
                pass
    well_formed(inner.events)
    well_formed(outer.events)
    assert [inner.kinds[-1], outer.kinds[-1]] == ["run_stopped"] * 2
    partial = stream.partial
    assert partial is not None
    assert (Usage(20, 10), 3) == (partial.usage, partial.requests)


async def test_the_runs_timeout_reaches_into_the_helper() -> None:
    with pytest.raises(RunError) as caught:
        await top(sub(hangs("x")), timeout=0.5).run("p")
    assert isinstance(caught.value.__cause__, TimeoutError)
    assert caught.value.stage == "tool"


async def test_helpers_may_nest_and_run_together() -> None:
    low = sub("low")
    middle = Agent(
        ScriptedModel([asks(("m", "low", '{"prompt":"?"}')), "middle"], usage=EACH),
        tools=[low.as_tool("low", "Low.")],
    )
    other = sub("other")
    script = [asks(("1", "a", '{"prompt":"?"}'), ("2", "b", '{"prompt":"?"}')), "done"]
    agent = Agent(
        ScriptedModel(script, usage=EACH),
        tools=[middle.as_tool("a", "A."), other.as_tool("b", "B.")],
        parallel_tool_calls=True,
    )
    result = await agent.run("p")
    assert [m.content for m in result.messages] == ["p", "", "middle", "other", "done"]
    assert (6, Usage(60, 30), 3) == (result.requests, result.usage, result.tool_calls)
