"""Recorded traffic of Chat Completions servers, through the decoders and the error mapper.

A selection of the recordings is committed; the whole set is used where it lies beside the
repository.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from golem.errors import APIError, ProviderError
from golem.history import repair
from golem.messages import AssistantMessage
from golem.model import Request, Response
from golem_adapters.openai.dialect import ChatDialect, dialect_named
from golem_adapters.openai.failures import http_error
from golem_adapters.openai.request import encode_request
from golem_adapters.openai.response import decode_response
from tests.adapters.driving import Outcome, bytewise, cut, drive
from tests.adapters.encoding import check
from tests.adapters.recorded_chat import NoPlaceError, canonical, message_of, request_of
from tests.recordings import Place, Row, body_in, recorded, sources

DIALECTS = {
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "openrouter.ai": "openrouter",
    "api.cerebras.ai": "cerebras",
    "api.together.xyz": "together",
    "api.z.ai": "zai",
    "generativelanguage.googleapis.com": "gemini-compat",
}


@cache
def rows(place: Place) -> list[Row]:
    return [row for row in recorded(place) if row["api"] == "openai.chat"]


SOURCES = sources("openai_chat")


def dialect_of(row: Row) -> ChatDialect:
    return dialect_named(DIALECTS.get(row["host"], "openai"))


def decode(row: Row) -> Response:
    return decode_response(
        body_in(row), request=Request(()), dialect=dialect_of(row), headers={}, secret=""
    )


@pytest.mark.parametrize("place", SOURCES)
def test_every_plain_answer_decodes(place: Place) -> None:
    count = 0
    for row in rows(place):
        if row["status"] != 200 or row["stream"] or row["content_type"] == "text/plain":
            continue
        said = json.loads(body_in(row))
        if "error" in said:
            with pytest.raises(APIError, match=re.escape(said["error"]["message"])):
                decode(row)
            continue
        response = decode(row)
        said, counted = said["choices"][0]["message"], said["usage"]
        calls = [call["function"] for call in said.get("tool_calls") or ()]
        old = said.get("function_call") or {}
        calls += [old] if old.get("name") else []
        assert [(call["name"], call.get("arguments", "").strip() or "{}") for call in calls] == [
            (call.name, call.args) for call in response.message.tool_calls
        ]
        if isinstance(said.get("content"), str):
            assert said["content"] + (said.get("refusal") or "") == response.message.content
        assert counted["prompt_tokens"] == response.usage.input_tokens
        assert counted["completion_tokens"] == response.usage.output_tokens
        assert response.finish_reason != "other" or row["host"].endswith("snowflakecomputing.com")
        count += 1
    assert count >= 20


@pytest.mark.parametrize("place", SOURCES)
def test_every_stream_decodes_the_same_however_it_is_cut(place: Place) -> None:
    dice = random.Random(7)
    count = 0
    for row in rows(place):
        if row["status"] != 200 or not row["stream"]:
            continue
        data, dialect = body_in(row), dialect_of(row)
        places = [dice.randrange(len(data)) for _ in range(dice.randrange(1, 40))]
        outcomes = [
            drive([data], dialect=dialect),
            drive(cut(data, places), dialect=dialect),
            *([drive(bytewise(data), dialect=dialect)] if len(data) < 20_000 else []),
        ]
        assert all(outcome.told == outcome.said for outcome in outcomes)
        assert all(outcome.shape == outcomes[0].shape for outcome in outcomes)
        assert reported_error(data) == isinstance(outcomes[0].error, APIError)
        check_content(data, outcomes[0])
        if outcomes[0].response is not None:
            row_plain = {**row, "response": assembled(data)}
            plain, streamed = decode(row_plain), outcomes[0].response
            assert shown(plain) == shown(streamed)
        count += 1
    assert count >= 20


def shown(response: Response) -> tuple[Any, ...]:
    """What a response says, without ids that golem had to mint and how thinking is cut."""
    message = response.message
    calls = [(call.name, call.args) for call in message.tool_calls]
    thoughts = "".join(block.text for block in message.thinking)
    return message.content, thoughts, calls, response.usage, response.finish_reason


def assembled(data: bytes) -> Row:
    """The plain answer that a stream is, by a plain reading of its recorded lines."""
    said: Row = {"content": "", "reasoning": "", "refusal": "", "tool_calls": {}}
    usage: Any = None
    finish = None
    for line in data.decode().splitlines():
        if not line.startswith("data: {"):
            continue
        chunk = json.loads(line[6:])
        usage = chunk.get("usage") or usage or (chunk.get("x_groq") or {}).get("usage")
        for choice in chunk.get("choices") or ():
            finish = choice.get("finish_reason") or finish
            delta = choice.get("delta") or {}
            content = delta.get("content") or ""
            if not isinstance(content, str):
                content = "".join(part.get("text", "") for part in content)
            said["content"] += content
            said["refusal"] += delta.get("refusal") or ""
            details = delta.get("reasoning_details") or ()
            thought = "".join(d.get("text") or d.get("summary") or "" for d in details)
            said["reasoning"] += (
                thought or delta.get("reasoning_content") or delta.get("reasoning") or ""
            )
            for piece in delta.get("tool_calls") or ():
                at = piece.get("index", len(said["tool_calls"]))
                call = said["tool_calls"].setdefault(at, {"name": "", "arguments": ""})
                for name, value in (piece.get("function") or {}).items():
                    call[name] += value or ""
    said["tool_calls"] = [{"id": "", "function": f} for f in said["tool_calls"].values()]
    return {"choices": [{"message": said, "finish_reason": finish}], "usage": usage}


def reported_error(data: bytes) -> bool:
    return b'"error":{' in data


def check_content(data: bytes, outcome: Outcome) -> None:
    """The text is what a plain reading of the recorded lines gives."""
    text = ""
    for line in data.decode().splitlines():
        if line.startswith("data: {"):
            for choice in json.loads(line[6:]).get("choices") or ():
                said = choice.get("delta") or {}
                text += (said.get("content") or "") + (said.get("refusal") or "")
    assert text == outcome.message.content


@pytest.mark.parametrize("place", SOURCES)
def test_every_stream_that_is_cut_keeps_what_had_come(place: Place) -> None:
    dice = random.Random(11)
    for row in rows(place):
        if row["status"] != 200 or not row["stream"] or reported_error(body_in(row)):
            continue
        data, dialect = body_in(row), dialect_of(row)
        finish = max(data.rfind(b'"finish_reason":"'), 0)
        end = dice.randrange(finish or 1)
        outcome = drive([data[:end]], dialect=dialect)
        assert isinstance(outcome.error, ProviderError)
        assert outcome.error.retryable
        assert outcome.told == outcome.said
        whole = drive([data], dialect=dialect).message
        assert whole.content.startswith(outcome.message.content)


@pytest.mark.parametrize("place", SOURCES)
def test_every_error_body_says_what_is_wrong(place: Place) -> None:
    count = 0
    for row in rows(place):
        if row["status"] < 400:
            continue
        data = body_in(row)
        error = http_error(row["status"], row["headers"], data, now=0.0, secret="")
        assert row["status"] == error.status
        assert (row["status"] == 429) == error.retryable
        assert row["headers"].get("x-request-id") == error.request_id
        if data:
            said = json.loads(data)["error"]
            assert said["message"] in error.message
            assert error.retry_after is None
            assert str(said["code"] or said["type"]) == error.code
        count += 1
    assert count >= 8


# --- recorded requests: what others sent, as golem messages and back


def sent_for(row: Row) -> tuple[Row, bytes]:
    """The recorded body, and the one that golem writes for the same request."""
    body, dialect = row["request"], dialect_of(row)
    request, settings = request_of(body, dialect)
    written = encode_request(
        msgspec.structs.replace(request, messages=list(repair(request.messages))),
        model=body["model"],
        settings=settings,
        dialect=dialect,
        stream=bool(body.get("stream")),
    )
    return body, written


def asked(place: Place) -> Iterator[Row]:
    """The rows whose requests golem's messages have a place for."""
    for row in rows(place):
        try:
            if row["request"]:
                request_of(row["request"], dialect_of(row))
                yield row
        except NoPlaceError as error:
            if str(error) != "file":  # by a server's id: all there is no place for
                raise


