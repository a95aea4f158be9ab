"""One request and its response: JSON at once, or a stream for as long as the client is there."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from golem.errors import ReplayError
from golem.web.http import Disconnected, Receive, Scope, Send, answer, encoded

T = TypeVar("T")

_log = logging.getLogger("golem")


class Exchange:
    """One request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self.answered = False
        self._gone = False  # some servers say so once only
        self._writing_since: float | None = None

    async def answer(
        self, status: int, value: object, fields: Mapping[str, str] | None = None
    ) -> None:
        """Answer with JSON."""
        self.answered = True
        with suppress(Disconnected):
            await answer(self._write_out, status, value, fields)

    async def stream(
        self,
        fields: Mapping[str, str],
        hello: bytes,
        chunks: AsyncIterator[bytes],
        *,
        send_timeout: float,
        gone: Callable[[], Awaitable[None]],
    ) -> None:
        """Answer with these bytes as they come, until they end or the client has gone.

        Then `gone` is called, whatever the server may still be writing. Who takes nothing for
        `send_timeout` seconds counts as gone.
        """
        self.answered = True
        start = {"type": "http.response.start", "status": 200, "headers": encoded(fields)}

        async def write() -> None:
            with suppress(Disconnected):
                await self._write(start)
                try:
                    if hello:
                        await self._write(_chunk(hello))
                    async for chunk in chunks:
                        await self._write(_chunk(chunk))
                except ReplayError as error:  # who comes back for the rest is told
                    _log.info("an event stream ended early: %s", error)
                await self._write({"type": "http.response.body", "body": b""})

        await self.unless_gone(write, gone, partial(self._stalled, send_timeout))

    async def unless_left(self, prepare: Callable[[], Awaitable[T]]) -> T:
        """What that gives, unless the client leaves: it is cancelled then, and Disconnected raised.

        For when the body has been read. What is given all the same is returned, for its maker to
        see to.
        """
        found: list[T] = []
        failures: list[Exception] = []

        async def work() -> None:
            try:
                found.append(await prepare())
            except Exception as error:  # noqa: BLE001 - raised below, not as one of a group
                failures.append(error)

        await self.unless_gone(work, anyio.lowlevel.checkpoint)
        for error in failures:
            raise error
        if not found:
            raise Disconnected
        return found[0]

    async def unless_gone(
        self,
        work: Callable[[], Awaitable[None]],
        gone: Callable[[], Awaitable[None]],
        *signs: Callable[[], Awaitable[None]],
    ) -> None:
        """Do that, unless the client goes (which `signs` return at too); then call `gone`."""
        async with anyio.create_task_group() as tasks:

            async def until(client_has_gone: Callable[[], Awaitable[None]]) -> None:
                await client_has_gone()
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await gone()

            for sign in (self._disconnected, *signs):
                tasks.start_soon(until, sign)
            await work()
            tasks.cancel_scope.cancel()

    async def _write(self, event: dict[str, Any]) -> None:
        self._writing_since = anyio.current_time()
        await self._write_out(event)
        self._writing_since = None

    async def _write_out(self, event: MutableMapping[str, Any]) -> None:
        try:
            await self._send(event)
        except OSError as error:  # how servers say that the client has gone, where they do
            raise Disconnected from error

    async def _disconnected(self) -> None:
        while not self._gone:
            self._gone = (await self.receive())["type"] == "http.disconnect"

    async def _stalled(self, seconds: float) -> None:
        """Until one write takes so long. No deadline on the write: a server may shield it."""
        while True:
            since = self._writing_since
            late_at = (anyio.current_time() if since is None else since) + seconds
            await anyio.sleep(late_at - anyio.current_time())
            if since is not None and self._writing_since == since:
                return


def _chunk(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}
