"""The field reports about streams: whole, as the transport cut them, and byte by byte."""

from __future__ import annotations

import json
from typing import Any, Final

import pytest

from golem.errors import APIError, TransportError
from golem.messages import UserMessage
from tests.adapters import generating, messaging
from tests.adapters.driving import Outcome, bytewise, cut, drive, drive_responses
from tests.cases import field_reports, name_of

DRIVES: Final[dict[str, Any]] = {
    "anthropic": messaging.drive,
    "gemini": generating.drive,
    "openai-chat": drive,
    "openai-responses": drive_responses,
}
CASES: Final = [
    pytest.param(api, case, id=f"{api}-{name_of(case)}")
    for api in DRIVES
    for case in field_reports(f"stream:{api}")
]
THOUGHTS: Final = ("thinking", "redacted_thinking")


def ways(case: dict[str, Any]) -> dict[str, list[bytes]]:
    data = str(case["stream"]).encode("utf-8", "surrogatepass")
    return {
        "whole": [data],
        "as cut": list(cut(data, case.get("split_bytes", ()))),
        "bytewise": list(bytewise(data)),
    }


@pytest.mark.parametrize("way", ["whole", "as cut", "bytewise"])
@pytest.mark.parametrize(("api", "case"), CASES)
def test_a_reported_stream_ends_as_it_should(api: str, case: dict[str, Any], way: str) -> None:
    outcome = DRIVES[api](ways(case)[way])
    expect = case["expect"]
    assert outcome.told == outcome.said
    check_text(expect, outcome)
    check_calls(expect, outcome)
    check_parts(expect, outcome)
    check_ending(expect, outcome)


@pytest.mark.parametrize(("api", "case"), CASES)
def test_the_outcome_does_not_depend_on_the_cuts(api: str, case: dict[str, Any]) -> None:
    shapes = [DRIVES[api](pieces).shape for pieces in ways(case).values()]
    assert shapes[0] == shapes[1] == shapes[2]


def check_text(expect: dict[str, Any], outcome: Outcome) -> None:
    text, thinking, _ = outcome.said
    assert text == expect.get("text", text)
    assert text.startswith(expect.get("textStartsWith", ""))
    assert thinking == expect.get("thinking", thinking)


def check_calls(expect: dict[str, Any], outcome: Outcome) -> None:
    _, _, calls = outcome.said
    named = [[name, args] for _, name, args in calls]
    if "toolCalls" in expect:
        assert [(c["id"], c["name"], c["arguments"]) for c in expect["toolCalls"]] == calls
    assert expect.get("toolCallsNoId", named) == named
    if "toolCallsNoIdJson" in expect:
        assert expect["toolCallsNoIdJson"] == [[name, json.loads(args)] for name, args in named]
    if "toolCallsExecutable" in expect:
        whole = [call.id for call in outcome.message.tool_calls if not call.truncated]
        assert whole == expect["toolCallsExecutable"]
    for call_id, args in expect.get("partialArguments", {}).items():
        assert args in [found for asked, _, found in calls if asked == call_id]
    assert len(calls) in expect.get("toolCallCountIn", [len(calls)])
    ids = [call_id for call_id, _, _ in calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


def check_parts(expect: dict[str, Any], outcome: Outcome) -> None:
    wanted = [part for part in expect.get("parts", ()) if part["type"] in THOUGHTS]
    found = [(block.text, block.signature, block.redacted) for block in outcome.message.thinking]
    told = [(p.get("text", ""), p.get("signature", ""), p.get("data", "")) for p in wanted]
    assert told == found or not wanted
    if signature := expect.get("signaturePresent"):
        history = [UserMessage("q"), outcome.message, UserMessage("n")]
        assert signature.encode() in generating.encode(history)


def check_ending(expect: dict[str, Any], outcome: Outcome) -> None:
    response, error = outcome.response, outcome.error
    finish = response.finish_reason if response is not None else "error"
    kinds = kinds_of(outcome)
    assert not kinds.isdisjoint(expect.get("outcomeIn", [expect.get("outcome", min(kinds))]))
    assert finish == finish_of(expect.get("finish", finish)) or "error" in expect
    assert finish not in map(finish_of, expect.get("finishNot", ()))
    assert finish in expect.get("finishIn", [finish])
    reason = response.details.finish_reason if response is not None else str(error)
    assert expect.get("reasonContains", "") in reason
    if "usage" in expect and response is not None:
        counted = (response.usage.input_tokens, response.usage.output_tokens)
        assert (expect["usage"]["input"], expect["usage"]["output"]) == counted
    if "retryable" in expect:
        assert error is not None
        assert error.retryable is expect["retryable"]
    if wanted := expect.get("error"):
        check_error(wanted, error)


def check_error(wanted: dict[str, Any], error: Exception | None) -> None:
    assert error is not None
    assert wanted.get("messageContains", "") in str(error)
    if set(wanted) & {"kind", "code", "retryable"}:
        assert isinstance(error, APIError)
        assert wanted.get("kind", error.code) == error.code
        assert str(wanted.get("code", error.code)) == error.code
        assert wanted.get("retryable", error.retryable) is error.retryable


def kinds_of(outcome: Outcome) -> set[str]:
    """What the reports call such an end, some so and some so that of an answer cut for length."""
    if outcome.response is None:
        return {"truncated" if isinstance(outcome.error, TransportError) else "error"}
    too_long = outcome.response.finish_reason == "length"
    return {"complete", "truncated"} if too_long else {"complete"}


def finish_of(name: str) -> str:
    return "tool_call" if name == "tool_calls" else name
