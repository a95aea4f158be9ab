"""Streams as servers really send them: calls, reasoning, errors, odd shapes, every ending."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.codec import dump_message, load_message
from golem.errors import APIError, ProtocolError, TransportError
from golem.messages import AssistantMessage, Part, Thinking
from golem.model import Request, TextDelta, ThinkingDelta, ToolCallDelta, ToolSpec
from golem.usage import Usage
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters.openai.dialect import dialect_named
from golem_adapters.openai.response import decode_response
from golem_adapters.openai.stream import ChatStream
from tests.adapters.driving import Outcome, bytewise, cut, delta, drive, events

STOP = delta("stop")
CALLS = delta("tool_calls")


def piece(
    index: int | None = None, id: str | None = None, name: str | None = None, args: Any = None
) -> dict[str, Any]:
    """A piece of a tool call with only the members that are given."""
    function = {"name": name, "arguments": args}
    members = {
        "index": index,
        "id": id,
        "function": {k: v for k, v in function.items() if v is not None},
    }
    return {k: v for k, v in members.items() if v is not None}


def calls_of(*chunks: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Name and arguments of the calls that these pieces make, however the stream is cut."""
    data = events(*[delta(tool_calls=pieces) for pieces in chunks], CALLS)
    outcome = drive([data])
    assert outcome.shape == drive(bytewise(data)).shape
    assert outcome.told == outcome.said
    _, _, calls = outcome.said
    ids = [call[0] for call in calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    return [(name, args) for _, name, args in calls]


ONE = [("f", '{"a":1}')]
TWO = [("f", '{"a":1}'), ("g", '{"b":2}')]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param([[piece(0, "x", "f", '{"a":')], [piece(0, args="1}")]], ONE, id="by index"),
        pytest.param([[piece(0, "x", "f", '{"a":1}')]], ONE, id="whole"),
        pytest.param(
            [
                [piece(0, "x", "f", '{"a"'), piece(1, "y", "g", '{"b"')],
                [piece(1, args=":2}")],
                [piece(0, args=":1}")],
            ],
            TWO,
            id="interleaved",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":1}')], [piece(0, "y", "g", '{"b":2}')]],
            TWO,
            id="a new id at the same index",
        ),
        pytest.param(
            [
                [piece(0, "x", "f", '{"a"')],
                [piece(0, args=":1}")],
                [piece(0, "y", "g")],
                [piece(0, args='{"b":2}')],
            ],
            TWO,
            id="a new id at the same index, in pieces",
        ),
        pytest.param(
            [[piece(0, "", "f", '{"a":1}')], [piece(0, "", "g", '{"b":2}')]],
            TWO,
            id="no ids, every index 0",
        ),
        pytest.param(
            [[piece(None, "x", "f", '{"a":')], [piece(None, "x", args="1}")]], ONE, id="by id"
        ),
        pytest.param(
            [
                [piece(None, "x", "f", '{"a"')],
                [piece(None, "y", "g", '{"b"')],
                [piece(None, "x", args=":1}")],
                [piece(None, "y", args=":2}")],
            ],
            TWO,
            id="by id, interleaved",
        ),
        pytest.param(
            [[piece(None, "x", "f", '{"a":')], [piece(args="1}")]], ONE, id="the last call"
        ),
        pytest.param(
            [[piece(name="f", args='{"a":1}')], [piece(name="g", args='{"b":2}')]],
            TWO,
            id="neither index nor id",
        ),
        pytest.param(
            [[piece(name="f", args='{"a":1}'), piece(name="g", args='{"b":2}')]],
            TWO,
            id="neither, in one chunk",
        ),
        pytest.param(
            [
                [piece(name="f", args='{"a"'), piece(name="g", args='{"b"')],
                [piece(args=":1}"), piece(args=":2}")],
            ],
            TWO,
            id="by place",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":')], [piece(0, "x", "f", "1}")]],
            ONE,
            id="id and name repeated",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":')], [piece(0, "z", args="1}")]],
            ONE,
            id="a random id in every piece",
        ),
        pytest.param(
            [[piece(None, "x", "f", '{"a":')], [piece(None, "z", args="1}")]],
            ONE,
            id="the same without index",
        ),
        pytest.param(
            [[piece(0, None, "f", '{"a":')], [piece(0, None, "f", "1}")]],
            ONE,
            id="the name repeated",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":')], [piece(0, "", "", "1}")]],
            ONE,
            id="empty id and name after the first",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":1}')], [piece(1, "x", "g", '{"b":2}')]],
            TWO,
            id="one id for two calls",
        ),
        pytest.param(
            [[piece(0, "x", "f")], [piece(0, args='{"a":1}')], [piece(1, "y", "g", '{"b":2}')]],
            TWO,
            id="name first",
        ),
        pytest.param(
            [[piece(0, "x", args='{"a":')], [piece(0, name="f", args="1}")]], ONE, id="name late"
        ),
        pytest.param(
            [[piece(3, "x", "f", '{"a":1}')], [piece(7, "y", "g", '{"b":2}')]],
            TWO,
            id="indexes with gaps",
        ),
        pytest.param([[piece(0, "x", "f", {"a": 1})]], ONE, id="arguments as an object"),
        pytest.param([[piece(0, "x", "f")]], [("f", "{}")], id="no arguments"),
        pytest.param([[piece(0, "x", "f", "")]], [("f", "{}")], id="empty arguments"),
        pytest.param(
            [[piece(0, "x", "f", " ")], [piece(0, args="\n")]], [("f", "{}")], id="blank arguments"
        ),
        pytest.param(
            [[piece(0, "x", "f", " ")], [piece(0, args='\n{"a":1}')], [piece(0, args=" \n")]],
            ONE,
            id="blanks around",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a": ')], [piece(0, args=' "b "')], [piece(0, args=" }")]],
            [("f", '{"a":  "b " }')],
            id="blanks inside",
        ),
        pytest.param([[piece(0, "x", "f", '{"a":')]], [("f", '{"a":')], id="cut off"),
        pytest.param(
            [[piece(0, "x", "f", '{"a":1}')], [piece(0, "", "", "")]],
            ONE,
            id="an empty piece at the end",
        ),
        pytest.param(
            [[{"id": "", "function": {"name": "", "arguments": ""}}]], [], id="nothing at all"
        ),
        pytest.param(
            [[{"index": "0", "id": 5, "function": {"name": "f", "arguments": '{"a":1}'}}]],
            ONE,
            id="index and id of other types",
        ),
        pytest.param(
            [[{"index": 0, "id": "x", "type": "custom", "custom": {"name": "f", "input": "free"}}]],
            [("f", "free")],
            id="a free-text tool",
        ),
        pytest.param([[None, piece(0, "x", "f", '{"a":1}')]], ONE, id="null among them"),
    ],
)
def test_pieces_become_calls(
    chunks: list[list[dict[str, Any]]], expected: list[tuple[str, str]]
) -> None:
    assert expected == calls_of(*chunks)


