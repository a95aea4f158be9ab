"""The field reports about streams of Responses: whole, as they were cut, and byte by byte."""

from __future__ import annotations

from typing import Any

import pytest

from golem.errors import APIError
from tests.adapters.driving import Outcome, bytewise, cut, drive_responses
from tests.cases import field_reports, name_of

CASES = field_reports("stream:openai-responses")
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
    outcome = drive_responses(ways(case)[way])
    expect = case["expect"]
    kind = kind_of(outcome)
    assert kind in expect.get("outcomeIn", [expect.get("outcome", kind)])
    assert outcome.told == outcome.said
    text, _, calls = outcome.said
    assert text == expect.get("text", text)
    if "toolCalls" in expect:
        assert [(c["id"], c["name"], c["arguments"]) for c in expect["toolCalls"]] == calls
    if "toolCallsExecutable" in expect:
        whole = [call.id for call in outcome.message.tool_calls if not call.truncated]
        assert whole == expect["toolCallsExecutable"]
    for name, args in expect.get("partialArguments", {}).items():
        assert args in [found for asked, _, found in calls if asked == name]
    check_ending(expect, outcome)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_outcome_does_not_depend_on_the_cuts(case: dict[str, Any]) -> None:
    shapes = [drive_responses(pieces).shape for pieces in ways(case).values()]
    assert shapes[0] == shapes[1] == shapes[2]


def kind_of(outcome: Outcome) -> str:
    if outcome.response is not None:
        return "truncated" if outcome.response.finish_reason == "length" else "complete"
    return "error" if isinstance(outcome.error, APIError) else "truncated"


def check_ending(expect: dict[str, Any], outcome: Outcome) -> None:
    response, error = outcome.response, outcome.error
    if response is not None:
        if "finish" in expect:
            assert FINISH.get(expect["finish"], expect["finish"]) == response.finish_reason
        if "usage" in expect:
            counted = (response.usage.input_tokens, response.usage.output_tokens)
            assert (expect["usage"]["input"], expect["usage"]["output"]) == counted
    if wanted := expect.get("error"):
        assert isinstance(error, APIError)
        assert wanted["kind"] == error.code
        assert wanted["messageContains"] in error.message
        assert wanted["retryable"] is error.retryable
