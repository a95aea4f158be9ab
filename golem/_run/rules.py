"""What holds for a whole run, and the words its machine is steered and read by. Pure."""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct, field

from golem.model import FinishReason
from golem.output import Output

StopWhen = Literal["now", "after_tools", "after_model"]
_SOONEST_FIRST: Final[tuple[StopWhen, ...]] = ("now", "after_model", "after_tools")
SayWhen = Literal["next_turn", "idle"]

CUT_SHORT: Final[dict[FinishReason, str]] = {
    "length": "it was cut off at the length limit",
    "content_filter": "it was withheld by the provider's content filter",
}
"""Endings of a turn whose text cannot be decoded as if it were whole."""

PAUSE_TURN: Final = "pause_turn"
"""A provider's word for: send this back as it is and let me go on."""


class Rules(Struct, frozen=True, kw_only=True):
    """What holds for a whole run."""

    output: Output = field(default_factory=Output)
    output_tools: bool = False
    output_retries: int = 0
    max_turns: int = 10


def sooner(one: StopWhen | None, other: StopWhen) -> StopWhen:
    """Of two stops the one that lets less happen: who asked for it must not lose it to another."""
    return next(stop for stop in _SOONEST_FIRST if stop in (one, other))
