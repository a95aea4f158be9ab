"""What a Responses answer becomes, and what the stream's decoder makes of odd servers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.errors import APIError, ProtocolError, TransportError
from golem.messages import Thinking
from golem.model import Request, Response, TextDelta, ThinkingDelta, ToolCallDelta, ToolSpec
from golem.usage import Usage
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters.openai_responses.dialect import dialect_named
from golem_adapters.openai_responses.response import decode_response
from tests.adapters.driving import Outcome, drive_responses
from tests.adapters.responding import added, ending, item_events, response, sse, stream_events

Item = dict[str, Any]


def text(words: str, id: str = "msg_1", **members: Any) -> Item:
    content = [{"type": "output_text", "text": words, "annotations": []}]
    return {"type": "message", "id": id, "role": "assistant", "content": content, **members}


def call(id: str = "call_1", args: str = "{}", **members: Any) -> Item:
    item = {"type": "function_call", "id": f"fc_{id}", "call_id": id, "name": "f"}
    return {**item, "arguments": args, "status": "completed", **members}


def reasoning(*parts: str, **members: Any) -> Item:
    summary = [{"type": "summary_text", "text": part} for part in parts]
    return {"type": "reasoning", "id": "rs_1", "summary": summary, **members}


def decoded(body: Any, **options: Any) -> Response:
    return decode_response(
        body if isinstance(body, bytes) else json.dumps(body).encode(),
        request=Request((), **options),
        dialect=dialect_named("openai"),
        headers={"x-request-id": "req-1"},
        secret="",
    )


def streamed(*events: Item) -> Outcome:
    return drive_responses([sse(events)])


# --- what an answer says


def test_thinking_is_the_summary_with_its_seal() -> None:
    found = decoded(response([reasoning("One.", "Two.", encrypted_content="enc"), text("x")]))
    assert found.message.thinking == (
        Thinking("One.\n\nTwo.", signature="enc", provider="openai-responses", id="rs_1"),
    )
    sealed = decoded(response([reasoning(encrypted_content="enc"), text("x")]))
    assert sealed.message.thinking == (
        Thinking(redacted="enc", provider="openai-responses", id="rs_1"),
    )


@pytest.mark.parametrize(
    ("members", "finish", "word"),
    [
        ({}, "stop", "completed"),
        ({"output": [call()]}, "tool_call", "completed"),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}},
            "length",
            "max_output_tokens",
        ),
        (
            {"status": "incomplete", "incomplete_details": {"reason": "content_filter"}},
            "content_filter",
            "content_filter",
        ),
        ({"status": "incomplete", "incomplete_details": None}, "other", "incomplete"),
        ({"status": "queued", "output": []}, "other", "queued"),
        ({"status": None}, "stop", "completed"),
    ],
)
def test_status_and_reason_tell_why_the_turn_ended(members: Any, finish: str, word: str) -> None:
    found = decoded({**response([text("x")]), **members})
    assert (finish, word) == (found.finish_reason, found.details.finish_reason)


def test_a_refusal_is_told_and_is_no_answer() -> None:
    refused = {**text(""), "content": [{"type": "refusal", "refusal": "No."}]}
    found = decoded(response([refused]))
    assert (found.message.content, found.finish_reason) == ("No.", "content_filter")
    assert found.details.finish_message == "refusal: No."


def test_usage_is_read_with_and_without_details() -> None:
    usage = {
        "input_tokens": 9,
        "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
        "output_tokens": 7,
        "output_tokens_details": {"reasoning_tokens": 5},
    }
    assert decoded(response([text("x")], usage=usage)).usage == Usage(9, 7, 4, 2, 5)
    bare = {"input_tokens": 9, "output_tokens": 7, "input_tokens_details": None}
    assert decoded(response([text("x")], usage=bare)).usage == Usage(9, 7)
    assert decoded(response([text("x")], usage=None)).usage == Usage()


def test_details_say_who_answered() -> None:
    details = decoded(response([text("x")])).details
    assert (details.response_id, details.model, details.request_id) == ("resp_1", "m-1", "req-1")


def test_tools_keep_the_names_that_the_program_gave_them() -> None:
    tool = ToolSpec("get weather", "", {})
    found = decoded(response([call(name=wire_tool_name("get weather"))]), tools=[tool])
    assert found.message.tool_calls[0].name == "get weather"


def test_calls_without_ids_or_with_the_same_get_ids_of_their_own() -> None:
    bare = {name: value for name, value in call().items() if name not in ("id", "call_id")}
    ids = [c.id for c in decoded(response([bare, bare, call(), call()])).message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == 4
    assert ids[2] == "call_1"


def test_a_number_past_every_range_spoils_nothing() -> None:
    body = json.dumps(response([text("Hello", score=7)])).replace("7", "1e999", 1)
    found = decoded(body.encode())
    assert found.message.content == "Hello"
    assert found.message.native is not None
    assert b"1e999" in bytes(found.message.native.items[0])


# --- failures


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"status": "failed", "error": {"code": "server_error", "message": "oops"}}, "oops"),
        ({"status": "failed", "error": None}, "the provider ended the response as failed"),
        ({"status": "cancelled"}, "the provider ended the response as cancelled"),
        ({"error": {"message": "no such model", "code": "model_not_found"}}, "no such model"),
        ({"error": "broken"}, "broken"),
    ],
)
def test_a_response_that_failed_is_an_error(body: Item, message: str) -> None:
    with pytest.raises(APIError) as caught:
        decoded(body)
    assert caught.value.message == message
    assert caught.value.request_id == "req-1"


def test_a_failed_answer_keeps_what_it_had_said() -> None:
    with pytest.raises(APIError) as caught:
        decoded(response([text("Hel")], status="failed", error={"message": "x"}))
    assert caught.value.partial is not None
    assert caught.value.partial.content == "Hel"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"null", b"{}", b"1", b'{"object":"x"}'])
def test_a_body_without_an_answer_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decoded(body)


@pytest.mark.parametrize(
    ("event", "code", "retryable"),
    [
        ({"type": "error", "code": "server_error", "message": "no"}, "server_error", True),
        ({"type": "error", "error": {"code": "rate_limit_exceeded", "message": "no"}}, None, True),
        ({"type": "error", "code": "invalid_prompt", "message": "no"}, "invalid_prompt", False),
        ({"type": "error", "code": "insufficient_quota", "message": "no"}, None, False),
        ({"error": {"code": "server_error", "message": "no"}}, "server_error", True),
    ],
)
def test_an_error_event_is_typed_and_keeps_what_had_come(
    event: Item, code: str | None, retryable: bool
) -> None:
    begun = item_events(0, text("Hello"))[:2]
    outcome = drive_responses([sse(begun), f"data: {json.dumps(event)}\n\n".encode()])
    assert isinstance(outcome.error, APIError)
    assert "no" in outcome.error.message
    assert code in (None, outcome.error.code)
    assert outcome.error.retryable is retryable
    assert outcome.message.content == "Hel"


def test_an_event_named_error_may_hold_anything() -> None:
    for data in (b'{"message":"no"}', b"no", b'{"type":"overloaded","message":"no"}'):
        outcome = drive_responses([b"event: error\ndata: " + data + b"\n\n"])
        assert isinstance(outcome.error, APIError)
        assert "no" in outcome.error.message


def test_done_is_no_end() -> None:
    outcome = drive_responses([sse(item_events(0, text("Hello"))), b"data: [DONE]\n\n"])
    assert isinstance(outcome.error, TransportError)
    assert outcome.message.content == "Hello"


def test_a_line_that_is_no_json_spoils_the_stream() -> None:
    outcome = drive_responses([b"data: {]\n\n" + sse(stream_events([text("x")]))])
    assert isinstance(outcome.error, ProtocolError)


def test_keep_alives_and_unknown_events_are_skipped() -> None:
    odd = b": hi\n\ndata:\n\nevent: ping\ndata: x\n\ndata: null\n\n"
    odd += b'event: response.x\ndata: {"type":"response.x","delta":"no"}\n\n'
    outcome = drive_responses([odd + sse(stream_events([text("Hello")])) + b"data: [DONE]\n\n"])
    assert outcome.message.content == "Hello"
    assert outcome.told == outcome.said


def test_a_connection_lost_after_the_last_event_loses_nothing() -> None:
    outcome = drive_responses([sse(stream_events([text("x")]))], lost=TransportError("gone"))
    assert outcome.response is not None


def test_the_last_event_without_its_blank_line_counts() -> None:
    outcome = drive_responses([sse(stream_events([text("x")])).rstrip()])
    assert outcome.message.content == "x"
    assert outcome.response is not None


def test_a_plain_body_where_a_stream_was_asked_for_is_read_too() -> None:
    outcome = drive_responses([json.dumps(response([text("Hello")])).encode()])
    assert outcome.deltas == [TextDelta("Hello")]


# --- streams


def test_deltas_come_as_the_server_sends_them() -> None:
    output = [reasoning("ab", "c"), text("Hello"), call(args='{"a":1}')]
    outcome = drive_responses([sse(stream_events(output, 2))])
    assert outcome.deltas == [
        *(ThinkingDelta(piece) for piece in ("ab", "\n\nc")),
        *(TextDelta(piece) for piece in ("He", "ll", "o")),
        ToolCallDelta(0, "call_1", "f", '{"'),
        *(ToolCallDelta(0, args=piece) for piece in ('a"', ":1", "}")),
    ]


def test_messages_that_come_interleaved_are_told_one_after_the_other() -> None:
    first, second = item_events(0, text("Hello", "msg_1")), item_events(1, text("World", "msg_2"))
    mixed = [first[0], second[0], second[1], first[1], second[2], *first[2:], *second[3:]]
    outcome = streamed(*mixed, ending([text("Hello", "msg_1"), text("World", "msg_2")]))
    assert outcome.told == outcome.said
    assert outcome.message.content == "HelloWorld"


def test_a_pair_of_surrogates_that_the_server_cut_is_one_character() -> None:
    where = {"output_index": 0, "item_id": "msg_1"}
    name = "response.output_text.delta"
    halves = [{"type": name, "delta": half, **where} for half in ("a\ud83d", "\ude00b")]
    outcome = streamed(added(0, text("")), *halves, ending([text("a\U0001f600b")]))
    assert outcome.message.content == "a\U0001f600b"
    assert outcome.told == outcome.said


def test_what_was_told_stays_told_when_the_end_says_otherwise() -> None:
    events = item_events(0, text("Hello"))
    outcome = streamed(*events, ending([text("Goodbye")]))
    assert outcome.message.content == "Hello"
    assert outcome.told == outcome.said
    assert outcome.message.native is None


def test_an_end_without_output_keeps_the_items_that_came_whole() -> None:
    sealed = reasoning("plan", encrypted_content="enc")
    events = [*item_events(0, sealed), *item_events(1, text("Hello"))]
    outcome = streamed(*events, ending([]))
    assert outcome.message.thinking[0].signature == "enc"
    assert outcome.message.native is not None
    assert [sealed, text("Hello")] == [json.loads(bytes(i)) for i in outcome.message.native.items]


def test_reasoning_stays_encrypted_where_the_last_event_leaves_that_out() -> None:
    sealed, bare = reasoning("plan", encrypted_content="whole"), reasoning("plan")
    outcome = streamed(*item_events(0, sealed), *item_events(1, call()), ending([bare, call()]))
    assert outcome.response is not None
    assert outcome.response.message.thinking[0].signature == "whole"
    native = outcome.response.message.native
    assert native is not None
    assert json.loads(bytes(native.items[0])) == sealed


def test_the_seal_is_that_of_the_whole_item() -> None:
    sealed = reasoning(encrypted_content="whole")
    early = added(0, sealed)
    early["item"]["encrypted_content"] = "early"
    done = {"type": "response.output_item.done", "output_index": 0, "item": sealed}
    outcome = streamed(early, done, *item_events(1, text("x")), ending([]))
    assert outcome.message.thinking[0].redacted == "whole"


def test_ids_that_change_from_event_to_event_do_no_harm() -> None:
    events = stream_events([text("Hello"), call(args='{"a":1}')])
    for number, event in enumerate(events):
        if "item_id" in event:
            event["item_id"] = f"x{number}"
        if "item" in event:
            event["item"] = {**event["item"], "id": f"y{number}"}
    outcome = streamed(*events)
    assert outcome.message.content == "Hello"
    assert [(c.id, c.args) for c in outcome.message.tool_calls] == [("call_1", '{"a":1}')]
    assert outcome.told == outcome.said


def test_calls_that_are_open_together_under_one_index_stay_apart() -> None:
    first, second = item_events(0, call("a", '{"n":1}')), item_events(0, call("b", '{"n":2}'))
    mixed = [first[0], second[0], *second[1:4], *first[1:], *second[4:]]
    outcome = streamed(*mixed, ending([]))
    assert [(c.id, c.args) for c in outcome.message.tool_calls] == [
        ("a", '{"n":1}'),
        ("b", '{"n":2}'),
    ]
    assert outcome.told == outcome.said


def test_a_call_is_cut_off_where_the_answer_was() -> None:
    events = item_events(0, call(args='{"a":1}'))[:2]
    outcome = streamed(
        *events,
        ending([], status="incomplete", incomplete_details={"reason": "max_output_tokens"}),
    )
    assert outcome.response is not None
    assert outcome.response.finish_reason == "length"
    assert outcome.message.tool_calls[0].args == '{"a'
    assert outcome.message.tool_calls[0].truncated


def test_a_call_without_argument_text_has_empty_arguments_once_it_is_whole() -> None:
    outcome = streamed(*item_events(0, call(args="")), ending([]))
    assert outcome.message.tool_calls[0].args == "{}"
    cut = streamed(added(0, call(args="")))
    assert cut.message.tool_calls[0].args == ""
    open_end = streamed(added(0, call(args="")), ending([]))
    assert open_end.message.tool_calls[0].args == "{}"


def test_a_call_without_status_that_an_answer_was_cut_in_is_not_one_without_arguments() -> None:
    cut = {name: value for name, value in call(args="").items() if name != "status"}
    body = response(
        [{**cut, "call_id": "a"}, {**cut, "call_id": "b", "id": "fc_2"}],
        status="incomplete",
        incomplete_details={"reason": "max_output_tokens"},
    )
    assert [c.args for c in decoded(body).message.tool_calls] == ["{}", ""]


def test_half_a_character_is_told_before_the_message_after_it() -> None:
    first = item_events(0, {**text("ab"), "id": "m1"})
    half = {**first[1], "delta": "x\ud83d"}
    second = item_events(1, {**text("cd"), "id": "m2"})
    outcome = streamed(first[0], half, *second, first[-1], ending([]))
    assert outcome.message.content == "x\ufffdcd"
    assert outcome.told == outcome.said
