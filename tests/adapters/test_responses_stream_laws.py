"""Laws of the Responses decoders: one outcome for one answer, whatever a server leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.codec import dump_message, load_message
from golem.errors import ProviderError
from golem.messages import AssistantMessage
from golem.model import Request, Response
from golem_adapters.openai_responses.dialect import dialect_named
from golem_adapters.openai_responses.response import decode_response
from tests.adapters.driving import bytewise, cut, drive_responses
from tests.adapters.responding import ending, response, sse, stream_events

# --- answers as the provider gives them

WORDS = st.text(max_size=8) | st.sampled_from(["\U0001f600\U0001f600", " ", "a\nb", "é", ""])
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


def plainly(output: list[dict[str, Any]], **members: Any) -> Response:
    return decode_response(
        json.dumps(response(output, **members)).encode(),
        request=Request(()),
        dialect=dialect_named("openai"),
        headers={},
        secret="",
    )


def said(message: AssistantMessage) -> Any:
    thoughts = [(b.text, b.signature, b.redacted, b.id) for b in message.thinking]
    calls = [(call.name, call.args) for call in message.tool_calls]
    items = [json.loads(bytes(item)) for item in message.native.items] if message.native else None
    return message.content, thoughts, calls, items


@given(outputs(), st.integers(1, 9))
def test_a_streamed_answer_is_the_plain_one(output: list[dict[str, Any]], size: int) -> None:
    outcome = drive_responses([sse(stream_events(output, size))])
    assert outcome.response is not None
    plain = plainly(output)
    assert said(plain.message) == said(outcome.message)
    assert (plain.usage, plain.finish_reason) == (
        outcome.response.usage,
        outcome.response.finish_reason,
    )
    assert plain.details == outcome.response.details
    assert outcome.told == outcome.said


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
    assert isinstance(outcome.error, ProviderError)
    assert outcome.error.retryable
    assert outcome.told == outcome.said
    assert outcome.message.native is None
    assert plainly(output).message.content.startswith(outcome.message.content)


# --- answers that nobody should give

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
TOKENS = st.sampled_from(["f", "x", "{", '{"a":1}', " ", "\ud83d", "\ude00", "é", "m", "[DONE]"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | TOKENS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TOKENS, inner, max_size=3),
    max_leaves=5,
)


def odd(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what is expected, sometimes anything."""
    return st.one_of(usual, usual, usual, VALUES)


def objects(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return odd(st.fixed_dictionaries({}, optional={k: odd(v) for k, v in members.items()}))


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


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """An event stream of odd events, with an ending or without."""
    text = ""
    for event in draw(st.lists(ODD_EVENTS, max_size=8)):
        text += draw(st.sampled_from(["", "", ": ping\n", "event: ping\n"]))
        text += f"data: {json.dumps(event)}" + draw(st.sampled_from(["\n\n", "\r\n\r\n", "\n"]))
    end = json.dumps({"type": "response.completed", "response": {"status": "completed"}})
    text += draw(st.sampled_from(["", f"data: {end}\n\n", "data: [DONE]\n\n", "data: {"]))
    return text.encode()


@given(streams(), st.lists(st.integers(0, 500), max_size=5))
def test_any_stream_has_one_outcome_however_it_is_cut(data: bytes, places: list[int]) -> None:
    whole = drive_responses([data])
    pieces = cut(data, [place % (len(data) + 1) for place in places])
    assert whole.shape == drive_responses(pieces).shape
    assert whole.shape == drive_responses(bytewise(data)).shape


@given(streams())
def test_any_answer_is_told_by_its_deltas_and_can_be_stored(data: bytes) -> None:
    outcome = drive_responses([data])
    if outcome.response is not None:
        assert outcome.told == outcome.said
    message = outcome.message
    assert message == load_message(dump_message(message))
    ids = [call.id for call in message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


@given(ODD_RESPONSES)
def test_any_plain_answer_is_a_response_or_a_provider_error(answer: Any) -> None:
    failure: Exception | None = None
    try:
        found = decode_response(
            json.dumps(answer).encode(),
            request=Request(()),
            dialect=dialect_named("openai"),
            headers={},
            secret="",
        )
    except ProviderError as error:
        failure = error
    else:
        assert found.message == load_message(dump_message(found.message))
    assert failure is None or str(failure)
