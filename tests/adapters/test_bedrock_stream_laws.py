"""Laws of the Converse decoders: one outcome for one answer, whatever a server leaves out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.codec import dump_message, load_message
from golem.errors import ProviderError
from golem.messages import AssistantMessage, UserMessage
from tests.adapters.conversing import (
    CLAUDE,
    NOVA,
    Event,
    drive,
    framed,
    plainly,
    stream_events,
    wire,
)
from tests.adapters.driving import bytewise, cut
from tests.adapters.oddities import INPUTS, WORDS, check_same
from tests.wire.frames import event

SOME = WORDS.filter(bool)
CITATION = {"title": "T", "location": {"web": {"url": "https://e/"}}}
BLOCKS = st.one_of(
    st.fixed_dictionaries({"text": WORDS}),
    SOME.map(lambda t: {"citationsContent": {"content": [{"text": t}], "citations": [CITATION]}}),
    SOME.map(lambda t: {"reasoningContent": {"reasoningText": {"text": t}}}),
    WORDS.map(lambda t: {"reasoningContent": {"reasoningText": {"text": t, "signature": "sig"}}}),
    st.just({"reasoningContent": {"redactedContent": "c2VhbGVk"}}),
    INPUTS.map(lambda i: {"toolUse": {"name": "f", "input": i}}),
    INPUTS.map(lambda i: {"toolUse": {"name": "nova", "input": i, "type": "server_tool_use"}}),
    st.just({"toolResult": {"toolUseId": "s", "content": [{"json": {"a": 1}}, {"text": "b"}]}}),
    st.just({"image": {"format": "png", "source": {"bytes": "cG5n"}}}),
    st.just({"hologram": {"x": 1}}),
)


@st.composite
def contents(draw: st.DrawFn) -> list[dict[str, Any]]:
    blocks = draw(st.lists(BLOCKS, max_size=5))
    return [
        {"toolUse": {"toolUseId": f"t_{place}", **block["toolUse"]}}
        if "toolUse" in block
        else block
        for place, block in enumerate(blocks)
    ]


def said(message: AssistantMessage) -> Any:
    thoughts = [(b.text, b.signature, b.redacted) for b in message.thinking]
    calls = [(call.id, call.name, call.args) for call in message.tool_calls]
    blocks = [json.loads(bytes(item)) for item in message.native.items] if message.native else None
    return message.content, thoughts, calls, message.parts, blocks


@given(contents(), st.integers(1, 9), st.sampled_from([CLAUDE, NOVA]))
def test_a_streamed_answer_is_the_plain_one(
    content: list[dict[str, Any]], size: int, model: str
) -> None:
    outcome = drive([framed(stream_events(content, size))], model=model)
    check_same(plainly(content, model), outcome, said)


def unindexed(one: Event) -> Event:
    name, payload = one
    return name, {key: value for key, value in payload.items() if key != "contentBlockIndex"}


def zero(one: Event) -> Event:
    name, payload = one
    return name, {**payload, "contentBlockIndex": 0} if "contentBlockIndex" in payload else payload


FUTURE: Event = ("future", {"contentBlockIndex": 0, "delta": {"text": "x"}})
LEFT_OUT: dict[str, Any] = {
    "no indexes": lambda events: list(map(unindexed, events)),
    "one index": lambda events: list(map(zero, events)),
    "no end of blocks": lambda events: [e for e in events if e[0] != "contentBlockStop"],
    "no beginning": lambda events: events[1:],
    "no count": lambda events: events[:-1],
    "unknown events": lambda events: [one for e in events for one in (FUTURE, e)],
    "empty deltas": lambda events: [
        one for e in events for one in (e, ("contentBlockDelta", {"delta": {}}))
    ],
}


@pytest.mark.parametrize("what", LEFT_OUT)
@given(content=contents())
def test_what_servers_leave_out_or_add_changes_nothing(
    what: str, content: list[dict[str, Any]]
) -> None:
    outcome = drive([framed(LEFT_OUT[what](stream_events(content)))])
    assert outcome.response is not None
    assert outcome.told == outcome.said
    assert said(plainly(content).message) == said(outcome.message)


@given(contents(), st.data())
def test_the_outcome_does_not_depend_on_the_cuts(
    content: list[dict[str, Any]], data: st.DataObject
) -> None:
    stream = framed(stream_events(content))
    places = data.draw(st.lists(st.integers(0, len(stream)), max_size=9))
    whole = drive([stream])
    for pieces in (cut(stream, places), bytewise(stream)):
        outcome = drive(pieces)
        assert outcome.told == outcome.said
        assert whole.shape == outcome.shape
        assert said(whole.message) == said(outcome.message)


@given(contents())
def test_an_answer_survives_storage_and_goes_back(content: list[dict[str, Any]]) -> None:
    message = plainly(content).message
    stored = load_message(dump_message(message))
    assert stored == message
    history = [UserMessage("q"), message, UserMessage("n")]
    again = [UserMessage("q"), stored, UserMessage("n")]
    assert wire(again) == wire(history)


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "contentBlockIndex",
                        "start",
                        "delta",
                        "text",
                        "toolUse",
                        "toolUseId",
                        "name",
                    ),
                    *(
                        "input",
                        "reasoningContent",
                        "signature",
                        "redactedContent",
                        "citation",
                        "usage",
                    ),
                    *(
                        "stopReason",
                        "toolResult",
                        "image",
                        "source",
                        "bytes",
                        "trace",
                        "guardrail",
                        "x",
                    ),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
NAMES = st.sampled_from(
    [
        *("messageStart", "contentBlockStart", "contentBlockDelta", "contentBlockStop"),
        *("messageStop", "metadata", "throttlingException", ""),
    ]
)


@given(
    st.lists(st.tuples(NAMES, JUNK, st.sampled_from(["event", "event", "exception"])), max_size=8)
)
def test_whatever_comes_is_an_answer_or_a_typed_error(
    events: list[tuple[str, Any, str]],
) -> None:
    stream = b"".join(event(name, payload, kind) for name, payload, kind in events)
    outcome = drive([stream])
    assert (outcome.response is None) == isinstance(outcome.error, ProviderError)
    assert outcome.told == outcome.said
    assert outcome.shape == drive(bytewise(stream)).shape
    if outcome.response is not None:
        assert load_message(dump_message(outcome.message)) == outcome.message
