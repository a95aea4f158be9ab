"""What becomes of the calls of a run: corrections, failures, stops, and how its turns end."""

from __future__ import annotations

import contextvars
import threading
from typing import Any

import pytest

from golem import (
    Agent,
    ModelRetry,
    Part,
    RunContext,
    RunError,
    Tool,
    ToolCanceled,
    ToolFailed,
    ToolMessage,
    ToolResult,
    Usage,
    tool,
)
from golem.model import Settings
from golem.testing import ScriptedModel
from tests.run.support import asks, boom, closing, contents, echo, paired, resumes


async def test_calls_run_one_after_the_other_in_call_order() -> None:
    running: list[str] = []

    @tool
    async def step(name: str) -> str:
        running.append(f"+{name}")
        running.append(f"-{name}")
        return name

    model = ScriptedModel([asks(("1", "step", '{"name":"a"}'), ("2", "step", '{"name":"b"}')), "x"])
    result = await Agent(model, tools=[step]).run("p")
    assert running == ["+a", "-a", "+b", "-b"]
    assert result.tool_calls == 2
    assert contents(result.messages) == ["p", "", "a", "b", "x"]


async def test_a_tool_knows_its_run() -> None:
    seen: list[RunContext[str]] = []

    @tool
    async def look(context: RunContext[str]) -> str:
        seen.append(context)
        return "seen"

    model = ScriptedModel([asks(("c1", "look")), "x"], usage=Usage(5, 1))
    result = await Agent[str](model, tools=[look]).run(
        "p", deps="D", run_id="r", conversation_id="c"
    )
    (context,) = seen
    assert (
        context.deps,
        context.run_id,
        context.conversation_id,
        context.call_id,
        context.tool_name,
        context.attempt,
        context.idempotency_key,
    ) == ("D", "r", "c", "c1", "look", 1, "c:c1")
    assert Usage(5, 1) == context.usage
    assert tuple(result.messages[:2]) == context.messages


async def test_the_tools_of_a_run_replace_the_agents() -> None:
    model = ScriptedModel([asks(("1", "boom")), "x"])
    result = await Agent(model, tools=[boom]).run("p", tools=[echo])
    assert [spec.name for spec in model.requests[0].tools] == ["echo"]
    assert result.messages[2].content == "There is no tool named boom. Available: echo."


async def test_model_and_settings_of_a_run_replace_the_agents() -> None:
    mine, agents = ScriptedModel(["mine"]), ScriptedModel(["agent's"])
    agent = Agent(agents, settings=Settings(seed=1))
    assert (await agent.run("p", model=mine, settings=Settings(seed=2))).output == "mine"
    assert (await agent.run("p")).output == "agent's"
    assert [Settings(seed=2), Settings(seed=1)] == [
        mine.requests[0].settings,
        agents.requests[0].settings,
    ]


async def test_an_unknown_tool_is_corrected_once_and_then_fails_the_run() -> None:
    model = ScriptedModel([asks(("1", "nope")), asks(("2", "nope"))])
    with pytest.raises(RunError, match="unknown tool 'nope'") as caught:
        await Agent(model, tools=[echo]).run("p")
    partial = caught.value.partial
    assert partial is not None
    assert (caught.value.stage, partial.tool_calls) == ("tool", 0)
    assert partial.messages[2].content == "There is no tool named nope. Available: echo."
    assert partial.messages[2].failed is False  # type: ignore[union-attr]
    await resumes(partial, synthesized=["2"])


@pytest.mark.parametrize("args", ['{"text":7}', '{"text', "", "[]", '"x"', "NaN", '{"text":NaN}'])
async def test_arguments_that_do_not_validate_are_corrected_without_running(args: str) -> None:
    entered: list[str] = []

    @tool
    async def strict(text: str = "") -> str:
        entered.append(text)
        return "ran"

    model = ScriptedModel([asks(("1", "strict", args)), asks(("2", "strict")), "x"])
    result = await Agent(model, tools=[strict]).run("p")
    assert entered == [""]
    assert result.tool_calls == 1
    assert result.messages[2].content.startswith("Your tool call was rejected: ")
    assert result.messages[4].content == "ran"


async def test_refusals_of_the_tool_and_of_golem_have_a_budget_each() -> None:
    attempts: list[int] = []

    @tool(retries=1)
    async def picky(context: RunContext[Any], n: int) -> str:
        attempts.append(context.attempt)
        if n < 2:
            raise ModelRetry("n must be 2 or more")
        return "fine"

    calls = ['{"n":"x"}', '{"n":1}', '{"n":2}']
    model = ScriptedModel([*(asks((str(i), "picky", a)) for i, a in enumerate(calls)), "x"])
    result = await Agent(model, tools=[picky]).run("p")
    assert attempts == [2, 3]
    assert result.messages[4].content == (
        "Your tool call was rejected: n must be 2 or more. "
        "Correct the arguments and call the tool again."
    )
    assert result.messages[6].content == "fine"


