"""Runs against a real model through the Responses API, on both event loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import golem
from golem import Agent, AssistantMessage, Message, Result, ToolMessage, UserMessage
from golem.events import Event
from golem_adapters import OpenAI, OpenAIResponses
from local_model import MODEL

from .proxy import Proxy

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

SYSTEM = "You are a helpful assistant. Answer in one short sentence."
QUESTIONS = ("What is the capital of Japan?", "And of China?", "Repeat both cities.")


def model(proxy: Proxy) -> OpenAIResponses:
    return OpenAIResponses(
        MODEL, base_url=proxy.base_url, dialect="llama.cpp", temperature=0.0, max_tokens=60
    )


async def streamed(
    agent: Agent[None], prompt: str, history: Sequence[Message] = ()
) -> tuple[Result[str], list[Event]]:
    async with agent.stream(prompt, history=history) as stream:
        events = [event async for event in stream]
    assert stream.result is not None
    return stream.result, events


def said(body: dict[str, Any]) -> list[tuple[str, Any]]:
    """Role and content of every message of a request, and the types of its other items."""
    return [(item.get("role", item["type"]), item.get("content")) for item in body["input"]]


async def test_a_plain_run_and_a_streamed_one_end_alike(proxy: Proxy) -> None:
    agent = Agent(model(proxy), instructions=SYSTEM)
    plain = await agent.run(QUESTIONS[0])
    result, events = await streamed(agent, QUESTIONS[0])
    assert result.output
    assert (plain.output, plain.finish_reason) == (result.output, result.finish_reason)
    assert plain.usage.output_tokens == result.usage.output_tokens > 0
    pieces = [event.text for event in events if event.kind == "text_delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == result.output
    assert said(proxy.bodies[0]) == [("system", SYSTEM), ("user", QUESTIONS[0])]
    assert proxy.bodies[0]["store"] is False


async def test_chained_runs_carry_the_earlier_turns_in_every_request(proxy: Proxy) -> None:
    agent = Agent(model(proxy), instructions=SYSTEM)
    history: list[Message] = []
    carried: list[tuple[str, Any]] = [("system", SYSTEM)]
    for question in QUESTIONS:
        result, _ = await streamed(agent, question, history)
        carried.append(("user", question))
        assert said(proxy.bodies[-1]) == carried
        carried.append(("assistant", result.output))
        history = golem.load_history(golem.dump_history(result.messages))
    assert len({message.conversation_id for message in result.new_messages}) == 1


async def test_a_tool_call_runs_and_its_result_goes_back_for_the_answer(proxy: Proxy) -> None:
    asked: list[str] = []

    def get_weather(city: str) -> str:
        """The current weather in a city.

        Args:
            city: the name of the city
        """
        asked.append(city)
        return "sunny, 21 degrees Celsius"

    agent = Agent(model(proxy), instructions=SYSTEM, tools=[get_weather])
    result, _ = await streamed(agent, "What is the weather in Paris?")
    assert asked
    turn = next(m for m in result.messages if isinstance(m, AssistantMessage) and m.tool_calls)
    answer = next(m for m in result.messages if isinstance(m, ToolMessage))
    assert turn.tool_calls[0].arguments() == {"city": asked[0]}
    assert answer.tool_call_id == turn.tool_calls[0].id
    outputs = [i for i in proxy.bodies[1]["input"] if i["type"] == "function_call_output"]
    assert outputs[0]["output"] == "sunny, 21 degrees Celsius"
    assert result.output


async def test_a_conversation_moves_from_one_api_to_the_other_and_back(proxy: Proxy) -> None:
    chat = OpenAI(MODEL, base_url=proxy.base_url, temperature=0.0, max_tokens=60)
    first = await Agent(model(proxy), instructions=SYSTEM).run(QUESTIONS[0])
    second = await Agent(chat, instructions=SYSTEM).run(QUESTIONS[1], history=first.messages)
    third = await Agent(model(proxy), instructions=SYSTEM).run(
        QUESTIONS[2], history=second.messages
    )
    assert third.output
    assert [content for role, content in said(proxy.bodies[-1]) if role == "assistant"] == [
        first.output,
        second.output,
    ]


async def test_a_damaged_history_is_accepted_after_repair(proxy: Proxy) -> None:
    call = golem.ToolCall.of("call_1", "get_weather", '{"city": "Par')
    damaged = [UserMessage("And the weather?"), AssistantMessage(tool_calls=(call,))]
    result = await Agent(model(proxy), instructions=SYSTEM).run(QUESTIONS[0], history=damaged)
    assert result.repair.synthesized == ("call_1",)
    assert [role for role, _ in said(proxy.bodies[0])] == [
        "system",
        "user",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert result.output


async def test_too_long_a_prompt_is_an_error_that_says_so(proxy: Proxy) -> None:
    with pytest.raises(golem.RunError, match="exceed") as caught:
        await Agent(model(proxy)).run("x " * 6000)
    assert caught.value.stage == "model"
