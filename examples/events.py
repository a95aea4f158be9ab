"""Every event of a run, its JSON, and observers. Needs no network."""

from __future__ import annotations

import asyncio

from golem import Agent, AssistantMessage, Event, ToolCall, decode_event, encode_event
from golem.events import TERMINAL, MessageAdded, RunFinished, TextDelta, ToolCallDelta
from golem.testing import ScriptedModel


async def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def asks(*cities: str) -> AssistantMessage:
    """A turn that asks for the weather in each."""
    return AssistantMessage(
        tool_calls=tuple(ToolCall.of(c, "weather", f'{{"city": "{c}"}}') for c in cities)
    )


def line(event: Event) -> str:
    """An event in a few words."""
    about = {
        "text": getattr(event, "text", ""),
        "call": getattr(event, "call_id", ""),
        "added": type(event.message).__name__ if isinstance(event, MessageAdded) else "",
    }
    return " ".join([f"{event.seq:2} {event.kind:16}", *filter(None, about.values())])


class Audit:
    """An observer: it sees everything, the end included, and cannot fail a run."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    async def __call__(self, event: Event) -> None:
        """Keep the event."""
        self.lines.append(encode_event(event))  # one line of JSON each
        if isinstance(event, TERMINAL):
            raise OSError("the disk is full")  # logged, and nothing else


async def main() -> None:
    """Watch a run from both sides."""
    audit = Audit()
    model = ScriptedModel([asks("Rome", "Oslo"), "Sunny in both."])
    agent: Agent = Agent(model, tools=[weather], parallel_tool_calls=True)
    async with agent.stream("Weather in Rome and Oslo?", on_event=audit) as stream:
        async for event in stream:
            if not isinstance(event, ToolCallDelta):
                print(line(event))
    assert isinstance(stream.outcome, RunFinished)

    read = [decode_event(stored) for stored in audit.lines]
    said = "".join(event.text for event in read if isinstance(event, TextDelta))
    print("read back from JSON:", len(read), "events:", said)
    newer = decode_event('{"kind": "from_the_future", "runId": "r"}')
    print("an event of a newer version:", type(newer).__name__)


if __name__ == "__main__":
    import logging

    logging.disable()  # of what the observer raises
    asyncio.run(main())
