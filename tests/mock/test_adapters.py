"""Every adapter against a mock of the providers that others wrote, its chaos included.

An optional lane: the mock is lenient about requests (our judges are not), but what it answers is
its authors' reading of the providers' documentation, not ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import tenacity

from golem import Agent, Result, RunError, ToolMessage, tool
from golem.errors import APIError, ProtocolError, ProviderError, TransportError
from golem.model import Model
from golem_adapters import Anthropic, AzureOpenAI, Bedrock, Gemini, OpenAI, OpenAIResponses

from .conftest import Mock

MODELS: dict[str, Callable[[str], Model]] = {
    "OpenAI": lambda url: OpenAI("gpt-5-mini", api_key="k", base_url=f"{url}/v1"),
    "OpenAIResponses": lambda url: OpenAIResponses("gpt-5-mini", api_key="k", base_url=f"{url}/v1"),
    "AzureOpenAI": lambda url: AzureOpenAI("gpt-5-mini", api_key="k", base_url=f"{url}/openai/v1"),
    "Anthropic": lambda url: Anthropic("claude-sonnet-4-5", api_key="k", base_url=url),
    "Gemini": lambda url: Gemini("gemini-2.5-flash", api_key="k", base_url=f"{url}/v1beta"),
    "Bedrock": lambda url: Bedrock(
        "anthropic.claude-sonnet-4-5-20250929-v1:0", api_key="k", region="us-east-1", base_url=url
    ),
}


@tool
def weather(city: str) -> str:
    """What the weather is like in a city."""
    return f"{city}: fair"


@pytest.fixture(params=MODELS)
def model(request: pytest.FixtureRequest, mock: Mock) -> Iterator[Model]:
    yield MODELS[request.param](mock.url)
    mock.chaos({})


def at_once(attempts: int) -> tenacity.AsyncRetrying:
    """A retry policy that does not wait; it is only about what is worth another attempt."""
    return tenacity.AsyncRetrying(
        stop=tenacity.stop_after_attempt(attempts),
        retry=tenacity.retry_if_exception(lambda error: getattr(error, "retryable", False)),
    )


async def run(agent: Agent[Any, str], prompt: str, streamed: bool) -> Result[str]:
    if not streamed:
        return await agent.run(prompt)
    async with agent.stream(prompt) as stream:
        async for _ in stream:
            pass
    assert stream.result is not None
    return stream.result


streamed_or_not = pytest.mark.parametrize("streamed", [False, True])


@streamed_or_not
async def test_a_text_is_read_whole(model: Model, streamed: bool) -> None:
    result = await run(Agent(model), "hello", streamed)
    assert result.output == "Hello, and what can I do for you? Für dich: 🎈"
    assert result.finish_reason == "stop"


@streamed_or_not
async def test_calls_and_their_results_make_the_round(model: Model, streamed: bool) -> None:
    result = await run(Agent(model, tools=[weather]), "weather, please", streamed)
    assert result.output == "It is fair in both."
    assert [message.content for message in result.messages if isinstance(message, ToolMessage)] == [
        "Vienna: fair",
        "Prague: fair",
    ]


@streamed_or_not
@pytest.mark.parametrize(
    ("rate", "kind", "status"),
    [
        ("rateLimitRate", APIError, 429),
        ("dropRate", APIError, 500),
        ("malformedRate", ProtocolError, None),
        ("disconnectRate", TransportError, None),
    ],
)
async def test_what_goes_wrong_has_its_class(
    model: Model, mock: Mock, streamed: bool, rate: str, kind: type[ProviderError], status: int
) -> None:
    mock.chaos({rate: 1.0})
    with pytest.raises(RunError) as caught:
        await run(Agent(model, retry=at_once(1)), "hello", streamed)
    cause = caught.value.__cause__
    assert isinstance(cause, kind)
    assert caught.value.stage == "model"
    if isinstance(cause, APIError):
        assert (cause.status, cause.retryable) == (status, True)
        assert cause.request_id or isinstance(model, Bedrock)  # the mock has not AWS's header
        assert cause.retry_after == (1.0 if status == 429 else None)


async def test_chaos_is_outlived(model: Model, mock: Mock) -> None:
    mock.chaos({"rateLimitRate": 0.2, "dropRate": 0.2, "disconnectRate": 0.2})
    result = await run(Agent(model, tools=[weather], retry=at_once(100)), "weather!", True)
    assert result.output == "It is fair in both."
