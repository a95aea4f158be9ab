"""What one run promises its caller: transcript, errors, both forms, run_sync, configuration."""

from __future__ import annotations

import asyncio
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
    RunError,
    SystemMessage,
    Tool,
    ToolCanceled,
    ToolFailed,
    ToolMessage,
    Usage,
    UserMessage,
    dump_history,
    load_history,
    partial_from,
    tool,
)
from golem.model import Model, Response
from golem.testing import Scripted, ScriptedModel
from tests.run.support import (
    Gives,
    Recorder,
    announced,
    asks,
    boom,
    closing,
    consume,
    contents,
    echo,
    paired,
    well_formed,
)

Q, A = UserMessage("q"), AssistantMessage("a")


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


# Both forms


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
        left: Any = await consume(agent, streamed, **options)
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
