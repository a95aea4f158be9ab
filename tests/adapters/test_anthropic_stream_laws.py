"""Laws of the Messages decoders: one outcome for one answer, whatever a server leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.errors import TransportError
from golem.messages import AssistantMessage
from tests.adapters.messaging import (
    decode,
    drive,
    ended,
    plainly,
    sse,
    start,
    started,
    stream_events,
)
from tests.adapters.oddities import (
    INPUTS,
    TOKENS,
    WORDS,
    Odd,
    check_cuts,
    check_lost,
    check_plain,
    check_same,
    check_told,
    event_streams,
)

# --- answers as the provider gives them

CITATION = {"type": "web_search_result_location", "url": "https://e/", "cited_text": "x"}

BLOCKS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("text"), "text": WORDS}, optional={"citations": st.just([CITATION])}
    ),
    st.fixed_dictionaries(
        {"type": st.just("thinking"), "thinking": WORDS, "signature": st.sampled_from(["sig", ""])}
    ),
    st.just({"type": "redacted_thinking", "data": "sealed"}),
    st.fixed_dictionaries(
        {"type": st.just("tool_use"), "name": st.sampled_from(["f", "g"]), "input": INPUTS},
        optional={"caller": st.just({"type": "direct"})},
    ),
    st.fixed_dictionaries(
        {"type": st.just("server_tool_use"), "name": st.just("web_search"), "input": INPUTS}
    ),
    st.just({"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}),
    st.just({"type": "fallback", "model": "m-2"}),
)


@st.composite
def contents(draw: st.DrawFn) -> list[dict[str, Any]]:
    blocks = draw(st.lists(BLOCKS, max_size=5))
    return [
        {**block, "id": f"x_{place}"} if "input" in block else block
        for place, block in enumerate(blocks)
    ]


def said(message: AssistantMessage) -> Any:
    thoughts = [(b.text, b.signature, b.redacted) for b in message.thinking]
    calls = [(call.id, call.name, call.args) for call in message.tool_calls]
    blocks = [json.loads(bytes(item)) for item in message.native.items] if message.native else None
    return message.content, thoughts, calls, blocks


@given(contents(), st.integers(1, 9))
def test_a_streamed_answer_is_the_plain_one(content: list[dict[str, Any]], size: int) -> None:
    outcome = drive([sse(stream_events(content, size))])
    check_same(plainly(content), outcome, said)


def unindexed(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "index"}


def zero(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "index": 0} if "index" in event else event


LEFT_OUT: dict[str, Any] = {
    "no indexes": lambda events: list(map(unindexed, events)),
    "one index": lambda events: list(map(zero, events)),
    "no end of blocks": lambda events: [e for e in events if e["type"] != "content_block_stop"],
    "a repeated beginning": lambda events: [events[0], *events[:2], events[0], *events[2:]],
    "unknown events": lambda events: [
        one for e in events for one in ({"type": "future", "a": 1}, e, {"type": "ping"})
    ],
    "unknown deltas": lambda events: [
        one
        for e in events
        for one in (
            (e, {**e, "delta": {"type": "future_delta", "text": "x"}})
            if e["type"] == "content_block_delta"
            else (e,)
        )
    ],
}


@pytest.mark.parametrize("what", LEFT_OUT)
@given(content=contents())
def test_what_servers_leave_out_or_add_changes_nothing(
    what: str, content: list[dict[str, Any]]
) -> None:
    outcome = drive([sse(LEFT_OUT[what](stream_events(content)), named=False)])
    assert outcome.response is not None
    assert outcome.told == outcome.said
    assert said(plainly(content).message) == said(outcome.message)


@given(contents())
def test_blocks_may_come_whole_where_they_begin(content: list[dict[str, Any]]) -> None:
    opened = [start(place, block) for place, block in enumerate(content)]
    by_block = drive([sse([started(), *opened, *ended()])])
    at_once = drive([sse([started(content=content), *ended()])])
    assert said(plainly(content).message) == said(by_block.message) == said(at_once.message)
    assert by_block.told == by_block.said
    assert at_once.told == at_once.said


@given(contents(), st.data())
def test_a_stream_that_is_cut_keeps_what_had_come(
    content: list[dict[str, Any]], data: st.DataObject
) -> None:
    events = stream_events(content)[:-1]
    came = events[: data.draw(st.integers(0, len(events)))]
    outcome = drive([sse(came)])
    check_lost(outcome, plainly(content), TransportError)


# --- answers that nobody should give

ODD = Odd()
VALUES, objects = ODD.values, ODD.objects


KINDS = st.sampled_from(
    [
        *("text", "thinking", "tool_use", "tool_use", "server_tool_use", "redacted_thinking"),
        *("compaction", "web_search_tool_result", ""),
    ]
)
ODD_BLOCKS = objects(
    type=KINDS,
    id=st.sampled_from(["", "a", "b"]),
    name=TOKENS,
    text=TOKENS,
    thinking=TOKENS,
    signature=TOKENS,
    data=TOKENS,
    content=TOKENS,
    input=st.sampled_from([{}, {"a": 1}, None, "{", "", [], {"a": "\ud800"}]),
    citations=st.none() | st.lists(VALUES, max_size=1),
)
ODD_MESSAGES = objects(
    id=st.sampled_from(["m1", "m2", ""]),
    model=TOKENS,
    content=st.lists(ODD_BLOCKS, max_size=3),
    stop_reason=st.sampled_from([None, "end_turn", "tool_use", "max_tokens", "pause_turn", "x"]),
    stop_details=objects(category=TOKENS, explanation=TOKENS),
    usage=objects(input_tokens=st.integers(), cache_creation=VALUES, output_tokens_details=VALUES),
    error=st.none(),
)
ODD_DELTAS = objects(
    type=st.sampled_from(
        [
            *("text_delta", "thinking_delta", "input_json_delta", "input_json_delta"),
            *("signature_delta", "citations_delta", "compaction_delta", "future_delta"),
        ]
    ),
    text=TOKENS,
    thinking=TOKENS,
    partial_json=TOKENS,
    signature=TOKENS,
    citation=VALUES,
    content=TOKENS,
    encrypted_content=TOKENS,
    stop_reason=st.sampled_from(["end_turn", "max_tokens"]),
)
ODD_EVENTS = objects(
    type=st.sampled_from(
        [
            *("message_start", "message_delta", "content_block_stop", "future"),
            *("content_block_start", "content_block_delta") * 4,
        ]
    ),
    index=st.integers(0, 2),
    message=ODD_MESSAGES,
    content_block=ODD_BLOCKS,
    delta=ODD_DELTAS,
    usage=objects(output_tokens=st.integers()),
)


END = json.dumps({"type": "message_stop"})
STREAMS = event_streams(
    ODD_EVENTS,
    ["", f"data: {END}\n\n", f"data: {END}", "data: {"],
)


@given(STREAMS, st.lists(st.integers(0, 500), max_size=5))
def test_any_stream_has_one_outcome_however_it_is_cut(data: bytes, places: list[int]) -> None:
    check_cuts(drive, data, places)


@given(STREAMS)
def test_any_answer_is_told_by_its_deltas_and_can_be_stored(data: bytes) -> None:
    check_told(drive([data]))


@given(ODD_MESSAGES)
def test_any_plain_answer_is_a_response_or_a_provider_error(answer: Any) -> None:
    check_plain(decode, answer)
