"""Broken histories, repaired: what the pass finds and what it leaves alone. Needs no network.

Providers refuse a conversation whose tool calls and results do not pair up. Crashes,
cancellations and evicted messages leave exactly that.
"""

from __future__ import annotations

import asyncio

import golem
from golem import Agent, AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from golem.testing import ScriptedModel

BROKEN: list[Message] = [
    UserMessage("Compare the weather in Paris and Rome."),
    AssistantMessage(
        tool_calls=(
            ToolCall.of("call_paris", "get_weather", '{"city": "Paris"}'),
            ToolCall.of("call_rome", "get_weather", '{"city": "Ro'),  # the stream died here
        )
    ),
    ToolMessage("sunny, 21 °C", tool_call_id="call_paris", tool_name="get_weather"),
    ToolMessage("rain", tool_call_id="call_oslo", tool_name="get_weather"),  # nobody asked
]


def explicit() -> None:
    """Where a history crosses a boundary of the application: normalize, and read the report."""
    messages, report = golem.normalize_history(BROKEN)
    print("synthesized:", *report.synthesized)
    print("dropped:    ", *report.dropped)
    print("truncated:  ", *report.truncated, "(detected only: the text is kept as it is)")
    for message in messages:
        print(f"  {type(message).__name__:16} {message.content}")

    again, second = golem.normalize_history(messages)
    print("a second pass changes nothing:", again == messages and not second.synthesized)
    untouched = messages[0] is BROKEN[0]
    print("an unchanged message is the same object:", untouched)


def growing() -> None:
    """Keep the repairer of a conversation that grows: each turn costs what it adds."""
    repairer = golem.Repairer()
    conversation: list[Message] = []
    for turn in (BROKEN, [UserMessage("And in Oslo?")], [AssistantMessage("Snow.")]):
        for message in turn:
            conversation += repairer.feed(message)
        conversation += repairer.close()
    print("as one history:", conversation == golem.normalize_history(conversation)[0])


async def silent() -> None:
    """A run repairs what it is given by itself, and says so in its result."""
    model = ScriptedModel(["Paris is sunny; I have no answer for Rome."])
    agent: Agent[None] = Agent(model)
    result = await agent.run("Go on.", history=BROKEN)
    print("answer:     ", result.output)
    print("repaired:   ", bool(result.repair), *result.repair.synthesized)
    roles = [type(message).__name__.removesuffix("Message") for message in result.messages]
    print("transcript: ", *roles)


if __name__ == "__main__":
    explicit()
    growing()
    asyncio.run(silent())
