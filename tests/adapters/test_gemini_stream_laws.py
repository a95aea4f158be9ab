"""Laws of the Gemini decoders: one outcome for one answer, whatever a server makes of it."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from golem.codec import dump_message, load_message
from golem.errors import ProviderError, TransportError
from golem.messages import AssistantMessage
from tests.adapters.driving import bytewise, cut
from tests.adapters.generating import (
    answer,
    compact,
    decode,
    drive,
    plainly,
    sse,
    streamed,
)

# --- answers as the provider gives them

WORDS = st.text(max_size=8) | st.sampled_from(["\U0001f600\U0001f600", " ", "a\nb", "é", ""])
INPUTS = st.sampled_from([{}, {"a": 1}, {"a": "\U0001f600"}, {"b": [1.5, None], "c": {"d": " "}}])
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
    plain = plainly(content)
    assert outcome.response is not None
    assert said(plain.message) == said(outcome.message)
    response = outcome.response
    assert (plain.usage, plain.finish_reason) == (response.usage, response.finish_reason)
    assert plain.details == response.details
    assert outcome.told == outcome.said


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
    assert isinstance(outcome.error, TransportError)
    assert outcome.error.retryable
    assert outcome.told == outcome.said
    assert outcome.message.native is None
    assert plainly(content).message.content.startswith(outcome.message.content)


@given(contents())
def test_an_answer_can_be_stored(content: list[dict[str, Any]]) -> None:
    message = plainly(content).message
    assert message == load_message(dump_message(message))


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


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """An event stream of odd chunks, with an ending or without."""
    text = ""
    for chunk in draw(st.lists(ODD_CHUNKS, max_size=8)):
        text += draw(st.sampled_from(["", "", ": ping\n", "event: ping\n"]))
        text += f"data: {json.dumps(chunk)}" + draw(st.sampled_from(["\n\n", "\r\n\r\n", "\n"]))
    end = json.dumps(answer([]))
    text += draw(st.sampled_from(["", f"data: {end}\n\n", f"data: {end}", "data: {"]))
    return text.encode()


@given(streams(), st.lists(st.integers(0, 500), max_size=5))
def test_any_stream_has_one_outcome_however_it_is_cut(data: bytes, places: list[int]) -> None:
    whole = drive([data])
    pieces = cut(data, [place % (len(data) + 1) for place in places])
    assert whole.shape == drive(pieces).shape
    assert whole.shape == drive(bytewise(data)).shape


@given(streams())
def test_any_answer_is_told_by_its_deltas_and_can_be_stored(data: bytes) -> None:
    outcome = drive([data])
    if outcome.response is not None:
        assert outcome.told == outcome.said
    message = outcome.message
    assert message == load_message(dump_message(message))
    ids = [call.id for call in message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


@given(ODD_CHUNKS)
def test_any_plain_answer_is_a_response_or_a_provider_error(chunk: Any) -> None:
    failure: Exception | None = None
    try:
        found = decode(json.dumps(chunk).encode())
    except ProviderError as error:
        failure = error
    else:
        assert found.message == load_message(dump_message(found.message))
    assert failure is None or str(failure)
