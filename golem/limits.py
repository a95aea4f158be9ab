"""What a run may consume, and the timeouts golem keeps for it (contract §4.4, §4.8)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, Final

from msgspec import Meta, Struct

from golem.usage import Usage


def check_number(what: str, given: object, *, positive: bool = False) -> None:
    """Raise TypeError unless `given` is a number, ValueError if it is negative (or 0) or NaN."""
    if isinstance(given, bool) or not isinstance(given, (int, float)):
        raise TypeError(f"{what} must be a number, not {type(given).__name__}")
    if not (given > 0 if positive else given >= 0):
        raise ValueError(
            f"{what} must {'be positive' if positive else 'not be negative'}, got {given}"
        )


class UsageLimitError(Exception):
    """A run went over one of its limits; the cause of a RunError of stage ``usage``.

    `ahead`: it was stopped before it could, and `actual` is what it would have come to.
    """

    def __init__(self, kind: str, limit: float, actual: float, ahead: bool = False) -> None:
        self.kind = kind
        self.limit = limit
        self.actual = actual
        self.ahead = ahead
        super().__init__(kind, limit, actual, ahead)

    def __str__(self) -> str:
        # Enough digits for any count, few enough to leave out what adding floats leaves behind.
        used = f"{'would use' if self.ahead else 'used'} {self.actual:.12g}"
        return f"run exceeded the {self.kind} limit of {self.limit:.12g} ({used})"


class UsageLimits(Struct, frozen=True, kw_only=True):
    """Upper bounds of one run; None is no bound. Reaching a bound is fine, crossing it is not.

    They are checked after every response and before every batch of tools, sub-agents included.
    `per_request_input_tokens` is checked before a request is sent, with a counter.

    Raises ValueError for a negative bound, TypeError for one that is no number.
    """

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    requests: Annotated[int | None, Meta(description="model requests, failed ones too")] = None
    tool_calls: Annotated[int | None, Meta(description="tool executions")] = None
    cost: Annotated[float | None, Meta(description="in the unit of `price`")] = None
    per_request_input_tokens: int | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) is not None:
                check_number(f"usage limit {name}", getattr(self, name))

    def check(
        self,
        usage: Usage,
        *,
        requests: int,
        tool_calls: int,
        cost: float | None,
        about_to_run: int = 0,
        about_to_send: int = 0,
    ) -> UsageLimitError | None:
        """The first limit crossed, now or with so many more tool calls and requests."""
        for kind, limit, actual in (
            ("input token", self.input_tokens, usage.input_tokens),
            ("output token", self.output_tokens, usage.output_tokens),
            ("total token", self.total_tokens, usage.total_tokens),
            ("request", self.requests, requests),
            ("tool call", self.tool_calls, tool_calls),
            ("cost", self.cost, cost or 0.0),
        ):
            if limit is not None and actual > limit and not _is_rounding(actual, limit):
                return UsageLimitError(kind, limit, actual)
        for kind, limit, planned in (
            ("tool call", self.tool_calls, tool_calls + about_to_run),
            ("request", self.requests, requests + about_to_send),
        ):
            if limit is not None and planned > limit:
                return UsageLimitError(kind, limit, planned, ahead=True)
        return None


def _is_rounding(actual: float, limit: float) -> bool:
    """Whether the two differ by no more than adding up prices does."""
    return isinstance(actual, float) and math.isclose(actual, limit, rel_tol=1e-9)


NO_LIMITS: Final = UsageLimits()


class Timeouts(Struct, frozen=True, kw_only=True):
    """Seconds golem waits at most; None waits for ever.

    They run only while golem waits, so a slow consumer trips none of them but `total`: that is for
    the whole run and strikes at the next pull, to the very last one. `turn` is for one model turn
    with its retries, `first_token` and `between_tokens` for a streamed answer, `tool` for one tool
    call.

    Raises ValueError for a timeout that is not positive, TypeError for one that is no number.
    """

    total: float | None = None
    turn: float | None = None
    first_token: float | None = None
    between_tokens: float | None = None
    tool: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            if getattr(self, name) is not None:
                check_number(f"timeout {name}", getattr(self, name), positive=True)

    def __iter__(self) -> Iterator[float | None]:
        return (getattr(self, name) for name in self.__struct_fields__)


NO_TIMEOUTS: Final = Timeouts()
