"""What only a whole request can tell of its turns. Pure.

Who speaks first and last, what a turn may end with, and what may stand behind results in one
turn: some families take nothing there, and get the rest in a turn of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec import Raw

from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.walk import GO_ON, OPENING, USER, Turn, alternating
from golem_adapters.bedrock.blocks import CACHE_POINT, REASONING, TEXT, TOOL_RESULT
from golem_adapters.bedrock.dialect import ConverseDialect

BETWEEN: Final = "."
"""What the assistant is given to say between results and what may not stand beside them."""

ATTACHED: Final = "See the attached document."
"""Stands before a document that comes without a word, which the API refuses."""

_MOST: Final[Mapping[str, int]] = {"image": 20, "document": 5}
"""How many of a kind one message may hold, by the service's model."""

_UNMARKED: Final = ("document", "video")


class Entry(NamedTuple):
    """A block of a turn, and its kind."""

    block: Wire | Raw
    kind: str


Turns = list[Turn[Entry]]


def written(turns: Turns) -> list[Wire]:
    """The turns on the wire."""
    return [{"role": turn.role, "content": [e.block for e in turn.entries]} for turn in turns]


def kind_of(wire: Wire) -> str:
    """The kind of a text or a medium, its one member."""
    return next(iter(wire))


def said(words: str) -> Entry:
    """The entry of a text."""
    return Entry({TEXT: words}, TEXT)


def settled(turns: Turns, dialect: ConverseDialect) -> Turns:
    """The turns as `dialect` takes them, alternating, the user first and last.

    A turn of the assistant must not end with thinking; where nothing else is left of it, its
    neighbors are one.
    """
    for turn in turns:
        while turn.role != USER and turn.entries and turn.entries[-1].kind == REASONING:
            turn.entries.pop()
    found = alternating(turns, said(OPENING))
    if found[-1].role != USER:
        found.append(Turn(USER, [said(GO_ON)]))
    return [piece for turn in found for piece in _parted(turn, dialect)]


def _parted(turn: Turn[Entry], dialect: ConverseDialect) -> Turns:
    """`turn`, in several where something may not stand beside its results, or too much together."""
    results = [entry for entry in turn.entries if entry.kind == TOOL_RESULT]
    rest = [entry for entry in turn.entries if entry.kind != TOOL_RESULT]
    if turn.role != USER or not rest:
        return [turn]
    pieces = [_introduced(piece) for piece in _bounded(rest)]
    if {entry.kind for piece in pieces for entry in piece} <= dialect.beside_results:
        pieces[0] = [*results, *pieces[0]]
    elif results:
        pieces.insert(0, results)
    turns = [Turn(USER, pieces[0])]
    for piece in pieces[1:]:
        turns += [Turn("assistant", [said(BETWEEN)]), Turn(USER, piece)]
    return turns


def _bounded(entries: list[Entry]) -> list[list[Entry]]:
    """`entries` in pieces, none with more of a kind than one message may hold."""
    pieces: list[list[Entry]] = [[]]
    for entry in entries:
        most = _MOST.get(entry.kind)
        if most is not None and [e.kind for e in pieces[-1]].count(entry.kind) == most:
            pieces.append([])
        pieces[-1].append(entry)
    return pieces


def _introduced(entries: list[Entry]) -> list[Entry]:
    """`entries` with a text, where a document is among them."""
    kinds = {entry.kind for entry in entries}
    return [said(ATTACHED), *entries] if "document" in kinds and TEXT not in kinds else entries


def marked(turns: Turns, mark: Wire) -> None:
    """Put the mark of a prompt cache at the end of the last turn.

    The API refuses one right behind a document or a video: it stands before them.
    """
    entries = turns[-1].entries
    place = len(entries)
    while place and entries[place - 1].kind in _UNMARKED:
        place -= 1
    if place:
        entries.insert(place, Entry(mark, CACHE_POINT))


def thinks_on(turns: Turns) -> bool:
    """Whether a model that thinks with a budget can answer here.

    The turn whose results are being sent has to begin with thinking; one of another provider
    does not.
    """
    if len(turns) < 2 or turns[-1].entries[0].kind != TOOL_RESULT:
        return True
    return turns[-2].entries[0].kind == REASONING
