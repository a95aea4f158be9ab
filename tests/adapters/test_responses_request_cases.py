"""The field reports about Responses requests, and their kinds turned every way."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from golem.messages import AssistantMessage, Message, Thinking, ToolCall, ToolMessage, UserMessage
from golem.model import Settings
from tests.adapters.encoding import check, encode_responses, items
from tests.cases import field_reports, messages, name_of

PROVIDER = "openai-responses"


def encoded(case: dict[str, Any]) -> bytes:
    neutral = [{**m, "content": m.get("content") or ""} for m in case["messages"]]
    store = case.get("args", {}).get("store")
    settings = Settings(extra_body=None if store is None else {"store": store})
    return encode_responses(messages(neutral), settings=settings)


@pytest.mark.parametrize("case", field_reports("serialize:openai-responses"), ids=name_of)
def test_a_reported_history_becomes_a_request_the_provider_takes(case: dict[str, Any]) -> None:
    data = encoded(case)
    body, expect = json.loads(data), case["expect"]
    assert not set(check(PROVIDER, body)) & set(expect.get("invariants", ()))
    ids = [item["id"] for item in body["input"] if "id" in item]
    assert all(re.match(expect.get("itemIdPattern", ""), name) for name in ids)
    calls = [item["call_id"] for item in body["input"] if item["type"] == "function_call"]
    assert set(expect.get("callIdVerbatim", ())) <= set(calls)
    for assertion in expect.get("assert", ()):
        wanted = assertion["has"].items()
        assert any(wanted <= item.items() for item in map(hashable, body["input"]))
    assert encoded(case) == data


def hashable(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if isinstance(value, str)}


# --- sealed thinking of a message that has no native items: written by hand, or elsewhere


def thought(**members: Any) -> Thinking:
    return Thinking(**{"provider": PROVIDER, "id": "rs_1", "signature": "enc", **members})


def turn(*thinking: Thinking, **members: Any) -> list[Message]:
    calls = (ToolCall.of("c1", "f", "{}"),)
    answer = AssistantMessage(**{"tool_calls": calls, "thinking": thinking, **members})
    return [UserMessage("q"), answer, ToolMessage("r", tool_call_id="c1"), UserMessage("n")]


def kinds(history: list[Message]) -> list[str]:
    return [item.get("role") or item["type"] for item in items(history)]


def test_sealed_thinking_goes_back_before_what_it_led_to() -> None:
    history = turn(thought(text="plan"), content="Wait.")
    assert kinds(history) == [
        "user",
        "reasoning",
        "assistant",
        "function_call",
        "function_call_output",
        "user",
    ]
    assert items(history)[1] == {
        "type": "reasoning",
        "summary": [{"type": "summary_text", "text": "plan"}],
        "encrypted_content": "enc",
    }


def test_redacted_thinking_goes_back_too() -> None:
    sealed = items(turn(thought(signature="", redacted="enc")))[1]
    assert (sealed["encrypted_content"], sealed["summary"]) == ("enc", [])


def test_the_blocks_of_one_item_go_back_as_one() -> None:
    history = turn(thought(text="a"), thought(text="b", signature=""))
    assert [part["text"] for part in items(history)[1]["summary"]] == ["a", "b"]


@pytest.mark.parametrize(
    "thinking",
    [
        (thought(provider="anthropic", text="t"),),
        (thought(text="t", signature=""),),
        (thought(text="a"), thought(text="b", id="rs_2")),
        (thought(text="a", id=""), thought(text="b", id="")),
    ],
    ids=["foreign", "unsealed", "of several items", "of items without ids"],
)
def test_other_thinking_is_left_out(thinking: tuple[Thinking, ...]) -> None:
    assert "reasoning" not in kinds(turn(*thinking))


def test_thinking_alone_is_left_out() -> None:
    assert kinds([UserMessage("q"), AssistantMessage(thinking=(thought(),))]) == ["user"]
