"""Streams and plain answers of Messages: what servers and gateways make of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.errors import APIError, ProtocolError, TransportError
from golem.messages import AssistantMessage, Thinking
from golem.model import (
    FinishReason,
    Request,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolSpec,
)
from golem.usage import Usage
from golem_adapters._toolkit.calls import wire_tool_name
from tests.adapters.messaging import (
    answer,
    block_events,
    decode,
    delta,
    drive,
    ended,
    plainly,
    sse,
    start,
    started,
    stop,
    stream_events,
)

TEXT = {"type": "text", "text": "Hello"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}
USE = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"x": "y"}]}


def test_deltas_come_as_the_pieces_do() -> None:
    thinking = {"type": "thinking", "thinking": "hm so", "signature": "sig"}
    outcome = drive([sse(stream_events([thinking, TEXT, CALL], reason="tool_use"))])
    assert outcome.deltas == [
        ThinkingDelta("hm "),
        ThinkingDelta("so"),
        TextDelta("Hel"),
        TextDelta("lo"),
        ToolCallDelta(0, "toolu_1", "f", '{"a'),
        ToolCallDelta(0, args='":1'),
        ToolCallDelta(0, args="}"),
    ]
    assert outcome.message.thinking == (Thinking("hm so", signature="sig", provider="anthropic"),)
    assert outcome.message.native is None


def test_a_call_without_input_gets_empty_arguments() -> None:
    bare = {"type": "tool_use", "id": "t", "name": "f"}  # llama.cpp leaves the input out
    for opened in (bare, {**bare, "input": {}}, {**bare, "input": ""}, {**bare, "input": None}):
        for pieces in ([], [delta(0, "input_json_delta", partial_json=" ")]):
            outcome = drive([sse([started(), start(0, opened), *pieces, stop(0), *ended()])])
            assert outcome.said[2] == outcome.told[2] == [("t", "f", "{}")]


def test_a_call_may_come_whole_where_it_begins() -> None:
    outcome = drive([sse([started(), start(0, CALL), stop(0), *ended("tool_use")])])
    assert outcome.said[2] == outcome.told[2] == [("toolu_1", "f", '{"a":1}')]
    both = [start(0, CALL), delta(0, "input_json_delta", partial_json='{"b":2}'), stop(0)]
    outcome = drive([sse([started(), *both, *ended("tool_use")])])
    assert outcome.said[2] == outcome.told[2] == [("toolu_1", "f", '{"b":2}')]


def test_calls_without_ids_get_some() -> None:
    blocks = [{**CALL, "id": ""}, {**CALL, "id": ""}]
    for message in (plainly(blocks).message, drive([sse(stream_events(blocks))]).message):
        ids = [call.id for call in message.tool_calls]
        assert len(set(ids)) == 2
        assert all(ids)


def test_the_same_call_twice_is_one_and_another_under_its_id_is_told_apart() -> None:
    for repeat, count in ((CALL, 1), ({**CALL, "input": {"a": 2}}, 2)):
        outcome = drive([sse(stream_events([CALL, repeat, TEXT]))])
        assert len({name for name, _, _ in outcome.said[2]}) == count
        assert outcome.told == outcome.said
        assert len(plainly([CALL, repeat, TEXT]).message.tool_calls) == count


def test_pieces_of_calls_that_take_turns_find_their_call() -> None:
    events = [
        start(0, {**CALL, "input": {}}),
        start(1, {**CALL, "id": "toolu_2", "input": {}}),
        *(delta(n, "input_json_delta", partial_json=piece) for piece in '{"a"' for n in (0, 1)),
        *(delta(n, "input_json_delta", partial_json=":1}") for n in (0, 1)),
    ]
    outcome = drive([sse([started(), *events, *ended("tool_use")])])
    assert outcome.said[2] == [("toolu_1", "f", '{"a":1}'), ("toolu_2", "f", '{"a":1}')]
    assert outcome.told == outcome.said


def test_texts_that_take_turns_are_told_in_the_order_in_which_they_came() -> None:
    events = [
        start(0, {"type": "text", "text": "a"}),
        start(1, {"type": "text", "text": "b"}),
        delta(0, "text_delta", text="c"),
        delta(1, "text_delta", text="d"),
    ]
    outcome = drive([sse([started(), *events, *ended()])])
    assert outcome.told == outcome.said == ("abcd", "", [])


def test_names_come_back_as_the_tools_have_them() -> None:
    request = Request((), [ToolSpec("get it", "", {})])
    blocks = [{**CALL, "name": wire_tool_name("get it")}]
    outcome = drive([sse(stream_events(blocks))], request=request)
    assert outcome.message.tool_calls[0].name == "get it"
    assert outcome.told == outcome.said


def test_a_character_may_be_cut_in_two() -> None:
    halves = [delta(0, "text_delta", text=half) for half in ("a\ud83d", "\ude00b", "\ud83d")]
    outcome = drive([sse([started(), start(0, {"type": "text", "text": ""}), *halves, *ended()])])
    assert outcome.told[0] == outcome.said[0] == "a\U0001f600b\ufffd"


# --- what is kept


def test_what_server_side_tools_did_is_kept_and_not_told() -> None:
    streamed = drive([sse(stream_events([USE, FOUND, TEXT]))]).message
    for message in (streamed, plainly([USE, FOUND, TEXT]).message):
        assert (message.content, message.tool_calls) == ("Hello", ())
        assert message.native is not None
        kept = [json.loads(bytes(item)) for item in message.native.items]
        assert kept == [USE, FOUND, TEXT]


def test_citations_and_summaries_are_kept() -> None:
    cited = {**TEXT, "citations": [{"type": "x", "n": 1}, {"type": "y"}]}
    compaction = {"type": "compaction", "content": "so far", "encrypted_content": "e"}
    events = [
        start(0, {"type": "compaction", "content": None}),
        delta(0, "compaction_delta", content="so "),
        delta(0, "compaction_delta", content="far", encrypted_content="e"),
        stop(0),
        *block_events(1, cited),
    ]
    message = drive([sse([started(), *events, *ended()])]).message
    assert message.native is not None
    kept = [json.loads(bytes(item)) for item in message.native.items]
    assert kept == [compaction, cited]
    assert message.content == "Hello"


@pytest.mark.parametrize(
    ("blocks", "kept"),
    [
        ([TEXT, CALL], False),
        ([{"type": "text", "text": ""}, CALL], False),
        ([{**TEXT, "citations": None}, {**CALL, "caller": {"type": "direct"}}], False),
        ([CALL, TEXT], True),
        ([TEXT, TEXT], True),
        ([{**CALL, "toolset_name": "browser"}], True),
        ([{**CALL, "caller": {"type": "code_execution_20260120", "tool_id": "s"}}], True),
        ([TEXT, {"type": "thinking", "thinking": "t", "signature": "s"}], True),
        ([{"type": "new"}], True),
    ],
)
def test_blocks_are_kept_only_where_the_fields_cannot_say_the_same(
    blocks: list[dict[str, Any]], kept: bool
) -> None:
    assert (plainly(blocks).message.native is not None) is kept
    assert (drive([sse(stream_events(blocks))]).message.native is not None) is kept


def test_blocks_that_are_none_are_skipped() -> None:
    found = decode(json.dumps(answer([1, None, [], TEXT])).encode())  # type: ignore[list-item]
    assert found.message == AssistantMessage("Hello")


# --- endings


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("refusal", "content_filter"),
        ("pause_turn", "other"),
        ("compaction", "other"),
        ("of the future", "other"),
        (None, "other"),
        ("tool_use", "stop"),
    ],
)
def test_every_reason_has_its_finish(reason: str | None, finish: FinishReason) -> None:
    streamed = drive([sse(stream_events([TEXT], reason=reason))]).response
    for response in (streamed, plainly([TEXT], stop_reason=reason)):
        assert response is not None
        assert response.finish_reason == finish
        assert response.details.finish_reason == (reason or "")


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("tool_use", "tool_call"),
        ("end_turn", "tool_call"),
        (None, "tool_call"),
        ("max_tokens", "length"),
        ("refusal", "content_filter"),
    ],
)
def test_a_turn_with_calls_ended_by_them_unless_it_was_cut(
    reason: str | None, finish: FinishReason
) -> None:
    assert plainly([CALL], stop_reason=reason).finish_reason == finish


def test_a_refusal_says_why() -> None:
    details = {"type": "refusal", "category": "cyber", "explanation": "No."}
    streamed = drive([sse(stream_events([TEXT], reason="refusal", stop_details=details))]).response
    for response in (streamed, plainly([TEXT], stop_reason="refusal", stop_details=details)):
        assert response is not None
        assert response.details.finish_message == "cyber: No."


def test_counts_of_the_end_go_over_those_of_the_beginning() -> None:
    begin = started(
        usage={"input_tokens": 3, "cache_read_input_tokens": 10, "cache_creation_input_tokens": 4}
    )
    end = {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {
            "input_tokens": 5,
            "cache_read_input_tokens": None,
            "output_tokens": 7,
            "output_tokens_details": {"thinking_tokens": 2},
        },
    }
    response = drive([sse([begin, *block_events(0, TEXT), end, ended()[1]])]).response
    assert response is not None
    assert response.usage == Usage(19, 7, 10, 4, 2)


@pytest.mark.parametrize(
    ("usage", "counted"),
    [
        ({}, Usage()),
        ({"input_tokens": None, "output_tokens": "x", "cache_creation": 3}, Usage()),
        ({"input_tokens": -1, "output_tokens": 2.0}, Usage(0, 2)),
        (
            {"cache_creation": {"ephemeral_5m_input_tokens": 2, "ephemeral_1h_input_tokens": 3}},
            Usage(5, 0, 0, 5),
        ),
    ],
)
def test_odd_counts_count_as_nothing(usage: dict[str, Any], counted: Usage) -> None:
    assert plainly([TEXT], usage=usage).usage == counted


# --- failures


def test_an_error_inside_a_stream_is_typed_and_keeps_what_came() -> None:
    said = {"type": "overloaded_error", "message": "Overloaded"}
    event = {"type": "error", "error": said, "request_id": "req_1"}
    outcome = drive([sse([started(), *block_events(0, TEXT)[:2], event, *ended()])])
    error = outcome.error
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.message) == (529, "overloaded_error", "Overloaded")
    assert error.retryable
    assert error.request_id == "req_1"
    assert error.partial == AssistantMessage("Hel")


@pytest.mark.parametrize(
    "data",
    [
        b'event: error\ndata: {"error":{"type":"api_error","message":"no"}}\n\n',
        b'data: {"type":"error","error":{"type":"api_error","message":"no"}}\n\n',
        b'data: {"error":{"type":"api_error","message":"no"}}\n\n',
        b'{"type":"error","error":{"type":"api_error","message":"no"}}',
    ],
)
def test_errors_come_in_every_dress(data: bytes) -> None:
    error = drive([data]).error
    assert isinstance(error, APIError)
    assert (error.message, error.status, error.retryable) == ("no", 500, True)


def test_an_error_of_plain_words() -> None:
    error = drive([b"event: error\ndata: sorry\n\n"]).error
    assert isinstance(error, APIError)
    assert (error.message, error.retryable) == ("sorry", False)


@pytest.mark.parametrize("end", [[], ended()[:1]])
def test_without_its_end_a_stream_was_cut(end: list[dict[str, Any]]) -> None:
    outcome = drive([sse([started(), *block_events(0, TEXT), *end]), b"data: [DONE]\n\n"])
    assert isinstance(outcome.error, TransportError)
    assert outcome.error.retryable
    assert outcome.error.partial == AssistantMessage("Hello")


def test_a_cut_call_is_evidence_and_no_call_to_run() -> None:
    outcome = drive([sse([started(), *block_events(0, CALL)[:3]])])
    assert isinstance(outcome.error, TransportError)
    assert outcome.message.tool_calls[0].args == '{"a'
    assert outcome.message.tool_calls[0].truncated


def test_a_whole_answer_survives_a_connection_that_is_lost_after_it() -> None:
    data = sse(stream_events([TEXT]))
    outcome = drive([data], lost=TransportError("gone"))
    assert outcome.message == AssistantMessage("Hello")
    assert drive([data[:-30]], lost=TransportError("gone")).error is not None


def test_a_repeated_beginning_changes_nothing() -> None:
    events = stream_events([TEXT])
    again = [events[0], *events[:3], events[0], *events[3:]]
    assert drive([sse(again)]).message == AssistantMessage("Hello")


def test_another_answer_replaces_one_of_which_nothing_was_told() -> None:
    first = [started(id="msg_0"), start(0, {"type": "text", "text": ""})]
    outcome = drive([sse([*first, *stream_events([TEXT])])])
    assert outcome.response is not None
    assert outcome.response.details.response_id == "msg_1"
    assert outcome.message == AssistantMessage("Hello")


def test_another_answer_behind_half_a_told_one_is_a_lost_stream() -> None:
    first = [started(id="msg_0"), *block_events(0, CALL)[:4]]
    outcome = drive([sse([*first, *stream_events([TEXT])])])
    assert isinstance(outcome.error, TransportError)
    assert outcome.error.partial is not None
    assert outcome.error.partial.tool_calls[0].args == '{"a":1'
    assert outcome.told == outcome.said


def test_a_line_that_is_no_json_loses_the_rest() -> None:
    data = sse([started(), *block_events(0, TEXT)[:2]]) + b"data: {oops\n\n" + sse(ended())
    outcome = drive([data])
    assert isinstance(outcome.error, ProtocolError)
    assert "{oops" in str(outcome.error)
    assert outcome.error.partial == AssistantMessage("Hel")


def test_keep_alives_are_no_data() -> None:
    idle = b": ping\n\nevent: ping\ndata: -\n\ndata: null\n\ndata:\n\n"
    assert drive([idle, sse(stream_events([TEXT])), idle]).message == AssistantMessage("Hello")


def test_a_plain_body_where_a_stream_was_asked_for() -> None:
    outcome = drive([json.dumps(answer([TEXT, CALL], stop_reason="tool_use")).encode()])
    assert outcome.response is not None
    assert outcome.told == outcome.said
    assert outcome.said[0] == "Hello"


@pytest.mark.parametrize(
    "body", [b"", b"<html>bad gateway</html>", b"[]", b"{}", b'{"content":null}', b'{"content":1}']
)
def test_a_body_without_an_answer_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(body)


def test_an_error_in_place_of_an_answer() -> None:
    body = b'{"type":"error","error":{"type":"rate_limit_error","message":"slow key-12345678"}}'
    with pytest.raises(APIError, match=r"429 rate_limit_error: slow \[key\]") as caught:
        decode(body, secret="key-12345678")
    assert caught.value.retryable
