"""Recorded traffic of the Responses API, through the decoders, the error mapper and back.

A selection of the recordings is committed; the whole set is used where it lies beside the
repository.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from golem.errors import APIError, ProviderError
from golem.history import repair
from golem.messages import AssistantMessage
from golem.model import Request, Response
from golem_adapters.openai.failures import http_error
from golem_adapters.openai_responses.dialect import ResponsesDialect, dialect_named
from golem_adapters.openai_responses.request import encode_request
from golem_adapters.openai_responses.response import decode_response
from tests.adapters.driving import bytewise, cut, drive_responses
from tests.adapters.encoding import check
from tests.adapters.recorded_responses import NoPlaceError, canonical, request_of
from tests.recordings import Place, Row, body_in, recorded, sources

Item = dict[str, Any]


SOURCES = sources("openai_responses")


@cache
def rows(place: Place) -> list[Row]:
    return [row for row in recorded(place) if row["api"] == "openai.responses"]


def decode(body: bytes) -> Response:
    return decode_response(
        body, request=Request(()), dialect=dialect_named("openai"), headers={}, secret=""
    )


def said_in(output: Iterable[Item]) -> tuple[str, list[tuple[str, str, str]]]:
    """Text and calls as a plain reading of the items gives them."""
    text, calls = "", []
    for item in output:
        for part in item.get("content") or () if item["type"] == "message" else ():
            text += part.get("text") or part.get("refusal") or ""
        if item["type"] == "function_call":
            calls.append((item["call_id"], item["name"], item["arguments"] or "{}"))
    return text, calls


def said_by(message: AssistantMessage) -> tuple[str, list[tuple[str, str, str]]]:
    return message.content, [(call.id, call.name, call.args) for call in message.tool_calls]


@pytest.mark.parametrize("place", SOURCES)
def test_every_plain_answer_decodes(place: Place) -> None:
    count = 0
    for row in rows(place):
        if row["status"] != 200 or row["stream"]:
            continue
        answer, response = json.loads(body_in(row)), decode(body_in(row))
        assert said_in(answer["output"]) == said_by(response.message)
        counted = answer["usage"] or {}
        assert counted.get("input_tokens", 0) == response.usage.input_tokens
        assert counted.get("output_tokens", 0) == response.usage.output_tokens
        assert (response.finish_reason == "other") == (answer["status"] == "queued")
        if response.message.native is not None:
            kept = [json.loads(bytes(item)) for item in response.message.native.items]
            assert answer["output"] == kept
        count += 1
    assert count >= 80


@pytest.mark.parametrize("place", SOURCES)
def test_every_stream_decodes_the_same_however_it_is_cut_and_as_a_plain_answer(
    place: Place,
) -> None:
    dice = random.Random(7)
    count = 0
    for row in rows(place):
        if row["status"] != 200 or not row["stream"]:
            continue
        data = body_in(row)
        places = [dice.randrange(len(data)) for _ in range(dice.randrange(1, 40))]
        outcomes = [
            drive_responses([data]),
            drive_responses(cut(data, places)),
            *([drive_responses(bytewise(data))] if len(data) < 20_000 else []),
        ]
        assert all(outcome.told == outcome.said for outcome in outcomes)
        assert all(outcome.shape == outcomes[0].shape for outcome in outcomes)
        plain, streamed = decode(last_response(data)), outcomes[0].response
        assert streamed is not None
        assert (plain.message, plain.usage, plain.finish_reason, plain.details) == (
            streamed.message,
            streamed.usage,
            streamed.finish_reason,
            streamed.details,
        )
        count += 1
    assert count >= 40


def events_of(data: bytes) -> Iterator[Row]:
    for line in data.decode().splitlines():
        if line.startswith("data: {"):
            yield json.loads(line[6:])


def last_response(data: bytes) -> bytes:
    """The response that the last event holds, as a plain answer."""
    line = [line for line in data.splitlines() if line.startswith(b"data: {")][-1]
    answer = json.loads(line[6:])["response"]
    return json.dumps(answer, separators=(",", ":"), ensure_ascii=False).encode()


@pytest.mark.parametrize("place", SOURCES)
def test_without_the_last_response_the_pieces_say_the_same(place: Place) -> None:
    for row in rows(place):
        if row["status"] != 200 or not row["stream"]:
            continue
        events = list(events_of(body_in(row)))
        whole = drive_responses([body_in(row)]).message
        output, events[-1]["response"]["output"] = events[-1]["response"]["output"], []
        data = "".join(f"data: {json.dumps(event)}\n\n" for event in events).encode()
        pieced = drive_responses([data])
        assert pieced.told == pieced.said
        assert said_by(whole) == said_by(pieced.message)
        # Each event seals the same reasoning anew: the text and the ids are what can be equal.
        thoughts = [(block.text, block.id) for block in whole.thinking]
        assert thoughts == [(block.text, block.id) for block in pieced.message.thinking]
        if pieced.message.native is not None:
            kept = [json.loads(bytes(item)) for item in pieced.message.native.items]
            assert [item["type"] for item in output] == [item["type"] for item in kept]


@pytest.mark.parametrize("place", SOURCES)
def test_every_stream_that_is_cut_keeps_what_had_come(place: Place) -> None:
    dice = random.Random(11)
    for row in rows(place):
        if row["status"] != 200 or not row["stream"]:
            continue
        data = body_in(row)
        end = dice.randrange(data.rfind(b"event: response."))
        outcome = drive_responses([data[:end]])
        assert isinstance(outcome.error, ProviderError)
        assert outcome.error.retryable
        assert outcome.told == outcome.said
        assert drive_responses([data]).message.content.startswith(outcome.message.content)


@pytest.mark.parametrize("place", SOURCES)
def test_every_error_body_says_what_is_wrong(place: Place) -> None:
    count = 0
    for row in rows(place):
        if row["status"] < 400:
            continue
        data = body_in(row)
        error = http_error(row["status"], row["headers"], data, now=0.0, secret="")
        said = json.loads(data)["error"]
        assert isinstance(error, APIError)
        assert (row["status"], said["message"]) == (error.status, error.message)
        assert str(said["code"] or said["type"]) == error.code
        assert not error.retryable
        assert row["headers"].get("x-request-id") == error.request_id
        count += 1
    assert count >= 5


# --- recorded requests: what others sent, as golem messages and back


PLAIN = {"message", "reasoning", "function_call", "function_call_output"}
DIALECTS = {
    "api.deepseek.com": "deepseek",
    "pydantic-ai-realtime-dev.openai.azure.com": "azure",
}


def dialect_of(row: Row) -> ResponsesDialect:
    return dialect_named(DIALECTS.get(row["host"], "openai"))


def asked(place: Place) -> Iterator[tuple[Row, bytes]]:
    """The rows whose requests golem's messages have a place for, and what golem writes."""
    for row in rows(place):
        try:
            if row["request"]:
                yield row, sent_for(row["request"], dialect_of(row))
        except NoPlaceError as error:
            if str(error) not in NO_PLACE:
                raise


