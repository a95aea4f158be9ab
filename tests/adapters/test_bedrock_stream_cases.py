"""The field reports about streams of Converse: whole, as they were cut, and byte by byte."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.errors import APIError
from tests.adapters.conversing import CLAUDE, MODELS, drive, framed
from tests.adapters.driving import Outcome, bytewise, cut
from tests.cases import field_reports, name_of
from tests.wire.frames import event

CASES = field_reports("stream:bedrock")
FINISH = {"tool_calls": "tool_call"}


def binary(case: dict[str, Any]) -> bytes:
    """The frames for the decoded events of a report, one JSON object a line."""
    data = b""
    for line in case["stream"].splitlines():
        for name, payload in json.loads(line).items():
            kind = "exception" if name.endswith("Exception") else "event"
            data += event(name, payload, kind)
    return data


def ways(case: dict[str, Any]) -> dict[str, list[bytes]]:
    data = binary(case)
    places = [place for place in case.get("split_bytes", ()) if place < len(data)]
    return {
        "whole": [data],
        "as cut": list(cut(data, [*places, len(data) // 3, len(data) // 2])),
        "bytewise": list(bytewise(data)),
    }


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("way", ["whole", "as cut", "bytewise"])
@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_reported_stream_ends_as_it_should(case: dict[str, Any], way: str, model: str) -> None:
    outcome = drive(ways(case)[way], model=model)
    expect = case["expect"]
    kind = kind_of(outcome)
    assert kind in expect.get("outcomeIn", [expect.get("outcome", kind)])
    assert outcome.told == outcome.said
    text, _, calls = outcome.said
    assert text == expect.get("text", text)
    if "toolCalls" in expect:
        assert [(c["id"], c["name"], c["arguments"]) for c in expect["toolCalls"]] == calls
    assert len({call_id for call_id, _, _ in calls}) == len(calls)
    check_parts(expect, outcome)
    if "usage" in expect:
        assert outcome.response is not None
        counted = (outcome.response.usage.input_tokens, outcome.response.usage.output_tokens)
        assert (expect["usage"]["input"], expect["usage"]["output"]) == counted
    finish = outcome.response.finish_reason if outcome.response is not None else "error"
    assert FINISH.get(expect["finish"], expect["finish"]) == finish


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_outcome_does_not_depend_on_the_cuts(case: dict[str, Any]) -> None:
    shapes = [drive(pieces).shape for pieces in ways(case).values()]
    assert shapes[0] == shapes[1] == shapes[2]


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_a_reported_stream_that_breaks_off_keeps_its_calls_as_evidence(
    case: dict[str, Any],
) -> None:
    data = binary(case)
    whole = drive([data]).message
    for end in range(data.rfind(b"messageStop")):
        outcome = drive([data[:end]])
        assert outcome.error is not None
        assert kind_of(outcome) == "truncated"
        assert outcome.told == outcome.said
        assert whole.content.startswith(outcome.message.content)


def kind_of(outcome: Outcome) -> str:
    if outcome.response is not None:
        return "truncated" if outcome.response.finish_reason == "length" else "complete"
    return "error" if isinstance(outcome.error, APIError) else "truncated"


def check_parts(expect: dict[str, Any], outcome: Outcome) -> None:
    kinds = ("thinking", "redacted_thinking")
    wanted = [part for part in expect.get("parts", ()) if part["type"] in kinds]
    if wanted:
        found = [(b.text, b.signature, b.redacted) for b in outcome.message.thinking]
        assert [
            (part.get("text", ""), part.get("signature", ""), part.get("data", ""))
            for part in wanted
        ] == found


def test_events_may_come_without_what_only_some_servers_send() -> None:
    """No `messageStart`, no padding, no `metadata`: the answer is whole when it stopped."""
    said = [("contentBlockDelta", {"delta": {"text": "hi"}}), ("messageStop", {})]
    outcome = drive([framed(said)], model=CLAUDE)
    assert outcome.response is not None
    assert (outcome.message.content, outcome.response.usage.total_tokens) == ("hi", 0)
