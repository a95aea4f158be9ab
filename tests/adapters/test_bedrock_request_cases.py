"""The field reports about Converse requests, and their kinds turned every way."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.messages import Message, SystemMessage
from tests.adapters.conversing import MODELS, encode
from tests.adapters.encoding import check
from tests.cases import field_reports, messages, name_of

CASES = field_reports("serialize:bedrock")
OTHERS = [
    case
    for provider in ("anthropic", "gemini", "openai-chat", "openai-responses")
    for case in field_reports(f"serialize:{provider}")
]


def history_of(case: dict[str, Any]) -> list[Message]:
    neutral = [
        {
            **item,
            "content": item.get("content") or "",
            "parts": [
                {"mediaType": part.get("mimeType", ""), **part} for part in item.get("parts") or ()
            ],
        }
        for item in case["messages"]
    ]
    instructions = case.get("args", {}).get("instructions")
    start: list[Message] = [SystemMessage(instructions)] if instructions else []
    return [*start, *messages(neutral)]


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_reported_history_becomes_a_request_the_provider_takes(
    case: dict[str, Any], model: str
) -> None:
    history = history_of(case)
    data = encode(history, model=model)
    assert not check("bedrock", json.loads(data))
    sent = json.dumps(json.loads(data), ensure_ascii=False)
    for text in case["expect"].get("contentPresent", ()):
        assert json.dumps(text, ensure_ascii=False)[1:-1] in sent
    assert (history, data) == (history_of(case), encode(history, model=model))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("case", OTHERS, ids=name_of)
def test_histories_that_broke_other_providers_are_taken_too(
    case: dict[str, Any], model: str
) -> None:
    assert not check("bedrock", json.loads(encode(history_of(case), model=model)))
