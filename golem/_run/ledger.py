"""What a run has consumed, its sub-agents included. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable

from golem.limits import NO_LIMITS, UsageLimitError, UsageLimits
from golem.usage import Usage

Price = Callable[[Usage], float]
"""What some usage costs, in any unit; golem ships no price table."""


class Ledger:
    """Counts, and the limits they are held against."""

    def __init__(self, limits: UsageLimits, price: Price | None) -> None:
        self.usage = Usage()
        self.requests = 0
        self.tool_calls = 0
        self.cost: float | None = None if price is None else 0.0
        self._limits = limits
        self._unlimited = limits == NO_LIMITS
        self._price = price

    def add_response(self, usage: Usage) -> None:
        """One response of this run's model. Raises what `price` does, TypeError for no number."""
        self.usage += usage
        if self._price is None:
            return
        price: object = self._price(usage)
        if not isinstance(price, (int, float)) or not math.isfinite(price):
            raise TypeError(f"expected a finite number, got {price!r}")
        self.cost = (self.cost or 0.0) + price

    def add_run(self, usage: Usage, *, requests: int, tool_calls: int, cost: float | None) -> None:
        """All that a sub-agent's run consumed."""
        self.usage += usage
        self.requests += requests
        self.tool_calls += tool_calls
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost

    def crossed(self, *, about_to_run: int = 0, about_to_send: int = 0) -> UsageLimitError | None:
        """The first limit crossed, now or with so many more tool calls and requests."""
        if self._unlimited:
            return None
        return self._limits.check(
            self.usage,
            requests=self.requests,
            tool_calls=self.tool_calls,
            cost=self.cost,
            about_to_run=about_to_run,
            about_to_send=about_to_send,
        )
