"""The HTTP shell: sends what a pure dialect wrote, hands it the bytes that come back.

The only module that imports httpx, and the only one of the adapters' code that awaits. All
there is of connections, timeouts, redirects, body limits and cancellation is here, and in
``bodies``, ``pools`` and ``failures`` beside it; what a provider's bytes mean is in its dialect
(`golem.wire.protocols.WireDialect`), which a test can drive without a network.

Connections belong to one event loop. There is one pool per loop and server, shared by every
model of that server, so that an agent built for one request reuses the connection of the last;
the pool is closed when its loop ends. A caller's own client is used as it is and never closed.
"""

from __future__ import annotations

import contextlib
import functools
import math
import ssl
import sys
import time
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Mapping,
    Sequence,
)
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx

from golem.errors import ProtocolError, ProviderError, TransportError
from golem.messages import Message
from golem.model import Delta, Request, Response
from golem.portability import HistoryCheck, name_of
from golem.wire.bodies import CODINGS, Chunks, close, drain, headers_of, is_packed, read
from golem.wire.failures import (
    blanked,
    conceal,
    concealing,
    is_redirect_fault,
    redirected,
    secrets_in,
    too_large,
    translated,
    unsendable,
)
from golem.wire.notes import taken
from golem.wire.pools import Pools
from golem.wire.protocols import HTTPCall as HTTPCall
from golem.wire.protocols import HTTPClient as HTTPClient
from golem.wire.protocols import StreamDecoder as StreamDecoder
from golem.wire.protocols import WireDialect as WireDialect

DEFAULT_TIMEOUT: Final = 600.0
"""Seconds without a byte from the server. Reasoning models think for minutes before the first
one; the official SDKs of the large providers wait ten minutes too."""

CONNECT_TIMEOUT: Final = 10.0
"""Seconds to reach the server, however long the answer may take."""

MAX_BODY: Final = 256 * 1024 * 1024
"""Most bytes of an answer, decompressed: several images inline are tens of megabytes, and so is
the longest text that a model writes in one stream (an event for each token, a few hundred bytes
each). Each event of a stream is bounded too (`golem.wire.sse.MAX_EVENT`)."""

MAX_ERROR_BODY: Final = 1024 * 1024
"""Most bytes that are read of an error's body; a gateway's HTML page is a few kilobytes."""

_STALE_CONNECTIONS: Final = 3
"""Kept connections in a row that may turn out to be closed before a call counts as failed."""

_CLOSED: Final = frozenset({"RemoteProtocolError", "ReadError", "WriteError"})
"""How a request fails whose connection was closed meanwhile."""


