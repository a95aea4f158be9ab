"""How Chat Completions streams end: whole, cut, or with an error."""

from __future__ import annotations

import json

import pytest

from golem.errors import APIError, ProtocolError, TransportError
from golem.model import Request
from golem_adapters.openai.dialect import dialect_named
from golem_adapters.openai.response import decode_response
from tests.adapters.driving import (
    HI,
    STOP,
    bytewise,
    delta,
    drive,
    events,
    piece,
)

# --- endings


@pytest.mark.parametrize(
    "rest",
    [
        b"",
        b"data: [DONE]",
        b"data: [DONE]\n",
        b"data: [DON",
        b'data: {"choices":[{"del',
        b": keep-alive\n\n",
        b'data: [DONE]\n\ndata: {"error":{"message":"late"}}\n\n',
        b"data: [DONE]\n\ngarbage\n\ndata: garbage\n\n",
    ],
)
def test_after_a_finish_reason_the_answer_is_whole(rest: bytes) -> None:
    data = HI + events(STOP, done=False) + rest
    for pieces in ([data], bytewise(data)):
        outcome = drive(pieces)
        assert outcome.response is not None
        assert outcome.response.message.content == "Hi"


@pytest.mark.parametrize("tail", ["\n\n", "\n", ""])
def test_a_last_event_without_its_blank_line_counts(tail: str) -> None:
    data = HI + events(STOP, done=False).rstrip() + tail.encode()
    outcome = drive([data])
    assert outcome.response is not None
    assert outcome.response.finish_reason == "stop"


def test_done_without_a_finish_reason_is_an_end_of_unknown_reason() -> None:
    outcome = drive([HI + b"data: [DONE]\n\n"])
    assert outcome.response is not None
    assert outcome.response.finish_reason == "other"


@pytest.mark.parametrize("before", [b"", b": hi\n\n", b'data: {"choices":[],"usage":{}}\n\n'])
def test_an_end_of_nothing_is_no_answer(before: bytes) -> None:
    """It would be recorded as a turn in which the model said nothing."""
    outcome = drive([before + b"data: [DONE]\n\n"])
    assert isinstance(outcome.error, TransportError)
    assert outcome.error.retryable


@pytest.mark.parametrize("end", [1, 20, 60, -20, -2, -1])
def test_a_stream_cut_anywhere_before_its_end_is_a_transport_error(end: int) -> None:
    data = HI + events(delta(tool_calls=[piece(0, "x", "f", '{"a"')]), done=False)
    for pieces in ([data[:end]], bytewise(data[:end])):
        outcome = drive(pieces)
        assert isinstance(outcome.error, TransportError)
        assert outcome.error.retryable
        # An event that only lacks its blank line is evidence, too late to be given out.
        assert outcome.said[:2] == outcome.told[:2]
        assert len(outcome.said[2]) >= len(outcome.told[2])


def test_a_cut_stream_keeps_text_thinking_and_the_calls_as_far_as_they_came() -> None:
    data = events(
        delta(reasoning="hm"),
        delta(content="Let me "),
        delta(tool_calls=[piece(0, "x", "f", '{"a":1}'), piece(1, "y", "g", '{"b"')]),
        done=False,
    )
    partial = drive([data]).error
    assert partial is not None
    assert partial.partial is not None
    assert partial.partial.content == "Let me "
    assert [block.text for block in partial.partial.thinking] == ["hm"]
    assert [(c.id, c.args, c.truncated) for c in partial.partial.tool_calls] == [
        ("x", '{"a":1}', False),
        ("y", '{"b"', True),
    ]


def test_a_lost_connection_is_the_error_unless_the_answer_was_whole() -> None:
    lost = TransportError("lost")
    outcome = drive([HI], lost=lost)
    assert outcome.error is lost
    assert outcome.message.content == "Hi"
    assert drive([HI + events(STOP, done=False)], lost=TransportError("lost")).error is None


def test_an_empty_stream_has_no_evidence() -> None:
    error = drive([b""]).error
    assert isinstance(error, TransportError)
    assert error.partial is None


# --- errors

BAD = {"message": "no", "type": "server_error", "code": "overloaded"}


