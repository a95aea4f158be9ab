"""Testing your agent without a provider: scripted answers, failures, requests. Needs no network.

In your suite each function is a test; here they are called one after the other.
"""

from __future__ import annotations

import asyncio

from golem import (
    Agent,
    AssistantMessage,
    Message,
    Part,
    RunError,
    ToolCall,
    TransportError,
    Usage,
    UserMessage,
)
from golem.model import Model, Response, TextDelta, ToolCallDelta
from golem.testing import Fragments, FunctionModel, ScriptedModel, Strict, assemble, fragments
from golem.testing.judge import ChatJudge, misbehave
from golem_adapters import OpenAI


def get_weather(city: str) -> str:
    """The weather in a city."""
    return f"sunny in {city}"


def make_agent(model: Model) -> Agent:
    """What is tested: your own factory, with the model as its argument."""
    return Agent(model, instructions="Be brief.", tools=[get_weather])


ASKS = AssistantMessage(tool_calls=(ToolCall.of("c1", "get_weather", '{"city": "Rome"}'),))


async def what_the_model_was_asked() -> None:
    """`requests` holds every request: messages, tools, settings."""
    model = ScriptedModel([ASKS, "Sunny."], usage=Usage(100, 5))
    result = await make_agent(model).run("Rome?", parts=[Part.image_url("https://e.com/rome.png")])
    first, second = model.requests
    assert [tool.name for tool in first.tools] == ["get_weather"]
    assert [message.content for message in second.messages] == [
        "Be brief.",
        "Rome?",
        "",
        "sunny in Rome",
    ]
    assert result.usage == Usage(200, 10)


async def an_answer_that_is_cut_off() -> None:
    """A whole `Response` says how the turn ended."""
    model = ScriptedModel([Response(AssistantMessage("Sun"), finish_reason="length")])
    result = await make_agent(model).run("Rome?")
    assert (result.output, result.finish_reason) == ("Sun", "length")


async def a_stream_that_dies_in_the_middle_of_a_call() -> None:
    """`Fragments` are the pieces of an answer; an exception among them is raised there."""
    cut = Fragments(
        [
            TextDelta("Let me see. "),
            ToolCallDelta(0, "c1", "get_weather"),
            ToolCallDelta(0, args='{"ci'),
            TransportError("connection reset"),
        ]
    )
    stream = make_agent(ScriptedModel([cut])).stream("Rome?")
    stage = ""
    try:
        async with stream:
            async for _ in stream:
                pass
    except RunError as error:
        stage = error.stage
    assert stage == "model"
    assert stream.partial is not None
    assert stream.partial.text == "Let me see. "
    assert len(stream.partial.messages) == 2  # the half call is no message and never runs


async def a_model_that_is_a_function() -> None:
    """`FunctionModel` answers from the request; `Strict` refuses what providers would."""
    model = FunctionModel(lambda request: f"{len(request.messages)} messages")
    agent: Agent = Agent(Strict(model))
    history: list[Message] = [
        UserMessage("Rome?"),
        ASKS,
    ]  # a call nobody answered: the run repairs it
    assert (await agent.run("And?", history=history)).output == "4 messages"


async def streamed_as_you_like() -> None:
    """`fragments` cuts a message into deltas, `assemble` puts them together."""
    pieces = fragments(ASKS, size=3)
    assert assemble(pieces) == ASKS
    model = ScriptedModel([Fragments(pieces), "Sunny."])
    async with make_agent(model).stream("Rome?") as stream:
        assert [text async for text in stream.text()] == ["Sunny."]


async def an_adapter_at_a_server_that_is_played() -> None:
    """A judge refuses what the provider refuses, and here fails once before it answers."""
    async with ChatJudge("Sunny.", [misbehave.rate_limited("0.01")]) as judge:
        model = OpenAI("m", base_url=judge.base_url, api_key=judge.key)
        assert (await make_agent(model).run("Rome?")).output == "Sunny."
    assert judge.violations == []
    assert len(judge.requests) == 2


async def main() -> None:
    """Run them all."""
    for test in (
        what_the_model_was_asked,
        an_answer_that_is_cut_off,
        a_stream_that_dies_in_the_middle_of_a_call,
        a_model_that_is_a_function,
        streamed_as_you_like,
        an_adapter_at_a_server_that_is_played,
    ):
        await test()
        print("passed:", test.__name__)


if __name__ == "__main__":
    asyncio.run(main())
