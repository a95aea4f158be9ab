"""What the tests of stops and of steering share: calls to stop between, and reading a stream."""

from __future__ import annotations

from typing import Any

import anyio

from golem import Event, RunStream, tool
from tests.run.support import asks

CALLS = asks(("1", "echo"), ("2", "echo"), text="let me see")


@tool
async def hang() -> str:
    """Wait for ever."""
    await anyio.sleep_forever()
    return ""


async def read(stream: RunStream[Any], seen: list[Event] | None = None) -> None:
    """Read a stream to its end, keeping its events in `seen`."""
    async with stream:
        async for event in stream:
            if seen is not None:
                seen.append(event)


def contents(stream: RunStream[Any]) -> list[str]:
    """The text of each message that an ended run has left."""
    assert stream.partial is not None
    return [message.content for message in stream.partial.messages]
