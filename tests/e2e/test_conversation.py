"""Runs against a real model through the real adapter, on both event loops.

Nothing here expects the model to be clever: what is asserted is what went over the wire and
what golem promises about the record.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

import golem
from golem import Agent, AssistantMessage, Message, Result, ToolMessage, UserMessage
from golem.events import Event
from golem_adapters import OpenAI
from local_model import MODEL

from .proxy import Proxy, texts

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

SYSTEM = "You are a helpful assistant. Answer in one short sentence."
QUESTIONS = ("What is the capital of Japan?", "And of China?", "Repeat both cities.")
TERMINAL = {"run_finished", "run_failed", "run_stopped", "run_paused"}


def model(proxy: Proxy) -> OpenAI:
    return OpenAI(MODEL, base_url=proxy.base_url, temperature=0.0, max_tokens=60)


async def streamed(
    agent: Agent[None], prompt: str, history: Sequence[Message] = ()
) -> tuple[Result[str], list[Event]]:
    async with agent.stream(prompt, history=history) as stream:
        events = [event async for event in stream]
    assert stream.result is not None
    return stream.result, events


def assert_sound(result: Result[str]) -> None:
    """Every promise about the record of a finished run."""
    assert golem.load_history(golem.dump_history(result.messages)) == result.messages
    assert {message.run_id for message in result.new_messages} == {result.run_id}
    assert {m.conversation_id for m in result.new_messages} == {result.conversation_id}
    _, report = golem.normalize_history(result.messages)
    assert not report


async def test_a_plain_run_answers_and_counts_what_it_used(proxy: Proxy) -> None:
    result = await Agent(model(proxy), instructions=SYSTEM).run(QUESTIONS[0])
    assert result.output
    assert result.finish_reason == "stop"
    assert result.requests == 1
    assert result.usage.input_tokens > 0
    assert result.usage.output_tokens > 0
    assert texts(proxy.bodies[0]) == [("system", SYSTEM), ("user", QUESTIONS[0])]
    assert_sound(result)


async def test_a_streamed_run_gives_its_text_in_pieces_and_one_terminal_event(
    proxy: Proxy,
) -> None:
    result, events = await streamed(Agent(model(proxy), instructions=SYSTEM), QUESTIONS[0])
    pieces = [event.text for event in events if event.kind == "text_delta"]
    assert len(pieces) > 1
    assert "".join(pieces) == result.output
    assert [event.seq for event in events] == list(range(len(events)))
    assert [event.kind for event in events if event.kind in TERMINAL] == ["run_finished"]
    assert events[-1].kind == "run_finished"
    assert {(event.run_id, event.conversation_id) for event in events} == {
        (result.run_id, result.conversation_id)
    }
    assert result.usage.output_tokens > 0
    assert_sound(result)


async def test_chained_runs_carry_the_earlier_turns_in_every_request(proxy: Proxy) -> None:
    agent = Agent(model(proxy), instructions=SYSTEM)
    history: list[Message] = []
    said: list[tuple[str, str]] = [("system", SYSTEM)]
    results: list[Result[str]] = []
    for question in QUESTIONS:
        result, _ = await streamed(agent, question, history)
        said.append(("user", question))
        assert texts(proxy.bodies[-1]) == said
        said.append(("assistant", result.output))
        # Through the store, as an application does between two requests of its user.
        history = golem.load_history(golem.dump_history(result.messages))
        results.append(result)
        assert_sound(result)
    assert len(proxy.bodies) == len(QUESTIONS)
    assert len({result.run_id for result in results}) == len(QUESTIONS)
    assert len({result.conversation_id for result in results}) == 1
    assert results[-1].messages[-1].content == results[-1].output


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
    result, events = await streamed(agent, "What is the weather in Paris?")
    assert asked
    assert result.tool_calls == len(asked)
    turn = next(m for m in result.messages if isinstance(m, AssistantMessage) and m.tool_calls)
    answer = next(m for m in result.messages if isinstance(m, ToolMessage))
    assert turn.tool_calls[0].arguments() == {"city": asked[0]}
    assert (answer.tool_call_id, answer.tool_name) == (turn.tool_calls[0].id, "get_weather")
    assert "sunny, 21 degrees Celsius" in dict(texts(proxy.bodies[1]))["tool"]
    assert result.output
    assert result.requests == len(proxy.bodies)
    kinds = [event.kind for event in events]
    assert kinds.index("tool_started") < kinds.index("tool_finished")
    assert_sound(result)


async def test_a_damaged_history_is_accepted_after_repair(proxy: Proxy) -> None:
    call = golem.ToolCall.of("call_1", "get_weather", '{"city": "Par')
    damaged = [UserMessage("And the weather?"), AssistantMessage(tool_calls=(call,))]
    result = await Agent(model(proxy), instructions=SYSTEM).run(QUESTIONS[0], history=damaged)
    assert result.repair.synthesized == ("call_1",)
    assert [role for role, _ in texts(proxy.bodies[0])] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert result.output


async def test_leaving_a_stream_keeps_what_was_said_and_lets_the_model_go(proxy: Proxy) -> None:
    agent = Agent(model(proxy), instructions=SYSTEM)
    proxy.hold = 1
    async with agent.stream(QUESTIONS[0]) as stream:
        async for event in stream:
            if event.kind == "text_delta":
                break
    proxy.release()
    partial = stream.partial
    assert partial is not None
    assert partial.text
    again = await agent.run("Please go on.", history=partial.messages)
    assert again.output
    assert again.conversation_id == stream.partial.conversation_id