@pytest.mark.parametrize("place", SOURCES)
def test_recorded_requests_are_written_as_others_wrote_them(place: Place) -> None:
    count = 0
    for row in asked(place):
        body, written = sent_for(row)
        dialect = dialect_of(row)
        assert canonical(body, dialect) == canonical(json.loads(written), dialect)
        if row["status"] == 200:
            assert not set(check("openai-chat", json.loads(written))) - {"starts_with_user"}
        count += 1
    assert count >= 100


def growing(place: Place) -> Iterator[tuple[Row, Row]]:
    """Recordings of one file whose second request goes on where the first one ended."""
    by_file: dict[str, list[Row]] = {}
    for row in asked(place):
        by_file.setdefault(row["file"], []).append(row)
    for recordings in by_file.values():
        for shorter, longer in pairwise(recordings):
            begun, grown = shorter["request"]["messages"], longer["request"]["messages"]
            if len(begun) < len(grown) and grown[: len(begun)] == begun:
                yield shorter, longer


@pytest.mark.parametrize("place", SOURCES)
def test_requests_that_grow_stay_append_only(place: Place) -> None:
    count = 0
    for rows_of_one in growing(place):
        first, second = (sent_for(row)[1].partition(b'"messages":')[2] for row in rows_of_one)
        assert second.startswith(first.removesuffix(b"]}"))
        count += 1
    assert count >= 10


THOUGHTS = re.compile(r"\s*<think>.*?</think>\s*", re.DOTALL)


@pytest.mark.parametrize("place", SOURCES)
def test_an_answer_is_decoded_to_what_others_sent_back(place: Place) -> None:
    """In turns with calls, whose ids tell that a client left them as they were."""
    count = 0
    for shorter, longer in growing(place):
        back = longer["request"]["messages"][len(shorter["request"]["messages"])]
        if shorter["status"] != 200 or back["role"] != "assistant":
            continue
        dialect = dialect_of(shorter)
        if shorter["stream"]:
            said = drive([body_in(shorter)], dialect=dialect).message
        else:
            said = decode(shorter).message
        theirs = message_of(back, dialect)
        assert isinstance(theirs, AssistantMessage)
        ids = [call.id for call in said.tool_calls]
        if not ids or ids != [call.id for call in theirs.tool_calls]:
            continue
        assert said.content == THOUGHTS.sub("", theirs.content)
        assert [(c.name, c.arguments()) for c in said.tool_calls] == [
            (c.name, c.arguments()) for c in theirs.tool_calls
        ]
        count += 1
    assert count >= 10
