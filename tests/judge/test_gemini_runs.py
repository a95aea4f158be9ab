"""Gemini over sockets, at a server that does wrong, where it differs from every other API.

It has no terminator, calls come whole, and the delay stands in the body. What holds for all is in
`test_misbehavior`, `test_runs`, `test_server` and `test_bounds`.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from golem.errors import APIError, TransportError
from golem.messages import AssistantMessage, Thinking, ToolCall, UserMessage
from golem.model import Request, Response
from golem.testing.judge import GeminiJudge, GeminiProvider, Judge, misbehave
from golem.usage import Usage
from golem_adapters import Gemini
from tests.judge.support import APIS, ASK, TEXT, both_ways, failure, outcome, read
from tests.judge.test_misbehavior import HARMLESS

ANSWER = AssistantMessage(TEXT)


GEMINI = APIS["gemini"]


# --- refusals


@both_ways
@pytest.mark.parametrize(
    ("wrong", "status", "code", "retryable", "wait"),
    [
        (misbehave.rate_limited("7"), 429, "RESOURCE_EXHAUSTED", True, 7.0),
        (misbehave.rate_limited("34.074824224"), 429, "RESOURCE_EXHAUSTED", True, 34.074824224),
        (misbehave.rate_limited(), 429, "RESOURCE_EXHAUSTED", True, None),
        (misbehave.rate_limited("3600"), 429, "RESOURCE_EXHAUSTED", False, 3600.0),
        (misbehave.rate_limited("soon"), 429, "RESOURCE_EXHAUSTED", True, None),
        (misbehave.status(400), 400, "INVALID_ARGUMENT", False, None),
        (misbehave.status(403), 403, "PERMISSION_DENIED", False, None),
        (misbehave.status(404), 404, "NOT_FOUND", False, None),
        (misbehave.status(500), 500, "INTERNAL", True, None),
        (misbehave.status(503), 503, "UNAVAILABLE", True, None),
        (misbehave.status(504), 504, "DEADLINE_EXCEEDED", True, None),
        (misbehave.html_page(), 502, None, True, None),
        (misbehave.html_page(403), 403, None, False, None),
    ],
)
async def test_a_refusal_tells_whether_and_when_to_try_again(
    wrong: Any, status: int, code: str | None, retryable: bool, wait: float | None, stream: bool
) -> None:
    """When, is among the details of the body: no header says it."""
    async with GEMINI.judge(wrong) as judge:
        error = await failure(GEMINI.model(judge), judge, stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.retryable) == (status, code, retryable)
    assert error.retry_after == wait
    assert error.message
    assert "<" not in error.message


@both_ways
async def test_the_delay_is_in_the_body(stream: bool) -> None:
    async with GEMINI.judge(misbehave.rate_limited("7")) as judge:
        await failure(GEMINI.model(judge), judge, stream=stream)
        response = await posted(judge, {"contents": [{"parts": [{"text": "hi"}]}]})
    assert "retry-after" not in response.headers
    assert response.json()["error"]["details"][-1] == {
        "@type": "type.googleapis.com/google.rpc.RetryInfo",
        "retryDelay": "7s",
    }


@both_ways
@pytest.mark.parametrize(("dialect", "status"), [("gemini", 400), ("vertex", 401)])
async def test_a_wrong_key_is_refused_as_the_server_does(
    dialect: str, status: int, stream: bool
) -> None:
    async with GeminiJudge(dialect=dialect) as judge:
        at = {"project": "p", "token": "ya29.wrong"} if dialect == "vertex" else {"api_key": "no"}
        model = Gemini("gemini-3", base_url=judge.base_url, **at)
        error = await failure(model, judge, stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.retryable) == (status, False)


async def posted(judge: Judge, body: Any, path: str = "") -> httpx.Response:
    async with httpx.AsyncClient() as client:
        url = judge.base_url + (path or judge.provider.path)
        return await client.post(url, json=body, headers={"x-goog-api-key": judge.key})


async def test_a_body_that_breaks_a_rule_gets_googles_error_and_another_address_a_404() -> None:
    async with GeminiJudge() as judge:
        refused = await posted(judge, {"contents": []})
        lost = await posted(judge, {}, "/models/m:embedContent")
    assert (refused.status_code, refused.json()["error"]["status"]) == (400, "INVALID_ARGUMENT")
    assert (lost.status_code, lost.json()["error"]["status"]) == (404, "NOT_FOUND")


# --- streams


@both_ways
@pytest.mark.parametrize("name", HARMLESS)
async def test_an_odd_but_whole_answer_is_taken(name: str, stream: bool) -> None:
    async with GEMINI.judge(HARMLESS[name], ANSWER) as judge:
        answer = await (read(GEMINI.model(judge)) if stream else GEMINI.model(judge).generate(ASK))
        assert answer.message == ANSWER
    assert judge.violations == []


async def test_a_stream_cut_anywhere_is_whole_or_an_error_with_what_had_come() -> None:
    """It has no terminator: it is whole once the reason of its end has come."""
    calls = tuple(ToolCall.of("", "f", f'{{"n":{n}}}') for n in range(2))
    said = AssistantMessage(TEXT, tool_calls=calls)
    size = len(b"".join(GeminiProvider().events({}, Response(said))))
    told = 0
    for length in range(0, size, 97):
        async with GEMINI.judge(misbehave.cut_at(length), said) as judge:
            answer, error = await outcome(GEMINI.model(judge))
        if answer is not None:
            assert answer.message.content == TEXT
            assert [call.args for call in answer.message.tool_calls] == ['{"n":0}', '{"n":1}']
            continue
        assert isinstance(error, TransportError)
        assert error.retryable
        partial = error.partial or AssistantMessage()
        assert TEXT.startswith(partial.content)
        assert len(partial.content) >= told
        told = len(partial.content)
    assert told == len(TEXT)


async def test_a_stream_without_its_last_event_is_a_transport_error() -> None:
    async with GEMINI.judge(misbehave.without_end(1), ANSWER) as judge:
        error = await failure(GEMINI.model(judge), judge, stream=True)
    assert isinstance(error, TransportError)
    assert error.partial == ANSWER


@pytest.mark.parametrize("after", [1, 3, 6])
async def test_an_error_in_the_middle_of_a_stream_keeps_what_had_come(after: int) -> None:
    wrong = misbehave.error_event(after, "Overloaded, sorry.")
    async with GEMINI.judge(wrong, ANSWER) as judge:
        error = await failure(GEMINI.model(judge), judge, stream=True)
    assert isinstance(error, APIError)
    assert (error.message, error.code, error.retryable) == ("Overloaded, sorry.", "INTERNAL", True)
    assert error.partial is not None
    assert error.partial.content
    assert TEXT.startswith(error.partial.content)


async def test_several_texts_stand_in_one_chunk_and_counts_are_whole_at_the_end() -> None:
    usage = Usage(1000, 30, cache_read_tokens=900, reasoning_tokens=20)
    message = AssistantMessage(TEXT, thinking=(Thinking("Hm. So it is."),))
    chunks = [
        json.loads(line.removeprefix(b"data: "))
        for line in GeminiProvider().events({}, Response(message, usage))
    ]
    parts = [chunk["candidates"][0]["content"]["parts"] for chunk in chunks]
    assert 2 in map(len, parts)
    assert "candidatesTokenCount" not in chunks[0]["usageMetadata"]
    assert [bool(chunk["candidates"][0].get("finishReason")) for chunk in chunks[-2:]] == [0, 1]
    async with GeminiJudge([Response(message, usage)] * 2) as judge:
        model = GEMINI.model(judge)
        plain, streamed = await model.generate(ASK), await read(model)
    assert plain.usage == streamed.usage == usage
    assert plain.message == streamed.message
    assert plain.message.native is not None  # the text is signed


async def test_a_count_is_no_answer_and_is_judged() -> None:
    async with GeminiJudge(["first", "second"]) as judge:
        model = GEMINI.model(judge)
        few = await model.count_tokens([UserMessage("hi")])
        many = await model.count_tokens([UserMessage("hi " * 1000)])
        assert (await model.generate(Request([UserMessage("q")]))).message.content == "first"
        assert 0 < few < many
    assert [asked.path.partition(":")[2] for asked in judge.requests] == [
        *("countTokens", "countTokens", "generateContent")
    ]
