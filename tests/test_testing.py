"""The public test double: a model that answers from a script."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem import (
    Agent,
    AssistantMessage,
    Model,
    Thinking,
    ToolCall,
    TransportError,
    Usage,
    UserMessage,
)
from golem.model import Request, Response, TextDelta, ThinkingDelta, ToolCallDelta
from golem.testing import Fragments, ScriptedModel, assemble, fragments

WHOLE = Response(AssistantMessage("whole"))
REQUEST = Request([UserMessage("q")])
CALLS = AssistantMessage("t", tool_calls=(ToolCall.of("1", "echo", "{}"),))


async def streamed(model: ScriptedModel) -> list[Any]:
    return [item async for item in model.stream(REQUEST)]


def test_a_scripted_model_is_a_model() -> None:
    assert isinstance(ScriptedModel([]), Model)


@pytest.mark.parametrize(
    ("item", "response"),
    [
        ("hi", Response(AssistantMessage("hi"), Usage(1, 1))),
        ("", Response(AssistantMessage(), Usage(1, 1))),
        (CALLS, Response(CALLS, Usage(1, 1), "tool_call")),
        (Response(CALLS, Usage(7, 7), "length"),) * 2,
        (
            Fragments([TextDelta("a"), ThinkingDelta("h"), TextDelta("b")]),
            Response(AssistantMessage("ab", thinking=(Thinking("h"),)), Usage(1, 1)),
        ),
        (Fragments([TextDelta("a")], WHOLE), WHOLE),
    ],
    ids=["text", "empty", "message", "response", "fragments", "fragments-and-response"],
)
async def test_both_forms_give_the_same_response(item: Any, response: Response) -> None:
    model = ScriptedModel([item, item], usage=Usage(1, 1))
    assert response == await model.generate(REQUEST)
    *deltas, last = await streamed(model)
    assert response == last
    assert not any(isinstance(delta, Response) for delta in deltas)
    assert model.requests == [REQUEST, REQUEST]


async def test_an_exception_of_the_script_is_raised_where_it_stands() -> None:
    dies = Fragments([TextDelta("a"), TransportError("cut"), TextDelta("b")])
    model = ScriptedModel([OSError("down"), dies, dies])
    with pytest.raises(OSError, match="down"):
        await model.generate(REQUEST)
    with pytest.raises(TransportError, match="cut"):
        await model.generate(REQUEST)
    seen: list[Any] = []
    with pytest.raises(TransportError, match="cut"):
        await _collect(model, seen)
    assert [TextDelta("a")] == seen


async def _collect(model: ScriptedModel, seen: list[Any]) -> None:
    async for item in model.stream(REQUEST):
        seen.append(item)


async def test_a_request_beyond_the_script_is_the_tests_mistake() -> None:
    model = ScriptedModel(["only"])
    await model.generate(REQUEST)
    with pytest.raises(AssertionError, match="no answer for request 2"):
        await model.generate(REQUEST)


async def test_a_script_may_be_any_iterable_and_its_requests_are_recorded() -> None:
    model = ScriptedModel(iter(["a", "b"]))
    agent = Agent(model, instructions="i")
    first = await agent.run("p")
    await agent.run("q", history=first.messages)
    assert [len(request.messages) for request in model.requests] == [2, 4]
    assert repr(model) == "ScriptedModel(2 answers, 2 requests)"


TEXT = st.text(max_size=40)
MESSAGES = st.builds(
    lambda text, thinking, calls: AssistantMessage(
        text,
        thinking=(Thinking(thinking),) if thinking else (),
        tool_calls=tuple(ToolCall.of(*call) for call in calls),
    ),
    TEXT,
    TEXT,
    st.lists(st.tuples(TEXT, TEXT, st.sampled_from(["{}", '{"a": [1, 2, "three"]}', '{"cut', ""]))),
)


@given(MESSAGES, st.integers(1, 9))
def test_the_fragments_of_a_message_amount_to_it(message: AssistantMessage, size: int) -> None:
    pieces = fragments(message, size)
    assert message == assemble(pieces)
    assert all(piece.text for piece in pieces if not isinstance(piece, ToolCallDelta))