NO_PLACE = (
    *("file_id", "additional_tools", "tool_search_call"),
    *("previous_response_id", "conversation"),
)


def sent_for(body: Row, dialect: ResponsesDialect) -> bytes:
    """What golem writes for the request that `body` makes."""
    request, settings, summary = request_of(body, dialect)
    return encode_request(
        msgspec.structs.replace(request, messages=list(repair(request.messages))),
        model=body["model"],
        settings=settings,
        dialect=dialect,
        stream=bool(body.get("stream")),
        reasoning_summary=summary,
    )


@pytest.mark.parametrize("place", SOURCES)
def test_recorded_requests_are_written_as_others_wrote_them(place: Place) -> None:
    count = 0
    for row, written in asked(place):
        body = json.loads(written)
        theirs, ours = canonical(row["request"]), canonical(body)
        if row["status"] == 400:  # refused for the order of results, which golem puts right
            theirs["input"], ours["input"] = (sorted(s["input"], key=repr) for s in (theirs, ours))
        assert theirs == ours
        # The checker knows no hosted tools, which reasoning leads to as well.
        if row["status"] == 200 and all(item["type"] in PLAIN for item in body["input"]):
            theirs = row["request"]["input"]
            accepted = check("openai-responses", {"input": theirs if theirs != str(theirs) else []})
            assert set(check("openai-responses", body)) <= {"starts_with_user", *accepted}
        count += 1
    assert count >= 100


@pytest.mark.parametrize("place", SOURCES)
def test_requests_that_grow_stay_append_only(place: Place) -> None:
    count = 0
    by_file: dict[str, list[tuple[Row, bytes]]] = {}
    for row, written in asked(place):
        by_file.setdefault(row["file"], []).append((row, written))
    for recordings in by_file.values():
        for (shorter, first), (longer, second) in pairwise(recordings):
            begun, grown = shorter["request"]["input"], longer["request"]["input"]
            if isinstance(begun, str) or not len(begun) < len(grown):
                continue
            told = [row["request"].get("instructions") for row in (shorter, longer)]
            if grown[: len(begun)] != begun or told[0] != told[1]:
                continue
            short, long = (data.partition(b'"input":')[2] for data in (first, second))
            assert long.startswith(short.removesuffix(b"]}"))
            count += 1
    assert count >= 10
