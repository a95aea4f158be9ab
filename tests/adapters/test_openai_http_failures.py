"""`OpenAI` over real loopback sockets: what goes wrong at a server, and what becomes of it."""

from __future__ import annotations

import gzip
import json
import tracemalloc

import httpx
import pytest

from golem.errors import APIError, ProtocolError, TransportError
from golem.fallback import FallbackModel
from golem.model import Response
from golem.testing import ScriptedModel
from golem.wire import http
from golem_adapters import OpenAI, OpenAIResponses
from tests.adapters.driving import delta, events
from tests.adapters.test_openai_http import (
    ANSWER,
    ASK,
    BAD_LOCATIONS,
    KEY,
    failure,
    model_at,
    read,
)
from tests.wire.server import Connection, answering, response, serving


@pytest.mark.parametrize("how", ["close", "chunks", "length"])
async def test_a_stream_cut_in_the_middle_keeps_what_had_come(how: str) -> None:
    part = events(delta(content="Hel"), done=False) + b'data: {"choices":[{"delta":{"content":"lo'

    async def script(connection: Connection) -> None:
        await connection.request()
        if how == "chunks":
            await connection.begin_stream()
            await connection.chunk(part)
        elif how == "length":
            await connection.send(b"HTTP/1.1 200 OK\r\ncontent-length: 9999\r\n\r\n" + part)
        else:
            await connection.send(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n" + part)

    async with serving(script) as server:
        error = await failure(model_at(server.url), stream=True)
    assert isinstance(error, TransportError)
    assert error.retryable
    assert error.partial is not None
    assert error.partial.content == "Hel"


async def test_a_connection_lost_after_the_finish_reason_loses_nothing() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(events(delta(content="Hello"), delta("stop"), done=False))

    async with serving(script) as server:
        _, answer = await read(model_at(server.url))
    assert (answer.message.content, answer.finish_reason) == ("Hello", "stop")


async def test_a_plain_answer_cut_in_the_middle_is_a_transport_error() -> None:
    cut = response(ANSWER)[:-20]

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(cut)

    async with serving(script) as server:
        error = await failure(model_at(server.url))
    assert isinstance(error, TransportError)
    assert str(error) == "127.0.0.1 broke off its answer"
    assert isinstance(error.__cause__, httpx.RemoteProtocolError)


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_status_is_mapped_with_its_body(stream: bool) -> None:
    body = b'{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}'
    headers = "retry-after: 7\r\nx-request-id: req-3\r\n"
    refusal = response(body, status="429 Too Many Requests", headers=headers)
    async with serving(answering(refusal)) as server:
        error = await failure(model_at(server.url), stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.message) == (429, "rate_limit_exceeded", "slow down")
    assert (error.retryable, error.retry_after, error.request_id) == (True, 7.0, "req-3")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (
            b"<html><head><title>502 Bad Gateway</title></head><body>nginx</body></html>",
            "502 Bad Gateway nginx",
        ),
        (b"", "Bad Gateway"),
        (b"{", "{"),
        (b"\xff\xfe", "��"),
        (b"[]", "Bad Gateway"),
        (b"null", "Bad Gateway"),
    ],
)
async def test_an_error_body_may_be_anything(body: bytes, message: str) -> None:
    async with serving(
        answering(response(body, status="502 Bad Gateway", kind="text/html"))
    ) as server:
        error = await failure(model_at(server.url))
    assert isinstance(error, APIError)
    assert (502, message, True) == (error.status, error.message, error.retryable)


async def test_an_error_body_without_end_is_read_to_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "MAX_ERROR_BODY", 1000)

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(b"HTTP/1.1 500 no\r\n\r\n")
        while True:
            await connection.send(b"x" * 1000)

    async with serving(script) as server:
        error = await failure(model_at(server.url))
    assert isinstance(error, APIError)
    assert error.status == 500


async def test_an_answer_without_end_is_refused_at_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "MAX_BODY", 1000)

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            await connection.send(b" " * 1000)

    async with serving(script) as server:
        error = await failure(model_at(server.url))
    assert isinstance(error, ProtocolError)


async def test_a_server_that_quotes_the_key_is_not_quoted() -> None:
    body = json.dumps({"error": {"message": f"bad key {KEY}", "code": KEY}}).encode()
    async with serving(answering(response(body, status="401 Unauthorized"))) as server:
        error = await failure(model_at(server.url))
    assert isinstance(error, APIError)
    assert error.message == "bad key [key]"


async def test_a_stream_that_quotes_the_key_is_not_quoted() -> None:
    for body in (events({"error": {"message": KEY}}), f"data: {KEY}\n\n".encode()):
        async with serving(answering(response(body, kind="text/event-stream"))) as server:
            await failure(model_at(server.url), stream=True)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_redirect_is_not_followed_with_the_key(stream: bool) -> None:
    async with serving(answering(response(ANSWER))) as elsewhere:
        headers = f"location: http://user:pw@localhost:{elsewhere.port}/v1?token=t\r\n"
        move = response(b"", status="307 Temporary Redirect", headers=headers)
        async with serving(answering(move)) as server:
            error = await failure(model_at(server.url), stream=stream)
        assert not elsewhere.requests
    assert "redirects to localhost; give its final address as base_url" in str(error)
    assert not error.retryable


