"""The field reports about Gemini requests."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.messages import Message
from tests.adapters.encoding import check
from tests.adapters.generating import encode
from tests.cases import field_reports, messages, name_of

CASES = field_reports("serialize:gemini")


def history_of(case: dict[str, Any]) -> list[Message]:
    return messages([{**m, "content": m.get("content") or ""} for m in case["messages"]])


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_reported_history_becomes_a_request_the_provider_takes(case: dict[str, Any]) -> None:
    model = case.get("args", {}).get("model", "gemini-2.5-flash")
    data = encode(history_of(case), model=model)
    body, expect = json.loads(data), case["expect"]
    assert not set(check("gemini", body)) & set(expect.get("invariants", ()))
    assert not check("gemini", body)
    assert body["contents"][-1]["role"] == expect.get("lastRole", "user")
    for foreign in expect.get("noForeignSignature", ()):
        assert foreign.encode() not in data
    if expect.get("geminiUnsignedCallHandled"):
        calls = [p for c in body["contents"] for p in c["parts"] if "functionCall" in p]
        assert calls[0]["thoughtSignature"]
        assert "thoughtSignature" not in calls[1]
    assert encode(history_of(case), model=model) == data