@pytest.mark.parametrize("reason", ["length", "content_filter", "max_tokens", "SAFETY"])
@pytest.mark.parametrize("name", ["tool_calls", "message"])
def test_a_call_that_was_cut_before_its_arguments_is_not_one_without_any(
    reason: str, name: str
) -> None:
    pieces = [piece(0, "x", "f"), piece(1, "y", "delete_all")]
    if name == "tool_calls":
        outcome = drive([events(delta(tool_calls=pieces), delta(reason))])
    else:
        choice = {"message": {"tool_calls": pieces}, "finish_reason": reason}
        outcome = drive([json.dumps({"choices": [choice]}).encode()])
    assert outcome.told == outcome.said
    assert [call.args for call in outcome.message.tool_calls] == ["{}", ""]
    assert outcome.message.tool_calls[1].truncated


WEATHER = [("get.weather", "{}")]
MAPPED = wire_tool_name("get.weather")


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param(
            [[piece(0, "x", "loo")], [piece(0, name="k")], [piece(0, name="_up")]],
            [("look_up", "{}")],
            id="by index",
        ),
        pytest.param(
            [[piece(0, "x", "look"), piece(1, "y", "sa")], [piece(1, "y", "ve", '{"a":1}')]],
            [("look", "{}"), ("save", '{"a":1}')],
            id="the second of two",
        ),
        pytest.param(
            [[piece(0, "x", "loo")], [piece(0, "x", "look")], [piece(0, "x", "look_up", "{}")]],
            [("look_up", "{}")],
            id="all of it so far",
        ),
        pytest.param([[piece(name="sa")], [piece(name="ve")]], [("save", "{}")], id="by nothing"),
        pytest.param(
            [[piece(0, "x", MAPPED[:5])], [piece(0, name=MAPPED[5:])]], WEATHER, id="a mapped name"
        ),
        pytest.param(
            [[piece(0, "x")], [piece(0, name="sa")], [piece(0, name="ve", args="{}")]],
            [("save", "{}")],
            id="late",
        ),
        pytest.param(
            [[piece(0, None, "save")], [piece(0, None, "look")]],
            [("save", "{}"), ("look", "{}")],
            id="two tools without arguments under one index",
        ),
        pytest.param(
            [[piece(0, "x", "no_tool")], [piece(0, args='{"a":1}')]],
            [("no_tool", '{"a":1}')],
            id="a tool there is not",
        ),
        pytest.param(
            [[piece(0, "x", "no_")], [piece(0, name="tool")]], [("no_tool", "{}")], id="nor in bits"
        ),
    ],
)
def test_a_name_in_pieces_is_one_name(
    chunks: list[list[dict[str, Any]]], expected: list[tuple[str, str]]
) -> None:
    tools = [ToolSpec(name, "", {}) for name in ("look", "look_up", "save", "get.weather")]
    data = events(*[delta(tool_calls=pieces) for pieces in chunks], CALLS)
    for cuts in ([data], bytewise(data)):
        outcome = drive(cuts, request=Request((), tools=tools))
        assert outcome.told == outcome.said
        assert [(name, args) for _, name, args in outcome.said[2]] == expected
    whole = data.split(b"\n\n")
    for count in range(len(whole)):
        begun = b"".join(event + b"\n\n" for event in whole[:count])
        outcome = drive([begun], request=Request((), tools=tools))
        assert outcome.told == outcome.said


