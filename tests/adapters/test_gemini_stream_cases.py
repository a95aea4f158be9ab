"""The field reports about streams of Gemini: whole, as they were cut, and byte by byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.errors import APIError
from golem.messages import UserMessage
from tests.adapters.driving import Outcome, bytewise, cut
from tests.adapters.generating import drive, encode
from tests.cases import field_reports, name_of

CASES = field_reports("stream:gemini")
FINISH = {"tool_calls": "tool_call"}


def ways(case: dict[str, Any]) -> dict[str, list[bytes]]:
    data = str(case["stream"]).encode("utf-8", "surrogatepass")
    return {
        "whole": [data],
        "as cut": list(cut(data, case.get("split_bytes", ()))),
        "bytewise": list(bytewise(data)),
    }


@pytest.mark.parametrize("way", ["whole", "as cut", "bytewise"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_reported_stream_ends_as_it_should(case: dict[str, Any], way: str) -> None:
    outcome = drive(ways(case)[way])
    expect = case["expect"]
    kind = kind_of(outcome)
    assert kind in expect.get("outcomeIn", [expect.get("outcome", kind)])
    assert outcome.told == outcome.said
    text, thinking, calls = outcome.said
    assert text == expect.get("text", text)
    assert text.startswith(expect.get("textStartsWith", ""))
    assert thinking == expect.get("thinking", thinking)
    if "toolCallsNoIdJson" in expect:
        named = [[name, json.loads(args)] for _, name, args in calls]
        assert expect["toolCallsNoIdJson"] == named
    assert all(call_id for call_id, _, _ in calls)
    assert len({call_id for call_id, _, _ in calls}) == len(calls)
    check_ending(expect, outcome)
    if signature := expect.get("signaturePresent"):
        sent = encode([UserMessage("q"), outcome.message, UserMessage("n")])
        assert signature.encode() in sent


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_outcome_does_not_depend_on_the_cuts(case: dict[str, Any]) -> None:
    shapes = [drive(pieces).shape for pieces in ways(case).values()]
    assert shapes[0] == shapes[1] == shapes[2]


def kind_of(outcome: Outcome) -> str:
    if outcome.response is not None:
        return "truncated" if outcome.response.finish_reason == "length" else "complete"
    return "error" if isinstance(outcome.error, APIError) else "truncated"


def check_ending(expect: dict[str, Any], outcome: Outcome) -> None:
    response, error = outcome.response, outcome.error
    finish = response.finish_reason if response is not None else "error"
    if "finish" in expect:
        assert FINISH.get(expect["finish"], expect["finish"]) == finish
    assert finish not in [FINISH.get(name, name) for name in expect.get("finishNot", ())]
    reason = response.details.finish_reason if response is not None else str(error)
    assert expect.get("reasonContains", "") in reason
    if "usage" in expect and response is not None:
        counted = (response.usage.input_tokens, response.usage.output_tokens)
        assert (expect["usage"]["input"], expect["usage"]["output"]) == counted
    if "retryable" in expect:
        assert error is not None
        assert error.retryable is expect["retryable"]