async def test_a_cookie_is_not_kept_for_who_comes_next() -> None:
    """A pool is shared by all keys for a server: what it gave one of them is no other's."""
    cookie = "set-cookie: session=mine; path=/\r\n"
    async with serving(answering(*[response(ANSWER, headers=cookie)] * 2)) as server:
        for key in ("sk-of-the-first", "sk-of-the-second"):
            await OpenAI("m", base_url=server.url, api_key=key).generate(ASK)
        assert (server.connections, len(server.requests)) == (1, 2)
        assert b"cookie" not in server.requests[1].lower()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "coding", ["br", "zstd", "gzip, BR", "x\xe9", "gzip, gzip", "gzip,Deflate"]
)
async def test_an_answer_is_not_unpacked_in_a_way_that_was_not_asked_for(
    coding: str, stream: bool
) -> None:
    packed = f"content-encoding: {coding}\r\n"
    answers = response(ANSWER, headers=packed), response(ANSWER, status="429 No", headers=packed)
    async with serving(answering(answers[0])) as server:
        error = await failure(model_at(server.url), stream=stream)
        assert b"accept-encoding: gzip, deflate\r\n" in server.requests[0].lower()
    assert isinstance(error, ProtocolError)
    assert str(error) == "the answer is compressed in a way that was not asked for"
    async with serving(answering(answers[1])) as server:
        error = await failure(model_at(server.url), stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.message, error.retryable) == (429, "Too Many Requests", True)


@pytest.mark.parametrize("stream", [False, True])
async def test_what_a_server_says_is_cut_where_it_helps_nobody(stream: bool) -> None:
    body = json.dumps({"error": {"message": "m" * 900_000, "code": "c" * 9000}}).encode()
    headers = f"x-request-id: {KEY}{'r' * 9000}\r\n"
    refused = response(body, status="400 Bad Request", headers=headers)
    within = response(events({"error": {"message": "m" * 900_000}}), headers=headers)
    async with serving(answering(refused, within)) as server:
        for _ in range(2):
            error = await failure(model_at(server.url), stream=stream)
            assert isinstance(error, APIError)
            assert error.message == "m" * 10_000 + "…"
            assert error.code in (None, "c" * 256)
            assert (error.request_id or "").startswith("[key]r")
            assert len(error.request_id or "") == 256


async def test_an_id_of_an_answer_does_not_show_the_key() -> None:
    headers = f"x-request-id: req-{KEY}\r\n"
    async with serving(answering(*[response(ANSWER, headers=headers)] * 2)) as server:
        answer = await model_at(server.url).generate(ASK)
        _, streamed = await read(model_at(server.url))
    assert (answer.details.request_id, streamed.details.request_id) == ("req-[key]", "req-[key]")


@pytest.mark.parametrize("stream", [False, True])
async def test_a_host_that_is_none_is_a_final_error(stream: bool) -> None:
    error = await failure(model_at("http://xn--/v1"), stream=stream)
    assert isinstance(error, TransportError)
    assert (str(error), error.retryable) == ("the request to xn-- is not valid HTTP", False)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("status", [300, 301, 302, 303, 304, 307, 308])
@pytest.mark.parametrize("location", BAD_LOCATIONS)
async def test_a_redirect_to_no_address_is_a_final_error_that_says_so(
    location: str | None, status: int, stream: bool
) -> None:
    headers = "" if location is None else f"location: {location}\r\n"
    moved = response(b"", status=f"{status} Moved", headers=headers)
    async with serving(answering(moved, moved)) as server:
        for _ in range(2):  # over a new connection, and over the kept one
            error = await failure(model_at(server.url), stream=stream)
            assert isinstance(error, APIError)
            assert (error.status, error.code, error.retryable) == (status, "redirect", False)
            assert error.message.endswith("base_url")
        assert len(server.requests) == 2


async def test_a_server_that_is_not_there_is_a_retryable_transport_error() -> None:
    async with serving(answering()) as server:
        url = server.url
    error = await failure(model_at(url))
    assert isinstance(error, TransportError)
    assert error.retryable
    assert str(error) == "no connection to 127.0.0.1"


@pytest.mark.parametrize("responses", [False, True], ids=["chat", "responses"])
async def test_the_next_member_answers_where_a_stream_says_that_the_account_is_empty(
    responses: bool,
) -> None:
    error = {"message": "You exceeded your current quota.", "code": "insufficient_quota"}
    broken = b"data: " + json.dumps({"type": "error", "error": error}).encode() + b"\n\n"
    async with serving(answering(response(broken, kind="text/event-stream"))) as server:
        cls = OpenAIResponses if responses else OpenAI
        first = cls("m", api_key=KEY, base_url=server.url)
        result = [x async for x in FallbackModel([first, ScriptedModel(["hi"])]).stream(ASK)]
    assert isinstance(result[-1], Response)
    assert result[-1].message.content == "hi"


@pytest.mark.parametrize("status", ["200 OK", "500 Oops"])
async def test_a_body_that_is_compressed_twice_is_not_unpacked(status: str) -> None:
    """A kilobyte of it unfolds to a gigabyte at once, whatever is read of that."""
    bomb = gzip.compress(gzip.compress(bytes(50_000_000), 1))
    twice = "content-encoding: gzip\r\ncontent-encoding: gzip\r\n"
    async with serving(answering(response(bomb, status=status, headers=twice))) as server:
        tracemalloc.start()
        await failure(model_at(server.url))
        assert tracemalloc.get_traced_memory()[1] < 5_000_000
        tracemalloc.stop()
