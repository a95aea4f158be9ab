"""Structured output: types, modes, corrections, and a look while it streams. Needs no network."""

from __future__ import annotations

import asyncio
import json
from typing import Annotated

from msgspec import Meta, Struct

from golem import Agent, AssistantMessage, ModelRetry, RunError, ToolCall
from golem.events import ToolCallDelta
from golem.testing import ScriptedModel


class Recipe(Struct):
    """What the answer has to be."""

    title: str
    minutes: Annotated[int, Meta(ge=1, description="from start to table")]
    steps: list[str]


class Refusal(Struct):
    """The other thing it may be."""

    reason: str


TEA = '{"title": "Tea", "minutes": 5, "steps": ["boil water", "steep", "pour"]}'


def gives(name: str, args: str) -> AssistantMessage:
    """A call of an output tool."""
    return AssistantMessage(tool_calls=(ToolCall.of("out", name, args),))


async def tool_mode() -> None:
    """The default where the provider enforces no schema: the model calls an output tool."""
    model = ScriptedModel([gives("final_result", TEA)])
    agent = Agent[None, Recipe](model, output_type=Recipe)
    result = await agent.run("A recipe, please.")
    print("tool:", result.output)
    print("  offered:", model.requests[0].tools[0].name)


async def prompt_mode() -> None:
    """The schema stands in the instructions; a Markdown fence around the answer is taken off."""
    model = ScriptedModel([f"```json\n{TEA}\n```"])
    agent = Agent[None, Recipe](model, output_type=Recipe, output_mode="prompt")
    result = await agent.run("A recipe, please.")
    print("prompt:", result.output.title)


async def several_types() -> None:
    """One output tool each, so the model chooses."""
    model = ScriptedModel([gives("final_result_Refusal", '{"reason": "I cannot cook"}')])
    agent = Agent[None, Recipe | Refusal](model, output_type=[Recipe, Refusal])
    result = await agent.run("A recipe, please.")
    print("several:", result.output)
    print("  offered:", *(tool.name for tool in model.requests[0].tools))


async def corrected() -> None:
    """What does not fit is told to the model, as often as `output_retries` says."""
    wrong = TEA.replace("5", "0")
    model = ScriptedModel([gives("final_result", wrong), gives("final_result", TEA)])
    agent = Agent[None, Recipe](model, output_type=Recipe, output_retries=1)
    result = await agent.run("A recipe, please.")
    print("corrected:", result.messages[2].content)
    try:
        strict = Agent[None, Recipe](
            ScriptedModel([gives("final_result", wrong)]), output_type=Recipe
        )
        await strict.run("A recipe, please.")
    except RunError as error:
        print("not corrected:", error)


async def own_decoder() -> None:
    """A function makes the value of the text, and may refuse it."""

    def numbers(text: str) -> list[int]:
        try:
            return [int(word) for word in text.split(",")]
        except ValueError:
            raise ModelRetry("only numbers, separated by commas") from None

    model = ScriptedModel(["one, two", "1, 2"])
    agent = Agent[None, list[int]](model, decoder=numbers, output_retries=1)
    print("decoder:", (await agent.run("Count.")).output)


async def while_it_streams() -> None:
    """`partial_output` is what has come so far, for showing."""
    agent = Agent[None, Recipe](ScriptedModel([gives("final_result", TEA)]), output_type=Recipe)
    shown: list[str] = []
    async with agent.stream("A recipe, please.") as stream:
        async for event in stream:
            so_far = json.dumps(stream.partial_output)
            if isinstance(event, ToolCallDelta) and so_far not in shown:
                shown.append(so_far)
    print("streamed:", *shown[:5], sep="\n  ")
    assert stream.result is not None
    print("  and then:", stream.result.output.steps)


async def main() -> None:
    """Each way once."""
    await tool_mode()
    await prompt_mode()
    await several_types()
    await corrected()
    await own_decoder()
    await while_it_streams()


if __name__ == "__main__":
    asyncio.run(main())
