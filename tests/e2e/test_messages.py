"""Runs against a real model through the Messages API, on both event loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import golem
from golem import Agent, AssistantMessage, Message, Result, ToolMessage, UserMessage
from golem.events import Event
from golem_adapters import Anthropic, OpenAI, OpenAIResponses
from local_model import MODEL

from .programs import run
from .proxy import Proxy

pytestmark = pytest.mark.e2e

SYSTEM = "You are a helpful assistant. Answer in one short sentence."
QUESTIONS = ("What is the capital of Japan?", "And of China?", "Repeat both cities.")


def model(proxy: Proxy) -> Anthropic:
    return Anthropic(
        MODEL, base_url=proxy.base_url, dialect="llama.cpp", temperature=0.0, max_tokens=60
    )


async def streamed(
    agent: Agent[None], prompt: str, history: Sequence[Message] = ()
) -> tuple[Result[str], list[Event]]:
    async with agent.stream(prompt, history=history) as stream:
        events = [event async for event in stream]
    assert stream.result is not None
    return stream.result, events


def said(body: dict[str, Any]) -> list[tuple[str, str]]:
    """Role and text (or kind) of every block of a request's messages."""
    return [
        (message["role"], block.get("text", block["type"]))
        for message in body["messages"]
        for block in message["content"]
    ]


async def test_a_plain_run_and_a_streamed_one_end_alike(proxy: Proxy) -> None:
    agent = Agent(model(proxy), instructions=SYSTEM)
    plain = await agent.run(QUESTIONS[0])
    result, events = await streamed(agent, QUESTIONS[0])
    assert result.output
    assert (plain.output, plain.finish_reason) == (result.output, result.finish_reason)
    assert plain.usage.input_tokens == result.usage.input_tokens > 0
    assert plain.usage.output_tokens == result.usage.output_tokens > 0
    pieces = [event.text for event in events if event.kind == "text_delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == result.output
    assert proxy.bodies[0]["system"] == [{"type": "text", "text": SYSTEM}]
    assert said(proxy.bodies[0]) == [("user", QUESTIONS[0])]


async def test_chained_runs_carry_the_earlier_turns_in_every_request(proxy: Proxy) -> None:
    agent = Agent(model(proxy), instructions=SYSTEM)
    history: list[Message] = []
    carried: list[tuple[str, str]] = []
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
    for way in (streamed, None):
        asked.clear()
        prompt = "What is the weather in Paris?"
        result = (await way(agent, prompt))[0] if way else await agent.run(prompt)
        assert asked
        turn = next(m for m in result.messages if isinstance(m, AssistantMessage) and m.tool_calls)
        answer = next(m for m in result.messages if isinstance(m, ToolMessage))
        assert turn.tool_calls[0].arguments() == {"city": asked[0]}
        assert answer.tool_call_id == turn.tool_calls[0].id
        results = proxy.bodies[-1]["messages"][-1]["content"]
        assert results[0]["content"] == "sunny, 21 degrees Celsius"
        assert result.output


async def test_a_conversation_moves_through_all_three_apis_and_back(proxy: Proxy) -> None:
    options: dict[str, Any] = {"base_url": proxy.base_url, "temperature": 0.0, "max_tokens": 60}
    others = (OpenAI(MODEL, **options), OpenAIResponses(MODEL, dialect="llama.cpp", **options))
    first = await Agent(model(proxy), instructions=SYSTEM).run(QUESTIONS[0])
    second = await Agent(others[0], instructions=SYSTEM).run(QUESTIONS[1], history=first.messages)
    third = await Agent(others[1], instructions=SYSTEM).run(QUESTIONS[2], history=second.messages)
    last = await Agent(model(proxy), instructions=SYSTEM).run("Thanks.", history=third.messages)
    assert last.output
    answers = [text for role, text in said(proxy.bodies[-1]) if role == "assistant"]
    assert answers == [first.output, second.output, third.output]


async def test_a_damaged_history_is_accepted_after_repair(proxy: Proxy) -> None:
    call = golem.ToolCall.of("call:1", "get weather", '{"city": "Par')
    damaged = [UserMessage("And the weather?"), AssistantMessage(tool_calls=(call,))]
    result = await Agent(model(proxy), instructions=SYSTEM).run(QUESTIONS[0], history=damaged)
    assert result.repair.synthesized == ("call:1",)
    assert [kind for _, kind in said(proxy.bodies[0])] == [
        "And the weather?",
        "tool_use",
        "tool_result",
        QUESTIONS[0],
    ]
    assert result.output


async def test_too_long_a_prompt_is_an_error_that_says_so(proxy: Proxy) -> None:
    with pytest.raises(golem.RunError, match="exceed") as caught:
        await Agent(model(proxy)).run("x " * 6000)
    assert caught.value.stage == "model"


async def test_a_history_is_bounded_by_the_servers_own_count(proxy: Proxy) -> None:
    counter = model(proxy)
    long = [UserMessage("x " * 400), AssistantMessage("y"), UserMessage(QUESTIONS[0])]
    whole = await counter.count_tokens(long)
    kept = await golem.budget_history(counter, whole - 100)(long)
    assert kept == long[1:]
    assert await counter.count_tokens(kept) <= whole - 100


def test_the_example_talks_to_any_server_that_speaks_messages(proxy: Proxy) -> None:
    flags = ("--base-url", proxy.base_url, "--dialect", "llama.cpp", "--model", MODEL)
    output = run("examples/anthropic_messages.py", *flags)
    assert "[get_weather " in output
    assert "the next request begins with" in output
    assert said(proxy.bodies[-1])[-1] == ("user", "Should I take an umbrella?")
