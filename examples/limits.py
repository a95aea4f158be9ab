"""What a run may consume, and what it has cost. Needs no network."""

from __future__ import annotations

import asyncio

from golem import (
    Agent,
    AssistantMessage,
    EstimatedTokens,
    RunError,
    ToolCall,
    Usage,
    UsageLimitError,
    UsageLimits,
)
from golem.testing import ScriptedModel

CALLS: list[str] = []


async def search(query: str) -> str:
    """Search for something."""
    CALLS.append(query)
    return "nothing yet"


def searching(count: int) -> list[AssistantMessage]:
    """A model that never stops searching."""
    return [
        AssistantMessage(tool_calls=(ToolCall.of(f"c{n}", "search", f'{{"query": "{n}"}}'),))
        for n in range(count)
    ]


def price(usage: Usage) -> float:
    """Dollars, from your own price list."""
    return (usage.input_tokens * 0.25 + usage.output_tokens * 2.0) / 1_000_000


async def report(agent: Agent, prompt: str, limits: UsageLimits | None = None) -> None:
    """Run, and say which limit ended it."""
    CALLS.clear()
    try:
        if limits is None:
            await agent.run(prompt)
        else:
            await agent.run(prompt, limits=limits)
    except RunError as error:
        print(f"{error.stage}: {error.reason}; tools run: {len(CALLS)}", end="")
        if isinstance(error.__cause__, UsageLimitError):
            print(f", limit: {error.__cause__.kind}", end="")
        if error.partial is not None:
            print(f", spent: {error.partial.usage.total_tokens} tokens, ${error.partial.cost:.6f}")
        else:
            print(", spent: nothing")


async def main() -> None:
    """The same endless run, ended by one limit after the other."""
    model = ScriptedModel([*searching(5), *searching(5), *searching(5)], usage=Usage(900, 100))
    agent: Agent = Agent(model, tools=[search], price=price, counter=EstimatedTokens(), max_turns=5)
    await report(agent, "Find it.", UsageLimits(total_tokens=2_500))
    await report(agent, "Find it.", UsageLimits(tool_calls=2))
    await report(agent, "Find it.", UsageLimits(cost=0.0010))
    await report(agent, "Find it. " * 500, UsageLimits(per_request_input_tokens=1_000))
    await report(agent, "Find it.")

    answer = await Agent(ScriptedModel(["Here."], usage=Usage(900, 100)), price=price).run("?")
    print(f"one answer: {answer.usage.total_tokens} tokens, ${answer.cost:.6f}")


if __name__ == "__main__":
    asyncio.run(main())