def test_a_call_in_the_old_form_is_a_call() -> None:
    data = events(
        delta(function_call={"name": "f", "arguments": ""}),
        delta(function_call={"arguments": '{"a":'}),
        delta(function_call={"arguments": "1}"}),
        delta("function_call"),
    )
    outcome = drive([data])
    assert outcome.told == outcome.said
    assert [(name, args) for _, name, args in outcome.said[2]] == ONE
    assert outcome.response
    assert outcome.response.finish_reason == "tool_call"


def test_the_first_piece_of_a_call_brings_its_arguments_along() -> None:
    outcome = drive([events(delta(tool_calls=[piece(0, "x", "f", "{}")]), CALLS)])
    assert outcome.deltas == [ToolCallDelta(0, "x", "f", "{}")]


def test_a_tool_whose_name_the_wire_does_not_take_gets_its_own_back() -> None:
    request = Request((), tools=[ToolSpec("get.weather", "", {})])
    name = json.loads(_body(request))["tools"][0]["function"]["name"]
    assert name != "get.weather"
    outcome = drive([events(delta(tool_calls=[piece(0, "x", name, "{}")]), CALLS)], request=request)
    assert outcome.deltas == [ToolCallDelta(0, "x", "get.weather", "{}")]
    assert outcome.message.tool_calls[0].name == "get.weather"


def _body(request: Request) -> bytes:
    from golem.model import Settings
    from golem_adapters.openai.request import encode_request

    return encode_request(
        request, model="m", settings=Settings(), dialect=dialect_named("openai"), stream=True
    )


