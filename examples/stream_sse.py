"""A run as server-sent events, in each protocol, and a reader that comes back. Needs no network."""

from __future__ import annotations

import asyncio

from golem import Agent, AssistantMessage, Event, ToolCall
from golem.testing import ScriptedModel
from golem.web import EncoderFactory, agui, chat_chunks, golem_events, sse, ui_messages
from golem.wire.sse import ServerSentEvent, SSEDecoder

ENCODERS: dict[str, EncoderFactory] = {
    "golem": golem_events,
    "ui": ui_messages,
    "agui": agui,
    "chat": chat_chunks(model="golem", created=1_700_000_000),
}


async def weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def agent() -> Agent:
    """An agent that looks something up and answers."""
    call = ToolCall.of("call_1", "weather", '{"city": "Rome"}')
    model = ScriptedModel([AssistantMessage(tool_calls=(call,)), "It is sunny."])
    return Agent(model, tools=[weather])


async def read(events: list[Event], encode: EncoderFactory, after: str | None = None) -> None:
    """Print the frames as a client gets them."""
    for frame in await frames_of(events, encode, after):
        number = frame.id.rpartition(":")[2]
        print(f"  {number:>5}  {frame.text[:88]}")


async def frames_of(
    events: list[Event], encode: EncoderFactory, after: str | None = None
) -> list[ServerSentEvent]:
    """What comes over the wire, decoded."""
    decoder = SSEDecoder()
    chunks = sse(events, encode=encode, after=after)
    return [frame async for chunk in chunks for frame in decoder.feed(chunk)]


async def main() -> None:
    """Stream one run, and tell it in every protocol."""
    run = agent().stream("What is the weather in Rome?", run_id="run")
    async for chunk in sse(run):  # all that a handler does
        print(f"{len(chunk):5} bytes: {chunk[:60]!r}")

    async with agent().stream("What is the weather in Rome?", run_id="run") as stream:
        events: list[Event] = [event async for event in stream]
    for name, encode in ENCODERS.items():
        print(f"{name}:")
        await read(events, encode)

    seen = await frames_of(events, ui_messages)
    print(f"a reader of {len(seen)} frames lost its connection after {seen[-4].id}; it gets:")
    await read(events, ui_messages, after=seen[-4].id)


if __name__ == "__main__":
    asyncio.run(main())
