"""Where golem waits: its own timeouts, and the consumer's stop (contract §4.4).

Both strike only inside a wait. No scope stays open while an event is out, so a slow consumer trips
no timeout; ``total`` is a deadline on the clock and strikes at the next wait after it has passed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TypeVar

import anyio

from golem.limits import Timeouts

T = TypeVar("T")

NEVER = float("inf")


class StopNow(BaseException):
    """The consumer has stopped the run. Not an Exception: no error of a model, tool or decoder."""


class Waiting:
    """Awaits on behalf of one run, within its timeouts.

    `stoppable`: somebody holds a handle to the run and may `interrupt` it from another task.
    """

    def __init__(self, timeouts: Timeouts, *, stoppable: bool) -> None:
        self.timeouts = timeouts
        self._stoppable = stoppable
        self._deadline = NEVER
        self._turn_left: float | None = None
        self._stop_at = NEVER
        self._scope: anyio.CancelScope | None = None

    def run_begins(self) -> None:
        """The total runs from here."""
        if self.timeouts.total is not None:
            self._deadline = anyio.current_time() + self.timeouts.total

    def turn_begins(self) -> None:
        """A model turn, with its retries, has its allowance anew."""
        self._turn_left = self.timeouts.turn

    def interrupt(self, at: float = -NEVER) -> None:
        """Stop waiting at that time on the backend's clock: by default now, and from now on."""
        self._stop_at = min(self._stop_at, at)
        if self._scope is not None:
            self._scope.deadline = min(self._scope.deadline, at)

    def check(self) -> None:
        """Raise what waiting in this turn would raise at once: nothing more may be begun."""
        now = anyio.current_time()
        bounds = dict(self._bounds(True, ""))
        name = min(bounds, key=bounds.__getitem__, default="")
        deadline = now + bounds[name] if bounds else NEVER
        if min(deadline, self._stop_at) <= now:
            raise self._over(name, deadline)

    async def on(self, awaitable: Awaitable[T], *, turn: bool = False, fragment: str = "") -> T:
        """What `awaitable` gives, within the total, the turn's allowance, a fragment's timeout.

        `fragment` names the latter: ``first_token`` or ``between_tokens``. Raises TimeoutError,
        saying which timeout it was, and StopNow.
        """
        bounds = dict(self._bounds(turn, fragment))
        if not bounds and not self._stoppable:
            return await awaitable
        name = min(bounds, key=bounds.__getitem__, default="")
        timed = bounds or self._stop_at != NEVER
        begun = anyio.current_time() if timed else 0.0
        deadline = begun + bounds[name] if bounds else NEVER
        if min(deadline, self._stop_at) <= begun:  # over already: nothing more is begun
            _discard(awaitable)
            raise self._over(name, deadline)
        with anyio.CancelScope(deadline=min(deadline, self._stop_at)) as self._scope:
            try:
                return await awaitable
            finally:
                self._scope = None
                if turn and self._turn_left is not None:
                    self._turn_left -= anyio.current_time() - begun
        raise self._over(name, deadline)

    def _over(self, name: str, deadline: float) -> BaseException:
        if self._stop_at < deadline:
            return StopNow()
        return TimeoutError(f"the {name} timeout of {getattr(self.timeouts, name):g} s is over")

    def _bounds(self, turn: bool, fragment: str) -> Iterator[tuple[str, float]]:
        if self._deadline != NEVER:
            yield "total", self._deadline - anyio.current_time()
        if turn and self._turn_left is not None:
            yield "turn", self._turn_left
        seconds = getattr(self.timeouts, fragment) if fragment else None
        if seconds is not None:
            yield fragment, seconds


def _discard(awaitable: Awaitable[object]) -> None:
    """Drop what was never awaited, without the warning that would draw."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()
