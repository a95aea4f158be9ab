"""Measuring: interleaved rounds, CPU time, medians, and ratios to a baseline of the same run.

Absolute times move by half between runs and more between machines; the ratios are the result.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path

Contestants = Mapping[str, Callable[[], object]]


def arguments(description: str | None) -> argparse.Namespace:
    """The flags that every benchmark has."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=10_000, help="length of the history")
    parser.add_argument("--rounds", type=int, default=15, help="rounds; each runs everyone once")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    return parser.parse_args()


def medians(contestants: Contestants, rounds: int) -> dict[str, float]:
    """The median CPU seconds of one call of each contestant.

    Everyone runs once in each round, so that a slow phase of the machine hits all alike; the
    garbage collector runs between the calls, not in them. One round of warming up is not counted.
    """
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for turn in range(rounds + 1):
        for name, call in contestants.items():
            gc.collect()
            gc.disable()
            started = time.process_time_ns()
            call()
            elapsed = time.process_time_ns() - started
            gc.enable()
            if turn:
                times[name].append(elapsed / 1e9)
    return {name: statistics.median(values) for name, values in times.items()}


def report(
    title: str, figures: Mapping[str, float], messages: int, baselines: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    """Print nanoseconds a message and the ratio to each baseline; give back the same."""
    rows: dict[str, dict[str, float]] = {}
    for name, seconds in figures.items():
        rows[name] = {"ns_per_message": round(seconds / messages * 1e9, 1)}
        for baseline in baselines:
            rows[name][f"x {baseline}"] = round(seconds / figures[baseline], 3)
    columns = ["ns_per_message", *(f"x {baseline}" for baseline in baselines)]
    width = max(map(len, rows))
    print(f"\n{title} ({messages} messages)")
    print(" " * width, *(f"{column:>20}" for column in columns))
    for name, row in rows.items():
        print(f"{name:{width}}", *(f"{row[column]:>20}" for column in columns))
    return rows


def write(target: Path | None, figures: Mapping[str, object]) -> None:
    """The figures as one line of JSON, and in `target` when there is one."""
    text = json.dumps(figures)
    print(f"\n{text}")
    if target:
        target.write_text(text + "\n", encoding="utf-8")
