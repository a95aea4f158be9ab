"""Models that count tokens, under their judges: what they ask is taken, and bounds a history."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UsageLimits,
    UserMessage,
    budget_history,
)
from golem.model import ToolSpec
from golem.testing.judge import AnthropicJudge, BedrockJudge, GeminiJudge, Judge, ResponsesJudge
from golem_adapters import Anthropic, Bedrock, Gemini, OpenAIResponses

CLAUDE = "anthropic.claude-sonnet-4-5-20250929-v1:0"
TOOL = ToolSpec("look", "Look.", {"type": "object", "properties": {}})

COUNTERS: dict[str, tuple[Callable[[], Judge], Callable[..., Any]]] = {
    "responses": (ResponsesJudge, lambda **at: OpenAIResponses("m", reasoning_effort="low", **at)),
    "anthropic": (AnthropicJudge, lambda **at: Anthropic("m", thinking=2048, cache="1h", **at)),
    "gemini": (GeminiJudge, lambda **at: Gemini("gemini-3-pro", **at)),
    "bedrock": (BedrockJudge, lambda **at: Bedrock(CLAUDE, cache="5m", **at)),
}
at_each = pytest.mark.parametrize("name", COUNTERS)


def conversation(turns: int) -> list[Message]:
    """Turns of about the same length, every third with a call whose arguments were cut off."""
    history: list[Message] = [SystemMessage("Be brief.")]
    for turn in range(turns):
        history.append(UserMessage("What is there? " * 10))
        if turn % 3:
            history.append(AssistantMessage("Nothing. " * 10))
            continue
        call = ToolCall.of(f"call {turn}", "look", '{"at": ')
        history.append(AssistantMessage("Let me see.", tool_calls=(call,)))
        history.append(ToolMessage("nothing", tool_call_id=call.id, tool_name="look"))
    return [*history, UserMessage("So?")]


@at_each
async def test_what_a_counter_asks_is_taken(name: str) -> None:
    judged, made = COUNTERS[name]
    async with judged() as judge:
        model = made(api_key=judge.key, base_url=judge.base_url)
        few = await model.count_tokens([UserMessage("hi")])
        assert 0 < few < await model.count_tokens([UserMessage("hi")], [TOOL])
        assert few < await model.count_tokens(conversation(9))
        await model.aclose()
    assert judge.violations == []


@at_each
async def test_a_history_is_kept_inside_what_the_provider_counts(name: str) -> None:
    judged, made = COUNTERS[name]
    history = conversation(12)
    async with judged() as judge:
        model = made(api_key=judge.key, base_url=judge.base_url)
        limit = await model.count_tokens(history) // 3
        kept = await budget_history(model, limit)(history)
        assert kept
        assert await model.count_tokens(kept) <= limit
        assert kept == history[-len(kept) :]
        asked = len(judge.requests)
        processor = budget_history(model, limit)
        agent = Agent(
            model,
            counter=model,
            history_processor=processor,
            limits=UsageLimits(per_request_input_tokens=2 * limit),
        )
        result = await agent.run("And now?", history=history)
        assert result.messages[0] == kept[0]
        assert len(judge.requests) - asked < 12
        await model.aclose()
    assert judge.violations == []


@at_each
async def test_a_count_that_is_refused_is_an_error_of_the_history(name: str) -> None:
    judged, made = COUNTERS[name]
    async with judged() as judge:
        model = made(api_key="nobody's-key", base_url=judge.base_url)
        with pytest.raises(HistoryError, match="counting tokens failed") as caught:
            await budget_history(model, 10)(conversation(2))
        assert getattr(caught.value.__cause__, "status", None) in (400, 401, 403)
        await model.aclose()
