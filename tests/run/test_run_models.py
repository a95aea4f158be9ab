"""What a model may do to a run: fail, answer nonsense, die in the middle of a stream."""

from __future__ import annotations

from typing import Any

import pytest

from golem import (
    Agent,
    AssistantMessage,
    ModelRetry,
    Part,
    ProtocolError,
    RunError,
    TransportError,
    Usage,
    UserMessage,
)
from golem.model import Details, Response, TextDelta, ThinkingDelta, ToolCallDelta
from golem.testing import Fragments, ScriptedModel
from tests.run.support import Gives, Recorder, asks, consume, contents, echo, resumes, well_formed


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
        await consume(Agent(Gives(raised), retry=None), streamed, on_event=recorder)
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
        await consume(Agent(Gives(answer)), streamed)
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
        await consume(Agent(model), streamed=True)
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
        await consume(Agent(model, tools=[echo]), streamed=True)
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
        await consume(Agent(model), streamed=True)
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
        await consume(Agent(Gives(TextDelta("x"))), streamed=True)
    assert isinstance(caught.value.__cause__, ProtocolError)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "x"