# --- text, reasoning, media


def said(*chunks: dict[str, Any], dialect: str = "openai") -> AssistantMessage:
    data = events(*chunks, STOP)
    outcome = drive([data], dialect=dialect)
    assert outcome.error is None
    assert outcome.told == outcome.said
    assert outcome.shape == drive(bytewise(data), dialect=dialect).shape
    return outcome.message


@pytest.mark.parametrize(
    "members",
    [
        {"content": "Hi"},
        {"content": [{"type": "text", "text": "H"}, {"type": "text", "text": "i"}]},
        {"content": ["H", "i"]},
        {"content": {"type": "text", "text": "Hi"}},
        {"content": "Hi", "tool_calls": None, "refusal": None, "unknown": {"a": [1]}},
        {"content": [{"type": "reference", "reference_ids": [1]}, {"type": "text", "text": "Hi"}]},
    ],
)
def test_text_is_read_in_every_shape(members: dict[str, Any]) -> None:
    assert said(delta(**members)).content == "Hi"


@pytest.mark.parametrize(
    "members",
    [
        {"reasoning": "why"},
        {"reasoning_content": "why"},
        {"reasoning": "why", "reasoning_content": "why"},
        {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "why"}]}]},
        {"content": [{"type": "thinking", "thinking": "why"}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "why", "index": 0}]},
        {
            "reasoning": "why",
            "reasoning_details": [{"type": "reasoning.summary", "summary": "why"}],
        },
    ],
)
def test_reasoning_is_read_in_every_shape(members: dict[str, Any]) -> None:
    message = said(delta(**members), delta(content="so"))
    assert (Thinking("why", provider="openai"),) == message.thinking
    assert message.content == "so"


def test_reasoning_in_pieces_is_one_block_with_its_signature() -> None:
    def detail(**members: Any) -> dict[str, Any]:
        return delta(
            reasoning=members.get("text"),
            reasoning_details=[{"type": "reasoning.text", "index": 0, **members}],
        )

    message = said(
        detail(text="", signature="", format="x"),
        detail(text="I ", format=None),
        detail(text="think"),
        detail(signature="proof"),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "index": 0, "data": "AA"}]),
        delta(content="so"),
        dialect="openrouter",
    )
    assert message.thinking == (
        Thinking("I think", signature="proof", provider="openrouter"),
        Thinking(redacted="AA", provider="openrouter"),
    )
    assert message.native is not None
    assert [json.loads(bytes(item)) for item in message.native.items] == [
        {
            "format": "x",
            "index": 0,
            "signature": "proof",
            "text": "I think",
            "type": "reasoning.text",
        },
        {"data": "AA", "index": 0, "type": "reasoning.encrypted"},
    ]


def test_a_detail_that_is_no_text_takes_no_reasoning_back() -> None:
    def detail(text: Any) -> dict[str, Any]:
        return delta(reasoning_details=[{"type": "reasoning.text", "index": 0, "text": text}])

    message = said(detail("why"), detail(0), detail(None), detail([]), dialect="openrouter")
    assert message.thinking == (Thinking("why", provider="openrouter"),)


def test_signatures_of_google_are_kept_where_they_belong() -> None:
    extra = {"google": {"thought_signature": "sig"}}
    call = {**piece(0, "x", "f", "{}"), "extra_content": extra}
    assert said(delta(tool_calls=[call])).tool_calls[0].signature == "sig"
    message = said(delta(content="so", extra_content=extra), dialect="gemini-compat")
    assert message.thinking == (Thinking(signature="sig", provider="gemini-compat"),)


def test_a_refusal_is_text_and_no_answer() -> None:
    outcome = drive([events(delta(refusal="I "), delta(refusal="won't"), STOP)])
    assert outcome.deltas == [TextDelta("I "), TextDelta("won't")]
    assert outcome.response is not None
    assert outcome.response.message.content == "I won't"
    assert outcome.response.finish_reason == "content_filter"
    assert outcome.response.details.finish_reason == "stop"
    assert outcome.response.details.finish_message == "refusal: I won't"


