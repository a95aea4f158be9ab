"""What comes in from Converse: streams and plain answers, and how they end."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from golem.errors import APIError, ProtocolError, TransportError
from golem.messages import AssistantMessage, Part, Thinking, ToolCall
from golem.model import Request, TextDelta, ThinkingDelta, ToolCallDelta, ToolSpec
from golem.usage import Usage
from golem_adapters._toolkit.calls import wire_tool_name
from tests.adapters.conversing import (
    CLAUDE,
    NOVA,
    STARTED,
    Event,
    answer,
    block_events,
    decode,
    delta,
    drive,
    ended,
    framed,
    plainly,
    spelled,
    start,
    stop,
    stream_events,
)
from tests.adapters.driving import bytewise
from tests.wire.frames import event, frame

HELLO = {"text": "Hello"}
OPENED = start(0, toolUse={"toolUseId": "c1", "name": "f"})


def native_of(message: AssistantMessage) -> list[Any]:
    assert message.native is not None
    return [json.loads(bytes(item)) for item in message.native.items]


# --- what is said


def test_deltas_come_as_they_are_sent() -> None:
    thought = {"reasoningContent": {"reasoningText": {"text": "hmm!", "signature": "sig"}}}
    use = {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1}}}
    outcome = drive([framed(stream_events([thought, HELLO, use], reason="tool_use"))])
    assert outcome.deltas == [
        ThinkingDelta("hmm"),
        ThinkingDelta("!"),
        TextDelta("Hel"),
        TextDelta("lo"),
        ToolCallDelta(0, "c1", "f", '{"a'),
        ToolCallDelta(0, args='":1'),
        ToolCallDelta(0, args="}"),
    ]
    assert outcome.response is not None
    assert outcome.response.finish_reason == "tool_call"
    assert outcome.message == AssistantMessage(
        "Hello",
        tool_calls=(ToolCall.of("c1", "f", '{"a":1}'),),
        thinking=(Thinking("hmm!", signature="sig", provider="bedrock-claude"),),
    )


def test_a_call_without_arguments_is_an_empty_object() -> None:
    for pieces in ([], [delta(0, toolUse={"input": ""})], [delta(0, toolUse={"input": " "})]):
        outcome = drive([framed([OPENED, *pieces, *ended("tool_use")])])
        assert outcome.told == outcome.said
        assert outcome.said[2] == [("c1", "f", "{}")]


def test_a_call_without_an_id_gets_one_and_a_repeated_id_too() -> None:
    opened = [
        start(n, toolUse={"toolUseId": given, "name": "f"})
        for n, given in enumerate(["", "a", "a"])
    ]
    outcome = drive([framed([*opened, *ended("tool_use")])])
    ids = [call_id for call_id, _, _ in outcome.said[2]]
    assert all(ids)
    assert len(set(ids)) == 3
    assert ids[1] == "a"


def test_a_beginning_that_is_repeated_begins_nothing() -> None:
    pieces = [OPENED, OPENED, delta(0, toolUse={"input": "{}"}), OPENED, *ended("tool_use")]
    assert drive([framed(pieces)]).said[2] == [("c1", "f", "{}")]


@pytest.mark.parametrize(
    "pieces",
    [
        [start(0, toolUse={"toolUseId": "c1", "name": "f", "input": {"a": 1}})],
        [start(0, toolUse={"toolUseId": "c1", "name": "f", "input": '{"a":1}'})],
        [OPENED, delta(0, toolUse={"input": {"a": 1}})],
        [OPENED, delta(0, toolUse={"input": ' {"a":1} '}), stop(0)],
    ],
)
def test_arguments_in_one_piece_are_taken_wherever_they_stand(pieces: list[Event]) -> None:
    outcome = drive([framed([*pieces, *ended("tool_use")])])
    assert outcome.told == outcome.said
    assert outcome.said[2] == [("c1", "f", '{"a":1}')]


def test_arguments_that_are_no_object_are_kept_as_they_came() -> None:
    outcome = drive([framed([OPENED, delta(0, toolUse={"input": '{"a":'}), *ended("max_tokens")])])
    (call,) = outcome.message.tool_calls
    assert (call.args, call.truncated) == ('{"a":', True)
    assert outcome.response is not None
    assert outcome.response.finish_reason == "length"


def test_tools_have_their_own_names_again() -> None:
    request = Request((), tools=[ToolSpec("a.b", "", {})])
    assert drive([framed([OPENED, *ended()])], request=request).said[2] == [("c1", "f", "{}")]
    opened = start(0, toolUse={"toolUseId": "c1", "name": wire_tool_name("a.b")})
    assert drive([framed([opened, *ended()])], request=request).said[2] == [("c1", "a.b", "{}")]


def test_half_characters_are_put_together_and_never_lost() -> None:
    halves = [delta(0, text="a\ud83d"), delta(0, text="\ude00b\ud83d")]
    outcome = drive([framed([STARTED, *halves, *block_events(1, HELLO), *ended()])])
    assert outcome.told == outcome.said
    assert outcome.message.content == "a\U0001f600b\ufffdHello"
    thoughts = [delta(0, reasoningContent={"text": half}) for half in ("\ud83d", "\ude00")]
    assert drive([framed([*thoughts, *ended()])]).said[1] == "\U0001f600"
    args = [delta(0, toolUse={"input": half}) for half in ('{"a":"\ud83d', '\ude00"}')]
    assert drive([framed([OPENED, *args, *ended()])]).said[2][0][2] == '{"a":"\U0001f600"}'


def test_what_the_services_own_tools_did_is_no_call_and_kept_in_place() -> None:
    use = {
        "toolUse": {
            "toolUseId": "s",
            "name": "nova_grounding",
            "type": "server_tool_use",
            "input": {"q": "x"},
        }
    }
    found = {
        "toolResult": {
            "toolUseId": "s",
            "status": "success",
            "content": [{"json": {"a": 1}}, {"text": "t"}],
        }
    }
    outcome = drive([framed(stream_events([use, found, HELLO]))], model=NOVA)
    assert outcome.message.tool_calls == ()
    assert native_of(outcome.message) == [use, found, HELLO]
    assert outcome.response is not None
    assert outcome.response.finish_reason == "stop"


def test_citations_are_kept_with_their_text() -> None:
    cited = {"citationsContent": {"content": [{"text": "Hello"}], "citations": [{"title": "T"}]}}
    outcome = drive([framed(stream_events([cited, {"text": "!"}]))])
    assert outcome.message.content == "Hello!"
    assert native_of(outcome.message) == [cited, {"text": "!"}]
    assert native_of(plainly([cited, {"text": "!"}]).message) == [cited, {"text": "!"}]


def test_images_that_a_model_made_are_parts() -> None:
    pieces = [base64.b64encode(piece).decode() for piece in (b"one", b"two!")]
    events = [start(0, image={"format": "webp"})]
    events += [delta(0, image={"source": {"bytes": piece}}) for piece in pieces]
    outcome = drive([framed([*events, *block_events(1, HELLO), *ended()])])
    assert outcome.message == AssistantMessage(
        "Hello", parts=(Part.image(b"onetwo!", "image/webp"),)
    )
    whole = {
        "image": {"format": "webp", "source": {"bytes": base64.b64encode(b"onetwo!").decode()}}
    }
    assert plainly([whole, HELLO]).message == outcome.message
    stored = {"image": {"format": "png", "source": {"s3Location": {"uri": "s3://b/k"}}}}
    assert plainly([stored]).message.parts == (Part.image_url("s3://b/k", "image/png"),)
    assert plainly([{"image": {"format": "png", "error": {"message": "no"}}}]).message.parts == ()


def test_hidden_reasoning_in_pieces_is_one_block() -> None:
    pieces = [base64.b64encode(piece).decode() for piece in (b"one", b"two!")]
    events = [delta(0, reasoningContent={"redactedContent": piece}) for piece in pieces]
    (thinking,) = drive([framed([*events, *ended()])]).message.thinking
    assert base64.b64decode(thinking.redacted) == b"onetwo!"


def test_a_signature_alone_is_kept() -> None:
    events = [delta(0, reasoningContent={"signature": piece}) for piece in ("si", "g")]
    outcome = drive([framed([*events, *block_events(1, HELLO), *ended()])])
    assert outcome.message.thinking == (Thinking(signature="sig", provider="bedrock-claude"),)
    assert outcome.message.native is None


def test_blocks_and_deltas_nobody_knows_are_kept() -> None:
    events = [
        start(0, hologram={"format": "x"}),
        delta(0, hologram={"text": "a", "list": [1]}),
        delta(0, hologram={"text": "b", "list": [2], "more": None}),
        stop(0),
        *block_events(1, HELLO),
        *ended(),
    ]
    outcome = drive([framed(events)])
    whole = {"hologram": {"format": "x", "text": "ab", "list": [1, 2], "more": None}}
    assert native_of(outcome.message) == [whole, HELLO]
    assert native_of(plainly([whole, HELLO]).message) == [whole, HELLO]


def test_a_text_that_goes_on_behind_another_block_stands_there() -> None:
    events = [delta(0, text="a"), *block_events(1, {"text": "b"}), delta(0, text="c"), *ended()]
    outcome = drive([framed(events)])
    assert outcome.told == outcome.said
    assert outcome.message.content == "abc"


# --- the end


@pytest.mark.parametrize(
    ("reason", "finish"),
    [
        ("end_turn", "stop"),
        ("stop_sequence", "stop"),
        ("tool_use", "stop"),
        ("max_tokens", "length"),
        ("model_context_window_exceeded", "length"),
        ("guardrail_intervened", "content_filter"),
        ("content_filtered", "content_filter"),
        ("malformed_model_output", "other"),
        ("malformed_tool_use", "other"),
        ("brand_new", "other"),
    ],
)
def test_why_it_ended(reason: str, finish: str) -> None:
    outcome = drive([framed([*block_events(0, HELLO), *ended(reason)])])
    plain = plainly([HELLO], stopReason=reason)
    assert outcome.response is not None
    assert finish == outcome.response.finish_reason == plain.finish_reason
    assert reason == outcome.response.details.finish_reason == plain.details.finish_reason


def test_a_call_makes_a_stop_a_call() -> None:
    for reason, finish in (("end_turn", "tool_call"), ("malformed_tool_use", "other")):
        outcome = drive([framed([OPENED, *ended(reason)])])
        assert outcome.response is not None
        assert finish == outcome.response.finish_reason


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (
            {
                "inputTokens": 22,
                "outputTokens": 13,
                "cacheWriteInputTokens": 2492,
                "cacheWriteInputTokenCount": 2492,
            },
            Usage(2514, 13, 0, 2492),
        ),
        (
            {
                "inputTokens": 1,
                "outputTokens": 2,
                "cacheReadInputTokens": 3,
                "cacheWriteInputTokens": 4,
            },
            Usage(8, 2, 3, 4),
        ),
        ({"inputTokens": 1.0, "cacheReadInputTokenCount": 3}, Usage(4, 0, 3, 0)),
        ({"inputTokens": None, "outputTokens": "x", "cacheReadInputTokens": -3}, Usage()),
    ],
)
def test_the_prompt_counts_whole(counts: dict[str, Any], usage: Usage) -> None:
    assert usage == plainly([HELLO], usage=counts).usage
    stream = framed([*block_events(0, HELLO), ("messageStop", {}), ("metadata", {"usage": counts})])
    outcome = drive([stream])
    assert outcome.response is not None
    assert usage == outcome.response.usage


def test_details_say_who_answered_and_what_the_guardrail_did() -> None:
    trace = {"guardrail": {"actionReason": "masked"}, "promptRouter": {"invokedModelId": "m-1"}}
    plain = decode(spelled(answer([HELLO], trace=trace)), headers={"x-amzn-requestid": "r-1"})
    last = ("metadata", {"trace": trace, "usage": {"inputTokens": 3, "outputTokens": 2}})
    stream = framed([*block_events(0, HELLO), ("messageStop", {"stopReason": "end_turn"}), last])
    outcome = drive([stream], headers={"x-amzn-requestid": "r-1"})
    assert outcome.response == plain
    details = plain.details
    assert (details.request_id, details.model, details.finish_message) == ("r-1", "m-1", "masked")


WHOLE = framed(
    [
        STARTED,
        *block_events(0, HELLO),
        *block_events(1, {"toolUse": {"toolUseId": "c", "name": "f", "input": {"a": 1}}}),
        *ended(),
    ]
)


def test_a_stream_cut_anywhere_is_a_transport_error_with_what_came() -> None:
    whole = drive([WHOLE]).message
    between = WHOLE.rfind(b"metadata") - 12 - 1  # the end of messageStop's frame is near
    for end in range(len(WHOLE)):
        outcome = drive([WHOLE[:end]])
        if outcome.response is not None:
            assert end < between + 1
            assert outcome.message == whole
            assert outcome.response.usage == Usage()
            continue
        assert isinstance(outcome.error, TransportError)
        assert outcome.told == outcome.said
        assert whole.content.startswith(outcome.message.content)
        if end == 0:
            assert outcome.error.partial is None


def test_a_lost_connection_before_the_count_is_lost_and_behind_it_is_not() -> None:
    lost = TransportError("gone")
    uncounted = WHOLE[: -len(event(*ended()[1]))]
    assert drive([uncounted], lost=lost).error is lost
    assert drive([uncounted]).response is not None
    assert drive([WHOLE], lost=lost).response == drive([WHOLE]).response
    assert drive([WHOLE[:-5]], lost=lost).error is lost


def test_what_follows_the_count_does_not_matter() -> None:
    assert drive([WHOLE + b"garbage" * 9]).response == drive([WHOLE]).response


@pytest.mark.parametrize(
    ("name", "status", "retryable"),
    [
        ("internalServerException", 500, True),
        ("modelStreamErrorException", 424, True),
        ("validationException", 400, False),
        ("throttlingException", 429, True),
        ("serviceUnavailableException", 503, True),
        ("brandNewException", None, False),
    ],
)
@pytest.mark.parametrize("kind", ["exception", "event"])
def test_exceptions_inside_a_stream_are_typed(
    kind: str, name: str, status: int | None, retryable: bool
) -> None:
    complaint = event(name, {"message": "oh no", "originalMessage": "deep"}, kind)
    outcome = drive([framed(block_events(0, HELLO)[:2]) + complaint + WHOLE])
    error = outcome.error
    assert isinstance(error, APIError)
    assert (error.status, error.retryable) == (status, retryable)
    assert error.code == name[0].upper() + name[1:]
    assert error.message == "oh no: deep"
    assert error.partial == AssistantMessage("Hello")


def test_an_error_frame_has_its_words_in_headers() -> None:
    headers = {":message-type": "error", ":error-code": "InternalFailure", ":error-message": "boom"}
    error = drive([frame(headers, b"")], headers={"x-amzn-requestid": "r-1"}).error
    assert isinstance(error, APIError)
    assert (error.code, error.message, error.request_id) == ("InternalFailure", "boom", "r-1")


def test_an_exception_behind_the_stop_is_still_one() -> None:
    stopped = framed([*block_events(0, HELLO), ended()[0]])
    error = drive([stopped + event("throttlingException", {"message": "m"}, "exception")]).error
    assert isinstance(error, APIError)


@pytest.mark.parametrize("payload", [b"", b"nope", b"[1]", b'{"delta":'])
def test_an_event_that_is_no_object_loses_the_answer(payload: bytes) -> None:
    bad = frame({":message-type": "event", ":event-type": "contentBlockDelta"}, payload)
    outcome = drive([framed(block_events(0, HELLO)[:2]) + bad + WHOLE])
    assert isinstance(outcome.error, ProtocolError)
    assert outcome.message.content == "Hello"


def test_events_nobody_knows_and_careless_ones_are_skipped() -> None:
    odd: list[Event] = [
        ("future", {"a": 1}),
        ("contentBlockDelta", {"contentBlockIndex": 0, "delta": {}}),
        ("contentBlockDelta", {"contentBlockIndex": 0}),
        ("contentBlockDelta", {"contentBlockIndex": "x", "delta": None}),
        ("contentBlockStart", {"contentBlockIndex": 0, "start": {"reasoningContent": {}}}),
        ("contentBlockStart", {"start": None}),
        ("contentBlockStop", {"contentBlockIndex": 9}),
        ("contentBlockStop", {}),
        ("metadata", {}),
    ]
    events = [*odd, *block_events(0, HELLO), *odd[:-1], *ended()]
    outcome = drive([framed(events)])
    assert outcome.response is not None
    assert outcome.message == AssistantMessage("Hello")


# --- bodies that are no stream


def test_a_plain_body_in_place_of_a_stream_is_read() -> None:
    body = spelled(answer([HELLO]))
    for pieces in ([body], list(bytewise(body))):
        outcome = drive(pieces)
        assert outcome.told == outcome.said
        assert outcome.message.content == "Hello"


def test_an_error_or_a_page_in_place_of_a_stream_is_one() -> None:
    error = drive([b'{"message":"no token-secret-123"}'], secrets=["token-secret-123"]).error
    assert isinstance(error, APIError)
    assert error.message == "no [key]"
    page = drive([b"<html>token-secret-123</html>"], secrets=["token-secret-123"]).error
    assert isinstance(page, ProtocolError)
    assert "secret" not in str(page)


@pytest.mark.parametrize(
    "body", [b"{}", b"[]", b'{"output":{}}', b'{"output":{"message":{}}}', b"x"]
)
def test_a_body_without_an_answer_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode(body)


def test_a_careless_body_is_read_member_by_member() -> None:
    content = b'[{"text":"a\\ud800"},7,{"text":5},{"toolUse":3}]'
    body = b'{"output":{"message":{"content":%s}},"stopReason":4,"usage":[]}' % content
    response = decode(body)
    assert (response.message.content, response.finish_reason) == ("a\ufffd", "tool_call")
    assert response.usage == Usage()


def test_argument_text_of_a_plain_answer_stays_to_the_byte() -> None:
    body = spelled(answer([{"toolUse": {"toolUseId": "c", "name": "f", "input": 0}}]))
    for args in (b'{"b" : 1.50, "a":1e5}', b'{"a":1,"a":2}'):
        message = decode(body.replace(b'"input":0', b'"input":' + args)).message
        assert message.tool_calls[0].args.encode() == args
        assert message.native is None
    for args, found in ((b'"{\\"a\\""', '{"a"'), (b"null", "{}"), (b"[1]", "[1]"), (b'""', "{}")):
        message = decode(body.replace(b'"input":0', b'"input":' + args)).message
        assert message.tool_calls[0].args == found


def test_no_model_knows_more_than_its_family() -> None:
    thought = {"reasoningContent": {"redactedContent": "eA=="}}
    found = {m: plainly([thought], m).message.thinking[0].provider for m in (CLAUDE, NOVA, "m")}
    assert found == {CLAUDE: "bedrock-claude", NOVA: "bedrock-nova", "m": "bedrock"}


DEEP = [b"[" * depth + b"]" * depth for depth in (500, 100_000)]


@pytest.mark.parametrize("deep", DEEP)
@pytest.mark.parametrize(
    ("name", "payload"),
    [
        ("contentBlockDelta", b'{"delta":{"x":@}}'),
        ("contentBlockDelta", b'{"delta":{"citation":@}}'),
        ("contentBlockDelta", b'{"delta":{"toolUse":{"input":@}}}'),
        ("contentBlockDelta", b'{"delta":{"reasoningContent":@}}'),
        ("contentBlockStart", b'{"start":{"x":@}}'),
        ("contentBlockStart", b'{"start":{"toolUse":{"name":"f","input":{"a":@}}}}'),
        ("metadata", b'{"usage":@}'),
    ],
)
def test_nesting_past_every_use_ends_in_an_answer_or_a_typed_error(
    name: str, payload: bytes, deep: bytes
) -> None:
    bad = frame({":event-type": name}, payload.replace(b"@", deep))
    outcome = drive([bad + framed([*block_events(1, HELLO), *ended()])])
    assert outcome.told == outcome.said
    assert isinstance(outcome.error, ProtocolError) or outcome.message.content == "Hello"


def test_a_number_with_more_digits_than_any_reader_takes_loses_no_call() -> None:
    args = b'{"n":%s}' % (b"1" * 5000)
    body = spelled(answer([{"toolUse": {"toolUseId": "c", "name": "f", "input": 0}}]))
    (call,) = decode(body.replace(b'"input":0', b'"input":' + args)).message.tool_calls
    assert call.args.encode() == args
    event_data = b'{"delta":{"toolUse":{"input":' + json.dumps(args.decode()).encode() + b"}}}"
    piece = frame({":event-type": "contentBlockDelta"}, event_data)
    (streamed,) = drive([framed([OPENED]) + piece + framed(ended())]).message.tool_calls
    assert streamed.args == call.args
    bad = frame({":event-type": "contentBlockDelta"}, b'{"delta":{"x":%s}}' % args)
    assert drive([bad + framed([*block_events(1, HELLO), *ended()])]).message.content == "Hello"
