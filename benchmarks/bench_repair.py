"""Repair and the other passes: each row with its ratio and the goal that it is held to.

The floor is a loop with a type check over the same messages; what applications write by hand over
plain dicts stands beside it. Three tables: one pass over a history, clean and damaged; a
conversation that grows; every pass from a hundred messages on, which has to be linear.
"""

from __future__ import annotations

import argparse
import json
import operator
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from goals import Goal, judge, judge_all, verdict
from histories import history
from measure import medians, report, write
from msgspec.structs import replace

import golem
from golem import AssistantMessage, Message, UserMessage

T = TypeVar("T")

KEY = bytes(32)
SHORTEST = 100
"""How many messages a short history has, beside which a long one is held."""


GOALS = {
    "clean": (
        Goal("repair", "type check loop", 3.2),
        Goal("repair, streamed", "repair", 4),
        Goal("repair, streamed async", "repair", 7),
    ),
    "5 % of the calls damaged": (
        Goal("repair", "type check loop", 10),
        Goal("repair, streamed", "repair", 4),
        Goal("repair, streamed async", "repair", 7),
    ),
}
LINEAR = 2.0
"""How many times as long a message may take in the longest history as in the shortest."""


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


def now(waiting: Awaitable[T]) -> T:
    """The result of a coroutine that never has to wait: no event loop is measured."""
    try:
        waiting.__await__().send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise SystemExit("something waited")


def streamed_async(messages: Sequence[Message]) -> list[Message]:
    """`arepair` over messages that arrive one by one."""

    async def arriving() -> AsyncIterator[Message]:
        for message in messages:
            yield message

    async def collected() -> list[Message]:
        return [message async for message in golem.arepair(arriving())]

    return now(collected())


def boundary(data: bytes) -> bytes:
    """What a server does with a history that a client sends."""
    return golem.dump_history(golem.sanitize_history(golem.load_history(data))[0])


def main() -> None:
    """Print the tables."""
    flags = _arguments()
    figures: dict[str, object] = {}
    for title, damage in (("clean", 0.0), ("5 % of the calls damaged", 0.05)):
        data = history(flags.messages, damage=damage)
        figures[title] = _compare(title, data, flags.messages, flags.rounds)
    longest = max(flags.longest or 10 * flags.messages, 10 * SHORTEST)
    figures["a turn added"] = _growing(longest, flags.rounds)
    figures["linear"] = _linear(longest)
    write(flags.json, figures)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--messages", type=int, default=10_000, help="length of the history")
    parser.add_argument("--rounds", type=int, default=15, help="rounds; each runs everyone once")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    parser.add_argument(
        "--longest", type=int, help="the longest history (ten times as long; 1000000 takes minutes)"
    )
    return parser.parse_args()


def _compare(title: str, data: bytes, count: int, rounds: int) -> dict[str, dict[str, float]]:
    messages = golem.load_history(data)
    dicts: list[dict[str, Any]] = json.loads(data)
    whole = _whole(messages)
    if title == "clean" and not all(map(operator.is_, golem.repair(whole), whole)):
        raise SystemExit("a clean history does not come back as the same objects")
    trim = golem.trim_history(20)
    times = medians(
        {
            "empty loop": lambda: empty_loop(messages),
            "type check loop": lambda: type_check_loop(messages),
            "dict loop": lambda: repair_dicts(dicts),
            "repair": lambda: list(golem.repair(messages)),
            "normalize_history": lambda: golem.normalize_history(messages),
            "repair, streamed": lambda: list(golem.repair(iter(messages))),
            "repair, streamed async": lambda: streamed_async(messages),
            "sanitize_history": lambda: golem.sanitize_history(messages),
            "trim_history": lambda: trim(messages),
            "json + dict loop": lambda: repair_dicts(json.loads(data)),
            "load + normalize_history": lambda: golem.normalize_history(golem.load_history(data)),
            "load + sanitize + dump": lambda: boundary(data),
        },
        rounds,
    )
    baselines = ("type check loop", "dict loop", "json + dict loop")
    rows = report(f"Passes, {title}", times, count, baselines)
    judge_all(GOALS[title], times)
    return rows


