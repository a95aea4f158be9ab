"""Cancellation, stops and timeouts: what reaches you, and what is left. Needs no network."""

from __future__ import annotations

import asyncio

import anyio

from golem import (
    Agent,
    AssistantMessage,
    RunError,
    Timeouts,
    ToolCall,
    ToolCanceled,
    normalize_history,
    partial_from,
)
from golem.events import ToolStarted
from golem.testing import ScriptedModel

STORY = "Once upon a time there was a program that ran until somebody stopped it."


async def slow() -> str:
    """Take a long time."""
    await asyncio.sleep(60)
    return "done"


async def quick() -> str:
    """Take no time."""
    return "done"


async def gives_up() -> str:
    """End the run."""
    raise ToolCanceled("the shop is closed")


def asking(*names: str) -> AssistantMessage:
    """A turn that asks for these tools."""
    return AssistantMessage(tool_calls=tuple(ToolCall.of(n, n, "{}") for n in names))


async def cancelled_from_outside() -> None:
    """The backend's own cancellation passes through, and carries the evidence along."""
    agent: Agent = Agent(ScriptedModel([asking("quick", "slow")]), tools=[quick, slow])
    task = asyncio.create_task(agent.run("go"))
    await asyncio.sleep(0.05)
    task.cancel()
    try:
        await task
    except asyncio.CancelledError as error:
        partial = partial_from(error)
        assert partial is not None
        print("cancelled:", type(error).__name__, "with", len(partial.messages), "messages")
        print("  finished beside them:", [result.content for result in partial.batch_results])


async def swallowed_by_a_scope() -> None:
    """Where a scope takes the exception, the stream has the evidence."""
    agent: Agent = Agent(ScriptedModel([STORY]))
    stream = agent.stream("Tell me a story.")
    with anyio.move_on_after(0.05):
        async with stream:
            async for text in stream.text():
                await anyio.sleep(0.02 if text else 0)
    assert stream.outcome is not None
    assert stream.partial is not None
    print("scope:", stream.outcome.kind, "after", repr(stream.partial.text))


async def stopped_by_its_reader() -> None:
    """A stop closes what is open, so that nothing is left to repair, and raises nothing."""
    agent: Agent = Agent(ScriptedModel([asking("quick"), STORY]), tools=[quick])
    async with agent.stream("go") as stream:
        async for event in stream:
            if isinstance(event, ToolStarted):
                await stream.stop("after_tools")
    assert stream.partial is not None
    assert not normalize_history(stream.partial.messages)[1]
    print("stopped after the tools:", [m.content for m in stream.partial.messages])


async def stopped_from_another_task() -> None:
    """From elsewhere `stop` waits and tells what happened; `within` bounds how long."""
    agent: Agent = Agent(ScriptedModel([asking("slow")]), tools=[slow])
    async with agent.stream("go") as stream, asyncio.TaskGroup() as tasks:

        async def read() -> None:
            async for _ in stream:
                pass

        tasks.create_task(read())
        await asyncio.sleep(0.05)
        outcome = await stream.stop("after_tools", within=0.05)
    assert outcome is not None
    print("stopped from outside:", outcome.kind)


async def stopped_by_a_tool() -> None:
    """A tool that stops the run is an error to its caller, with a record that needs no repair."""
    agent: Agent = Agent(
        ScriptedModel([asking("quick", "gives_up", "slow")]), tools=[quick, gives_up, slow]
    )
    try:
        await agent.run("go")
    except RunError as error:
        left = error.partial.messages if error.partial else []
        print("stopped by a tool:", error.stage, [m.content for m in left])


async def timed_out() -> None:
    """Timeouts run only while golem waits: a slow reader trips none of them."""
    agent: Agent = Agent(
        ScriptedModel([asking("slow")]), tools=[slow], timeout=Timeouts(total=30, tool=0.05)
    )
    try:
        await agent.run("go")
    except RunError as error:
        print("timed out:", error)


async def main() -> None:
    """One ending after the other."""
    await cancelled_from_outside()
    await swallowed_by_a_scope()
    await stopped_by_its_reader()
    await stopped_from_another_task()
    await stopped_by_a_tool()
    await timed_out()


if __name__ == "__main__":
    asyncio.run(main())