def test_a_spoken_answer_is_its_transcript_and_a_part() -> None:
    message = said(
        delta(audio={"id": "a", "transcript": "Hel"}),
        delta(audio={"data": "SUQz", "transcript": "lo"}),
        delta(audio={"data": "BA==", "expires_at": 1}),
    )
    assert message.content == "Hello"
    assert message.parts == (Part.audio(b"ID3\x04", "audio/mpeg"),)


def test_an_image_that_a_model_made_is_a_part() -> None:
    images = [
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
        {"type": "image_url", "image_url": {"url": "https://e/x.png"}},
        {"type": "image_url", "image_url": {"url": ""}},
    ]
    message = said(delta(images=images))
    assert message.parts == (Part.image(b"\0\0\0", "image/png"), Part.image_url("https://e/x.png"))


@pytest.mark.parametrize("half", ["\\ud83d", "\\ude00\\ud83d"])
def test_half_a_surrogate_pair_is_replaced_and_loses_no_chunk(half: str) -> None:
    line = '{"choices":[{"index":0,"delta":{"content":"aHALF"}}]}'.replace("HALF", half)
    data = f"data: {line}\n\n".encode() + events(STOP)
    text = drive([data]).message.content
    assert text == "a" + "\ufffd" * half.count("u")


def test_half_a_surrogate_pair_in_arguments_stays_the_escape_it_is() -> None:
    data = events(delta(tool_calls=[piece(0, "x", "f", r'{"a":"\ud83d"}')]), CALLS)
    call = drive([data]).message.tool_calls[0]
    assert call.args == r'{"a":"\ud83d"}'
    assert not call.truncated


@pytest.mark.parametrize(
    "line",
    [
        '{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":{"x":-Infinity}}]}',
        '{"choices":[{"index":0,"delta":{"content":"a"},"logprobs":NaN}]}',
        '{"choices":[null,{"index":0,"delta":{"content":"a"}}]}',
        '{"id":7,"model":null,"choices":[{"index":null,"delta":{"content":"a"}}],"usage":[]}',
        '{"choices":[{"delta":{"content":"a","role":5,"reasoning":{},"tool_calls":{}}}]}',
        '{"choices":[{"message":{"content":"a"}}]}',
        '{"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"a"}}]}',
    ],
)
def test_a_chunk_of_odd_shape_keeps_what_it_says(line: str) -> None:
    assert drive([f"data: {line}\n\n".encode() + events(STOP)]).message.content == "a"


# --- usage and finish reasons

COUNTS = {
    "prompt_tokens": 10,
    "completion_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 2},
    "completion_tokens_details": {"reasoning_tokens": 3},
}
COUNTED = Usage(10, 5, 4, 2, 3)


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        ([STOP, {"choices": [], "usage": COUNTS}], COUNTED),
        ([STOP, {"choices": None, "usage": COUNTS}], COUNTED),
        ([STOP, {"usage": COUNTS}], COUNTED),
        ([{"choices": [], "usage": COUNTS}, STOP], COUNTED),
        ([{**STOP, "usage": COUNTS}], COUNTED),
        (
            [{**delta(content="a"), "usage": {"prompt_tokens": 1}}, {**STOP, "usage": COUNTS}],
            COUNTED,
        ),
        ([{**STOP, "x_groq": {"id": "r", "usage": {"prompt_tokens": 7}}}], Usage(7)),
        ([{**STOP, "usage": {"prompt_tokens": 7, "prompt_tokens_details": None}}], Usage(7)),
        ([{**STOP, "usage": {"prompt_tokens": 7.0, "completion_tokens": "x"}}], Usage(7)),
        ([{**STOP, "usage": {"prompt_tokens": 9, "prompt_cache_hit_tokens": 8}}], Usage(9, 0, 8)),
        ([{**STOP, "usage": {"prompt_tokens": 9, "num_cached_tokens": 8}}], Usage(9, 0, 8)),
        ([STOP], Usage()),
    ],
)
def test_usage_is_read_wherever_it_stands(chunks: list[Any], expected: Usage) -> None:
    outcome = drive([events(*chunks)])
    assert outcome.response is not None
    assert expected == outcome.response.usage


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("eos", "stop"),
        ("length", "length"),
        ("model_length", "length"),
        ("MAX_TOKENS", "length"),
        ("tool_calls", "tool_call"),
        ("content_filter", "content_filter"),
        ("sensitive", "content_filter"),
        ("model_context_window_exceeded", "length"),
        ("something new", "other"),
    ],
)
def test_a_finish_reason_is_mapped_and_kept_in_the_providers_words(
    word: str, expected: str
) -> None:
    outcome = drive([events(delta(content="a"), delta(word))])
    assert outcome.response is not None
    assert expected == outcome.response.finish_reason
    assert word == outcome.response.details.finish_reason


