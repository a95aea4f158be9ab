"""What holds for every encoder and every run, judged by the protocols' own readers and models."""

from __future__ import annotations

import functools
import json
from typing import Any

import pytest
from ag_ui.core import Event as AGUIEvent
from hypothesis import given, settings
from openai.types.chat import ChatCompletionChunk
from pydantic import TypeAdapter

from golem import AssistantMessage, Event
from golem.web import EncoderFactory, agui, chat_chunks, golem_events, ui_messages
from golem.web.frames import Frame, place_of
from tests.web import streams
from tests.web.judging import Judge

ENCODERS: dict[str, EncoderFactory] = {
    "golem": golem_events,
    "ui5": functools.partial(ui_messages, version=5),
    "ui6": ui_messages,
    "ui7": functools.partial(ui_messages, version=7),
    "agui": agui,
    "chat": chat_chunks(model="golem", created=1, include_usage=True),
}
_agui = TypeAdapter[Any](AGUIEvent)


def order(frame: Frame) -> tuple[float, ...]:
    """Where an id stands."""
    place = place_of(frame.id)
    return place.seq, float("inf") if place.sub is None else place.sub


def payloads(events: list[Event], encode: EncoderFactory) -> list[Any]:
    """The JSON of every frame, without the ``[DONE]`` that has to be the last."""
    data = [frame.data for frame in streams.frames(events, encode)]
    if data[-1:] == [b"[DONE]"]:
        data.pop()
    return [json.loads(item) for item in data]


@pytest.mark.parametrize("name", ENCODERS)
@settings(max_examples=30)
@given(runs=streams.RUNS)
def test_a_reader_that_resumes_gets_every_frame_once(name: str, runs: list[list[Event]]) -> None:
    """Ids rise strictly, and behind each of them come exactly the frames that follow it."""
    for events in runs:
        frames = streams.frames(events, ENCODERS[name])
        assert frames == streams.frames(events, ENCODERS[name])
        places = [order(frame) for frame in frames]
        assert places == sorted(set(places))
        for n, frame in enumerate(frames):
            assert frames[n + 1 :] == streams.frames(events, ENCODERS[name], frame.id)
            assert frame.encode().count(b"\ndata: ") == 1


@settings(max_examples=60)
@given(runs=streams.RUNS)
def test_ag_ui_is_what_its_model_and_its_client_take(judge: Judge, runs: list[list[Event]]) -> None:
    """Each event is valid by itself, all of them in their order."""
    messages: list[Any] = []
    for events in runs:
        for payload in payloads(events, agui):
            event = _agui.validate_python(payload)
            assert not event.model_extra
        read = judge.read("agui", streams.body(events, agui), messages=messages)
        assert read["errors"] == []
        messages = read["messages"]


@pytest.mark.parametrize("version", [5, 6, 7])
@settings(max_examples=60)
@given(runs=streams.RUNS)
def test_ui_messages_are_what_the_ai_sdk_reads(
    judge: Judge, version: Any, runs: list[list[Event]]
) -> None:
    """No chunk is refused, and what they make is a valid message that the SDK can send on."""
    message = None
    for events in runs:
        encode = functools.partial(ui_messages, version=version, message_id="m")
        read = judge.read(f"ui{version}", streams.body(events, encode), message=message)
        told = [chunk["errorText"] for chunk in read["chunks"] if chunk["type"] == "error"]
        assert [{"name": "Error", "message": text} for text in told] == read["errors"]
        assert read["invalid"] is None
        message = responded(read["message"])


def responded(message: dict[str, Any]) -> dict[str, Any]:
    """The message once somebody has answered what it asks, as ``useChat`` keeps it."""
    for part in message["parts"]:
        if part.get("state") == "approval-requested":
            part["state"] = "approval-responded"
            part["approval"]["approved"] = streams.approved(part["approval"]["id"])
    return message


@settings(max_examples=60)
@given(runs=streams.RUNS)
def test_chat_chunks_are_what_openai_s_client_reads(runs: list[list[Event]]) -> None:
    """Each is a chunk, or the error that the client raises; the last is the end."""
    for events in runs:
        found = payloads(events, ENCODERS["chat"])
        for payload in found:
            if "error" in payload:
                assert payload == found[-1]
                continue
            chunk = ChatCompletionChunk.model_validate(payload, strict=True)
            assert chunk.choices or payload is found[-1]


@settings(max_examples=60)
@given(runs=streams.RUNS)
def test_every_word_is_shown_once(runs: list[list[Event]]) -> None:
    """Whether it was streamed or not: the text of the parts is that of the answers."""
    for events in runs:
        said: dict[str, str] = {"text-delta": "", "reasoning-delta": ""}
        for chunk in payloads(events, ui_messages):
            if chunk["type"] in said:
                said[chunk["type"]] += chunk["delta"]
        answers = streams.answers(events)
        whole = "".join(m.content for m in answers)
        # What had come of an answer that broke off need not all have become events.
        partial = getattr(events[-1], "partial", None)
        broken_off = partial.text if partial is not None else ""
        assert said["text-delta"].startswith(whole)
        assert (whole + broken_off).startswith(said["text-delta"])
        thought = "".join(block.text for m in answers for block in m.thinking)
        assert said["reasoning-delta"].startswith(thought)


def calls(messages: list[AssistantMessage]) -> int:
    return sum(len(message.tool_calls) for message in messages)


@settings(max_examples=60)
@given(runs=streams.RUNS)
def test_every_call_is_told_whole_and_ends_at_most_once(runs: list[list[Event]]) -> None:
    """Under an id of its own, also where the model repeats one or gives none."""
    for events in runs:
        chunks = payloads(events, ui_messages)
        begun = [c["toolCallId"] for c in chunks if c["type"] == "tool-input-start"]
        whole = [c["toolCallId"] for c in chunks if c["type"] == "tool-input-available"]
        ended = [c["toolCallId"] for c in chunks if c["type"].startswith("tool-output-")]
        assert len(begun) == len(set(begun))
        assert len(ended) == len(set(ended))
        assert set(ended) <= set(whole) or events[0].run_id == "run-2"
        assert len(whole) >= calls(streams.answers(events))
