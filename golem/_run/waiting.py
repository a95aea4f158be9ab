"""golem's own timeouts: they run only while golem waits (contract §4.4).

No scope stays open while an event is out, so a slow consumer trips none of them; ``total`` is a
deadline on the clock and strikes at the next wait after it has passed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Iterator
from typing import TypeVar

import anyio

from golem.limits import Timeouts

T = TypeVar("T")


class Allowance:
    """Seconds of waiting that are left of one timeout; None is no bound."""

    def __init__(self, seconds: float | None) -> None:
        self.left = seconds


class Waiting:
    """Awaits on behalf of one run, within its timeouts."""

    def __init__(self, timeouts: Timeouts) -> None:
        self.timeouts = timeouts
        self._deadline: float | None = None
        self.turn = Allowance(None)

    def run_begins(self) -> None:
        """The total runs from here."""
        if self.timeouts.total is not None:
            self._deadline = anyio.current_time() + self.timeouts.total

    def turn_begins(self) -> None:
        """A model turn, with its retries, has its allowance anew."""
        self.turn = Allowance(self.timeouts.turn)

    async def on(self, awaitable: Awaitable[T], *, turn: bool = False, fragment: str = "") -> T:
        """What `awaitable` gives, within the total, the turn's allowance, a fragment's timeout.

        `fragment` names the latter: ``first_token`` or ``between_tokens``. Raises TimeoutError,
        saying which timeout it was.
        """
        bounds = dict(self._bounds(turn, fragment))
        if not bounds:
            return await awaitable
        name = min(bounds, key=bounds.__getitem__)
        begun = anyio.current_time()
        try:
            with anyio.move_on_after(max(bounds[name], 0)):
                return await awaitable
        finally:
            if self.turn.left is not None and turn:
                self.turn.left -= anyio.current_time() - begun
        raise TimeoutError(f"the {name} timeout of {getattr(self.timeouts, name):g} s is over")

    def _bounds(self, turn: bool, fragment: str) -> Iterator[tuple[str, float]]:
        if self._deadline is not None:
            yield "total", self._deadline - anyio.current_time()
        if turn and self.turn.left is not None:
            yield "turn", self.turn.left
        seconds = getattr(self.timeouts, fragment) if fragment else None
        if seconds is not None:
            yield fragment, seconds
