"""Steering a run: what is said to it while it goes on, and when the model hears it."""

from __future__ import annotations

import contextlib
from typing import Any

import anyio
import pytest

from golem import Agent, Event, Part, RunError, ToolMessage, UserMessage, tool
from golem.events import MessageAdded, RunFinished
from golem.testing import FunctionModel, ScriptedModel
from tests.run.stopping import CALLS, contents, read
from tests.run.support import Recorder, asks, echo

pytestmark = pytest.mark.virtual_time


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
