"""Repair, against loops over the same messages and against the usual pass over plain dicts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from histories import history
from measure import arguments, medians, report, write

import golem
from golem import AssistantMessage, Message


def empty_loop(messages: Sequence[Message]) -> None:
    """The floor: looking at nothing."""
    for _ in messages:
        pass


def type_check_loop(messages: Sequence[Message]) -> int:
    """The floor of a pass that has to find the turns with calls."""
    turns = 0
    for message in messages:
        if type(message) is AssistantMessage and message.tool_calls:
            turns += 1
    return turns


def repair_dicts(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What applications write by hand: pair by id over the whole history, in two passes.

    It does less than golem's pass (no reuse of ids, no moving, no report).
    """
    results = {m["toolCallId"]: m for m in messages if m["role"] == "tool"}
    repaired: list[dict[str, Any]] = []
    for message in messages:
        if message["role"] == "tool":
            continue
        repaired.append(message)
        for call in message.get("toolCalls", ()):
            missing = {"role": "tool", "content": "no result", "toolCallId": call["id"]}
            repaired.append(results.get(call["id"], missing))
    return repaired


def main() -> None:
    """Print one table for a clean history and one for a damaged one."""
    flags = arguments(__doc__)
    figures: dict[str, object] = {}
    for title, damage in (("clean", 0.0), ("5 % of the calls damaged", 0.05)):
        data = history(flags.messages, damage=damage)
        figures[title] = _compare(title, data, flags.messages, flags.rounds)
    write(flags.json, figures)


def _compare(title: str, data: bytes, count: int, rounds: int) -> dict[str, dict[str, float]]:
    messages = golem.load_history(data)
    dicts: list[dict[str, Any]] = json.loads(data)
    times = medians(
        {
            "empty loop": lambda: empty_loop(messages),
            "type check loop": lambda: type_check_loop(messages),
            "dict loop": lambda: repair_dicts(dicts),
            "normalize_history": lambda: golem.normalize_history(messages),
            "repair": lambda: list(golem.repair(messages)),
            "repair, streamed": lambda: list(golem.repair(iter(messages))),
            "json + dict loop": lambda: repair_dicts(json.loads(data)),
            "load + normalize_history": lambda: golem.normalize_history(golem.load_history(data)),
        },
        rounds,
    )
    baselines = ("type check loop", "dict loop", "json + dict loop")
    return report(f"Repair, {title}", times, count, baselines)


if __name__ == "__main__":
    main()
