"""Recorded traffic of Chat Completions servers, through the decoders and the error mapper.

A selection of the recordings is committed; the whole set is used where it lies beside the
repository.
"""

from __future__ import annotations

import gzip
import json
import random
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from golem.errors import APIError, ProviderError
from golem.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.model import Request, Response
from golem_adapters.openai.dialect import ChatDialect, dialect_named
from golem_adapters.openai.failures import http_error
from golem_adapters.openai.response import decode_response
from tests.adapters.driving import Outcome, bytewise, cut, drive
from tests.adapters.encoding import wire

Row = dict[str, Any]

HERE = Path(__file__).parents[1] / "data" / "traffic" / "openai_chat.jsonl.gz"
WHOLE = Path(__file__).parents[3] / "shared" / "traffic" / "exchanges.jsonl.gz"

DIALECTS = {
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "openrouter.ai": "openrouter",
    "api.z.ai": "zai",
    "generativelanguage.googleapis.com": "gemini-compat",
}


@cache
def rows(place: Path) -> list[Row]:
    if not place.exists():
        return []
    with gzip.open(place, "rt") as lines:
        found: list[Row] = [json.loads(line) for line in lines]
    return [row for row in found if row["api"] == "openai.chat"]


SOURCES = [
    pytest.param(HERE, id="selection"),
    pytest.param(
        WHOLE,
        id="whole",
        marks=pytest.mark.skipif(
            not WHOLE.exists(), reason="the whole recordings are not beside the repository"
        ),
    ),
]


def dialect_of(row: Row) -> ChatDialect:
    return dialect_named(DIALECTS.get(row["host"], "openai"))


def body_of(row: Row) -> bytes:
    response = row["response"]
    return (response if isinstance(response, str) else json.dumps(response)).encode()


def decode(row: Row) -> Response:
    return decode_response(
        body_of(row), request=Request(()), dialect=dialect_of(row), headers={}, secret=""
    )


@pytest.mark.parametrize("place", SOURCES)
def test_every_plain_answer_decodes(place: Path) -> None:
    count = 0
    for row in rows(place):
        if row["status"] != 200 or row["stream"] or row["content_type"] == "text/plain":
            continue
        said = json.loads(body_of(row))
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
def test_every_stream_decodes_the_same_however_it_is_cut(place: Path) -> None:
    dice = random.Random(7)
    count = 0
    for row in rows(place):
        if row["status"] != 200 or not row["stream"]:
            continue
        data, dialect = body_of(row), dialect_of(row)
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
        count += 1
    assert count >= 20


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
def test_every_stream_that_is_cut_keeps_what_had_come(place: Path) -> None:
    dice = random.Random(11)
    for row in rows(place):
        if row["status"] != 200 or not row["stream"] or reported_error(body_of(row)):
            continue
        data, dialect = body_of(row), dialect_of(row)
        finish = max(data.rfind(b'"finish_reason":"'), 0)
        end = dice.randrange(finish or 1)
        outcome = drive([data[:end]], dialect=dialect)
        assert isinstance(outcome.error, ProviderError)
        assert outcome.error.retryable
        assert outcome.told == outcome.said
        whole = drive([data], dialect=dialect).message
        assert whole.content.startswith(outcome.message.content)


@pytest.mark.parametrize("place", SOURCES)
def test_every_error_body_says_what_is_wrong(place: Path) -> None:
    count = 0
    for row in rows(place):
        if row["status"] < 400:
            continue
        data = body_of(row)
        error = http_error(row["status"], row["headers"], data, now=0.0, secret="")
        assert row["status"] == error.status
        assert (row["status"] == 429) == error.retryable
        assert row["headers"].get("x-request-id") == error.request_id
        if data:
            said = json.loads(data)["error"]
            assert said["message"] in error.message
            assert str(said["code"] or said["type"]) == error.code
        count += 1
    assert count >= 8


# --- recorded requests: what others sent, as golem messages and back


def stored(message: Row) -> Message | None:
    """A recorded message of the plain kinds as golem stores it; None for any other."""
    content = message.get("content")
    if isinstance(content, list) or set(message) - PLAIN_MEMBERS:
        return None
    match message["role"]:
        case "system":
            return SystemMessage(content)
        case "user":
            return UserMessage(content)
        case "assistant":
            functions = [(c["id"], c["function"]) for c in message.get("tool_calls") or ()]
            calls = tuple(ToolCall.of(name, f["name"], f["arguments"]) for name, f in functions)
            return AssistantMessage(content or "", tool_calls=calls)
        case "tool":
            return ToolMessage(content, tool_call_id=message["tool_call_id"])
        case _:
            return None


PLAIN_MEMBERS = {"role", "content", "tool_calls", "tool_call_id"}


def normal(message: Row) -> Row:
    """Listed normal forms: absent content is null, a call has these members only."""
    shown = {"content": None, **message}
    if shown["role"] == "assistant":
        shown["content"] = shown["content"] or None
    if "tool_calls" in shown:
        shown["tool_calls"] = [
            {"id": call["id"], "type": "function", "function": dict(call["function"])}
            for call in shown["tool_calls"]
        ]
    return shown


@pytest.mark.parametrize("place", SOURCES)
def test_recorded_requests_are_written_as_others_wrote_them(place: Path) -> None:
    count = 0
    for row in rows(place):
        recorded = (row["request"] or {}).get("messages", ())
        history = [stored(message) for message in recorded]
        ids = [c["id"] for m in recorded for c in m.get("tool_calls") or ()]
        if None in history or len(set(ids)) < len(ids) or any(len(name) > 40 for name in ids):
            continue
        sent = wire([message for message in history if message is not None])
        if any(
            m["role"] == "assistant" and not normal(m)["content"] and "tool_calls" not in m
            for m in recorded
        ):
            continue  # an empty turn, which golem leaves out
        assert [normal(message) for message in recorded] == sent
        count += 1
    assert count >= 50
