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
    trunk, places = 0, _Places(branches[0])
    for number, branch in enumerate(branches):
        if places.begin_of(branch) is None:
            others = _Places(branch)
            if others.begin_of(branches[trunk]) is not None:
                trunk, places = number, others
    return trunk, [places.begin_of(branch) or 0 for branch in branches]


class _Places:
    """Where a branch has which message first, seals aside."""

    def __init__(self, branch: list[_Unit]) -> None:
        self._places: dict[Message, int] = {}
        self._odd: list[tuple[int, Message]] = []  # what has no hash, as a list for a tuple
        for place, unit in enumerate(branch):
            try:
                self._places.setdefault(_bare(unit.head), place)
            except TypeError:
                self._odd.append((place, unit.head))

    def begin_of(self, branch: list[_Unit]) -> int | None:
        """The place at which another branch begins; None where it begins nowhere here."""
        first = branch[0].head
        return self._find(first) if first.run_id else None

    def _find(self, message: Message) -> int | None:
        try:
            place = self._places.get(_bare(message))
            places = [] if place is None else [place]
        except TypeError:
            places = [place for other, place in self._places.items() if _alike(message, other)]
        odd = (place for place, other in self._odd if _alike(message, other))
        return min(chain(places, odd), default=None)


def _common(branches: list[list[_Unit]], starts: list[int]) -> list[_Unit]:
    """What all branches begin with; before its start a branch agrees to anything."""
    beginning: dict[int, list[int]] = {}
    for number, start in enumerate(starts):
        beginning.setdefault(start, []).append(number)
    found: list[_Unit] = []
    begun: list[int] = []
    longest = min(start + len(branch) for branch, start in zip(branches, starts, strict=True))
    for place in range(longest):
        if place in beginning:
            begun = sorted(begun + beginning[place])
        unit = _joined([branches[number][place - starts[number]] for number in begun])
        if unit is None:
            break
        found.append(unit)
    return found


class _Key(NamedTuple):
    """Which call a result answers, or closes because nothing did; of an id repeated, which one."""

    closes: bool
    call_id: str
    number: int


def _joined(level: list[_Unit]) -> _Unit | None:
    """What branches have at one place as one unit; None where they say different things."""
    head = level[0].head
    found: dict[_Key, ToolMessage] = {}
    for unit in level:
        if not _alike(unit.head, head):
            return None
        head = unit.head if unit.head.seal and not head.seal else head
        for key, result in _keyed(unit.results):
            known = found.setdefault(key, result)
            if not (key.closes or _alike(known, result)):
                return None
            if result.seal and not known.seal:
                found[key] = result
    answers = [key for key in found if not key.closes]
    own = [key for key, _ in _keyed(level[0].results)]
    # Closings that are stored stay, as long as no other branch has an answer.
    whole = own if set(answers) <= set(own) else answers
    return _Unit(head, [found[key] for key in whole])


def _keyed(results: list[ToolMessage]) -> Iterator[tuple[_Key, ToolMessage]]:
    seen = Counter[tuple[bool, str]]()
    for result in results:
        kind = _is_synthesized(result), result.tool_call_id
        yield _Key(*kind, seen[kind]), result
        seen[kind] += 1


def _is_synthesized(result: ToolMessage) -> bool:
    """Whether repair made it, now or before it was stored: it answers nothing."""
    call_id, name = result.tool_call_id, result.tool_name
    return result.content == NO_RESULT and _alike(
        result, ToolMessage(NO_RESULT, tool_call_id=call_id, tool_name=name)
    )


def _alike(one: Message, other: Message) -> bool:
    """Whether two messages are the same but for their seals."""
    return one == other or (
        one.content == other.content and one.seal != other.seal and _bare(one) == _bare(other)
    )


def _bare(message: Message) -> Message:
    return replace(message, seal="") if message.seal else message
