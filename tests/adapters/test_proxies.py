"""The pool's surroundings: proxies, shared certificates, and gateways that stream regardless."""

from __future__ import annotations

import ssl

import httpx
import pytest

from golem.errors import APIError, TransportError
from golem.wire import http
from tests.adapters.driving import events
from tests.adapters.test_openai_http import ANSWER, ASK, STREAM, either, failure, model_at, read
from tests.wire.server import answering, response, serving


async def test_an_own_clients_proxy_is_used() -> None:
    async with (
        serving(answering(response(ANSWER))) as proxy,
        httpx.AsyncClient(proxy=f"http://127.0.0.1:{proxy.port}") as client,
    ):
        model = model_at("http://provider.test/v1", http_client=client)
        assert (await model.generate(ASK)).message.content == "Hello"
    assert proxy.requests[0].startswith(b"POST http://provider.test/v1/chat/completions ")


async def test_the_environments_proxy_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving(either) as proxy:
        monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
        model = model_at("http://provider.test/v1")
        assert (await model.generate(ASK)).message.content == "Hello"
        _, streamed = await read(model)
        assert streamed.message.content == "Hello"
        await model.aclose()
    assert all(b"http://provider.test/v1/" in request for request in proxy.requests)


async def test_a_proxy_that_cannot_be_used_is_an_error_that_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "gopher://user:hidden@127.0.0.1:1")
    error = await failure(model_at("http://provider.test/v1"))
    assert isinstance(error, TransportError)
    assert not error.retryable
    assert "proxy" in str(error)


# --- certificates and streams nobody asked for


async def test_certificates_are_read_once_for_all_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    read_in: list[ssl.SSLContext] = []
    original = httpx.create_ssl_context

    def counting() -> ssl.SSLContext:
        read_in.append(original())
        return read_in[-1]

    monkeypatch.setattr(httpx, "create_ssl_context", counting)
    http._ssl_context.cache_clear()
    async with serving(either) as one, serving(either) as other:
        for server in (one, other):
            model = model_at(server.url)
            await model.generate(ASK)
            await model.aclose()
    assert len(read_in) == 1


async def test_a_stream_where_a_plain_answer_was_asked_for_is_read_too() -> None:
    streamed = response(STREAM, kind="text/event-stream", headers="x-request-id: r\r\n")
    broken = response(events({"error": {"message": "no", "code": 503}}), kind="text/event-stream")
    async with serving(answering(streamed, broken)) as server:
        model = model_at(server.url)
        answer = await model.generate(ASK)
        assert (answer.message.content, answer.details.request_id) == ("Hello", "r")
        error = await failure(model)
    assert isinstance(error, APIError)
    assert error.status == 503
