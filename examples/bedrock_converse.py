"""A model on Amazon Bedrock calls a tool and answers. Needs a region and AWS credentials.

``--base-url URL`` talks to another server that speaks Converse instead.
"""

from __future__ import annotations

import argparse
import asyncio

from golem import Agent, RunError, dump_history, load_history
from golem.events import TextDelta, ThinkingDelta, ToolFinished
from golem_adapters import Bedrock

MODEL = "us.amazon.nova-2-lite-v1:0"
NEEDED = """This example talks to Amazon Bedrock. It needs a region and a Bedrock API key:

    AWS_REGION=us-east-1 AWS_BEARER_TOKEN_BEDROCK=... python examples/bedrock_converse.py

Credentials do too: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and, if temporary, AWS_SESSION_TOKEN.
Or give it a server that speaks Converse: --base-url URL"""


def get_weather(city: str) -> str:
    """The current weather in a city.

    Args:
        city: the name of the city
    """
    return f"In {city} it is sunny, 21 degrees Celsius."


def chosen_model(arguments: argparse.Namespace) -> Bedrock | None:
    """The model to talk to; None where nothing says where it is or who is asking."""
    try:
        return Bedrock(
            arguments.model,
            region=arguments.region,
            base_url=arguments.base_url,
            max_tokens=1000,
        )
    except ValueError as error:
        print(f"{error}\n")
        return None


async def converse(model: Bedrock) -> None:
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
    print(f"\n{first.usage.total_tokens} tokens in {first.requests} requests")

    stored = load_history(dump_history(first.messages))
    second = await agent.run("Should I take an umbrella?", history=stored)
    print(second.output)


def main() -> None:
    """Talk to the model, or say what is needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base-url", metavar="URL", help="a server that speaks Converse")
    parser.add_argument("--region", metavar="NAME", help="else AWS_REGION, AWS_DEFAULT_REGION")
    parser.add_argument("--model", metavar="ID", default=MODEL, help=f"default: {MODEL}")
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
