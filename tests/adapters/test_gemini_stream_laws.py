"""Laws of the Gemini decoders: one outcome for one answer, whatever a server makes of it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from golem.codec import dump_message, load_message
from golem.errors import TransportError
from golem.messages import AssistantMessage
from tests.adapters.generating import (
    answer,
    compact,
    decode,
    drive,
    plainly,
    sse,
    streamed,
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

SIGNED = {"thoughtSignature": st.sampled_from(["c2ln", "c2lnMg=="])}
PNG = {"inlineData": {"mimeType": "image/png", "data": "iVBORw0KGgo="}}

PARTS = st.one_of(
    st.fixed_dictionaries({"text": WORDS}),
    st.fixed_dictionaries({"text": WORDS}, optional=SIGNED),
    st.fixed_dictionaries({"text": WORDS, "thought": st.just(True)}, optional=SIGNED),
    st.fixed_dictionaries(
        {
            "functionCall": st.fixed_dictionaries(
                {"name": st.sampled_from(["f", "g"]), "args": INPUTS},
                optional={"id": st.just("x")},
            )
        },
        optional=SIGNED,
    ),
    st.just(PNG),
    st.fixed_dictionaries({"executableCode": st.just({"language": "PYTHON", "code": "1"})}),
    st.fixed_dictionaries({"toolCall": st.just({"id": "t", "toolType": "X"})}, optional=SIGNED),
)


@st.composite
def contents(draw: st.DrawFn) -> list[dict[str, Any]]:
    parts = draw(st.lists(PARTS, max_size=5))
    return [numbered(part, place) for place, part in enumerate(parts)]


def numbered(part: dict[str, Any], place: int) -> dict[str, Any]:
    called = part.get("functionCall", {})
    return {**part, "functionCall": {**called, "id": f"x{place}"}} if "id" in called else part


def said(message: AssistantMessage) -> Any:
    items = [json.loads(bytes(item)) for item in message.native.items] if message.native else None
    return message.content, message.thinking, message.tool_calls, message.parts, items


@given(contents(), st.integers(1, 9))
def test_a_streamed_answer_is_the_plain_one(content: list[dict[str, Any]], size: int) -> None:
    outcome = drive([sse(streamed(content, size))])
    check_same(plainly(content), outcome, said)


@given(contents())
def test_a_stream_that_came_as_one_array_is_the_same(content: list[dict[str, Any]]) -> None:
    """As the server sends it where it was not asked for events, and gateways do not care."""
    whole = compact(streamed(content))
    outcome = drive([whole])
    assert said(plainly(content).message) == said(outcome.message)
    assert outcome.told == outcome.said


@given(contents(), st.data())
def test_a_stream_that_is_cut_keeps_what_had_come(
    content: list[dict[str, Any]], data: st.DataObject
) -> None:
    chunks = streamed(content)[:-1]
    came = chunks[: data.draw(st.integers(0, len(chunks)))]
    outcome = drive([sse(came)])
    check_lost(outcome, plainly(content), TransportError)


@given(contents())
def test_an_answer_can_be_stored(content: list[dict[str, Any]]) -> None:
    message = plainly(content).message
    assert message == load_message(dump_message(message))


# --- answers that nobody should give

ODD = Odd()
VALUES, objects = ODD.values, ODD.objects


PATHS = st.sampled_from(["$.a", "$.a.b", "$.b[0]", "$.b[1].c", "$['x y']", "$", "a", "$[0]", ""])
ARGUMENTS = objects(
    jsonPath=PATHS,
    stringValue=TOKENS,
    numberValue=st.integers(0, 3),
    boolValue=st.booleans(),
    willContinue=st.booleans(),
)
ODD_PARTS = objects(
    text=TOKENS,
    thought=st.booleans(),
    thoughtSignature=TOKENS,
    functionCall=objects(
        id=st.sampled_from(["", "a", "b"]),
        name=TOKENS,
        args=st.sampled_from([{}, {"a": 1}, None, "{", "", [], {"a": "\ud800"}]),
        partialArgs=st.lists(ARGUMENTS, max_size=2),
        willContinue=st.booleans(),
    ),
    inlineData=objects(mimeType=st.sampled_from(["image/png", ""]), data=st.just("eA==") | TOKENS),
    fileData=objects(mimeType=TOKENS, fileUri=TOKENS),
    executableCode=VALUES,
)
ODD_CHUNKS = objects(
    candidates=st.lists(
        objects(
            index=st.integers(0, 1),
            content=objects(parts=st.lists(ODD_PARTS, max_size=3), role=TOKENS),
            finishReason=st.sampled_from(["STOP", "MAX_TOKENS", "SAFETY", "", "NEW"]),
            finishMessage=TOKENS,
        ),
        max_size=2,
    ),
    promptFeedback=objects(blockReason=TOKENS, blockReasonMessage=TOKENS),
    usageMetadata=objects(promptTokenCount=st.integers(), thoughtsTokenCount=VALUES),
    modelVersion=TOKENS,
    responseId=TOKENS,
    error=st.none(),
)


END = json.dumps(answer([]))
STREAMS = event_streams(
    ODD_CHUNKS,
    ["", f"data: {END}\n\n", f"data: {END}", "data: {"],
)


@given(STREAMS, st.lists(st.integers(0, 500), max_size=5))
def test_any_stream_has_one_outcome_however_it_is_cut(data: bytes, places: list[int]) -> None:
    check_cuts(drive, data, places)


@given(STREAMS)
def test_any_answer_is_told_by_its_deltas_and_can_be_stored(data: bytes) -> None:
    check_told(drive([data]))


@given(ODD_CHUNKS)
def test_any_plain_answer_is_a_response_or_a_provider_error(chunk: Any) -> None:
    check_plain(decode, chunk)
