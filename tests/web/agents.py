"""Agents that the web tests serve; what they answer depends on what they are asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import anyio.lowlevel

from golem import Agent, AssistantMessage, RunContext, ToolCall, ToolDeferred, ToolMessage, tool
from golem.events import Terminal
from golem.model import Request, Response, TextDelta
from golem.testing import FunctionModel, Scripted, hangs

SECRET = "sk-the-instructions-are-secret"
ANSWER = "Here is an answer of several pieces, which takes a while to tell."


@tool(requires_approval=True)
def delete(path: str) -> str:
    """Delete a file."""
    return f"{path} is gone"


@tool
async def sign(document: str) -> str:
    """Have a document signed elsewhere."""
    raise ToolDeferred("external", "sent to the notary")


@tool
def look(ctx: RunContext[Any]) -> str:
    """Look something up."""
    return "found"


@tool
def crash() -> str:
    """Fail."""
    raise OSError("postgres://user:password@db/")


CALLS = {
    "delete": ToolCall.of("c-delete", "delete", '{"path":"a.txt"}'),
    "sign": ToolCall.of("c-sign", "sign", '{"document":"contract"}'),
    "look": ToolCall.of("c-look", "look", "{}"),
    "crash": ToolCall.of("c-crash", "crash", "{}"),
}


def respond(request: Request) -> Scripted:
    """Call the tools that the prompt names, hang where it says so, else answer."""
    last = request.messages[-1]
    said = last.content
    if isinstance(last, ToolMessage):
        return f"Done: {said}"
    calls = tuple(CALLS[word] for word in said.split() if word in CALLS)
    if calls:
        return AssistantMessage(tool_calls=calls)
    if "hang" in said.split():
        return hangs(ANSWER, after=3)
    if "long" in said.split():
        return ANSWER * 20
    return ANSWER


def agent_for(identity: str) -> Agent:
    """An agent with all the tools, whoever asks."""
    del identity
    return Agent(FunctionModel(respond), tools=[delete, sign, look, crash], instructions=SECRET)


def paced(pause: Callable[[], Awaitable[None]]) -> Callable[[str], Agent]:
    """Agents whose model waits for `pause` before each piece."""

    class Paced(FunctionModel):
        async def stream(self, request: Request) -> Any:
            async for piece in super().stream(request):
                await pause()
                yield piece

    return lambda identity: Agent(Paced(respond), tools=[delete, sign, look, crash])


class Ends:
    """An `on_end` that keeps what it was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, Terminal]] = []
        self.event = anyio.Event()

    async def __call__(self, identity: str, outcome: Terminal) -> None:
        await anyio.lowlevel.checkpoint()
        self.told.append((identity, outcome))
        self.event.set()

    async def one(self) -> Terminal:
        """How the first run ended."""
        await self.event.wait()
        return self.told[0][1]


class Counting(FunctionModel):
    """Counts the pieces it has given out."""

    def __init__(self) -> None:
        super().__init__(respond)
        self.pieces = 0

    async def stream(self, request: Any) -> Any:
        for _ in range(100_000):
            await anyio.lowlevel.checkpoint()
            self.pieces += 1
            yield TextDelta("some text")
        yield Response(AssistantMessage("some text" * 100_000))