@pytest.mark.parametrize("word", ["stop", "", None, "null"])
def test_a_turn_with_calls_ended_for_them(word: str | None) -> None:
    outcome = drive([events(delta(tool_calls=[piece(0, "x", "f", "{}")]), delta(word))])
    assert outcome.response is not None
    assert outcome.response.finish_reason == "tool_call"


def test_calls_cut_off_by_the_length_are_no_clean_turn() -> None:
    outcome = drive([events(delta(tool_calls=[piece(0, "x", "f", '{"a"')]), delta("length"))])
    assert outcome.response is not None
    assert outcome.response.finish_reason == "length"
    assert outcome.message.tool_calls[0].truncated


# --- endings

HI = events(delta(content="Hi"), done=False)


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


# --- plain and streamed are the same


PIECES = st.text(max_size=4)
SAID = st.fixed_dictionaries(
    {},
    optional={
        "content": PIECES | st.none(),
        "reasoning": PIECES | st.none(),
        "refusal": st.none(),
    },
)


@given(st.lists(SAID, max_size=5), st.sampled_from(["stop", "length", "odd", ""]))
def test_plain_and_streamed_answers_are_equal(saying: list[dict[str, Any]], reason: str) -> None:
    whole: dict[str, Any] = {}
    for members in saying:
        for name, value in members.items():
            whole[name] = whole.get(name, "") + (value or "")
    body = {
        "id": "r",
        "model": "m",
        "choices": [{"index": 0, "message": whole, "finish_reason": reason}],
        "usage": COUNTS,
    }
    chunks = [{**delta(**members), "id": "r"} for members in saying]
    stream = events(*chunks, {**delta(reason), "id": "r"}, {"choices": [], "usage": COUNTS})
    assert drive([stream]).response == plain(body)


def plain(body: dict[str, Any], dialect: str = "openai") -> Any:
    return decode_response(
        json.dumps(body).encode(),
        request=Request(()),
        dialect=dialect_named(dialect),
        headers={},
        secret="",
    )


def test_signed_reasoning_is_the_same_plain_and_streamed() -> None:
    details = [
        {
            "type": "reasoning.text",
            "text": "I think",
            "signature": "s",
            "format": "f",
            "index": 0,
            "id": None,
        },
        {"type": "reasoning.encrypted", "data": "AA", "index": 1},
    ]
    whole = {"reasoning": "I think", "reasoning_details": details, "content": "so"}
    body = {"id": "cc-1", "model": "m", "choices": [{"message": whole, "finish_reason": "stop"}]}
    stream = events(
        delta(
            reasoning="I ",
            reasoning_details=[{"type": "reasoning.text", "text": "I ", "index": 0, "format": "f"}],
        ),
        delta(
            reasoning="think",
            reasoning_details=[{"type": "reasoning.text", "text": "think", "index": 0}],
        ),
        delta(reasoning_details=[{"type": "reasoning.text", "signature": "s", "index": 0}]),
        delta(reasoning_details=[{"type": "reasoning.encrypted", "data": "AA", "index": 1}]),
        delta(content="so"),
        STOP,
    )
    assert drive([stream], dialect="openrouter").response == plain(body, "openrouter")


