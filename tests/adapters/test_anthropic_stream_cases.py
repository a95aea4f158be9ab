"""The field reports about streams of Messages: whole, as they were cut, and byte by byte."""

from __future__ import annotations

from typing import Any

import pytest

from golem.errors import APIError
from tests.adapters.driving import Outcome, bytewise, cut
from tests.adapters.messaging import drive
from tests.cases import field_reports, name_of

CASES = field_reports("stream:anthropic")
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
    text, _, calls = outcome.said
    assert text == expect.get("text", text)
    if "toolCalls" in expect:
        assert [(c["id"], c["name"], c["arguments"]) for c in expect["toolCalls"]] == calls
    for call_id, args in expect.get("partialArguments", {}).items():
        assert args in [found for asked, _, found in calls if asked == call_id]
    if "toolCallCountIn" in expect:
        assert len(calls) in expect["toolCallCountIn"]
    assert len({call_id for call_id, _, _ in calls}) == len(calls)
    check_parts(expect, outcome)
    check_ending(expect, outcome)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_outcome_does_not_depend_on_the_cuts(case: dict[str, Any]) -> None:
    shapes = [drive(pieces).shape for pieces in ways(case).values()]
    assert shapes[0] == shapes[1] == shapes[2]


def kind_of(outcome: Outcome) -> str:
    if outcome.response is not None:
        return "truncated" if outcome.response.finish_reason == "length" else "complete"
    return "error" if isinstance(outcome.error, APIError) else "truncated"


def check_parts(expect: dict[str, Any], outcome: Outcome) -> None:
    kinds = ("thinking", "redacted_thinking")
    wanted = [part for part in expect.get("parts", ()) if part["type"] in kinds]
    if not wanted:
        return
    found = [(block.text, block.signature, block.redacted) for block in outcome.message.thinking]
    assert [
        (part.get("text", ""), part.get("signature", ""), part.get("data", "")) for part in wanted
    ] == found


def check_ending(expect: dict[str, Any], outcome: Outcome) -> None:
    response, error = outcome.response, outcome.error
    finish = response.finish_reason if response is not None else "error"
    if "finish" in expect:
        assert FINISH.get(expect["finish"], expect["finish"]) == finish
    assert finish not in [FINISH.get(name, name) for name in expect.get("finishNot", ())]
    assert finish in expect.get("finishIn", [finish])
    if "usage" in expect and response is not None:
        counted = (response.usage.input_tokens, response.usage.output_tokens)
        assert (expect["usage"]["input"], expect["usage"]["output"]) == counted
    if wanted := expect.get("error"):
        assert isinstance(error, APIError)
        assert wanted.get("kind", error.code) == error.code
        assert wanted.get("messageContains", "") in error.message
        assert wanted.get("retryable", error.retryable) is error.retryable