@pytest.mark.parametrize(
    ("line", "status", "code", "retryable"),
    [
        ('data: {"error":{"message":"no","code":503}}', 503, "503", True),
        ('data: {"error":{"message":"no","code":"429"}}', 429, "429", True),
        ('data: {"error":{"message":"no","code":400}}', 400, "400", False),
        (
            'data: {"error":{"message":"no","type":"server_error","code":null}}',
            None,
            "server_error",
            True,
        ),
        (
            'data: {"error":{"message":"no","type":"x","code":"rate_limit_exceeded"}}',
            None,
            "rate_limit_exceeded",
            True,
        ),
        (
            'data: {"error":{"message":"no","code":"insufficient_quota","status_code":429}}',
            429,
            "insufficient_quota",
            False,
        ),
        (
            'data: {"error":{"message":"no","type":"insufficient_quota","code":null}}',
            429,
            "insufficient_quota",
            False,
        ),
        (
            'data: {"error":{"message":"no","code":"tool_use_failed","status_code":400}}',
            400,
            "tool_use_failed",
            False,
        ),
        ('data: {"error":"no"}', None, None, False),
        ('data: [{"error":{"message":"no","code":500}}]', 500, "500", True),
        ('data: {"object":"error","message":"no","type":"x","code":1300}', None, "1300", False),
        (
            'data: {"choices":[{"index":0,"delta":{},"error":{"message":"no","code":502}}]}',
            502,
            "502",
            True,
        ),
        (
            'data: {"choices":[],"error":{"message":"no","code":502}}\n\ndata: [DONE]',
            502,
            "502",
            True,
        ),
        ('event: error\ndata: {"message":"no","code":500}', 500, "500", True),
        ('event: error\ndata: {"error":{"message":"no","code":500}}', 500, "500", True),
        ("event: error\ndata: no", None, None, False),
    ],
)
def test_an_error_inside_a_stream_is_typed(
    line: str, status: int | None, code: str | None, retryable: bool
) -> None:
    for data in (HI + line.encode() + b"\n\n", HI + line.encode()):
        for pieces in ([data], bytewise(data)):
            outcome = drive(pieces)
            assert isinstance(outcome.error, APIError)
            assert (status, code) == (outcome.error.status, outcome.error.code)
            assert (outcome.error.message, outcome.error.retryable) == ("no", retryable)
            assert outcome.told == outcome.said == ("Hi", "", [])


def test_what_stands_beside_an_error_is_evidence_too() -> None:
    chunk = {**delta(content="Hi"), "error": {"message": "no", "code": 500}}
    outcome = drive([events(chunk)])
    assert isinstance(outcome.error, APIError)
    assert outcome.message.content == "Hi"


@pytest.mark.parametrize(
    "word", ["error", "insufficient_system_resource", "network_error", "abort"]
)
def test_an_answer_that_the_server_broke_off_is_an_error(word: str) -> None:
    outcome = drive([events(delta(content="Hel"), delta(word))])
    assert isinstance(outcome.error, APIError)
    assert outcome.error.retryable
    assert word in outcome.error.message
    assert outcome.message.content == "Hel"


def test_groq_tells_in_a_place_of_its_own_who_asked_and_why_it_stopped() -> None:
    first = {**delta(content="Hel"), "x_groq": {"id": "req_1"}}
    whole = drive([events(first, STOP)])
    assert whole.response is not None
    assert whole.response.details.request_id == "req_1"
    stopped = drive([events(first, {**delta(), "x_groq": {"error": "over capacity"}})])
    assert isinstance(stopped.error, APIError)
    assert stopped.error.message == "over capacity"
    assert stopped.message.content == "Hel"


@pytest.mark.parametrize("numbered", [True, False])
def test_of_several_alternatives_the_first_is_read(numbered: bool) -> None:
    choices = [
        {
            "message": {"content": text},
            "finish_reason": "stop",
            **({"index": n} if numbered else {}),
        }
        for n, text in enumerate(["one", "two"])
    ]
    answer = decode_response(
        json.dumps({"choices": choices}).encode(),
        request=Request(()),
        dialect=dialect_named("openai"),
        headers={},
        secret="",
    )
    assert answer.message.content == "one"
    streamed = [{**c, "delta": c["message"], "message": None} for c in choices]
    assert drive([events({"choices": streamed})]).message.content == "one"


@pytest.mark.parametrize(
    "line", ['data: {"choices":[{"del', "data: <html>", "data: {}{}", "data: 5", "data: [1,2]"]
)
def test_a_line_that_is_no_chunk_is_never_skipped(line: str) -> None:
    data = HI + line.encode() + b"\n\n" + events(STOP)
    for pieces in ([data], bytewise(data)):
        outcome = drive(pieces)
        assert isinstance(outcome.error, ProtocolError)
        assert outcome.message.content == "Hi"


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"<html>Sign in</html>", ProtocolError),
        (b' {"error":{"message":"no","code":500}}', APIError),
        (b'[{"error":{"message":"no","code":500}}]', APIError),
        (b'{"choices":[]}', ProtocolError),
        (b'{"choices"', ProtocolError),
    ],
)
def test_a_body_that_is_no_stream_says_what_it_is(body: bytes, kind: type[Exception]) -> None:
    for pieces in ([body], bytewise(body)):
        assert type(drive(pieces).error) is kind


@pytest.mark.parametrize(
    "line",
    [
        "data:",
        "data: null",
        ": ping",
        "event: ping\ndata: 12:00",
        "event: ping\ndata: {}",
        "retry: 5",
        "data: {}",
    ],
)
def test_keep_alives_of_every_kind_are_skipped(line: str) -> None:
    outcome = drive([HI + line.encode() + b"\n\n" + events(delta(content="!"), STOP)])
    assert outcome.error is None
    assert outcome.message.content == "Hi!"
