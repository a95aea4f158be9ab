"""Event loops whose clock jumps to the next timer: timeouts without waiting, the same every time.

`run` is ``anyio.run`` on such a clock, on either backend. The clock stands still while a worker
thread runs, so that no timeout strikes one: how long a thread takes is not reproducible.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import pytest
from trio.testing import MockClock

T = TypeVar("T")


class _Jumping(selectors.DefaultSelector):
    """Waits for I/O, or in no time at all for a timer."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0
        self.still = False

    def select(self, timeout: float | None = None) -> Any:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None or self.still:
            return super().select(None)
        self.now += timeout
        return []


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = _Jumping()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


def run(function: Callable[..., Awaitable[T]], *args: object, backend: str) -> T:
    """What the function gives, on a new loop of that backend, at time 0."""
    made = options(backend)
    clock = made.get("clock")
    loops: list[_Loop] = []

    def make() -> _Loop:
        loops.append(_Loop())
        return loops[0]

    def stand_still(still: bool) -> None:
        if isinstance(clock, MockClock):
            clock.autojump_threshold = float("inf") if still else 0
        else:
            loops[0].jumping.still = still

    if clock is None:
        made = {"loop_factory": make}
    with _threads_stop_the_clock(stand_still):
        return anyio.run(function, *args, backend=backend, backend_options=made)


def options(backend: str) -> dict[str, Any]:
    """The backend's options for such a clock; threads do not stop that one."""
    if backend == "trio":
        return {"clock": MockClock(autojump_threshold=0)}
    return {"loop_factory": _Loop}


@contextmanager
def _threads_stop_the_clock(stand_still: Callable[[bool], None]) -> Iterator[None]:
    run_sync = anyio.to_thread.run_sync
    running = 0

    async def counted(*args: Any, **options: Any) -> Any:
        nonlocal running
        running += 1
        stand_still(True)
        try:
            return await run_sync(*args, **options)
        finally:
            running -= 1
            stand_still(running > 0)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(anyio.to_thread, "run_sync", counted)
        yield
