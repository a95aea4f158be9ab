"""What one run promises its caller: transcript, instructions, processors, tools, endings."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Message,
    ModelRetry,
    Part,
    ProtocolError,
    Result,
    RunContext,
    RunError,
    SystemMessage,
    Tool,
    ToolCanceled,
    ToolFailed,
    ToolMessage,
    ToolResult,
    TransportError,
    Usage,
    UserMessage,
    dump_history,
    load_history,
    partial_from,
    tool,
)
from golem.model import (
    Details,
    Model,
    Response,
    Settings,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from golem.testing import Fragments, Scripted, ScriptedModel
from tests.run.support import (
    Gives,
    Recorder,
    announced,
    asks,
    boom,
    closing,
    echo,
    paired,
    resumes,
    well_formed,
)

Q, A = UserMessage("q"), AssistantMessage("a")


def contents(messages: Any) -> list[str]:
    return [message.content for message in messages]


# The transcript


async def test_a_run_returns_the_whole_conversation_and_what_it_added() -> None:
    model = ScriptedModel(["hello"], usage=Usage(3, 2))
    result = await Agent(model, instructions="be kind").run("hi", history=[Q, A])
    stamps = {"run_id": result.run_id, "conversation_id": result.conversation_id}
    added = [UserMessage("hi", **stamps), AssistantMessage("hello", **stamps)]
    assert added == result.new_messages
    assert [SystemMessage("be kind"), Q, A, *added] == result.messages
    assert result.messages[:-1] == list(model.requests[0].messages)
    assert ("hello", Usage(3, 2), 1, 0, "stop") == (
        result.output,
        result.usage,
        result.requests,
        result.tool_calls,
        result.finish_reason,
    )


async def test_runs_chain_through_their_messages() -> None:
    """Three runs: each sees the earlier ones, instructions never pile up, appending is enough."""
    model = ScriptedModel(["one", "two", "three"])
    agent = Agent(model, instructions="i")
    stored: list[Message] = []
    messages: list[Message] = []
    for prompt in ("a", "b", "c"):
        result = await agent.run(prompt, history=messages)
        messages = load_history(dump_history(result.messages))
        stored += result.new_messages
    assert contents(messages) == ["i", "a", "one", "b", "two", "c", "three"]
    assert messages[1:] == stored
    assert contents(model.requests[2].messages) == ["i", "a", "one", "b", "two", "c"]


async def test_kept_history_is_the_same_objects_and_the_callers_list_is_untouched() -> None:
    history: list[Message] = [SystemMessage("old"), Q, asks(("c", "t"))]
    given_history = list(history)
    result = await Agent(ScriptedModel(["x"])).run("p", history=history)
    assert given_history == history
    assert result.messages[0] is Q
    assert result.messages[1] is history[2]
    assert closing("c", "t") == result.messages[2]
    assert result.repair.synthesized == ("c",)


async def test_history_may_be_any_iterable_read_once() -> None:
    def read() -> Iterator[Message]:
        yield Q
        yield A

    result = await Agent(ScriptedModel(["x"])).run("p", history=read())
    assert contents(result.messages) == ["q", "a", "p", "x"]


@pytest.mark.parametrize("prompt", [None, ""])
async def test_an_empty_prompt_adds_no_message_to_a_history(prompt: str | None) -> None:
    result = await Agent(ScriptedModel(["x"])).run(prompt, history=[Q])
    assert contents(result.messages) == ["q", "x"]
    assert contents(result.new_messages) == ["x"]


async def test_parts_go_after_the_text_and_may_stand_alone() -> None:
    image = Part.image_url("https://e/x.png")
    result = await Agent(ScriptedModel(["x"])).run(parts=iter([image]))
    first = result.messages[0]
    assert isinstance(first, UserMessage)
    assert ("", (image,)) == (first.content, first.parts)


@pytest.mark.parametrize("given_options", [{}, {"history": []}, {"parts": []}])
async def test_a_run_without_anything_to_say_is_the_callers_mistake(
    given_options: dict[str, Any],
) -> None:
    model = ScriptedModel(["x"])
    with pytest.raises(ValueError, match="needs a prompt, parts or a history"):
        await Agent(model).run(**given_options)
    assert model.requests == []


async def test_a_history_of_which_nothing_is_left_fails_before_the_model() -> None:
    model, recorder = ScriptedModel(["x"]), Recorder()
    with pytest.raises(RunError, match="nothing to send") as caught:
        await Agent(model).run(history=[SystemMessage("only")], on_event=recorder)
    assert (caught.value.stage, caught.value.partial, model.requests) == ("history", None, [])
    assert recorder.kinds == ["run_failed"]


async def test_lone_surrogates_in_prompt_and_instructions_become_replacement_characters() -> None:
    result = await Agent(ScriptedModel(["x"]), instructions="i\udc00").run("p\ud800")
    assert contents(result.messages) == ["i\ufffd", "p\ufffd", "x"]


async def test_a_huge_history_costs_one_pass() -> None:
    history: list[Message] = []
    for number in range(10_000):
        history += [Q, asks((f"c{number}", "echo")), ToolMessage("r", tool_call_id=f"c{number}")]
    model = ScriptedModel([asks(("z", "echo")), "done"])
    result = await Agent(model, tools=[echo]).run("p", history=history)
    assert len(history) + 4 == len(result.messages)
    assert not result.repair


# What a history may not be


@pytest.mark.parametrize("wrong", [{"role": "user", "content": "q"}, "q", None, 7])
async def test_what_is_no_message_is_named_as_a_history_error(wrong: Any) -> None:
    model = ScriptedModel(["x"])
    with pytest.raises(RunError, match=r"history\[1\]: not a message") as caught:
        await Agent(model).run("p", history=[Q, wrong])
    assert caught.value.stage == "history"
    assert isinstance(caught.value.__cause__, HistoryError)
    assert model.requests == []


async def test_media_that_no_run_may_send_is_named_before_any_request() -> None:
    model = ScriptedModel(["x"])
    with pytest.raises(RunError, match=r"history\[1\].parts\[0\]: unsupported part kind 'tape'"):
        await Agent(model).run("p", history=[Q, UserMessage("", parts=(Part("tape"),))])
    assert model.requests == []


# Instructions


async def test_fixed_instructions_come_first_joined_by_a_blank_line_and_empty_ones_vanish() -> None:
    async def later(context: RunContext[str]) -> str:
        return f"for {context.deps}"

    model = ScriptedModel(["x"])
    agent = Agent[str](
        model,
        instructions=[later, "fixed", lambda _: "", "", lambda c: f"conv {c.conversation_id}"],
    )
    await agent.run("p", deps="ada", conversation_id="c-1")
    assert model.requests[0].messages[0].content == "fixed\n\nfor ada\n\nconv c-1"


async def test_instructions_that_say_nothing_add_no_system_message() -> None:
    async def nothing(_: RunContext[None]) -> Any:
        return None

    quiet: Any = lambda _: None  # noqa: E731
    model = ScriptedModel(["x"])
    await Agent(model, instructions=[quiet, nothing, ""]).run("p")
    assert contents(model.requests[0].messages) == ["p"]


async def test_instructions_are_resolved_once_per_run() -> None:
    asked: list[int] = []

    def instruct(_: RunContext[Any]) -> str:
        asked.append(1)
        return f"version {len(asked)}"

    model = ScriptedModel([asks(("1", "echo")), "a", "b"])
    agent = Agent(model, instructions=instruct, tools=[echo])
    first = await agent.run("p")
    second = await agent.run("q", history=first.messages)
    assert [request.messages[0].content for request in model.requests] == [
        "version 1",
        "version 1",
        "version 2",
    ]
    assert sum(isinstance(message, SystemMessage) for message in second.messages) == 1


@pytest.mark.parametrize(
    ("given_text", "complaint"), [(7, "returned int"), (ValueError("no db"), "no db")]
)
async def test_instructions_that_fail_end_the_run_before_the_model(
    given_text: Any, complaint: str
) -> None:
    def instruct(_: RunContext[Any]) -> Any:
        if isinstance(given_text, Exception):
            raise given_text
        return given_text

    model = ScriptedModel(["x"])
    with pytest.raises(RunError, match=complaint) as caught:
        await Agent(model, instructions=instruct).run("p")
    assert (caught.value.stage, model.requests) == ("history", [])


# Processors


async def _as_coroutine(history: list[Message]) -> list[Message]:
    return history[1:]


async def _as_async_generator(history: list[Message]) -> AsyncIterator[Message]:
    for message in history[1:]:
        yield message


def _as_generator(history: list[Message]) -> Iterator[Message]:
    yield from history[1:]


def _in_place(history: list[Message]) -> list[Message]:
    del history[0]
    return history


@pytest.mark.parametrize(
    "processor", [_as_coroutine, _as_async_generator, _as_generator, _in_place, lambda h: h[1:]]
)
async def test_a_processor_of_any_form_rewrites_the_runs_history(processor: Any) -> None:
    history = [UserMessage("old"), Q, A]
    result = await Agent(ScriptedModel(["x"]), history_processor=processor).run(
        "p", history=history
    )
    assert contents(result.messages) == ["q", "a", "p", "x"]
    assert contents(history) == ["old", "q", "a"]


async def test_a_processor_sees_what_was_supplied_once_system_messages_and_damage_included() -> (
    None
):
    seen: list[list[Message]] = []

    def look(history: list[Message]) -> list[Message]:
        seen.append(list(history))
        return history

    model = ScriptedModel([asks(("1", "echo")), "x"])
    history = [SystemMessage("s"), Q, asks(("c", "t"))]
    await Agent(model, history_processor=look, tools=[echo]).run("p", history=history)
    assert [history] == seen


async def _dies(_: list[Message]) -> AsyncIterator[Message]:
    yield Q
    raise OSError("no summary")


@pytest.mark.parametrize(
    "processor",
    [_dies, lambda _: None, lambda _: 7, lambda _: "text", lambda _: [{"role": "user"}]],
    ids=["dies", "None", "int", "text", "dicts"],
)
async def test_a_processor_that_fails_or_returns_no_history_ends_the_run(processor: Any) -> None:
    model, recorder = ScriptedModel(["x"]), Recorder()
    with pytest.raises(RunError) as caught:
        await Agent(model, history_processor=processor).run("p", history=[Q], on_event=recorder)
    error = caught.value
    assert (error.stage, error.partial, model.requests) == ("history", None, [])
    assert error.run_id
    assert error.conversation_id
    assert error.__cause__ is not None
    assert recorder.kinds == ["run_failed"]


# Tools


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


# Models


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (TransportError("cut"), "cut"),
        (ExceptionGroup("several", [OSError("a")]), "several"),
        (StopAsyncIteration(), "StopAsyncIteration"),
        (_Unspeakable(), "_Unspeakable"),
        (ModelRetry(), "ModelRetry"),
    ],
    ids=["transport", "group", "stop", "unspeakable", "signal"],
)
async def test_any_exception_of_a_model_ends_the_run_at_stage_model(
    raised: Exception, said: str, streamed: bool
) -> None:
    recorder = Recorder()
    with pytest.raises(RunError, match=said) as caught:
        await _consume(Agent(Gives(raised), retry=None), streamed, on_event=recorder)
    assert (caught.value.stage, caught.value.partial) == ("model", None)
    cause = caught.value.__cause__
    assert raised in (cause, getattr(cause, "__cause__", None))
    assert (recorder.kinds) == [
        "run_started",
        "message_added",
        "model_started",
        "model_finished",
        "run_failed",
    ]
    well_formed(recorder.events)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "answer",
    [
        None,
        "text",
        Response(None),  # type: ignore[arg-type]
        Response(UserMessage("x")),  # type: ignore[arg-type]
        Response(AssistantMessage("x", parts=(Part("hologram", url="https://e"),))),
        Response(AssistantMessage(None)),  # type: ignore[arg-type]
        Response(AssistantMessage("", tool_calls=({"id": "1"},))),  # type: ignore[arg-type]
        Response(AssistantMessage("x"), finish_reason="stopped"),  # type: ignore[arg-type]
        Response(AssistantMessage("x"), usage=None),  # type: ignore[arg-type]
        Response(AssistantMessage("x"), usage=Usage(None, 1)),  # type: ignore[arg-type]
        Response(AssistantMessage("x"), details=None),  # type: ignore[arg-type]
        Response(AssistantMessage("x"), details=Details(model=None)),  # type: ignore[arg-type]
    ],
    ids=[
        *("None", "text", "empty", "user", "part", "content", "call", "reason", "usage", "tokens"),
        *("details", "model"),
    ],
)
async def test_an_answer_no_later_run_could_send_is_a_protocol_error(
    answer: Any, streamed: bool
) -> None:
    with pytest.raises(RunError) as caught:
        await _consume(Agent(Gives(answer)), streamed)
    assert caught.value.stage == "model"
    if not streamed or isinstance(answer, Response):
        assert isinstance(caught.value.__cause__, ProtocolError)


@pytest.mark.parametrize(
    ("pieces", "text", "thinking"),
    [
        ([TextDelta("half "), TextDelta("said")], "half said", ""),
        ([ThinkingDelta("hm")], "", "hm"),
        ([ToolCallDelta(0, "c1", "echo", '{"te')], "", ""),
    ],
)
async def test_what_a_dying_stream_had_said_is_evidence_and_not_a_message(
    pieces: list[Any], text: str, thinking: str
) -> None:
    model = ScriptedModel([Fragments([*pieces, TransportError("cut")])])
    with pytest.raises(RunError) as caught:
        await _consume(Agent(model), streamed=True)
    partial = caught.value.partial
    assert partial is not None
    assert (text, thinking) == (partial.text, partial.thinking)
    assert contents(partial.messages) == ["p"]
    await resumes(partial)


async def test_a_failure_in_a_later_turn_keeps_the_turns_before() -> None:
    model = ScriptedModel(
        [asks(("1", "echo")), Fragments([TextDelta("so"), OSError("reset")])], usage=Usage(4, 2)
    )
    with pytest.raises(RunError) as caught:
        await _consume(Agent(model, tools=[echo]), streamed=True)
    partial = caught.value.partial
    assert partial is not None
    assert (2, 1, Usage(4, 2), "so") == (
        partial.requests,
        partial.tool_calls,
        partial.usage,
        partial.text,
    )
    assert contents(partial.messages) == ["p", "", "echoed"]
    assert partial.finish_reason == "tool_call"
    await resumes(partial)


async def test_a_response_is_evidence_even_when_the_model_goes_on_after_it() -> None:
    model = Gives(TextDelta("x"), Response(AssistantMessage("x"), Usage(2, 1)), TextDelta("y"))
    with pytest.raises(RunError, match="went on after its response") as caught:
        await _consume(Agent(model), streamed=True)
    partial = caught.value.partial
    assert partial is not None
    assert (["p", "x"], Usage(2, 1), "") == (
        contents(partial.messages),
        partial.usage,
        partial.text,
    )
    await resumes(partial)


async def test_a_stream_without_a_response_is_a_protocol_error() -> None:
    with pytest.raises(RunError, match="without a response") as caught:
        await _consume(Agent(Gives(TextDelta("x"))), streamed=True)
    assert isinstance(caught.value.__cause__, ProtocolError)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "x"


# Errors


async def test_a_run_error_always_names_its_run_and_repeats_no_secret_of_its_cause() -> None:
    with pytest.raises(RunError) as caught:
        await Agent(Gives(OSError("down"))).run("p", run_id="r", conversation_id="c")
    error = caught.value
    assert (error.run_id, error.conversation_id, str(error)) == ("r", "c", "model stage: down")
    assert partial_from(error) is None


async def test_the_evidence_is_found_wherever_the_error_hangs() -> None:
    with pytest.raises(RunError) as caught:
        await Agent(ScriptedModel([asks(("1", "boom"))]), tools=[boom]).run("p")
    inner = caught.value
    outer = RuntimeError("handler")
    outer.__cause__ = BaseExceptionGroup("g", [KeyError("x"), ExceptionGroup("h", [inner])])
    assert inner.partial is not None
    assert inner.partial is partial_from(outer)
    assert partial_from(KeyError("x")) is None


# run_sync


def test_run_sync_keeps_one_loop_per_thread() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    class Here:
        async def generate(self, request: Any) -> Response:
            loops.append(asyncio.get_running_loop())
            return Response(AssistantMessage("x"))

        async def stream(self, request: Any) -> AsyncIterator[Any]:
            yield await self.generate(request)

    agent = Agent(Here())
    assert [agent.run_sync("p").output, agent.run_sync("p").output] == ["x", "x"]
    assert loops[0] is loops[1]


def test_a_thread_that_ends_leaves_no_loop_behind() -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    @tool
    async def note() -> str:
        loops.append(asyncio.get_running_loop())
        return ""

    agent = Agent(ScriptedModel([asks(("1", "note")), "x"]), tools=[note])
    thread = threading.Thread(target=agent.run_sync, args=("p",))
    thread.start()
    thread.join()
    del thread
    gc.collect()
    assert loops[0].is_closed()


async def test_run_sync_refuses_inside_a_running_loop() -> None:
    model = ScriptedModel(["x"])
    with pytest.raises(RuntimeError, match="running event loop"):
        Agent(model).run_sync("p")
    gc.collect()  # a coroutine that was never awaited would warn here
    assert model.requests == []


# Configuration


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"max_turns": 0}, "max_turns"),
        ({"tools": [echo, echo]}, "two tools are named 'echo'"),
        ({"tools": [lambda: 1]}, "tool name"),
    ],
)
def test_a_wrong_configuration_is_refused_at_construction(
    options: dict[str, Any], complaint: str
) -> None:
    with pytest.raises(ValueError, match=complaint):
        Agent(ScriptedModel([]), **options)


@pytest.mark.parametrize("name", ["nobody:x", "gpt", "", ":x"])
def test_a_model_name_nobody_registered_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="no model"):
        Agent(name)


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


# Both forms


async def _consume(agent: Agent[Any], streamed: bool, **options: Any) -> Result[str]:
    if not streamed:
        return await agent.run("p", **options)
    async with agent.stream("p", **options) as stream:
        async for _ in stream:
            pass
    assert stream.result is not None
    return stream.result


NAMES = st.sampled_from(["echo", "boom", "slow", "stop", "refuse", "nope", "failing"])
ARGS = st.sampled_from(["{}", '{"text":"é"}', '{"text":1}', '{"te', ""])
CALLS = st.lists(st.tuples(st.sampled_from(["1", "2", "3", ""]), NAMES, ARGS), max_size=3)
ANSWERS = st.one_of(
    st.text(max_size=12),
    st.builds(lambda calls, text: asks(*calls, text=text), CALLS, st.text(max_size=3)),
    st.just(OSError("down")),
)


def tools_of_the_law() -> list[Tool]:
    @tool
    def slow(text: str = "slow") -> str:
        return text

    @tool
    async def stop(text: str = "") -> str:
        raise ToolCanceled("stop")

    @tool(retries=1)
    async def refuse(text: str = "") -> str:
        raise ModelRetry("no")

    @tool
    async def failing(text: str = "") -> str:
        raise ToolFailed("failed")

    return [echo, boom, slow, stop, refuse, failing]


async def _outcome(script: list[Scripted], streamed: bool) -> tuple[Any, ...]:
    """Everything a run leaves behind, but for its errors' identity."""
    recorder = Recorder()
    model: Model = ScriptedModel(script, usage=Usage(2, 1))
    agent = Agent(model, tools=tools_of_the_law(), instructions="i")
    options = {"run_id": "r", "conversation_id": "c", "on_event": recorder}
    try:
        left: Any = await _consume(agent, streamed, **options)
        evidence = left
        assert paired(left.messages)
    except RunError as error:
        left, evidence = (error.stage, error.reason, error.partial), error.partial
        if evidence is not None:
            again = await Agent(ScriptedModel(["on"])).run("go", history=evidence.messages)
            assert paired(again.messages)
    well_formed(recorder.events)
    whole = [event.kind for event in recorder.events if not event.kind.endswith("_delta")]
    if evidence is not None:
        assert evidence.new_messages == announced(recorder.events)
        assert evidence.messages == load_history(dump_history(evidence.messages))
    return left, whole


@given(st.lists(ANSWERS, max_size=5))
def test_run_and_stream_are_the_same_run(script: list[Scripted]) -> None:
    """Equal results, evidence and events (deltas aside) for any script of answers and tools."""

    async def both() -> None:
        whole = [*script, "the end"]
        assert await _outcome(whole, streamed=False) == await _outcome(whole, streamed=True)

    asyncio.run(both())
