"""A judge reads any JSON: it refuses what is wrong, and trips over nothing."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given

from golem.testing.judge import ChatProvider, Provider, ResponsesProvider
from golem.testing.judge.chat_servers import RULES
from golem.testing.judge.responses_servers import RULES as RESPONSES_RULES
from tests.judge.mutating import ANY_JSON, answered, mutated

SCHEMA = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
CHAT: list[Any] = [
    {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief, in JSON."},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "hi"},
                    {"type": "image_url", "image_url": {"url": "https://a.b/c", "detail": "low"}},
                    {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
                    {"type": "file", "file": {"file_data": "QQ==", "filename": "a.pdf"}},
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "",
                "tool_calls": [
                    {
                        "id": "abcDEF123",
                        "type": "function",
                        "function": {"name": "f", "arguments": "{}"},
                    }
                ],
            },
            {"role": "tool", "tool_call_id": "abcDEF123", "content": "ok"},
        ],
        "tools": [
            {"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}},
            {"type": "custom", "custom": {"name": "g"}},
        ],
        "tool_choice": {"type": "function", "function": {"name": "f"}},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "a", "schema": SCHEMA, "strict": True},
        },
        "stream": True,
        "stream_options": {"include_usage": True},
    },
    {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stop": ["a"],
        "temperature": 0.5,
        "max_tokens": 5,
        "tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": []}},
        "metadata": {"a": "b"},
        "reasoning_effort": "low",
        "verbosity": "low",
        "service_tier": "auto",
        "parallel_tool_calls": False,
    },
]
RESPONSES: list[Any] = [
    {
        "model": "m",
        "store": False,
        "input": [
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_text", "text": "hi"},
                    {"type": "input_image", "image_url": "https://a.b/c", "detail": "low"},
                    {"type": "input_file", "file_data": "QQ==", "filename": "a.pdf"},
                    {"type": "input_audio", "input_audio": {"data": "QQ==", "format": "wav"}},
                ],
            },
            {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "x"},
            {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "c", "output": "ok"},
            {"type": "item_reference", "id": "msg_1"},
        ],
        "include": ["reasoning.encrypted_content"],
        "tools": [{"type": "function", "name": "f", "parameters": SCHEMA, "strict": True}],
        "tool_choice": {"type": "function", "name": "f"},
        "text": {"format": {"type": "json_schema", "name": "a", "schema": SCHEMA}},
        "reasoning": {"effort": "low", "summary": "auto"},
    },
    {
        "model": "m",
        "input": "hi",
        "stream": True,
        "truncation": "auto",
        "metadata": {"a": "b"},
        "tools": [{"type": "web_search"}],
        "tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []},
        "text": {"format": {"type": "json_object"}, "verbosity": "low"},
    },
]
FOUND: dict[str, Any] = {
    "a format without a hash": {**CHAT[1], "response_format": {"type": []}},
    "a part without a hash": {**CHAT[1], "messages": [{"role": "user", "content": [{"type": {}}]}]},
    "an include without a hash": {**RESPONSES[1], "include": [{}]},
}
CHATS = [ChatProvider(name) for name in sorted(RULES)]
RESPONDERS = [ResponsesProvider(name) for name in sorted(RESPONSES_RULES)]


@pytest.mark.parametrize(
    "provider", [*CHATS, *RESPONDERS], ids=lambda p: f"{p.path}-{p.rules.name}"
)
@given(body=ANY_JSON)
@example(body=FOUND["a format without a hash"])
@example(body=FOUND["a part without a hash"])
@example(body=FOUND["an include without a hash"])
def test_a_judge_reads_any_json(provider: Provider, body: Any) -> None:
    answered(provider, body)


@pytest.mark.parametrize("provider", CHATS, ids=lambda p: p.rules.name)
@given(body=mutated(CHAT))
def test_a_judge_of_chat_reads_anything_in_a_request(provider: Provider, body: Any) -> None:
    answered(provider, body)


@pytest.mark.parametrize("provider", RESPONDERS, ids=lambda p: p.rules.name)
@given(body=mutated(RESPONSES))
def test_a_judge_of_responses_reads_anything_in_a_request(provider: Provider, body: Any) -> None:
    answered(provider, body)
