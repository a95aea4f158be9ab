"""Counts of `OpenAIResponses`: what is asked, over real sockets, and what the answer says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings

from golem import AssistantMessage, HistoryError, Message, SystemMessage, UserMessage, repair
from golem.errors import APIError, ProtocolError
from golem.history import budget_history
from golem.model import Request, ToolSpec
from golem.testing.judge import judge_responses
from golem.testing.strategies import ANY_HISTORY, HOSTILE_HISTORY
from golem_adapters import OpenAIResponses
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters.openai_responses.response import decode_count
from tests.adapters.test_responses_http import KEY, model_at
from tests.wire.server import answering, response, serving

TAKEN = {"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls"}
TAKEN |= {"reasoning", "text", "truncation", "conversation", "previous_response_id"}
"""The members of the endpoint's body, by its reference."""

TOOL = ToolSpec("get weather", "Weather.", {"type": "object"})
REFUSED = b'{"error":{"message":"nobody counts here","type":"invalid_request_error"}}'


def asked(model: OpenAIResponses, messages: list[Message], *tools: ToolSpec) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(model._counting.count(Request(messages, tools)).body)
    return body


async def test_tokens_are_counted_by_the_provider() -> None:
    answer = response(b'{"object":"response.input_tokens","input_tokens":7}')
    async with serving(answering(answer)) as server:
        model = model_at(server.url, max_tokens=5, reasoning_effort="low", organization="o")
        assert await model.count_tokens([UserMessage("hi")], [TOOL]) == 7
    head, _, body = server.requests[0].partition(b"\r\n\r\n")
    assert head.startswith(b"POST /v1/responses/input_tokens HTTP/1.1")
    assert b"openai-organization: o" in head
    assert json.loads(body) == {
        "model": "m",
        "reasoning": {"effort": "low"},
        "tools": [
            {
                "type": "function",
                "name": wire_tool_name("get weather"),
                "description": "Weather.",
                "parameters": {"type": "object"},
                "strict": False,
            }
        ],
        "input": [{"type": "message", "role": "user", "content": "hi"}],
    }


def test_the_prompt_that_is_counted_is_the_one_that_is_sent() -> None:
    model = model_at("http://localhost:1")
    messages = [SystemMessage("be brief"), UserMessage("hi"), AssistantMessage("so")]
    sent = json.loads(model._counting.encode(Request(messages, (TOOL,)), stream=False).body)
    counted = asked(model, messages, TOOL)
    assert counted == {name: sent[name] for name in counted}


@given(history=ANY_HISTORY | HOSTILE_HISTORY)
@settings(max_examples=40)
def test_any_repaired_history_is_counted(history: list[Message]) -> None:
    body = asked(model_at("http://localhost:1"), list(repair(history)), TOOL)
    assert body.keys() <= TAKEN
    assert judge_responses(body, counts=True) == []


async def test_a_model_is_the_counter_of_a_budget() -> None:
    counts = [response(b'{"input_tokens":%d}' % count) for count in (90, 10, 10, 10)]
    history = [UserMessage("a"), AssistantMessage("b"), UserMessage("c")]
    async with serving(answering(*counts)) as server:
        kept = await budget_history(model_at(server.url), 50)(history)
    assert kept == history[1:]


async def test_a_server_that_does_not_count_says_so() -> None:
    refusal = response(REFUSED, status="404 Not Found")
    async with serving(answering(refusal)) as server:
        with pytest.raises(HistoryError, match="counting tokens failed: 404") as caught:
            await budget_history(model_at(server.url), 50)([UserMessage("a")])
    assert isinstance(caught.value.__cause__, APIError)
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    "body", [b"", b"no", b"[]", b"{}", b'{"input_tokens":"many"}', b'{"input_tokens":-1}']
)
def test_a_body_without_a_count_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="count"):
        decode_count(body, headers={}, secret="")


def test_an_error_in_place_of_a_count_is_an_api_error() -> None:
    with pytest.raises(APIError, match="nobody counts here"):
        decode_count(REFUSED, headers={}, secret="")
