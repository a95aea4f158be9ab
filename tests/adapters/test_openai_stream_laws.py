"""Laws of the stream decoder: whatever a server sends, the outcome is typed and consistent."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from golem.model import Request, Response
from golem_adapters.openai.dialect import dialect_named
from golem_adapters.openai.failures import http_error
from golem_adapters.openai.response import decode_response
from tests.adapters.driving import drive
from tests.adapters.oddities import Odd, check_cuts, check_plain, check_told, event_streams

SPOKEN = st.sampled_from(["f", "x", "{", '{"a":1}', " ", "\ud83d", "é", "stop", "error", "[DONE]"])
ODD = Odd(SPOKEN)
VALUES, objects = ODD.values, ODD.objects
openrouter = partial(drive, dialect="openrouter")


def decode(body: bytes) -> Response:
    record = dialect_named("openrouter")
    return decode_response(body, request=Request(()), dialect=record, headers={}, secret="")


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


STREAMS = event_streams(
    CHUNKS,
    ["", "data: [DONE]\n\n", "data: {", "data: x\n\n"],
    between=("", "", ": ping\n", "event: x\n", "event: error\n"),
    most=5,
)


@given(STREAMS, st.lists(st.integers(0, 500), max_size=5))
def test_any_stream_has_one_outcome_however_it_is_cut(data: bytes, places: list[int]) -> None:
    check_cuts(openrouter, data, places)


@given(STREAMS)
def test_any_answer_is_told_by_its_deltas_and_can_be_stored(data: bytes) -> None:
    check_told(openrouter([data]))


@given(CHUNKS)
def test_any_plain_answer_is_a_response_or_a_provider_error(chunk: Any) -> None:
    check_plain(decode, chunk)


@given(st.binary(max_size=30) | VALUES.map(lambda value: json.dumps({"error": value}).encode()))
def test_any_error_body_is_an_error(body: bytes) -> None:
    assert str(http_error(500, {}, body, now=0.0, secret=""))