_WITH_BODY: Final = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose requests say how long their body is, also where there is none."""


class HTTPModel:
    """`golem.model.Model` over a dialect. Immutable; shared by any number of runs and loops.

    `http_client` is a caller's own httpx-compatible client, `timeout` the seconds without a
    byte after which a request fails (``math.inf``: never); by default the client's own, else
    `DEFAULT_TIMEOUT`.
    """

    __slots__ = ("__weakref__", "_client", "_failures", "_timeout", "_wire")

    def __init__(
        self,
        wire: WireDialect,
        *,
        http_client: HTTPClient | None = None,
        timeout: float | None = None,
    ) -> None:
        if timeout is not None and not (isinstance(timeout, (int, float)) and timeout > 0):
            raise ValueError(f"timeout must be a positive number of seconds, not {timeout!r}")
        self._wire = wire
        self._client = http_client
        self._failures = _errors_of(http_client)
        self._timeout = timeout

    def check(self, messages: Sequence[Message]) -> HistoryCheck:
        """What a request does to a repaired history, for `golem.check_history`. Sends nothing.

        Unknown where the dialect does not say that it takes notes (``takes_notes = True``).
        """
        if not getattr(self._wire, "takes_notes", False):
            return HistoryCheck(unknown=(name_of(self),))
        return taken(lambda: self._wire.encode(Request(messages), stream=False))

    async def generate(self, request: Request) -> Response:
        """The complete answer. See `golem.model.Model.generate`."""
        response, secrets = await self._send(self._wire.encode(request, stream=False))
        headers, body = await self._whole(response)
        with concealing(secrets):
            return self._wire.decode(request, headers, body)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Response, None]:
        """The answer as it comes. See `golem.model.Model.stream`.

        Wrap the iterator in `contextlib.aclosing` when it may be left early: closing it closes
        the connection at once, which is what stops a provider from generating on.
        """
        async with contextlib.aclosing(self.batches(request)) as batches:
            async for batch in batches:
                if isinstance(batch, Response):
                    yield batch
                else:
                    for delta in batch:
                        yield delta

    async def batches(self, request: Request) -> AsyncGenerator[Sequence[Delta] | Response, None]:
        """The answer as `stream` gives it, the deltas that came together in one batch.

        Never an empty batch; exactly one `Response`, last. For a reader that wants to wait once
        for each thing that came and not once for each delta in it. Closing it closes the
        connection, as with `stream`.
        """
        response, secrets = await self._send(self._wire.encode(request, stream=True))
        decoder = self._wire.stream_decoder(request, headers_of(response))
        lost: TransportError | None = None
        left = MAX_BODY
        chunks = Chunks(response, own=self._client is None)
        try:
            async for chunk in chunks:
                left -= len(chunk)
                if deltas := decoder.feed(chunk):
                    yield deltas
                if decoder.done:
                    await drain(chunks)
                    break
                if left < 0:
                    lost = TransportError("cut off")
                    break
        except self._failures as error:
            lost = _caused(translated(error, self._host), error)
        finally:
            await close(response, chunks)
        try:
            with concealing(secrets):
                deltas, answer = decoder.close(lost)
        except TransportError as error:
            if left >= 0:
                raise
            raise too_large(MAX_BODY, error.partial) from None
        if deltas:
            yield deltas
        yield answer

    async def aclose(self) -> None:
        """Close the running event loop's pool of this model's server, if there is one.

        For shutting down early: a loop that ends closes its pools by itself. Requests in
        flight are cut, also those of other models of the same server; a later request opens a
        new pool. A caller's own client is left alone.
        """
        if self._client is None:
            await _pools.close(self._wire.base_url)

    @property
    def _host(self) -> str:
        return urlsplit(self._wire.base_url).hostname or "the server"

    async def _ask(self, call: HTTPCall) -> tuple[Mapping[str, str], bytes]:
        """Headers and body of the successful answer to `call`, whichever endpoint it is for."""
        response, _ = await self._send(call)
        return await self._whole(response)

    async def _whole(self, response: httpx.Response) -> tuple[Mapping[str, str], bytes]:
        """Headers and body of a successful response."""
        try:
            body = await read(response, MAX_BODY, own=self._client is None)
        except self._failures as error:
            raise translated(error, self._host) from error
        return headers_of(response), body

    async def _send(self, call: HTTPCall) -> tuple[httpx.Response, list[str]]:
        """The successful response to `call`, its body still to be read, and the call's secrets."""
        credentials = self._wire.authorize(call, time.time())
        if not isinstance(credentials, Mapping):
            credentials = await credentials
        secrets = secrets_in(credentials)
        response = await self._exchange(call, credentials)
        succeeded = 200 <= response.status_code < 300
        if self._client is None and is_packed(response):
            await response.aclose()
            if succeeded:
                raise ProtocolError("the answer is compressed in a way that was not asked for")
        elif succeeded:
            return response, secrets
        raise await self._refused(response, secrets)

    async def _exchange(self, call: HTTPCall, credentials: Mapping[str, str]) -> httpx.Response:
        """The response to `call`, whatever its status.

        A server may close a kept connection at any moment, also the one in which the next
        request is on its way (llama.cpp's does so after every stream). Where no new connection
        was opened and nothing came back, that is what happened, and the call is sent again.
        """
        watched = self._client is None
        client: HTTPClient | _OwnClient | None = self._client
        if client is None:
            client = await _pools.client(self._wire.base_url)
        failures: tuple[type[Exception], ...] = (*self._failures, ValueError)
        spare = _STALE_CONNECTIONS
        while True:
            opened = _Opened()
            request = self._request(client, call, credentials, opened if watched else None)
            try:
                # Never followed: a redirect would take the key to whatever host it names.
                response = await client.send(request, stream=True, follow_redirects=False)
            except failures as error:
                if not watched and is_redirect_fault(error):
                    raise redirected("", ()) from error
                stale = watched and not opened.connection and type(error).__name__ in _CLOSED
                if not stale or not spare:
                    raise translated(error, self._host) from error
                spare -= 1
            else:
                return cast("httpx.Response", response)

    def _request(
        self,
        client: HTTPClient | _OwnClient,
        call: HTTPCall,
        credentials: Mapping[str, str],
        opened: _Opened | None,
    ) -> Any:
        """`call` as a request of `client`, which tells `opened` of its connections."""
        extensions: Any = {"trace": opened.note} if opened else None
        try:
            return client.build_request(
                call.method,
                call.url,
                headers={**call.headers, **credentials},
                content=call.body,
                extensions=extensions,
                **self._limits(),
            )
        except self._failures as error:
            raise translated(error, self._host) from error
        except ValueError as error:  # a name that no IDN is, a header that is no ASCII
            raise unsendable(self._host) from error

    def _limits(self) -> dict[str, Any]:
        if self._timeout is None and self._client is not None:
            return {}
        idle = DEFAULT_TIMEOUT if self._timeout is None else self._timeout
        bound = None if math.isinf(idle) else idle
        # connect, read, write, pool: a tuple, which every httpx-compatible client takes
        return {"timeout": (min(idle, CONNECT_TIMEOUT), bound, bound, bound)}

    async def _refused(self, response: httpx.Response, secrets: list[str]) -> ProviderError:
        """The error that a response with an unsuccessful status means. Closes it."""
        try:
            body = b"" if response.is_closed else await read(response, MAX_ERROR_BODY, cut=True)
        except self._failures:
            body = b""  # the status alone says it
        status = response.status_code
        if 300 <= status < 400:
            return redirected(_location(response), secrets, status)
        body = blanked(body, secrets)  # before anything is cut off at half of one
        error = self._wire.error(status, headers_of(response), body, time.time())
        conceal(error, secrets)
        return error


