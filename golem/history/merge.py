"""Merging: branches of one conversation as one history.

What counts is what was said. Neither the instructions that a run put in front of it (its system
message) nor the seals that a server put on it tell branches apart. Edits of one history are in
``golem.history.edit``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, dropwhile, islice
from typing import NamedTuple

from msgspec.structs import replace

from golem.faults import checked
from golem.history.repair import NO_RESULT, normalize_history
from golem.messages import Message, SystemMessage, ToolMessage


def merge(*histories: Iterable[Message]) -> list[Message]:
    """Branches of one conversation in one history.

    What all of them begin with comes once, then what each has beyond it, in the order given. Each
    is repaired by itself first, so that no branch answers the calls of another. A turn is common
    unless a call has two different results: a branch that ends inside it takes those of the
    others. A branch whose front was cut off begins where another has its first message, if that
    carries a run id (else it might be another message that says the same). Of the common beginning
    the system messages are those of one branch, and a sealed message stands for its like.

    Never raises for want of something to send: the result is empty where all histories are, and
    only system messages where they hold nothing else.

    Raises HistoryError for something that is no message, or malformed.
    """
    repaired = [normalize_history(checked(history))[0] for history in histories]
    said = [branch for branch in map(_units, repaired) if any(map(_is_said, branch))]
    if not said:
        return list(chain.from_iterable(islice(filter(None, repaired), 1)))
    trunk, starts = _aligned([[*filter(_is_said, branch)] for branch in said])
    common = _common([[*filter(_is_said, branch)] for branch in said], starts)
    ends = [
        _behind(branch, len(common) - start) for branch, start in zip(said, starts, strict=True)
    ]
    shared = iter(common)
    merged = [next(shared) if _is_said(unit) else unit for unit in said[trunk][: ends[trunk]]]
    for number, (branch, end) in enumerate(zip(said, ends, strict=True)):
        rest = iter(branch[end:])
        merged += rest if number == trunk else dropwhile(lambda unit: not _is_said(unit), rest)
    return normalize_history(list(chain.from_iterable(map(_messages, merged))))[0]


class _Unit(NamedTuple):
    """A message of a repaired history with the results of its calls."""

    head: Message
    results: list[ToolMessage]


def _units(messages: Sequence[Message]) -> list[_Unit]:
    units: list[_Unit] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            units[-1].results.append(message)
        else:
            units.append(_Unit(message, []))
    return units


def _messages(unit: _Unit) -> Iterator[Message]:
    yield unit.head
    yield from unit.results


def _is_said(unit: _Unit) -> bool:
    return not isinstance(unit.head, SystemMessage)


def _behind(branch: list[_Unit], common: int) -> int:
    """The place behind the first `common` units of a branch that are no system messages."""
    places = (place for place, unit in enumerate(branch, 1) if _is_said(unit))
    return next(islice(places, common - 1, None)) if common > 0 else 0


def _aligned(branches: list[list[_Unit]]) -> tuple[int, list[int]]:
    """The branch that has the beginning, and where in it each of the branches begins."""
    trunk = 0
    for number, branch in enumerate(branches):
        if _begin(branch, branches[trunk]) is None and _begin(branches[trunk], branch) is not None:
            trunk = number
    return trunk, [_begin(branch, branches[trunk]) or 0 for branch in branches]


def _begin(branch: list[_Unit], trunk: list[_Unit]) -> int | None:
    first = branch[0].head
    if _alike(first, trunk[0].head):
        return 0
    if not first.run_id:
        return None
    return next((place for place, unit in enumerate(trunk) if _alike(unit.head, first)), None)


def _common(branches: list[list[_Unit]], starts: list[int]) -> list[_Unit]:
    """What all branches begin with; before its start a branch agrees to anything."""
    found: list[_Unit] = []
    longest = min(start + len(branch) for branch, start in zip(branches, starts, strict=True))
    for place in range(longest):
        level = [
            b[place - start] for b, start in zip(branches, starts, strict=True) if start <= place
        ]
        unit = _joined(level)
        if unit is None:
            break
        found.append(unit)
    return found


def _joined(level: list[_Unit]) -> _Unit | None:
    """What branches have at one place as one unit; None where they say different things."""
    head = level[0].head
    answers: dict[tuple[str, int], ToolMessage] = {}
    for unit in level:
        if not _alike(unit.head, head):
            return None
        head = unit.head if unit.head.seal and not head.seal else head
        for key, result in _answers(unit.results):
            known = answers.setdefault(key, result)
            if not _alike(known, result):
                return None
            if result.seal and not known.seal:
                answers[key] = result
    first = dict(_answers(level[0].results))
    if answers == first:
        return _Unit(head, level[0].results)
    return _Unit(head, list(answers.values()))


def _answers(results: list[ToolMessage]) -> Iterator[tuple[tuple[str, int], ToolMessage]]:
    """The results that something produced: which call each answers, of an id the how manyeth."""
    seen = Counter[str]()
    for result in results:
        if not _is_synthesized(result):
            yield (result.tool_call_id, seen[result.tool_call_id]), result
            seen[result.tool_call_id] += 1


def _is_synthesized(result: ToolMessage) -> bool:
    """Whether repair made it, now or before it was stored: it answers nothing."""
    call_id, name = result.tool_call_id, result.tool_name
    return result.content == NO_RESULT and _alike(
        result, ToolMessage(NO_RESULT, tool_call_id=call_id, tool_name=name)
    )


def _alike(one: Message, other: Message) -> bool:
    """Whether two messages are the same but for their seals."""
    return one == other or (
        one.content == other.content
        and one.seal != other.seal
        and replace(one, seal="") == replace(other, seal="")
    )
