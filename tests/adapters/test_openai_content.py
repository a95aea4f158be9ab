"""Text, reasoning, media, usage and finish reasons of Chat Completions answers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.messages import AssistantMessage, Part, Thinking
from golem.model import TextDelta
from golem.usage import Usage
from tests.adapters.driving import (
    CALLS,
    STOP,
    bytewise,
    delta,
    drive,
    events,
    piece,
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


SPLIT = ("a\ud83d", "\ude00b\ud83d", "", "\ude00")


@pytest.mark.parametrize("member", ["content", "refusal", "reasoning", "reasoning_content"])
def test_a_character_that_was_cut_in_two_is_whole_again(member: str) -> None:
    """Gateways that count in UTF-16 cut there, also in texts that come at the same time."""
    outcome = drive([events(*[delta(**{member: part}) for part in SPLIT], STOP)])
    assert "a😀b😀" in outcome.said
    assert outcome.told == outcome.said
    beside = [delta(reasoning=part, content=part) for part in SPLIT]
    assert drive([events(*beside, STOP)]).said == ("a😀b😀", "a😀b😀", [])
    chunked = [delta(content=[{"type": "text", "text": part}]) for part in SPLIT]
    assert drive([events(*chunked, STOP)]).said[0] == "a😀b😀"


def test_a_character_that_was_cut_in_two_in_arguments_is_whole_again() -> None:
    parts = [
        delta(tool_calls=[piece(n, f"c{n}", "f", '{"a":"\ud83d') for n in range(2)]),
        delta(tool_calls=[piece(n, args='\ude00"}') for n in range(2)]),
    ]
    outcome = drive([events(*parts, CALLS)])
    assert [call.args for call in outcome.message.tool_calls] == ['{"a":"😀"}'] * 2
    assert outcome.told == outcome.said
    lost = drive([events(parts[0], CALLS)])
    assert [call.args for call in lost.message.tool_calls] == ['{"a":"\ufffd'] * 2
    assert lost.told == lost.said


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
