"""Claude thinks, calls a tool and answers, and gets its thinking back. Needs ANTHROPIC_API_KEY.

``--base-url URL --dialect llama.cpp --model NAME`` talks to a local server instead.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from golem import Agent, AssistantMessage, RunError, dump_history, load_history
from golem.events import TextDelta, ThinkingDelta, ToolFinished
from golem_adapters import Anthropic

MODEL = "claude-sonnet-5"
NEEDED = """This example talks to Anthropic and needs a key:

    ANTHROPIC_API_KEY=sk-ant-... python examples/anthropic_messages.py

Or give it a server that speaks Messages: --base-url URL --dialect llama.cpp --model NAME"""


def get_weather(city: str) -> str:
    """The current weather in a city.

    Args:
        city: the name of the city
    """
    return f"In {city} it is sunny, 21 degrees Celsius."


def chosen_model(arguments: argparse.Namespace) -> Anthropic | None:
    """The model to talk to; None where nothing says which."""
    if arguments.base_url:
        return Anthropic(
            arguments.model,
            base_url=arguments.base_url,
            dialect=arguments.dialect,
            temperature=0.0,
            max_tokens=200,
        )
    if not os.environ.get("ANTHROPIC_API_KEY"):
        return None
    return Anthropic(arguments.model, thinking="adaptive", cache="5m", max_tokens=4000)


async def converse(model: Anthropic) -> None:
    """Two runs, of which the second goes on from what the first one stored."""
    agent: Agent = Agent(model, tools=[get_weather], instructions="Answer in one short sentence.")
    async with agent.stream("What is the weather in Paris?") as stream:
        async for event in stream:
            if isinstance(event, (ThinkingDelta, TextDelta)):
                print(event.text, end="", flush=True)
            elif isinstance(event, ToolFinished):
                print(f"\n[{event.name} {event.args}]")
    first = stream.result
    if first is None:
        raise SystemExit("the run ended without an answer")
    turns = [m for m in first.messages if isinstance(m, AssistantMessage)]
    thoughts = [block for turn in turns for block in turn.thinking]
    print(f"\n{len(thoughts)} blocks of thinking kept, {first.usage.total_tokens} tokens")

    stored = load_history(dump_history(first.messages))
    print(f"the next request begins with {await model.count_tokens(stored)} tokens")
    second = await agent.run("Should I take an umbrella?", history=stored)
    print(second.output)
    print(f"{second.usage.cache_read_tokens} of its tokens came from the cache")


def main() -> None:
    """Talk to whichever model there is, or say what is needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", metavar="URL", help="a server that speaks Messages")
    parser.add_argument("--dialect", default="anthropic", help="which server that is")
    parser.add_argument("--model", metavar="NAME", default=MODEL, help=f"default: {MODEL}")
    model = chosen_model(parser.parse_args())
    if model is None:
        print(NEEDED)
        return
    try:
        asyncio.run(converse(model))
    except RunError as error:
        raise SystemExit(str(error)) from error


if __name__ == "__main__":
    main()
