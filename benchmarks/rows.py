"""A row of the table: what everyone took for the same work, and the goals it is held to."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from msgspec import Struct
from timing import Timing


class Goal(Struct, frozen=True):
    """A ratio and its bound; `value` is None where the one to compare with was not there."""

    what: str
    value: float | None
    bound: float
    kind: Literal["at least", "at most"] = "at most"

    @property
    def met(self) -> bool | None:
        """Whether the bound is kept; None where nothing was measured."""
        if self.value is None:
            return None
        return self.value >= self.bound if self.kind == "at least" else self.value <= self.bound

    def __str__(self) -> str:
        sign = {"at least": "≥", "at most": "≤"}[self.kind]
        value = "not measured" if self.value is None else f"{self.value:.3g}"
        return f"{self.what}: {value} (goal {sign} {self.bound:g})"


class Row(Struct, frozen=True):
    """One piece of work: `figures` in `unit`, by contestant, CPU and wall, or one number each."""

    title: str
    unit: str
    figures: dict[str, tuple[float, float | None]]
    goals: list[Goal]
    note: str = ""


SCALES = {"ns": 1e9, "µs": 1e6, "ms": 1e3, "s": 1.0}


def timed(
    title: str,
    unit: str,
    timings: Mapping[str, Timing],
    goals: list[Goal],
    note: str = "",
) -> Row:
    """A row of times; `unit` begins with the unit of time: ``ns/message``."""
    scale = SCALES[unit.partition("/")[0]]
    figures: dict[str, tuple[float, float | None]] = {
        name: (timing.cpu * scale, timing.wall * scale) for name, timing in timings.items()
    }
    return Row(title, unit, figures, goals, note)


def times_faster(timings: Mapping[str, Timing], ours: str, peer: str, at_least: float) -> Goal:
    """How many times the CPU of `ours` a peer takes."""
    value = timings[peer].cpu / timings[ours].cpu if peer in timings else None
    return Goal(f"{peer} / {ours}", value, at_least, "at least")


def times_as_long(timings: Mapping[str, Timing], ours: str, base: str, at_most: float) -> Goal:
    """How many times the CPU of `base` ours takes."""
    value = timings[ours].cpu / timings[base].cpu if base in timings else None
    return Goal(f"{ours} / {base}", value, at_most)
