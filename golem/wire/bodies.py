"""Bodies of answers: read up to a bound, drained, and closed so that nothing is left behind.

Of an HTTP client only its responses are known here, by what they can do.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterable, AsyncIterator
from typing import TYPE_CHECKING, Final, cast

import anyio

from golem.wire.failures import too_large
from golem.wire.ready import Ready

if TYPE_CHECKING:
    import httpx

CODINGS: Final = "gzip, deflate"
"""How an answer may be compressed. What a network chunk of these unfolds to is bounded (a thousand
times its size); httpx would ask for others, which have no bound, where their packages are there."""

_CLOSE_DEADLINE: Final = 5.0
_DRAIN_DEADLINE: Final = 0.25
"""Seconds given to a server to end a body that has said all. Only a body that was read to its
end leaves a connection that can be used again, and opening one costs more than this wait."""


def headers_of(response: httpx.Response) -> dict[str, str]:
    """The headers, names in lower case."""
    return {name.lower(): value for name, value in response.headers.items()}


def is_packed(response: httpx.Response) -> bool:
    """Whether a body is compressed in a way that was not asked for, or more than once.

    Compressed twice a chunk unfolds to a thousand times a thousand times its size.
    """
    given = response.headers.get("content-encoding")
    if not given:
        return False
    words = map(str.strip, given.lower().split(","))
    codings = [coding for coding in words if coding not in ("", "identity")]
    return len(codings) > 1 or not set(codings) <= set(CODINGS.split(", "))


async def read(
    response: httpx.Response, limit: int, *, cut: bool = False, own: bool = False
) -> bytes:
    """The body, of which at most `limit` bytes are taken: `cut` there, or refused. Closes it.

    `own`: see `Chunks`.
    """
    body = bytearray()  # not a list of pieces: of a few bytes each they are many times their size
    chunks = Chunks(response, own=own)
    whole = False
    try:
        async for chunk in chunks:
            body += chunk
            if len(body) > limit:
                if cut:
                    break
                raise too_large(limit)
        else:
            whole = True
    finally:
        if whole and (own or response.is_closed):
            await response.aclose()  # nothing is left to be closed, or httpcore shields it
        else:
            await close(response, chunks)
    return bytes(body[:limit] if len(body) > limit else body)


async def drain(chunks: AsyncIterable[bytes]) -> None:
    """Read on to the end of a body that has said all, as long as the server is quick."""
    with anyio.move_on_after(_DRAIN_DEADLINE):
        await _exhaust(chunks)


class Chunks:
    """The decompressed body of a response, with the iterator beneath it held as `raw`.

    A decompressor that fails ends `aiter_bytes` and leaves what it read from where it was, or
    closes it and leaves what is beneath that: then nobody could end it any more.

    `own`: a connection of golem's own client, where nobody else reads meanwhile. What one read
    from the network brings is given in one.
    """

    raw: AsyncIterator[bytes]
    _given: AsyncIterator[bytes]

    def __init__(self, response: httpx.Response, *, own: bool = False) -> None:
        network = response.extensions.get("network_stream") if own else None
        if network is not None and "content-encoding" not in response.headers:
            # What httpx would hand through two generators more, and count on the way.
            self._given = self.raw = Ready(
                aiter(cast("AsyncIterable[bytes]", response.stream)), network
            )
            return
        self.raw = held = _Held(response.aiter_raw())
        given = response.aiter_bytes()
        setattr(response, "aiter_raw", lambda: held)  # noqa: B010  (the type says a method)
        self._given = given if network is None else Ready(given, network)

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._given


class _Held:
    """An iterator that whoever reads from it cannot close."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._chunks)

    async def aclose(self) -> None:
        """Nothing: see `close`."""


async def close(response: httpx.Response, chunks: Chunks) -> None:
    """Give the connection back, or cut it where the body was not read to its end."""
    with anyio.move_on_after(_CLOSE_DEADLINE, shield=True):
        await response.aclose()
        # httpx nests half a dozen generators under `chunks` and closes none of them; left to
        # the collector, trio warns of each. On a closed connection one more pull ends them all.
        await _exhaust(chunks)
        await _exhaust(chunks.raw)


async def _exhaust(chunks: AsyncIterable[bytes]) -> None:
    # Whatever a connection that nobody needs any more ends with has no one to tell.
    with contextlib.suppress(Exception):
        async for _ in chunks:
            pass
