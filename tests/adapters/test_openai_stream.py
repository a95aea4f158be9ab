"""A plain answer and a streamed one are the same, wherever the stream is cut."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.codec import dump_message, load_message
from golem.errors import ProtocolError
from golem.model import Request, TextDelta, ThinkingDelta
from golem.usage import Usage
from golem_adapters.openai.dialect import dialect_named
from golem_adapters.openai.response import decode_response
from golem_adapters.openai.stream import ChatStream
from tests.adapters.driving import (
    CALLS,
    HI,
    STOP,
    Outcome,
    bytewise,
    cut,
    delta,
    drive,
    events,
    piece,
)
from tests.adapters.test_openai_content import COUNTS

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
