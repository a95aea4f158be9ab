"""One task that outlives the call that began it, on asyncio and on trio.

A response's body is pulled by a server that hands over no task group, and none may stay open in
between (a cancel scope across a yield would cancel the server's own awaits). So what has to go on
between two pulls gets a task of the event loop's. Whoever begins one has to end it: `Background`
never raises into the loop, and can be told to end from any thread, from a finalizer too.
"""

from __future__ import annotations

import asyncio
import functools
import sys
from collections.abc import Awaitable, Callable
from contextlib import suppress
from contextvars import ContextVar, copy_context
from typing import Any, Final

import anyio
import sniffio


class Bell:
    """Wakes the one task that waits at it. Several times as fast to make and ring as an event."""

    __slots__ = ("_waiter",)

    def __init__(self) -> None:
        self._waiter: Callable[[], object] | None = None

    def ring(self) -> None:
        """Wake who waits; where nobody does, nothing happens."""
        if self._waiter is not None:
            self._waiter()

    async def wait(self) -> None:
        """Until it rings."""
        if sniffio.current_async_library() == "trio":
            event = sys.modules["trio"].Event()
            self._waiter, waiting = event.set, event.wait()
        else:
            future = asyncio.get_running_loop().create_future()
            self._waiter, waiting = functools.partial(_settle, future), future
        try:
            await waiting
        finally:
            self._waiter = None


def _settle(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def clock() -> Callable[[], float]:
    """The event loop's clock. anyio looks for the loop anew each time it is asked."""
    if sniffio.current_async_library() == "trio":
        now: Callable[[], float] = sys.modules["trio"].current_time
        return now
    return asyncio.get_running_loop().time


class Background:
    """Runs `work` in a task of its own, begun at once; `work` raises nothing but cancellation."""

    def __init__(self, work: Callable[[], Awaitable[None]]) -> None:
        self._work = work
        self._scope = anyio.CancelScope()
        self._over = anyio.Event()
        self._task: object = None
        self._schedule: Callable[[Callable[[], Any]], Any]
        if sniffio.current_async_library() == "trio":
            lowlevel = sys.modules["trio"].lowlevel
            self._schedule = lowlevel.current_trio_token().run_sync_soon
            lowlevel.spawn_system_task(self._main, context=copy_context())
        else:
            loop = asyncio.get_running_loop()
            self._schedule = loop.call_soon_threadsafe
            self._task = loop.create_task(self._main())  # the loop holds tasks weakly

    async def _main(self) -> None:
        _inside.set((*_inside.get(), self))  # of this task's own context
        try:
            with self._scope:
                await self._work()
        finally:
            self._over.set()

    def cancel(self) -> None:
        """Have the work cancelled. In the event loop's thread."""
        self._scope.cancel()

    async def ended(self) -> None:
        """Until the work is over; at once where the work itself asks, which would wait for ever."""
        if self not in _inside.get():
            await self._over.wait()

    def abandon(self) -> None:
        """Have the work cancelled soon; for finalizers: from any thread, whatever is left."""
        with suppress(RuntimeError):  # the loop is over, and with it the task
            self._schedule(self._scope.cancel)


_inside: Final[ContextVar[tuple[Background, ...]]] = ContextVar("golem_web_inside", default=())
"""Whose work the current task is doing."""
