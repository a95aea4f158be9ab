"""The field reports about Messages requests, and their kinds turned every way."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from msgspec import Raw, structs

from golem.messages import AssistantMessage, Message, Native, UserMessage
from tests.adapters.encoding import check
from tests.adapters.messaging import encode
from tests.cases import field_reports, messages, name_of

PROVIDER = "anthropic"
CASES = field_reports("serialize:anthropic") + [
    case for case in field_reports("resume") if case.get("args", {}).get("serializeAs") == PROVIDER
]


def history_of(case: dict[str, Any]) -> list[Message]:
    """The history as golem stores it: blocks in an order that fields do not tell are native."""
    neutral = [
        {**m, "content": m.get("content") or "", "parts": media_types(m.get("parts") or ())}
        for m in case["messages"]
    ]
    for item in neutral:
        if item["role"] == "assistant" and item["parts"]:
            # The order of texts and calls is in `native`; the text itself is in `content`.
            item["parts"] = [part for part in item["parts"] if part["type"] != "text"]
    stored = messages(neutral)
    history = [with_native(m, item) for m, item in zip(stored, case["messages"], strict=True)]
    prompt = case.get("args", {}).get("prompt")
    return [*history, UserMessage(prompt)] if prompt else history


def media_types(parts: Any) -> list[dict[str, Any]]:
    return [{"mediaType": part.get("mimeType", ""), **part} for part in parts]


def with_native(message: Message, neutral: dict[str, Any]) -> Message:
    marks = [part for part in neutral.get("parts") or () if part["type"] != "image"]
    if not isinstance(message, AssistantMessage) or len(marks) < 2:
        return message
    calls = {call.id: call for call in message.tool_calls}
    items: list[dict[str, Any]] = []
    for mark in marks:
        match mark["type"]:
            case "thinking":
                block = {"thinking": mark["text"], "signature": mark["signature"]}
                items.append({"type": "thinking", **block})
            case "toolCall":
                call = calls[mark["id"]]
                block = {"id": call.id, "name": call.name, "input": json.loads(call.args)}
                items.append({"type": "tool_use", **block})
            case "server_tool_result":
                block = {"tool_use_id": mark["id"], "content": mark["payload"]}
                items.append({"type": f"{mark['name']}_tool_result", **block})
            case _:
                items.append({"type": "text", "text": mark["text"]})
    raws = tuple(Raw(json.dumps(item, separators=(",", ":")).encode()) for item in items)
    return structs.replace(message, native=Native(PROVIDER, raws))


def encoded(case: dict[str, Any]) -> bytes:
    on = case.get("args", {}).get("thinking")
    thinking = {"type": "enabled", "budget_tokens": 1024} if on else None
    return encode(history_of(case), thinking=thinking)


def wire_shape(message: dict[str, Any]) -> str:
    """A message in the notation of the reports."""
    calls = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
    if message["role"] == "assistant":
        return f"assistant({','.join(calls)})" if calls else "assistant"
    told = [
        f"result:{block['tool_use_id']}" if block["type"] == "tool_result" else block["type"]
        for block in message["content"]
    ]
    return "user" if set(told) == {"text"} else f"user[{','.join(told)}]"


def at(body: Any, path: str) -> Any:
    for step in re.findall(r"[^.\[\]]+", path):
        body = body[int(step)] if step.isdigit() else body[step]
    return body


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_reported_history_becomes_a_request_the_provider_takes(case: dict[str, Any]) -> None:
    data = encoded(case)
    body, expect = json.loads(data), case["expect"]
    assert not set(check(PROVIDER, body)) & set(expect.get("invariants", ()))
    assert not check(PROVIDER, body)
    if "wireShape" in expect:
        assert list(map(wire_shape, body["messages"])) == expect["wireShape"]
    for assertion in expect.get("assert", ()):
        assert assertion["equals"] == at(body, assertion["path"])
    sent = json.dumps(body, ensure_ascii=False)
    for text in [*expect.get("contentPresent", ()), *expect.get("otherTextVerbatim", ())]:
        assert json.dumps(text, ensure_ascii=False)[1:-1] in sent
    if expect.get("finalAssistantNoTrailingSpace"):
        texts = [m["content"][-1]["text"] for m in body["messages"][-2:]]
        assert [text.rstrip() for text in texts] == texts
    assert encoded(case) == data
