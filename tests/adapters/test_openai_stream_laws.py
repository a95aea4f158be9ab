"""Laws of the stream decoder: whatever a server sends, the outcome is typed and consistent."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from golem.codec import dump_message, load_message
from golem.errors import ProviderError
from golem.model import Request
from golem_adapters.openai.dialect import dialect_named
from golem_adapters.openai.failures import http_error
from golem_adapters.openai.response import decode_response
from tests.adapters.driving import bytewise, cut, drive

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
SPOKEN = st.sampled_from(["f", "x", "{", '{"a":1}', " ", "\ud83d", "é", "stop", "error", "[DONE]"])
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | SPOKEN,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SPOKEN, inner, max_size=3),
    max_leaves=5,
)


def odd(usual: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly what is expected, sometimes anything."""
    return st.one_of(usual, usual, usual, VALUES)


def objects(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return odd(st.fixed_dictionaries({}, optional={k: odd(v) for k, v in members.items()}))


FUNCTIONS = objects(name=SPOKEN, arguments=SPOKEN)
CALLS = objects(
    index=st.integers(0, 2),
    id=st.sampled_from(["", "a", "b"]),
    function=FUNCTIONS,
    custom=objects(name=SPOKEN, input=SPOKEN),
    extra_content=objects(google=objects(thought_signature=SPOKEN)),
)
DETAILS = objects(
    type=st.sampled_from(["reasoning.text", "reasoning.summary", "reasoning.encrypted"]),
    text=SPOKEN,
    summary=SPOKEN,
    data=SPOKEN,
    signature=SPOKEN,
    index=st.integers(0, 1),
    id=SPOKEN,
)
SAID = objects(
    content=SPOKEN | st.lists(objects(type=st.sampled_from(["text", "thinking"]), text=SPOKEN)),
    refusal=SPOKEN,
    reasoning=SPOKEN,
    reasoning_content=SPOKEN,
    reasoning_details=st.lists(DETAILS, max_size=2),
    tool_calls=st.lists(CALLS, max_size=3),
    function_call=FUNCTIONS,
    audio=objects(data=SPOKEN, transcript=SPOKEN),
    images=st.lists(objects(image_url=objects(url=SPOKEN)), max_size=1),
)
CHOICES = objects(
    index=st.integers(0, 1), delta=SAID, message=SAID, finish_reason=SPOKEN, error=st.none()
)
CHUNKS = objects(
    id=SPOKEN,
    model=SPOKEN,
    choices=st.lists(CHOICES, max_size=2),
    usage=objects(prompt_tokens=st.integers(), prompt_tokens_details=VALUES),
    error=st.none(),
    x_groq=objects(usage=VALUES),
)


@st.composite
def streams(draw: st.DrawFn) -> bytes:
    """An event stream of odd chunks, with an ending or without."""
    text = ""
    for chunk in draw(st.lists(CHUNKS, max_size=5)):
        text += draw(st.sampled_from(["", "", ": ping\n", "event: x\n", "event: error\n"]))
        text += f"data: {json.dumps(chunk)}" + draw(st.sampled_from(["\n\n", "\r\n\r\n", "\n"]))
    text += draw(st.sampled_from(["", "data: [DONE]\n\n", "data: {", "data: x\n\n"]))
    return text.encode()


@given(streams(), st.lists(st.integers(0, 500), max_size=5))
def test_any_stream_has_one_outcome_however_it_is_cut(data: bytes, places: list[int]) -> None:
    whole = drive([data], dialect="openrouter")
    pieces = cut(data, [place % (len(data) + 1) for place in places])
    assert whole.shape == drive(pieces, dialect="openrouter").shape
    assert whole.shape == drive(bytewise(data), dialect="openrouter").shape


@given(streams())
def test_any_answer_is_told_by_its_deltas_and_can_be_stored(data: bytes) -> None:
    outcome = drive([data], dialect="openrouter")
    if outcome.response is not None:
        assert outcome.told == outcome.said
    message = outcome.message
    assert message == load_message(dump_message(message))
    ids = [call.id for call in message.tool_calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)


@given(CHUNKS)
def test_any_plain_answer_is_a_response_or_a_provider_error(chunk: Any) -> None:
    failure: Exception | None = None
    try:
        response = decode_response(
            json.dumps(chunk).encode(),
            request=Request(()),
            dialect=dialect_named("openrouter"),
            headers={},
            secret="",
        )
    except ProviderError as error:
        failure = error
    else:
        assert response.message == load_message(dump_message(response.message))
    assert failure is None or str(failure)


@given(st.binary(max_size=30) | VALUES.map(lambda value: json.dumps({"error": value}).encode()))
def test_any_error_body_is_an_error(body: bytes) -> None:
    assert str(http_error(500, {}, body, now=0.0, secret=""))
