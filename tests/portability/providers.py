"""The six adapters, each with the judge of its provider, and a conversation to begin with one."""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from golem import Agent, AssistantMessage, Message, Part, Thinking, ToolCall, ToolResult, tool
from golem.model import Model
from golem.testing.judge import (
    AnthropicJudge,
    BedrockJudge,
    ChatJudge,
    GeminiJudge,
    Judge,
    ResponsesJudge,
)
from golem_adapters import Anthropic, AzureOpenAI, Bedrock, Gemini, OpenAI, OpenAIResponses

PNG: Final = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
CLAUDE: Final = "anthropic.claude-sonnet-4-5-20250929-v1:0"


class Provider(NamedTuple):
    """An adapter and whoever judges it."""

    judge: Callable[..., Judge]
    model: Callable[[Judge], Model]


PROVIDERS: Final[Mapping[str, Provider]] = {
    "OpenAI": Provider(
        ChatJudge, lambda judge: OpenAI("gpt-5-mini", api_key=judge.key, base_url=judge.base_url)
    ),
    "OpenAIResponses": Provider(
        ResponsesJudge,
        lambda judge: OpenAIResponses("gpt-5-mini", api_key=judge.key, base_url=judge.base_url),
    ),
    "AzureOpenAI": Provider(
        lambda *given: ChatJudge(*given, dialect="azure"),
        lambda judge: AzureOpenAI("gpt-5-mini", api_key=judge.key, base_url=judge.base_url),
    ),
    "Anthropic": Provider(
        AnthropicJudge,
        lambda judge: Anthropic("claude-sonnet-4-5", api_key=judge.key, base_url=judge.base_url),
    ),
    "Gemini": Provider(
        GeminiJudge,
        lambda judge: Gemini("gemini-3-pro", api_key=judge.key, base_url=judge.base_url),
    ),
    "Bedrock": Provider(
        BedrockJudge, lambda judge: Bedrock(CLAUDE, api_key=judge.key, base_url=judge.base_url)
    ),
}


@tool
def look(place: str) -> ToolResult:
    """Look at a place."""
    return ToolResult(f"what is seen at {place}", [Part.image(PNG, "image/png")])


@tool
def ask(whom: str) -> str:
    """Ask somebody."""
    return f"{whom} shrugs"


def calls(*asked: tuple[str, str, str]) -> tuple[ToolCall, ...]:
    """Calls of these ids, tools and arguments."""
    return tuple(ToolCall.of(*each) for each in asked)


SAID: Final = [
    AssistantMessage(
        "Let me look around.",
        thinking=(Thinking("Two places, then."),),
        tool_calls=calls(
            ("a", "look", '{"place": "Rome"}'), ("b", "look", '{"place": "Città di Castello"}')
        ),
    ),
    AssistantMessage("Both are there.", thinking=(Thinking("That was easy."),)),
    AssistantMessage("", tool_calls=calls(("a", "ask", '{"whom": "the mayor"}'))),
    AssistantMessage(
        "One more.",
        thinking=(Thinking("He knows nothing."),),
        tool_calls=calls(("c", "ask", '{"whom": "the  abbot"}'), ("d", "ask", '{"whom": "☺"}')),
    ),
    AssistantMessage("Nobody knows."),
]
"""What the first provider's model answers, one for each request; a tool is called in between."""


async def begun_with(name: str, *, streamed: bool) -> list[Message]:
    """A conversation of two runs with that provider's adapter, at its judge."""
    provider = PROVIDERS[name]
    async with provider.judge(SAID) as judge:
        agent = Agent(provider.model(judge), tools=[look, ask], instructions="Be thorough.")
        first = await finished(agent, "What is there to see?", streamed=streamed)
        second = await finished(
            agent,
            "And who knows of this?",
            streamed=streamed,
            history=first,
            parts=[Part.image(PNG, "image/png")],
        )
    assert judge.violations == []
    return second


async def finished(
    agent: Agent[Any, str], prompt: str, *, streamed: bool, **options: Any
) -> list[Message]:
    """The transcript of a run, which finishes."""
    if not streamed:
        return (await agent.run(prompt, **options)).messages
    async with agent.stream(prompt, **options) as stream:
        async for _ in stream:
            pass
    assert stream.result is not None
    return stream.result.messages
