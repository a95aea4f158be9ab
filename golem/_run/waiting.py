"""Where golem waits: its own timeouts, the consumer's stop, the caller's cancellation (§4.4).

Timeouts and stops strike only inside a wait. No scope stays open while an event is out, so a slow
consumer trips no timeout; ``total`` is a deadline on the clock and strikes at the next wait after
it has passed. A cancellation gets through every wait, whatever the code waited for makes of it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import Any, Final, TypeVar, cast

import anyio

from golem._run.cancellation import cancel_counter, cancel_requests, pass_cancellation
from golem.limits import NO_TIMEOUTS, Timeouts

T = TypeVar("T")

NEVER: Final = float("inf")

GRACE_SECONDS: Final = 1.0
"""How long what has been produced may still take to be stored and shown, once the run is over."""


class StopNow(BaseException):
    """The consumer has stopped the run. Not an Exception: no error of a model, tool or decoder."""


class OverdueError(TimeoutError):
    """Something goes on though the run is to be over."""


class _Struck(Exception):
    """A wait was cut off."""


class Waiting:
    """Awaits on behalf of one run, within its timeouts.

    `stoppable`: somebody holds a handle to the run and may `interrupt` it from another task.
    """

    def __init__(self, timeouts: Timeouts, *, stoppable: bool) -> None:
        self.timeouts = timeouts
        self._unbounded = timeouts == NO_TIMEOUTS
        self._stoppable = stoppable
        self._free = self._unbounded and not stoppable  # nothing ever cuts a wait off
        self._deadline = NEVER
        self._turn_left: float | None = None
        self._stop_at = NEVER
        self._scopes: dict[anyio.CancelScope, float] = {}  # the waits, each with its grace
        self._swallowed = NEVER  # a cancellation was, above so many requests

    def run_begins(self) -> None:
        """The total runs from here."""
        if self.timeouts.total is not None:
            self._deadline = anyio.current_time() + self.timeouts.total

    def run_ends(self) -> None:
        """What is stored or shown from here on is cut off after its grace."""
        self._stop_at = -NEVER

    def turn_begins(self) -> None:
        """A model turn, with its retries, has its allowance anew."""
        self._turn_left = self.timeouts.turn

    def interrupt(self, at: float = -NEVER) -> None:
        """Stop waiting at that time on the backend's clock: by default now, and from now on."""
        self._stop_at = min(self._stop_at, at)
        for scope, grace in self._scopes.items():
            scope.deadline = min(scope.deadline, _struck(at, grace))

    def check(self) -> None:
        """Raise what waiting in this turn would raise at once: nothing more may be begun."""
        if self._deadline == self._stop_at == NEVER and self._turn_left is None:
            return
        now = anyio.current_time()
        bounds = dict(self._bounds(True, ""))
        name = min(bounds, key=bounds.__getitem__, default="")
        deadline = now + bounds[name] if bounds else NEVER
        if min(deadline, self._stop_at) <= now:
            raise self._over(name, deadline)

    def check_total(self) -> None:
        """Raise TimeoutError where the total has passed by now."""
        if self._deadline != NEVER and self._deadline <= anyio.current_time():
            raise self._late("total")

    def heed_stop(self) -> None:
        """Raise StopNow if the consumer has stopped the run by now."""
        if self._stop_at != NEVER and self._stop_at <= anyio.current_time():
            raise StopNow

    def on(
        self, awaitable: Awaitable[T], *, turn: bool = False, fragment: str = ""
    ) -> Awaitable[T]:
        """What `awaitable` gives, within the total, the turn's allowance, a fragment's timeout.

        `fragment` names the latter: ``first_token`` or ``between_tokens``. Raises TimeoutError,
        saying which timeout it was, and StopNow. To be awaited at once.
        """
        if self._free and self._swallowed == self._stop_at == NEVER:  # a coroutine less
            return self._wait(awaitable, NEVER)
        return self._within(awaitable, turn, fragment)

    async def _within(self, awaitable: Awaitable[T], turn: bool, fragment: str) -> T:
        if self._swallowed != NEVER:
            await self._remind_before(awaitable)
        bounds = {} if self._unbounded else dict(self._bounds(turn, fragment))
        if not bounds and self._stop_at == NEVER:
            try:
                return await self._wait(awaitable, NEVER)
            except _Struck as struck:
                raise StopNow from struck.__cause__
        name = min(bounds, key=bounds.__getitem__, default="")
        begun = anyio.current_time()
        deadline = begun + bounds[name] if bounds else NEVER
        strikes_at = min(deadline, self._stop_at)
        if strikes_at <= begun:  # over already: nothing more is begun
            _discard(awaitable)
            raise self._over(name, deadline)
        try:
            return await self._wait(awaitable, strikes_at)
        except _Struck as struck:
            raise self._over(name, deadline) from struck.__cause__
        finally:
            if turn and self._turn_left is not None:
                self._turn_left -= anyio.current_time() - begun

    async def on_last_words(self, awaitable: Awaitable[T]) -> T:
        """What `awaitable` gives: storing or showing what there is, which a stop must not prevent.

        Begun in any case; the total and a stop strike with `GRACE_SECONDS` on top. Raises
        `OverdueError`.
        """
        if self._swallowed != NEVER:
            await self._remind_before(awaitable)
        over_at = min(self._deadline, self._stop_at)
        strikes_at = over_at if over_at == NEVER else _struck(over_at, GRACE_SECONDS)
        try:
            return await self._wait(awaitable, strikes_at, GRACE_SECONDS)
        except _Struck as struck:
            late = f"still waited for {GRACE_SECONDS:g} s after the run was to be over"
            raise OverdueError(late) from struck.__cause__

    async def remind(self) -> None:
        """Raise the cancellation that the code waited for last has swallowed, if it has."""
        if self._swallowed == NEVER:
            return
        above, self._swallowed = self._swallowed, NEVER
        if cancel_requests() > above:
            await pass_cancellation(0)

    async def _remind_before(self, awaitable: Awaitable[object]) -> None:
        try:
            await self.remind()
        except BaseException:
            _discard(awaitable)
            raise

    async def _wait(self, awaitable: Awaitable[T], strikes_at: float, grace: float = 0.0) -> T:
        """What `awaitable` gives until then, unless the caller has been cancelled.

        Of a cancellation that the code waited for swallowed, giving something all the same, the
        next wait reminds: what it gave is evidence.
        """
        requests = cancel_counter()
        before = requests()
        scope: anyio.CancelScope | None = None
        value: Any = None
        try:
            if strikes_at == NEVER and not self._stoppable:
                value = await awaitable
            else:
                scope = anyio.CancelScope(deadline=strikes_at)
                self._scopes[scope] = grace
                with scope:
                    value = await awaitable
                if scope.cancelled_caught:
                    raise _Struck
        except Exception as error:
            await pass_cancellation(before)
            if scope is None or not scope.cancel_called or isinstance(error, _Struck):
                raise
            raise _Struck from error  # what was waited for made an error of its own of it
        finally:
            if scope is not None:
                del self._scopes[scope]
        self._swallowed = before if requests() > before else NEVER
        return cast("T", value)

    def _over(self, name: str, deadline: float) -> BaseException:
        if self._stop_at < deadline:
            return StopNow()
        return self._late(name)

    def _late(self, name: str) -> TimeoutError:
        return TimeoutError(f"the {name} timeout of {getattr(self.timeouts, name):g} s is over")

    def _bounds(self, turn: bool, fragment: str) -> Iterator[tuple[str, float]]:
        if self._deadline != NEVER:
            yield "total", self._deadline - anyio.current_time()
        if turn and self._turn_left is not None:
            yield "turn", self._turn_left
        seconds = getattr(self.timeouts, fragment) if fragment else None
        if seconds is not None:
            yield fragment, seconds


def _struck(at: float, grace: float) -> float:
    """When what is to be over at that time is cut off."""
    return max(at, anyio.current_time()) + grace if grace else at


def _discard(awaitable: Awaitable[object]) -> None:
    """Drop what was never awaited, without the warning that would draw."""
    close = getattr(awaitable, "close", None)
    if close is not None:
        close()
