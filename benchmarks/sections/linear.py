"""Every pass in pieces of a hundred messages and over all of them at once: it has to be linear.

Everybody works on as many messages and holds as many results: what grows with the memory that a
history takes, in any program, is the same for all, and what is left grows with the pass.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, TypeVar

import histories
from msgspec.structs import replace
from rows import Goal, Row, timed
from timing import compare

import golem
from golem import AssistantMessage, Message, UserMessage

T = TypeVar("T")

SHORTEST = 100
"""How many messages a short history has, beside which a long one is held."""
AT_MOST = 2
"""How many times as long a message may take in the longest history as in the shortest."""
KEY = bytes(32)


def measure(longest: int, rounds: int) -> list[Row]:
    """Every pass, from histories of a hundred messages to one of `longest`."""
    messages = _long(longest)
    pieces = _pieces(messages)
    documents = {length: list(map(golem.dump_history, given)) for length, given in pieces.items()}
    rows = [_row("loop with a type check", _type_check_loop, pieces, rounds, goal=False)]
    rows.append(_row("load_history", golem.load_history, documents, rounds))
    rows += [_row(name, call, pieces, rounds) for name, call in _passes().items()]
    fewer = _pieces(messages[: longest // 10])  # a seal is an HMAC over canonical JSON
    rows += [_row(name, call, fewer, rounds) for name, call in _seals().items()]
    return [*rows, _growing(longest, rounds)]


def _row(
    name: str,
    call: Callable[[Any], object],
    inputs: dict[int, list[Any]],
    rounds: int,
    *,
    goal: bool = True,
) -> Row:
    longest = max(inputs)
    contestants = {
        f"in pieces of {length:,}" if length < longest else f"{length:,} at once": partial(
            _each, call, given
        )
        for length, given in inputs.items()
    }
    rounds = min(rounds, 3) if longest <= 100_000 else 1
    found = compare(contestants, rounds, longest, warm=False)
    in_pieces, *others = (timing.cpu for timing in found.values())
    growth = max(others, default=in_pieces) / in_pieces
    goals = [Goal(f"dearest / in pieces of {SHORTEST}", growth, AT_MOST)]
    return timed(f"linear: {name}", "ns/message", found, goals if goal else [])


def _each(call: Callable[[Any], object], given: list[Any]) -> list[object]:
    return [call(piece) for piece in given]


def _passes() -> dict[str, Callable[[list[Message]], object]]:
    trim = golem.trim_history(20)
    budget = golem.budget_history(golem.EstimatedTokens(), 10**12)
    return {
        "dump_history": golem.dump_history,
        "repair": lambda h: list(golem.repair(h)),
        "repair, streamed": lambda h: list(golem.repair(iter(h))),
        "normalize_history": golem.normalize_history,
        "sanitize_history": golem.sanitize_history,
        "trim_history": trim,
        "budget_history": lambda h: _now(budget(h)),
        "turns": lambda h: list(golem.turns(h)),
        "fork_at": lambda h: golem.fork_at(h, len(h) - 1),
        "rewind_to": lambda h: golem.rewind_to(h, len(h) - 1),
        "edit_user": lambda h: golem.edit_user([*h, UserMessage("x")], len(h), "y"),
        "drop_turn": lambda h: golem.drop_turn([*h, AssistantMessage("x")], len(h)),
        "merge": lambda h: golem.merge(h, [*h, UserMessage("x")]),
    }


def _seals() -> dict[str, Callable[[list[Message]], object]]:
    return {
        "seal": lambda h: golem.seal(h, KEY),
        "seal and verify": lambda h: golem.verify(golem.seal(h, KEY), KEY),
    }


def _type_check_loop(messages: Sequence[Message]) -> int:
    turns = 0
    for message in messages:
        if type(message) is AssistantMessage and message.tool_calls:
            turns += 1
    return turns


def _now(waiting: Awaitable[T]) -> T:
    """The result of a coroutine that never has to wait: no event loop is measured."""
    try:
        waiting.__await__().send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise SystemExit("something waited")


def _growing(longest: int, rounds: int) -> Row:
    """A repairer that has seen a history takes one more turn."""
    turn = golem.load_history(histories.history(8, seed=3))

    def grown(length: int) -> Callable[[], object]:
        repairer = golem.Repairer()
        for message in _long(length):
            repairer.feed(message)
        return lambda: [repairer.feed(message) for message in turn]

    after = f"after {longest:,}"
    found = compare(
        {f"after {SHORTEST}": grown(SHORTEST), after: grown(longest)}, rounds, len(turn)
    )
    ratio = found[after].cpu / found[f"after {SHORTEST}"].cpu
    goals = [Goal(f"{after} / after {SHORTEST}", ratio, 1.3)]
    return timed("repair again after appending a turn", "ns/message", found, goals, "`Repairer`")


def _long(size: int) -> list[Message]:
    """So many messages, each an object of its own; beyond some thousands they share their texts."""
    base = _whole(golem.load_history(histories.history(min(size, 5_000))))
    return [replace(base[place % len(base)]) for place in range(size)]


def _pieces(messages: list[Message]) -> dict[int, list[list[Message]]]:
    """`messages` in pieces of some lengths, none of which ends with a call that waits."""
    total = len(messages)
    lengths = [length for length in (SHORTEST, 10_000) if length < total] + [total]
    return {
        length: [_whole(messages[start : start + length]) for start in range(0, total, length)]
        for length in lengths
    }


def _whole(messages: list[Message]) -> list[Message]:
    """The messages up to the last answer, so that no call is left open at the end."""
    end = len(messages)
    while end and (not isinstance(last := messages[end - 1], AssistantMessage) or last.tool_calls):
        end -= 1
    return messages[:end]
