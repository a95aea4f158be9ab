"""Saying something more while a run goes on. Needs no network."""

from __future__ import annotations

import asyncio

from golem import Agent, AssistantMessage, ToolCall, UserMessage
from golem.events import MessageAdded, ToolStarted
from golem.testing import ScriptedModel


async def search(query: str) -> str:
    """Search for something."""
    return f"results for {query}"


SEARCHES = AssistantMessage(tool_calls=(ToolCall.of("c1", "search", '{"query": "hotels"}'),))


async def main() -> None:
    """One message for the next turn, one for when the run would be over."""
    model = ScriptedModel([SEARCHES, "Two hotels in Rome.", "And by train: four hours."])
    agent: Agent = Agent(model, tools=[search])
    async with agent.stream("Find me a hotel.") as stream:
        stream.enqueue("And how do I get there?", when="idle")
        async for event in stream:
            if isinstance(event, ToolStarted):
                stream.enqueue("In Rome, please.")
            if isinstance(event, MessageAdded):
                by = "said:    " if isinstance(event.message, UserMessage) else "recorded:"
                print(f"{event.index} {by} {event.message.content or '(asks for a tool)'}")
    assert stream.result is not None
    print("output:", stream.result.output)


if __name__ == "__main__":
    asyncio.run(main())
