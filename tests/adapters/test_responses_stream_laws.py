"""Laws of the Responses decoders: one outcome for one answer, whatever a server leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.errors import ProviderError
from golem.messages import AssistantMessage
from golem.model import Request, Response
from golem_adapters.openai_responses.dialect import dialect_named
from golem_adapters.openai_responses.response import decode_response
from tests.adapters.driving import drive_responses
from tests.adapters.oddities import (
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
from tests.adapters.responding import ending, response, sse, stream_events

# --- answers as the provider gives them

ARGUMENTS = st.sampled_from(["", "{}", ' {"a": 1} ', '{"a":"\U0001f600"}', '{"a', "1", "{}\n"])


def part(kind: str, member: str = "text") -> st.SearchStrategy[Any]:
    return st.fixed_dictionaries({"type": st.just(kind), member: WORDS})


OUTPUT_TEXT = st.fixed_dictionaries(
    {"type": st.just("output_text"), "text": WORDS, "annotations": st.just([])}
)
MESSAGES = st.fixed_dictionaries(
    {
        "type": st.just("message"),
        "role": st.just("assistant"),
        "status": st.just("completed"),
        "content": st.lists(OUTPUT_TEXT | part("refusal", "refusal"), max_size=2),
    },
    optional={"phase": st.just("commentary")},
)
REASONINGS = st.fixed_dictionaries(
    {
        "type": st.just("reasoning"),
        "summary": st.lists(part("summary_text"), max_size=3),
    },
    optional={
        "content": st.lists(part("reasoning_text"), max_size=1),
        "encrypted_content": st.just("enc"),
    },
)
CALLS = st.fixed_dictionaries(
    {
        "type": st.just("function_call"),
        "status": st.just("completed"),
        "call_id": st.sampled_from(["call_1", "call_2", "call_3", ""]),
        "name": st.sampled_from(["f", "g"]),
        "arguments": ARGUMENTS,
    }
)
CUSTOM = st.fixed_dictionaries(
    {
        "type": st.just("custom_tool_call"),
        "call_id": st.sampled_from(["call_4", "call_5"]),
        "name": st.just("patch"),
        "input": st.sampled_from(["x", "*** Begin", '{"a":1}']),
    }
)
HOSTED = st.just({"type": "web_search_call", "action": {"type": "search", "query": "q"}})


@st.composite
def outputs(draw: st.DrawFn) -> list[dict[str, Any]]:
    items = draw(st.lists(st.one_of(MESSAGES, REASONINGS, CALLS, CUSTOM, HOSTED), max_size=4))
    return [{**item, "id": f"x_{place}"} for place, item in enumerate(items)]


def decode_responses(body: bytes) -> Response:
    record = dialect_named("openai")
    return decode_response(body, request=Request(()), dialect=record, headers={}, secret="")


def plainly(output: list[dict[str, Any]], **members: Any) -> Response:
    return decode_responses(json.dumps(response(output, **members)).encode())


def said(message: AssistantMessage) -> Any:
    thoughts = [(b.text, b.signature, b.redacted, b.id) for b in message.thinking]
    calls = [(call.name, call.args) for call in message.tool_calls]
    items = [json.loads(bytes(item)) for item in message.native.items] if message.native else None
    return message.content, thoughts, calls, items


@given(outputs(), st.integers(1, 9))
def test_a_streamed_answer_is_the_plain_one(output: list[dict[str, Any]], size: int) -> None:
    outcome = drive_responses([sse(stream_events(output, size))])
    check_same(plainly(output), outcome, said)


def unindexed(event: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in event.items() if name != "output_index"}


def unnamed(event: dict[str, Any]) -> dict[str, Any]:
    """Without ids, and the same index for every item."""
    if "item" in event:
        event = {**event, "item": {k: v for k, v in event["item"].items() if k != "id"}}
    return {name: value for name, value in event.items() if name != "item_id"}


def zero(event: dict[str, Any]) -> dict[str, Any]:
    return {**event, "output_index": 0} if "output_index" in event else event


LEFT_OUT: dict[str, Any] = {
    "no indexes": lambda events: [unindexed(event) for event in events],
    "no ids": lambda events: [unnamed(event) for event in events],
    "one index": lambda events: [zero(event) for event in events],
    "no output at the end": lambda events: [*events[:-1], ending([])],
    "no deltas": lambda events: [e for e in events if not e["type"].endswith(".delta")],
    "nothing but items": lambda events: [e for e in events if "item" in e or "response" in e],
    "nothing but the end": lambda events: events[-1:],
    "no end of parts": lambda events: [
        e for e in events if "item" in e or "response" in e or e["type"].endswith(".delta")
    ],
    "no end of items": lambda events: [
        e for e in events if e["type"] != "response.output_item.done"
    ],
}


@pytest.mark.parametrize("what", LEFT_OUT)
@given(output=outputs())
def test_what_servers_leave_out_changes_nothing(what: str, output: list[dict[str, Any]]) -> None:
    outcome = drive_responses([sse(LEFT_OUT[what](stream_events(output)), named=False)])
    assert outcome.response is not None
    assert outcome.told == outcome.said
    plain, streamed = said(plainly(output).message), said(outcome.message)
    if what == "no ids" and output:
        plain, streamed = plain[:1] + plain[2:3], streamed[:1] + streamed[2:3]
    assert plain == streamed


@given(outputs(), st.data())
def test_a_stream_that_is_cut_keeps_what_had_come(
    output: list[dict[str, Any]], data: st.DataObject
) -> None:
    events = stream_events(output)[:-1]
    came = events[: data.draw(st.integers(0, len(events)))]
    outcome = drive_responses([sse(came)])
    check_lost(outcome, plainly(output), ProviderError)


# --- answers that nobody should give

ODD = Odd()
VALUES, objects = ODD.values, ODD.objects


ODD_PARTS = st.lists(
    objects(
        type=st.sampled_from(["output_text", "refusal", "summary_text", "reasoning_text"]),
        text=TOKENS,
        refusal=TOKENS,
    ),
    max_size=2,
)
ODD_ITEMS = objects(
    type=st.sampled_from(
        ["message", "reasoning", "function_call", "custom_tool_call", "image_generation_call"]
    ),
    id=st.sampled_from(["", "a", "b"]),
    call_id=st.sampled_from(["", "a", "b"]),
    name=TOKENS,
    role=st.just("assistant"),
    arguments=TOKENS,
    input=TOKENS,
    content=ODD_PARTS,
    summary=ODD_PARTS,
    encrypted_content=TOKENS,
    result=st.sampled_from(["", "eA==", "é"]),
    status=st.sampled_from(["completed", "in_progress"]),
)
ODD_RESPONSES = objects(
    id=TOKENS,
    model=TOKENS,
    status=st.sampled_from(["completed", "incomplete", "failed", "queued", ""]),
    output=st.lists(ODD_ITEMS, max_size=3),
    usage=objects(input_tokens=st.integers(), input_tokens_details=VALUES),
    error=st.none(),
    incomplete_details=objects(reason=st.sampled_from(["max_output_tokens", "x"])),
)
FAMILIES = [
    *("output_text", "refusal", "reasoning_summary_text", "reasoning_text"),
    *("function_call_arguments", "custom_tool_call_input"),
]
TYPES = st.sampled_from(
    [
        *(f"response.{family}.{end}" for family in FAMILIES for end in ("delta", "done")),
        *("response.output_item.added", "response.output_item.done") * 4,
        *("response.created", "response.x", "error", "response.failed"),
        *("response.completed", "response.incomplete"),
    ]
)
ODD_EVENTS = objects(
    type=TYPES,
    output_index=st.integers(0, 2),
    item_id=st.sampled_from(["", "a", "b"]),
    content_index=st.integers(0, 1),
    summary_index=st.integers(0, 1),
    delta=TOKENS,
    text=TOKENS,
    refusal=TOKENS,
    arguments=TOKENS,
    input=TOKENS,
    item=ODD_ITEMS,
    response=ODD_RESPONSES,
)


END = json.dumps({"type": "response.completed", "response": {"status": "completed"}})
STREAMS = event_streams(
    ODD_EVENTS,
    ["", f"data: {END}\n\n", "data: [DONE]\n\n", "data: {"],
)


@given(STREAMS, st.lists(st.integers(0, 500), max_size=5))
def test_any_stream_has_one_outcome_however_it_is_cut(data: bytes, places: list[int]) -> None:
    check_cuts(drive_responses, data, places)


@given(STREAMS)
def test_any_answer_is_told_by_its_deltas_and_can_be_stored(data: bytes) -> None:
    check_told(drive_responses([data]))


@given(ODD_RESPONSES)
def test_any_plain_answer_is_a_response_or_a_provider_error(answer: Any) -> None:
    check_plain(decode_responses, answer)
