"""Own clients of every kind, over real loopback sockets."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from golem.errors import APIError, TransportError
from tests.adapters.test_openai_http import (
    ASK,
    BAD_LOCATIONS,
    STREAM,
    either,
    failure,
    free_port,
    model_at,
    read,
)
from tests.wire.server import Connection, answering, response, serving

Make = Callable[..., Any]


CLIENTS = {
    "httpx": ("httpx", "AsyncClient"),
    "httpx2": ("httpx2", "AsyncClient"),
    "aiohttp": ("httpx_aiohttp", "HttpxAiohttpClient"),
}
PAIRS = [(backend, kind) for kind in ("httpx", "httpx2") for backend in ("asyncio", "trio")]


@pytest.fixture(params=[*PAIRS, ("asyncio", "aiohttp")], ids="-".join)
def pair(request: pytest.FixtureRequest) -> tuple[str, str]:
    """A backend and a kind of client that runs on it: aiohttp knows asyncio only."""
    found: tuple[str, str] = request.param
    return found


@pytest.fixture
def anyio_backend(pair: tuple[str, str]) -> str:
    return pair[0]


@pytest.fixture
def make(pair: tuple[str, str]) -> Make:
    """What makes an own client of one kind; without its library the test skips, saying so."""
    library, name = CLIENTS[pair[1]]
    pytest.importorskip(library, reason=f"{library} is not installed; the extra `dev` has it")
    made: Make = getattr(importlib.import_module(library), name)
    return made


async def test_any_client_asks_plain_and_streamed_over_one_connection(make: Make) -> None:
    async with serving(either) as server, make() as client:
        for timeout in (None, 30.0):
            model = model_at(server.url, http_client=client, timeout=timeout)
            assert (await model.generate(ASK)).message.content == "Hello"
            _, streamed = await read(model)
            assert streamed.message.content == "Hello"
    assert server.connections == 1


async def test_any_clients_failures_are_golems_own(make: Make) -> None:
    async def cut(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(STREAM.partition(b"\n\n")[0] + b"\n\n")

    async with serving(cut) as server, make() as client:
        error = await failure(model_at(server.url, http_client=client), stream=True)
    assert isinstance(error, TransportError)
    assert error.retryable
    assert error.partial is not None
    assert error.partial.content == "Hel"

    async with make() as client:
        nobody = f"http://127.0.0.1:{free_port()}/v1"
        assert isinstance(await failure(model_at(nobody, http_client=client)), TransportError)


async def test_any_client_is_given_up_where_the_server_is_silent(make: Make) -> None:
    async def silent(connection: Connection) -> None:
        await connection.request()
        await connection.until_closed()

    async with serving(silent) as server, make() as client:
        error = await failure(model_at(server.url, http_client=client, timeout=0.05))
    assert isinstance(error, TransportError)
    assert "sent nothing for too long" in str(error)


async def test_no_client_follows_a_redirect_with_the_key(make: Make) -> None:
    moved = response(
        b"", status="307 Temporary Redirect", headers="location: http://elsewhere.test/v1\r\n"
    )
    async with serving(answering(moved)) as server, make(follow_redirects=True) as client:
        error = await failure(model_at(server.url, http_client=client))
    assert isinstance(error, APIError)
    assert error.code == "redirect"


@pytest.mark.parametrize("location", BAD_LOCATIONS[:-1])
async def test_a_redirect_to_no_address_is_final_with_any_client(
    make: Make, location: str | None
) -> None:
    headers = "" if location is None else f"location: {location}\r\n"
    moved = response(b"", status="307 Temporary Redirect", headers=headers)
    async with serving(answering(moved)) as server, make() as client:
        error = await failure(model_at(server.url, http_client=client))
    assert isinstance(error, APIError)
    assert (error.code, error.retryable) == ("redirect", False)
    assert error.message.endswith("base_url")


@pytest.mark.parametrize("coding", ["gzip", "deflate"])
@pytest.mark.parametrize("status", ["200 OK", "500 Oops", "307 Moved"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_body_that_cannot_be_decompressed_leaves_nothing_behind(
    make: Make, coding: str, status: str, stream: bool
) -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        head = f"HTTP/1.1 {status}\r\ncontent-encoding: {coding}\r\n"
        await connection.send(head.encode() + b"transfer-encoding: chunked\r\n\r\n")
        for _ in range(3):
            await connection.chunk(b"this is not compressed at all")
        await connection.until_closed()

    async with serving(script) as server, make() as client:
        error = await failure(model_at(server.url, http_client=client), stream=stream)
        own = await failure(model_at(server.url), stream=stream)
    gc.collect()
    kind = TransportError if status == "200 OK" else APIError
    assert (type(error), type(own)) == (kind, kind)


async def test_leaving_a_stream_of_any_client_closes_its_connection_at_once(make: Make) -> None:
    async def endless(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(STREAM.partition(b"\n\n")[0] + b"\n\n")
        await connection.until_closed()

    async with serving(endless) as server, make() as client:
        model = model_at(server.url, http_client=client)
        async with aclosing(model.stream(ASK)) as stream:
            async for _ in stream:
                break
        with anyio.fail_after(5):
            await server.closed.wait()