def _growing(longest: int, rounds: int) -> dict[str, float]:
    """A turn is added to a conversation whose repairer was kept, and to one repaired anew."""
    turns = golem.load_history(history(1000))
    kept = {f"kept, after {size}": _fed(size) for size in (SHORTEST, longest)}

    def add(repairer: golem.Repairer) -> None:
        for message in turns:  # many, so that there is something to measure
            repairer.feed(message)
        repairer.close()

    times = medians({name: partial(add, repairer) for name, repairer in kept.items()}, rounds)
    print(f"\nRepair again after a turn was added ({len(turns)} messages, one repairer kept)")
    for name, seconds in times.items():
        print(f"{name:60} {seconds / len(turns) * 1e9:7.1f} ns_per_message")
    short, long = times.values()
    judge(f"{longest} messages before it / {SHORTEST}", long / short, LINEAR)
    return times


def _fed(size: int) -> golem.Repairer:
    repairer = golem.Repairer()
    for message in _long(size):
        repairer.feed(message)
    repairer.close()
    return repairer


def _long(size: int) -> list[Message]:
    """So many messages, each an object of its own; beyond a thousand they share their texts."""
    base = _whole(golem.load_history(history(min(size, 1000))))
    return [replace(base[place % len(base)]) for place in range(size)]


def _whole(messages: list[Message]) -> list[Message]:
    """The messages up to the last answer, so that no call is left open at the end."""
    end = len(messages)
    while end and (not isinstance(last := messages[end - 1], AssistantMessage) or last.tool_calls):
        end -= 1
    return messages[:end]


def _passes() -> Mapping[str, Callable[[list[Message]], object]]:
    trim = golem.trim_history(20)
    budget = golem.budget_history(golem.EstimatedTokens(), 10**12)
    return {
        "repair": lambda h: list(golem.repair(h)),
        "repair, streamed": lambda h: list(golem.repair(iter(h))),
        "sanitize_history": golem.sanitize_history,
        "trim_history": trim,
        "budget_history": lambda h: now(budget(h)),
        "turns": lambda h: list(golem.turns(h)),
        "fork_at": lambda h: golem.fork_at(h, len(h) - 1),
        "rewind_to": lambda h: golem.rewind_to(h, len(h) - 1),
        "edit_user": lambda h: golem.edit_user([*h, UserMessage("x")], len(h), "y"),
        "drop_turn": lambda h: golem.drop_turn([*h, AssistantMessage("x")], len(h)),
        "merge": lambda h: golem.merge(h, [*h, UserMessage("x")]),
        "seal": lambda h: golem.seal(h, KEY),
        "seal, verify": lambda h: golem.verify(golem.seal(h, KEY), KEY),
        "dump_history": golem.dump_history,
        "load_history": lambda h: golem.load_history(golem.dump_history(h)),
    }


def _linear(longest: int) -> dict[str, dict[str, float]]:
    """Nanoseconds a message, by the length of the history; the short ones as many at a time."""
    sizes = [size for size in (SHORTEST, 1_000, 10_000, 100_000, 1_000_000) if size <= longest]
    figures: dict[str, dict[str, float]] = {name: {} for name in _passes()}
    for size in sizes:
        total = max(size, min(longest, 10_000))
        messages = _long(total)
        pieces = [messages[start : start + size] for start in range(0, total, size)]
        calls = {name: partial(_each, call, pieces) for name, call in _passes().items()}
        for name, seconds in medians(calls, 1 if size > 100_000 else 3).items():
            figures[name][str(size)] = round(seconds / total * 1e9, 1)
    print("\nNanoseconds a message, by the length of the history")
    print(" " * 20, *(f"{size:>12}" for size in sizes))
    for name, row in figures.items():
        growth = row[str(sizes[-1])] / row[str(sizes[0])]
        print(f"{name:20}", *(f"{value:>12}" for value in row.values()), end="")
        print(f"   {growth:.2f}x, {verdict(growth, LINEAR)}")
    return figures


def _each(call: Callable[[list[Message]], object], pieces: list[list[Message]]) -> None:
    for piece in pieces:
        call(piece)


if __name__ == "__main__":
    main()
