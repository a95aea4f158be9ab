"""What a run of a drawn conversation meets: tools of every kind, and the world that remembers.

The tools are made once, for making one costs more than running it; whatever differs from run to
run is in the `World`, which they get as their dependencies.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel

from golem import (
    Agent,
    Message,
    ModelRetry,
    RunContext,
    RunStream,
    Tool,
    ToolCanceled,
    ToolDeferred,
    ToolFailed,
    ToolResult,
    Usage,
    UserMessage,
    tool,
)
from golem.model import Delta, Request, Response, TextDelta
from golem.testing import FunctionModel, Scripted, ScriptedModel, Strict, Watch
from golem.usage import Usage as Consumed


class Speaker:
    """A model that answers from a script, then "done" for ever, and notes what it handed over."""

    def __init__(self, script: Sequence[Scripted], *, native_output: bool = False) -> None:
        answers = iter(script)
        model = FunctionModel(lambda _: next(answers, "done"), usage=Usage(2, 1))
        self.requests = model.requests
        self.native_output = native_output
        self.turns = 0
        self.usage = Consumed()
        self.said = ""
        self._model = Strict(model)

    async def generate(self, request: Request) -> Response:
        return self._handed_over(await self._model.generate(request))

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        self.said = ""
        async with aclosing(self._model.stream(request)) as items:
            async for item in items:
                if isinstance(item, Response):
                    self._handed_over(item)
                elif isinstance(item, TextDelta):
                    self.said += item.text
                yield item
        await anyio.lowlevel.checkpoint()

    def _handed_over(self, response: Response) -> Response:
        self.turns += 1
        self.usage += response.usage
        self.said = ""
        return response


@dataclass
class World:
    """Everything around one run, and what really happened in it."""

    model: Speaker
    journal_fails_at: int | None = None
    watch: Watch = field(default_factory=Watch)
    stream: RunStream[Any] | None = None
    finished: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Results that tools have given, by call id and text."""
    executed: int = 0
    enqueued: list[str] = field(default_factory=list)
    _writes: int = 0

    async def write(self, message: Message) -> None:
        """The journal, whose disk may be full."""
        self._writes += 1
        if self._writes - 1 == self.journal_fails_at:
            raise OSError("the disk is full")
        await self.watch.write(message)

    @property
    def journal_failed(self) -> bool:
        return self.journal_fails_at is not None and self._writes > self.journal_fails_at

    def say(self, text: str, when: Any = "next_turn") -> None:
        """Enqueue it, if there is a stream that is not over."""
        if self.stream is not None and self.stream.outcome is None:
            self.stream.enqueue(text, when=when)
            self.enqueued.append(text)

    def done(self, context: RunContext[Any], text: str) -> str:
        self.executed += 1
        self.finished[context.call_id, text] += 1
        return text


Here = RunContext[World]


@tool
async def work(context: Here, n: str) -> str:
    await anyio.lowlevel.checkpoint()
    await anyio.lowlevel.checkpoint()
    return context.deps.done(context, n)


@tool
def threaded(context: Here, n: str) -> str:
    return context.deps.done(context, n)


@tool(sequential=True)
async def alone(context: Here, n: str) -> ToolResult:
    await anyio.lowlevel.checkpoint()
    return ToolResult(context.deps.done(context, n))


@tool(retries=1)
async def fussy(context: Here, n: str) -> str:
    await anyio.lowlevel.checkpoint()
    if context.attempt == 1:
        context.deps.executed += 1
        raise ModelRetry("not like this \ud800")
    return context.deps.done(context, n)


@tool
async def fail(context: Here, n: str) -> str:
    raise ToolFailed(context.deps.done(context, f"cannot {n}"))


@tool
async def ask(context: Here, n: str) -> str:
    await anyio.lowlevel.checkpoint()
    if not context.approved:
        raise ToolDeferred("approval", "sure?")
    return context.deps.done(context, n)


@tool(requires_approval=True)
def guarded(context: Here, n: str) -> str:
    return context.deps.done(context, n)


@tool
async def job(n: str) -> str:
    raise ToolDeferred("external", n)


@tool
async def stop(context: Here, n: str) -> str:
    await anyio.lowlevel.checkpoint()
    context.deps.executed += 1
    raise ToolCanceled(n)


@tool
async def boom(context: Here, n: str) -> str:
    context.deps.executed += 1
    raise RuntimeError(n)


@tool(timeout=0.002)
async def hang(context: Here, n: str) -> str:
    context.deps.executed += 1
    await anyio.sleep_forever()
    return n


@tool
async def hides(context: Here, n: str) -> str:
    """Make a result of a cancellation."""
    try:
        await anyio.lowlevel.checkpoint()
    except anyio.get_cancelled_exc_class():
        return context.deps.done(context, f"hidden {n}")
    return context.deps.done(context, n)


@tool
async def converts(context: Here, n: str) -> str:
    """Make an error of a cancellation."""
    try:
        await anyio.lowlevel.checkpoint()
    except anyio.get_cancelled_exc_class():
        context.deps.executed += 1
        raise OSError("converted") from None
    return context.deps.done(context, n)


@tool
async def says(context: Here, n: str) -> str:
    world = context.deps
    world.say(f"hurry {n}")
    await anyio.lowlevel.checkpoint()
    world.say(f"by the way {n}", "idle")
    return world.done(context, n)


@tool
async def ends(context: Here, n: str) -> str:
    """Stop the stream from inside."""
    stream = context.deps.stream
    if stream is not None:
        assert await stream.stop("after_tools") in (None, stream.outcome)
    return context.deps.done(context, n)


TOOLS: list[Tool] = [
    work,
    threaded,
    alone,
    fussy,
    fail,
    ask,
    guarded,
    job,
    stop,
    boom,
    hang,
    hides,
    converts,
    says,
    ends,
]


async def continues(messages: Sequence[Message]) -> list[Message]:
    """The transcript of one more run from there, by a model that is as strict as can be."""
    agent = Agent(Strict(ScriptedModel(["resumed"])))
    result = await agent.run("continue", history=messages)
    assert result.output == "resumed"
    assert isinstance(result.messages[-2], UserMessage)
    return result.messages