@given(st.lists(st.integers(0, 3000), max_size=12))
def test_a_stream_means_the_same_wherever_it_is_cut(places: list[int]) -> None:
    data = EVERYTHING
    whole = drive([data])
    assert whole.shape == drive(cut(data, [place % len(data) for place in places])).shape


EVERYTHING = b"\xef\xbb\xbf: hello\r\n\r\n" + events(
    delta(role="assistant", content=""),
    delta(reasoning="hm 😀"),
    delta(content="é"),
    delta(content=[{"type": "text", "text": "ï"}]),
    delta(tool_calls=[piece(0, "x", "f", '{"a":'), piece(1, "y", "g", "{}")]),
    delta(tool_calls=[piece(0, args='"😀"}')]),
    CALLS,
    {"choices": [], "usage": COUNTS},
).replace(b"\n\n", b"\r\n\r\n")


def test_nothing_is_read_after_the_terminator() -> None:
    stream = ChatStream(Request(()), dialect_named("openai"), {}, "")
    assert stream.feed(events(delta(content="a"), STOP) + HI) == [TextDelta("a")]
    assert stream.done
    assert stream.feed(HI) == []
    assert stream.close()[1].message.content == "a"


def test_thinking_comes_as_thinking_deltas() -> None:
    outcome = drive([events(delta(reasoning="a"), delta(reasoning_content="b"), STOP)])
    assert outcome.deltas == [ThinkingDelta("a"), ThinkingDelta("b")]


def test_an_outcome_is_told_by_its_deltas_alone() -> None:
    outcome: Outcome = drive([EVERYTHING])
    assert outcome.told == outcome.said


@pytest.mark.parametrize(
    "value",
    [
        '{"\\ud83d":["\\ud83d"]}',
        "[" * 400 + "]" * 400,
        "[" * 900 + "]" * 900,
        "1" + "0" * 40,
        "NaN",
    ],
)
def test_details_with_anything_in_them_break_no_answer(value: str) -> None:
    detail = '{"type":"reasoning.text","text":"a","signature":"s","odd":%s}'
    line = '{"choices":[{"delta":{"reasoning_details":[' + detail.replace("%s", value) + "]}}]}"
    outcome = drive([f"data: {line}\n\n".encode() + events(STOP)], dialect="openrouter")
    assert outcome.error is None
    message = outcome.message
    assert [block.text for block in message.thinking] == ["a"]
    assert message == load_message(dump_message(message))


def test_a_stream_without_end_is_refused_at_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("golem_adapters._toolkit.streams.MAX_ANSWER", 10_000)
    line = events(delta(content="Hi"), done=False)
    outcome = drive(line for _ in range(10_000))
    assert isinstance(outcome.error, ProtocolError)
    assert "larger than 10000 bytes" in str(outcome.error)
    assert outcome.message.content == "Hi" * (10_000 // len(line))
    assert outcome.told == outcome.said


@pytest.mark.parametrize("plain", [False, True])
def test_a_byte_order_mark_is_no_text(plain: bool) -> None:
    said = delta("stop", content="hi")
    choice = {"message": {"content": "hi"}, "finish_reason": "stop"}
    body = json.dumps({"choices": [choice]}).encode() if plain else events(said)
    for pieces in ([b"\xef\xbb\xbf" + body], bytewise(b"\xef\xbb\xbf \r\n" + body)):
        outcome = drive(pieces)
        assert outcome.error is None
        assert outcome.message.content == "hi"


@pytest.mark.parametrize("count", ["1e300", "9" * 400, "-1", "1e999", str(2**63)])
def test_a_count_past_every_number_is_none(count: str) -> None:
    usage = f'data: {{"choices":[],"usage":{{"prompt_tokens":{count},"completion_tokens":2}}}}\n\n'
    outcome = drive([events(delta("stop", content="hi"), done=False), usage.encode()])
    assert outcome.response is not None
    assert outcome.response.usage == Usage(output_tokens=2)
