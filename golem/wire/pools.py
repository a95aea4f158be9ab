"""One pool of connections per event loop and server, closed when the loop ends.

Of an HTTP client only that it is made and closed is known here.
"""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable
from typing import Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from anyio.lowlevel import RunVar


class Closable(Protocol):
    """What holds connections."""

    async def aclose(self) -> None:
        """Close them, those in use as well."""
        ...


C = TypeVar("C", bound=Closable)


class Pools(Generic[C]):
    """The clients of the running event loop, one per server, made when they are first asked for."""

    def __init__(self, name: str, make: Callable[[], C]) -> None:
        self._make = make
        self._loops: RunVar[_OfLoop[C]] = RunVar(name)

    async def client(self, url: str) -> C:
        """The one for the server of `url`: its scheme, host and port."""
        pools = self._loops.get(None)
        if pools is None:
            pools = _OfLoop(self._make)
            self._loops.set(pools)
        return await pools.client(_origin(url))

    async def close(self, url: str) -> None:
        """Close the one for the server of `url`, if there is one."""
        pools = self._loops.get(None)
        if pools is not None:
            await pools.close(_origin(url))


class _OfLoop(Generic[C]):
    """The clients of one event loop.

    Both backends close their async generators before they end, whoever still holds them. A
    generator that waits at its ``yield`` is therefore the hook for "the loop ends", which
    neither has otherwise; without it every script would leave sockets to the collector.
    """

    def __init__(self, make: Callable[[], C]) -> None:
        self._make = make
        self._clients: dict[str, C] = {}
        self._guard: AsyncGenerator[None, None] | None = None

    async def client(self, origin: str) -> C:
        client = self._clients.get(origin)
        if client is None:
            client = self._make()
            self._clients[origin] = client
            if self._guard is None:
                self._guard = self._until_the_loop_ends()
                await self._guard.__anext__()
        return client

    async def close(self, origin: str) -> None:
        client = self._clients.pop(origin, None)
        if client is not None:
            await client.aclose()

    async def _until_the_loop_ends(self) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            # The guard knows its loop: without it nothing here keeps a dead loop alive.
            self._guard = None
            for origin in list(self._clients):
                await self.close(origin)


@functools.lru_cache(maxsize=64)
def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