# --- connections


class _Opened:
    """Whether an exchange opened a connection of its own, told by the client's trace."""

    __slots__ = ("connection",)

    def __init__(self) -> None:
        self.connection = False

    async def note(self, event: str, info: object) -> None:
        if event.startswith("connection.connect"):
            self.connection = True


class _OwnClient:
    """golem's own client: httpx's, without what the requests of a model have no use for.

    Takes and gives what an httpx-compatible client does (`golem.wire.protocols.HTTPClient`).
    """

    def __init__(self) -> None:
        self._client = _new_client()
        self._always = dict(self._client.headers)
        self.send = self._client.send
        self.aclose = self._client.aclose

    def build_request(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        content: bytes,
        extensions: Mapping[str, Any],
        timeout: Sequence[float | None],
    ) -> httpx.Request:
        """What ``httpx.AsyncClient.build_request`` makes of it, at a third of the time.

        Of `headers` whose names differ in case alone it would send each, and this the last.
        """
        address, host = _address(url)
        named = {"host": host}
        if content or method.upper() in _WITH_BODY:
            named["content-length"] = str(len(content))
        named |= self._always
        named |= {name.lower(): value for name, value in headers.items()}
        bounds = dict(zip(("connect", "read", "write", "pool"), timeout, strict=True))
        return httpx.Request(
            method,
            address,
            headers=named,
            stream=_Body(content),
            extensions={**extensions, "timeout": bounds},
        )


@functools.lru_cache(maxsize=64)
def _address(url: str) -> tuple[httpx.URL, str]:
    """`url`, and what its Host header says.

    Read once, which takes a twentieth of a request; a model asks for one or two. Raises
    httpx.InvalidURL; httpx.UnsupportedProtocol where no scheme or no host is named, since a
    resolver may take an empty name for this machine; and ValueError for a name that no IDN is.
    """
    address = httpx.URL(url)
    if not (address.scheme and address.host):  # whose `host` is read, and no IDN found out
        raise httpx.UnsupportedProtocol("the URL names no scheme or no host")
    return address, address.netloc.decode("ascii")


class _Body(httpx.AsyncByteStream):
    """A request's body whose iterator is no generator.

    httpx's own is one, which httpcore leaves where it stood when a connection breaks while
    sending; left to the collector, trio warns of it.
    """

    def __init__(self, body: bytes) -> None:
        self._body = body

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._body)


class _Once:
    __slots__ = ("_left",)

    def __init__(self, item: bytes) -> None:
        self._left: list[bytes] = [item]

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._left:
            raise StopAsyncIteration
        return self._left.pop()


@functools.cache
def _ssl_context() -> ssl.SSLContext:
    """One for all clients: reading the certificates takes 20 ms."""
    return httpx.create_ssl_context()


def _new_client() -> httpx.AsyncClient:
    """A client with the proxies that the environment names, if it names any."""
    try:
        client = httpx.AsyncClient(
            verify=_ssl_context(),
            headers={"accept-encoding": CODINGS},
            follow_redirects=False,
            event_hooks={"response": [_put_location_aside]},
        )
    except (ValueError, ImportError) as error:  # no proxy's address; SOCKS without its package
        reason = "the proxy that the environment names cannot be used"
        raise TransportError(reason, retryable=False) from error
    # No cookie is kept: a pool is shared by all keys for its server, and a cookie is one's own.
    # A jar that refuses each is asked for each, which takes as long as a tenth of a request.
    setattr(client.cookies, "extract_cookies", _keep_nothing)  # noqa: B010  (a method by its type)
    return client


def _keep_nothing(response: httpx.Response) -> None:
    """The cookies of no response are kept."""


async def _put_location_aside(response: httpx.Response) -> None:
    """Keep httpx from reading where a redirect leads.

    It does so although nothing is to be followed, and fails at an address that is none.
    """
    if response.is_redirect and "location" in response.headers:
        response.extensions["location"] = response.headers.pop("location")


_pools: Final = Pools("golem.wire.http.pools", _OwnClient)


# --- failures


def _location(response: httpx.Response) -> str:
    """Where a redirect leads, as the server wrote it; empty where it does not say."""
    aside: str = response.extensions.get("location", "")
    return aside or headers_of(response).get("location", "")


def _caused(error: TransportError, cause: Exception) -> TransportError:
    error.__cause__ = cause
    return error


def _errors_of(client: HTTPClient | None) -> tuple[type[Exception], ...]:
    """What `client` raises when an exchange fails: the errors of the library that made it."""
    found: list[type[Exception]] = [httpx.HTTPError, httpx.InvalidURL, httpx.StreamError]
    for cls in type(client).__mro__:
        library = sys.modules.get(cls.__module__.partition(".")[0])
        for name in ("HTTPError", "InvalidURL", "StreamError"):
            error = getattr(library, name, None)
            if isinstance(error, type) and issubclass(error, Exception):
                found.append(error)
    return tuple(dict.fromkeys(found))
