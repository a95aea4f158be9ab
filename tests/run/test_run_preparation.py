"""What happens before the model is asked: instructions are resolved, histories processed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from golem import Agent, AssistantMessage, Message, RunContext, RunError, SystemMessage, UserMessage
from golem.testing import ScriptedModel
from tests.run.support import Recorder, asks, contents, echo

Q, A = UserMessage("q"), AssistantMessage("a")


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