async def test_a_definitive_failure_is_recorded_and_the_run_goes_on() -> None:
    @tool
    def send() -> str:
        raise ToolFailed("mailbox is read-only")

    model = ScriptedModel([asks(("1", "send")), "x"])
    result = await Agent(model, tools=[send]).run("p")
    failed = result.messages[2]
    assert isinstance(failed, ToolMessage)
    assert (failed.failed, failed.content) == (True, "mailbox is read-only")


async def test_a_hard_error_keeps_finished_siblings_beside_the_transcript() -> None:
    model = ScriptedModel([asks(("1", "echo"), ("2", "boom"), ("3", "echo"))], usage=Usage(1, 1))
    with pytest.raises(RunError, match=r"tool 'boom' \(call '2'\): boom") as caught:
        await Agent(model, tools=[echo, boom]).run("p")
    partial = caught.value.partial
    assert partial is not None
    assert isinstance(caught.value.__cause__, RuntimeError)
    assert contents(partial.messages) == ["p", ""]
    assert contents(partial.batch_results) == ["echoed"]
    assert partial.run_id == partial.batch_results[0].run_id
    assert (2, 1, Usage(1, 1)) == (partial.tool_calls, partial.requests, partial.usage)
    await resumes(partial, synthesized=["1", "2", "3"])
    again = await Agent(ScriptedModel(["x"])).run("go", history=partial.resume_messages)
    assert again.repair.synthesized == ("2", "3")
    assert "echoed" in contents(again.messages)


async def test_a_stop_closes_its_batch_and_needs_no_repair() -> None:
    @tool
    async def stop() -> str:
        raise ToolCanceled("enough")

    model = ScriptedModel([asks(("1", "echo"), ("2", "stop"), ("3", "echo"))])
    with pytest.raises(RunError, match="canceled the run: enough") as caught:
        await Agent(model, tools=[echo, stop]).run("p")
    error = caught.value
    partial = error.partial
    assert partial is not None
    assert error.stage == "canceled"
    assert isinstance(error.__cause__, ToolCanceled)
    stamps = {"run_id": error.run_id, "conversation_id": error.conversation_id}
    assert [
        ToolMessage("echoed", tool_call_id="1", tool_name="echo", **stamps),
        closing("2", "stop", **stamps),
        closing("3", "echo", **stamps),
    ] == partial.messages[2:]
    assert partial.batch_results == []
    await resumes(partial)


async def test_media_of_a_tool_that_no_run_may_send_fails_there_and_not_in_every_later_run() -> (
    None
):
    @tool
    def shoot() -> ToolResult:
        return ToolResult("shot", (Part("hologram", url="https://e/x"),))

    with pytest.raises(RunError, match="unsupported part kind 'hologram'") as caught:
        await Agent(ScriptedModel([asks(("1", "shoot"))]), tools=[shoot]).run("p")
    assert caught.value.stage == "tool"
    assert caught.value.partial is not None
    await resumes(caught.value.partial, synthesized=["1"])


@pytest.mark.parametrize("ids", [("", ""), ("same", "same"), ("a", "")])
async def test_calls_with_missing_or_repeated_ids_run_and_pair_up(ids: tuple[str, str]) -> None:
    calls = asks((ids[0], "echo", '{"text":"1"}'), (ids[1], "echo", '{"text":"2"}'))
    model = ScriptedModel([calls, calls, "x"])
    result = await Agent(model, tools=[echo]).run("p")
    assert contents(result.messages) == ["p", "", "1", "2", "", "1", "2", "x"]
    assert paired(result.messages)


async def test_max_turns_ends_the_run_after_the_last_batch() -> None:
    model = ScriptedModel([asks((str(n), "echo")) for n in range(9)])
    with pytest.raises(RunError, match="after 2 turns") as caught:
        await Agent(model, tools=[echo], max_turns=2).run("p")
    assert (caught.value.stage, len(model.requests)) == ("loop", 2)
    assert caught.value.partial is not None
    await resumes(caught.value.partial)


@pytest.mark.parametrize(
    "raised", [SystemError("x"), ExceptionGroup("g", [ValueError("inner")]), StopAsyncIteration()]
)
async def test_any_exception_of_a_tool_ends_the_run_at_stage_tool(raised: Exception) -> None:
    async def fails(arguments: dict[str, Any]) -> str:
        raise raised

    made = Tool("fails", fails, schema={"type": "object"})
    with pytest.raises(RunError) as caught:
        await Agent(ScriptedModel([asks(("1", "fails"))]), tools=[made]).run("p")
    assert caught.value.stage == "tool"
    assert raised is caught.value.__cause__


async def test_sync_tools_see_the_callers_context_variables() -> None:
    user = contextvars.ContextVar("user", default="nobody")
    where: list[int] = []

    @tool
    def who() -> str:
        where.append(threading.get_ident())
        return user.get()

    user.set("ada")
    result = await Agent(ScriptedModel([asks(("1", "who")), "x"]), tools=[who]).run("p")
    assert result.messages[2].content == "ada"
    assert threading.get_ident() not in where
