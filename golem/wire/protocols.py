"""What the HTTP shell asks of others: a dialect, a decoder of a stream, a caller's own client.

Protocols and one value; nothing here does anything, and nothing needs an HTTP client to be read.
"""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import Any, NamedTuple, Protocol

from golem.errors import APIError, TransportError
from golem.model import Delta, Request, Response


class HTTPCall(NamedTuple):
    """One HTTP request without its credentials, so that it may be shown and logged."""

    url: str
    headers: Mapping[str, str]
    body: bytes
    method: str = "POST"


class HTTPClient(Protocol):
    """A caller's own client: httpx's ``AsyncClient``, httpx2's, or one that behaves as they do.

    It belongs to the event loop that first used it, as theirs do, and its connections, proxies,
    certificates and timeouts are its own affair.
    """

    def build_request(
        self,
        method: str,
        url: str,
        *,
        headers: Any = ...,
        content: Any = ...,
        extensions: Any = ...,
        timeout: Any = ...,
    ) -> Any:
        """One request, not sent yet."""
        ...

    async def send(self, request: Any, *, stream: bool = ..., follow_redirects: Any = ...) -> Any:
        """The response to it, with its body still to be read where `stream` is true."""
        ...


class StreamDecoder(Protocol):
    """Turns the bytes of one streamed answer into deltas. Pure; one per answer.

    Call `feed` with each chunk until the body ends or `done` is true, then `close` once.
    """

    @property
    def done(self) -> bool:
        """Whether nothing that follows can matter: the terminator was read, or an error."""
        ...

    def feed(self, chunk: bytes) -> list[Delta]:
        """The deltas that `chunk` completes. Never raises: what went wrong, `close` tells."""
        ...

    def close(self, lost: TransportError | None = None) -> tuple[list[Delta], Response]:
        """The last deltas and the response; `lost` is the failure that ended the body, if any.

        Raises a `golem.errors.ProviderError` with the `partial` message where the answer was
        an error or did not come whole; a whole answer survives a connection lost after it.
        """
        ...


class WireDialect(Protocol):
    """What a provider speaks, without I/O: a request to bytes, bytes to a response.

    Header names arrive in lower case. `now` is the time in seconds since the epoch.
    """

    @property
    def base_url(self) -> str:
        """The server, for pooling: its scheme, host and port are what counts."""
        ...

    def encode(self, request: Request, *, stream: bool) -> HTTPCall:
        """The call that asks for `request`; equal requests give equal bytes.

        Raises `golem.errors.UnsupportedContentError` for what cannot be carried.
        """
        ...

    def authorize(
        self, call: HTTPCall, now: float
    ) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        """The headers that carry (or are computed from) the credentials, nothing else.

        To be awaited where the caller's own token has to be fetched.
        """
        ...

    def decode(self, request: Request, headers: Mapping[str, str], body: bytes) -> Response:
        """The response in the body of a successful answer; raises ProviderError."""
        ...

    def error(self, status: int, headers: Mapping[str, str], body: bytes, now: float) -> APIError:
        """The error that an unsuccessful answer means; the body may be anything, or empty."""
        ...

    def stream_decoder(self, request: Request, headers: Mapping[str, str]) -> StreamDecoder:
        """A decoder for the body of a successful streamed answer."""
        ...
