"""Streams of Gemini: what ends them, what breaks them, what servers make of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.errors import APIError, ProtocolError, TransportError
from golem.messages import AssistantMessage, Part, Thinking, ToolCall, UserMessage
from golem.model import Request, TextDelta, ThinkingDelta, ToolCallDelta, ToolSpec
from golem.usage import Usage
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters.gemini.dialect import TOOL_NAME
from tests.adapters.driving import bytewise
from tests.adapters.generating import (
    USAGE,
    answer,
    call,
    compact,
    decode,
    drive,
    plainly,
    sse,
    streamed,
    text,
    thought,
)

SIGNATURE = "c2lnbmVk"


def test_an_answer_comes_as_deltas_and_then_whole() -> None:
    parts = [thought("hm"), text("Hello"), call("f", SIGNATURE, id="c1", a=1)]
    outcome = drive([sse(streamed(parts))])
    assert outcome.deltas == [
        ThinkingDelta("hm"),
        TextDelta("Hel"),
        TextDelta("lo"),
        ToolCallDelta(0, "c1", "f", '{"a":1}'),
    ]
    assert outcome.response is not None
    assert outcome.response.message == AssistantMessage(
        "Hello",
        thinking=(Thinking("hm", provider="gemini"),),
        tool_calls=(ToolCall.of("c1", "f", '{"a":1}', SIGNATURE),),
    )
    assert outcome.response.finish_reason == "tool_call"
    assert outcome.response.details.finish_reason == "STOP"
    assert outcome.response.details.request_id == "r-1"


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("STOP", "stop"),
        ("MAX_TOKENS", "length"),
        ("SAFETY", "content_filter"),
        ("SPII", "content_filter"),
        ("MALFORMED_FUNCTION_CALL", "other"),
        ("OF_THE_FUTURE", "other"),
    ],
)
def test_reasons_to_end(reason: str, finish: str) -> None:
    response = plainly([text("a")], reason)
    assert (response.finish_reason, response.details.finish_reason) == (finish, reason)


def test_a_call_of_an_unknown_tool_is_for_the_run_to_answer() -> None:
    response = plainly([call("nope")], "UNEXPECTED_TOOL_CALL")
    assert response.finish_reason == "tool_call"
    assert plainly([call("f")], "MAX_TOKENS").finish_reason == "length"


def test_a_finish_message_is_kept() -> None:
    chunk = answer([], "MALFORMED_FUNCTION_CALL")
    chunk["candidates"][0]["finishMessage"] = "print(f())"
    assert decode(compact(chunk)).details.finish_message == "print(f())"


# --- ids


def test_calls_without_an_id_get_one_that_is_new_and_always_the_same() -> None:
    request = Request([UserMessage("q", run_id="r")])
    data = compact(answer([call("f"), call("f"), call("g", id="given")]))
    calls = decode(data, request).message.tool_calls
    assert calls == decode(data, request).message.tool_calls
    assert len({c.id for c in calls}) == 3
    assert calls[2].id == "given"
    history = [UserMessage("q", run_id="r"), AssistantMessage(tool_calls=calls)]
    later = decode(data, Request([*history, UserMessage("q", run_id="r")])).message.tool_calls
    assert not {c.id for c in calls[:2]} & {c.id for c in later}


def test_a_repeated_call_counts_once_and_another_under_its_id_is_told_apart() -> None:
    message = plainly([call("f", id="a"), call("f", id="a"), call("f", id="a", x=1)]).message
    assert [c.args for c in message.tool_calls] == ["{}", '{"x":1}']
    assert len({c.id for c in message.tool_calls}) == 2


def test_a_tool_is_known_by_its_own_name() -> None:
    request = Request([], [ToolSpec("9 lives", "", {})])
    data = compact(answer([call(wire_tool_name("9 lives", TOOL_NAME))]))
    assert decode(data, request).message.tool_calls[0].name == "9 lives"


@pytest.mark.parametrize(
    ("args", "stored"),
    [
        (b'{"b": 1,"a":1.50}', '{"b": 1,"a":1.50}'),
        (b"null", "{}"),
        (b'"{\\"a"', '{"a'),
        (b"[1]", "[1]"),
        (b'{"a":1e999}', '{"a":1e999}'),
        (b'{"a":"\\ud800"}', '{"a":"\\ud800"}'),
    ],
)
def test_arguments_are_kept_as_they_were_written(args: bytes, stored: str) -> None:
    body = compact(answer([call("f")])).replace(b'"args":{}', b'"args":' + args)
    assert decode(body).message.tool_calls[0].args in (stored, stored.replace("d800", "fffd"))
    without = compact(answer([call("f")])).replace(b',"args":{}', b"")
    assert decode(without).message.tool_calls[0].args == "{}"


# --- arguments in pieces, as Vertex streams them where it is asked to


def piece(path: str, *, more: bool = False, **value: Any) -> dict[str, Any]:
    return {"jsonPath": path, **value, **({"willContinue": True} if more else {})}


def pieces(*args: dict[str, Any], more: bool = True, **members: Any) -> dict[str, Any]:
    called = {**members, **({"partialArgs": list(args)} if args else {})}
    return {"functionCall": {**called, **({"willContinue": True} if more else {})}}


PIECES = [
    pieces(name="f"),
    pieces(piece("$.city", stringValue="Par", more=True)),
    pieces(piece("$.city", stringValue="is"), piece("$.days[0].n", numberValue=1)),
    pieces(piece("$.days[1].n", nullValue=None), piece("$['a b']", boolValue=True)),
    pieces(more=False),
]


def test_arguments_may_come_by_their_place() -> None:
    chunks = [answer([part], None) for part in [*PIECES, call("g", id="x")]]
    outcome = drive([sse([*chunks, answer([])])])
    first, second = outcome.message.tool_calls
    assert first.arguments() == {"city": "Paris", "days": [{"n": 1}, {"n": None}], "a b": True}
    assert (first.name, second.name) == ("f", "g")
    assert outcome.told == outcome.said
    assert outcome.message.native is None


def test_arguments_that_stop_half_way_are_no_object() -> None:
    outcome = drive([sse([answer([part], None) for part in PIECES[:3]])])
    (cut,) = outcome.message.tool_calls
    assert isinstance(outcome.error, TransportError)
    assert cut.truncated
    assert '"city":"Paris"' in cut.args
    ended = drive([sse([*[answer([p], None) for p in PIECES[:3]], answer([], "MAX_TOKENS")])])
    assert ended.response is not None
    assert (ended.response.finish_reason, ended.message.tool_calls[0].truncated) == ("length", True)
    assert ended.told == ended.said


# --- text


def test_half_a_character_waits_for_the_other_half() -> None:
    halves = ["\ud83d", "\ude00 and \ud83d"]
    data = sse([answer([text(half)], None) for half in halves] + [answer([])])
    outcome = drive(bytewise(data))
    assert outcome.message.content == "\U0001f600 and \ufffd"
    assert outcome.told == outcome.said


def test_pictures_that_a_model_made_are_parts() -> None:
    message = plainly(
        [text("here"), {"inlineData": {"mimeType": "image/png", "data": "eA=="}}]
    ).message
    assert (message.content, message.parts) == ("here", (Part.image(b"x", "image/png"),))
    hidden = {"inlineData": {"mimeType": "image/png", "data": "eA=="}, "thought": True}
    assert plainly([hidden, text("a")]).message.parts == ()


def test_other_candidates_are_nobodys() -> None:
    other = {"index": 1, "content": {"parts": [text("other")]}, "finishReason": "STOP"}
    chunk = answer([text("a")])
    chunk["candidates"].append(other)
    assert decode(compact(chunk)).message.content == "a"


# --- usage


def test_thoughts_and_server_tools_are_inside_the_totals() -> None:
    counts = {
        "promptTokenCount": 10,
        "cachedContentTokenCount": 4,
        "toolUsePromptTokenCount": 5,
        "candidatesTokenCount": 3,
        "thoughtsTokenCount": 2,
    }
    usage = plainly([text("a")], usageMetadata=counts).usage
    assert usage == Usage(15, 5, cache_read_tokens=4, reasoning_tokens=2)


def test_counts_that_vanish_are_kept() -> None:
    first = answer([text("a")], None, usageMetadata={**USAGE, "thoughtsTokenCount": 1})
    last = answer([], usageMetadata={"promptTokenCount": 9, "candidatesTokenCount": None})
    response = drive([sse([first, last])]).response
    assert response is not None
    assert response.usage == Usage(9, 3, reasoning_tokens=1)


# --- endings


@pytest.mark.parametrize("stream", [False, True])
def test_a_blocked_prompt_is_an_error_that_says_why(stream: bool) -> None:
    feedback = {"blockReason": "OTHER", "blockReasonMessage": "no"}
    body = {"promptFeedback": feedback, "responseId": "r-1", "usageMetadata": USAGE}
    error: Any
    if stream:
        error = drive([sse([body])]).error
    else:
        with pytest.raises(APIError) as caught:
            decode(compact(body))
        error = caught.value
    assert isinstance(error, APIError)
    assert (error.code, error.retryable, error.request_id) == ("OTHER", False, "r-1")
    assert str(error) == "OTHER: the prompt was blocked: OTHER: no"


def test_a_stream_without_a_reason_to_end_was_cut() -> None:
    outcome = drive([sse([answer([text("Hel")], None)])])
    assert isinstance(outcome.error, TransportError)
    assert outcome.error.retryable
    assert outcome.error.partial == AssistantMessage("Hel")
    assert drive([]).error is not None
    unsaid = answer([text("a")], "FINISH_REASON_UNSPECIFIED")
    assert isinstance(drive([sse([unsaid])]).error, TransportError)


def test_what_follows_the_reason_still_counts() -> None:
    chunks = [answer([text("a")]), {"usageMetadata": {"promptTokenCount": 8}}]
    lost = TransportError("reset")
    response = drive([sse(chunks)], lost=lost).response
    assert response is not None
    assert response.usage == Usage(8, 2)


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_error_inside_a_stream_is_typed(wrapped: bool) -> None:
    said = {"error": {"code": 503, "message": "busy", "status": "UNAVAILABLE"}}
    data = sse([answer([text("a")], None), [said] if wrapped else said, answer([text("b")])])
    error = drive([data]).error
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.message) == (503, "UNAVAILABLE", "busy")
    assert error.retryable
    assert error.partial == AssistantMessage("a")


def test_an_error_event_without_json_is_an_error_too() -> None:
    error = drive([b"event: error\ndata: gone\n\n"]).error
    assert isinstance(error, APIError)
    assert error.message == "gone"


def test_a_line_that_is_no_json_ends_the_stream() -> None:
    outcome = drive([sse([answer([text("a")], None)]) + b"data: {x\n\n" + sse([answer([])])])
    assert isinstance(outcome.error, ProtocolError)
    assert outcome.error.partial == AssistantMessage("a")


def test_comments_pings_and_idle_data_change_nothing() -> None:
    noise = b": ping\n\ndata: null\n\ndata:\n\nevent: ping\ndata: x\n\n"
    data = (
        noise + sse([answer([text("a")], None)]) + noise + sse([answer([])]) + b"data: [DONE]\n\n"
    )
    assert drive(bytewise(data)).message.content == "a"
    assert drive([data]).response is not None


def test_the_last_event_may_lack_its_blank_line() -> None:
    data = sse([answer([text("a")])]).rstrip()
    assert drive([data]).response is not None
    assert isinstance(drive([data[:-5]]).error, TransportError)


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"candidates":[]}', b"<html>no</html>"])
def test_a_body_without_an_answer_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(body)


def test_an_error_in_place_of_an_answer() -> None:
    body = json.dumps([{"error": {"code": 500, "message": "no", "status": "INTERNAL"}}]).encode()
    with pytest.raises(APIError, match="500 INTERNAL: no"):
        decode(body)
    assert isinstance(drive([body]).error, APIError)
