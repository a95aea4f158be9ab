"""Goals of benchmarks, as ratios within one run; what is measured is in ``measure``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Goal(NamedTuple):
    """Who is measured against whom, and how many times as long it may take."""

    name: str
    baseline: str
    at_most: float


def judge_all(goals: Iterable[Goal], times: Mapping[str, float]) -> None:
    """Print each goal beside what `times`, in any unit, say of it."""
    for name, baseline, at_most in goals:
        judge(f"{name} / {baseline}", times[name] / times[baseline], at_most)


def judge(name: str, ratio: float, at_most: float) -> None:
    """Print one ratio and its goal."""
    print(f"{name:60} {ratio:7.2f}x, {verdict(ratio, at_most)}")


def verdict(ratio: float, at_most: float) -> str:
    """Whether a ratio is within its goal."""
    return f"goal at most {at_most:g}x: {'met' if ratio <= at_most else 'NOT MET'}"
