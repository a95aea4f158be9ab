"""An agent as a tool of another: usage, links, failures. Needs no network."""

from __future__ import annotations

import asyncio

from golem import (
    Agent,
    AssistantMessage,
    Event,
    RunError,
    SubAgentPausedError,
    ToolCall,
    ToolCanceled,
    TransportError,
    Usage,
    UsageLimits,
    tool,
)
from golem.events import RunStarted
from golem.testing import Scripted, ScriptedModel

ASKS = AssistantMessage(tool_calls=(ToolCall.of("c1", "research", '{"prompt": "How high?"}'),))


@tool
async def stop() -> str:
    """Stop everything."""
    raise ToolCanceled("the archive is closed")


@tool(requires_approval=True)
async def buy() -> str:
    """Buy access."""
    return "bought"


def watch(event: Event) -> None:
    """See which run belongs to which."""
    if isinstance(event, RunStarted):
        print("  a run", "of another run" if event.parent_run_id else "of its own")


def team(research: list[Scripted], lead: list[Scripted]) -> Agent:
    """A lead and a researcher."""
    researcher: Agent = Agent(
        ScriptedModel(research, usage=Usage(100, 10)), tools=[stop, buy], retry=None, on_event=watch
    )
    return Agent(
        ScriptedModel(lead, usage=Usage(10, 1)),
        tools=[researcher.as_tool("research", "Find something out.")],
        on_event=watch,
    )


async def attempt(title: str, agent: Agent) -> None:
    """Run it and say how that went."""
    print(title)
    try:
        result = await agent.run("How high is it?", limits=UsageLimits(total_tokens=1_000))
    except RunError as error:
        spent = error.partial.usage.total_tokens if error.partial else 0
        cause = error.__cause__
        print(f"  {error.stage}: {type(cause).__name__}, {spent} tokens together")
        if isinstance(cause, SubAgentPausedError):
            print("  it waits for:", [call.tool_name for call in cause.pending.approvals])
    else:
        print(f"  {result.output} ({result.usage.total_tokens} tokens, {result.requests} requests)")


def calls(name: str) -> AssistantMessage:
    """The researcher asks for a tool of its own."""
    return AssistantMessage(tool_calls=(ToolCall.of("r1", name, "{}"),))


async def main() -> None:
    """What becomes of the parent, whatever becomes of the child."""
    await attempt("answers:", team(["8,849 m"], [ASKS, "It is 8,849 m high."]))
    await attempt("is stopped by a tool:", team([calls("stop")], [ASKS]))
    await attempt("pauses:", team([calls("buy")], [ASKS]))
    await attempt("fails:", team([TransportError("cut")], [ASKS]))


if __name__ == "__main__":
    asyncio.run(main())
