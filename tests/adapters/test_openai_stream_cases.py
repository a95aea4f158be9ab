"""The field reports about streams: whole, as the transport cut them, and byte by byte."""

from __future__ import annotations

from typing import Any

import pytest

from golem.errors import APIError, TransportError
from tests.adapters.driving import Outcome, bytewise, cut, drive
from tests.cases import field_reports, name_of

CASES = field_reports("stream:openai-chat")
FINISH = {"tool_calls": "tool_call"}


def bytes_of(case: dict[str, Any]) -> bytes:
    return str(case["stream"]).encode("utf-8", "surrogatepass")


def ways(case: dict[str, Any]) -> dict[str, list[bytes]]:
    data = bytes_of(case)
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
    check_content(expect, outcome)
    check_ending(expect, outcome)


@pytest.mark.parametrize("case", CASES, ids=name_of)
def test_the_outcome_does_not_depend_on_the_cuts(case: dict[str, Any]) -> None:
    shapes = [drive(pieces).shape for pieces in ways(case).values()]
    assert shapes[0] == shapes[1] == shapes[2]


def kind_of(outcome: Outcome) -> str:
    if outcome.error is None:
        return "complete"
    return "truncated" if isinstance(outcome.error, TransportError) else "error"


def check_content(expect: dict[str, Any], outcome: Outcome) -> None:
    text, thinking, calls = outcome.said
    assert text == expect.get("text", text)
    assert text.startswith(expect.get("textStartsWith", ""))
    assert thinking == expect.get("thinking", thinking)
    if "toolCalls" in expect:
        assert [(c["id"], c["name"], c["arguments"]) for c in expect["toolCalls"]] == calls
    if "toolCallsNoId" in expect:
        assert [(name, args) for name, args in expect["toolCallsNoId"]] == [
            (name, args) for _, name, args in calls
        ]
    if expect.get("idRule") == "nonempty_unique":
        ids = [name for name, _, _ in calls]
        assert all(ids)
        assert len(set(ids)) == len(ids)
    if "partialArguments" in expect:
        assert str(expect["partialArguments"]) in str([args for _, _, args in calls])


def check_ending(expect: dict[str, Any], outcome: Outcome) -> None:
    response, error = outcome.response, outcome.error
    if response is not None:
        finish = response.finish_reason
        if "finish" in expect:
            assert FINISH.get(expect["finish"], expect["finish"]) == finish
        assert finish not in [FINISH.get(word, word) for word in expect.get("finishNot", ())]
    wanted = expect.get("error", {})
    if wanted:
        assert error is not None
        assert str(wanted.get("messageContains", "")) in str(error)
        if "code" in wanted:
            assert isinstance(error, APIError)
            assert str(wanted["code"]) == error.code
            assert wanted["code"] in (error.status, error.code)
