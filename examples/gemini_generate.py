"""Gemini thinks, calls a tool and answers, and gets its signatures back. Needs GEMINI_API_KEY.

``--project NAME [--location PLACE]`` talks to Vertex AI instead, with the token in
GOOGLE_ACCESS_TOKEN.
"""

from __future__ import annotations

import argparse
import asyncio
import os

from golem import Agent, AssistantMessage, RunError, dump_history, load_history
from golem.events import TextDelta, ThinkingDelta, ToolFinished
from golem_adapters import Gemini

MODEL = "gemini-3-flash-preview"
NEEDED = """This example talks to Gemini and needs a key:

    GEMINI_API_KEY=AIza... python examples/gemini_generate.py

Or a project at Vertex AI, and a token for it:

    GOOGLE_ACCESS_TOKEN=$(gcloud auth print-access-token) \\
        python examples/gemini_generate.py --project NAME"""


def get_weather(city: str) -> str:
    """The current weather in a city.

    Args:
        city: the name of the city
    """
    return f"In {city} it is sunny, 21 degrees Celsius."


def chosen_model(arguments: argparse.Namespace) -> Gemini | None:
    """The model to talk to; None where nothing says which."""
    if arguments.project:
        token = os.environ.get("GOOGLE_ACCESS_TOKEN")
        if not token:
            return None
        return Gemini(
            arguments.model,
            project=arguments.project,
            location=arguments.location,
            token=token,
            include_thoughts=True,
        )
    if not (os.environ.get("GEMINI_API_KEY") or os.environ.get("GOOGLE_API_KEY")):
        return None
    return Gemini(arguments.model, include_thoughts=True)


async def converse(model: Gemini) -> None:
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
    signed = [call for turn in turns for call in turn.tool_calls if call.signature]
    print(f"\n{len(signed)} signed calls kept, {first.usage.total_tokens} tokens")

    stored = load_history(dump_history(first.messages))
    print(f"the next request begins with {await model.count_tokens(stored)} tokens")
    second = await agent.run("Should I take an umbrella?", history=stored)
    print(second.output)
    print(f"{second.usage.cache_read_tokens} of its tokens came from the cache")


def main() -> None:
    """Talk to whichever model there is, or say what is needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--project", metavar="NAME", help="a project at Vertex AI")
    parser.add_argument("--location", metavar="PLACE", default="global", help="where it runs")
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
