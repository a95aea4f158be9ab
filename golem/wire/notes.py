"""Notes on what a request leaves out, renames, flattens or refuses, taken while it is written.

A dialect calls `note` and `refuse` where it does so, and walks its messages with `placed`. On the
way to a provider that costs nothing and changes nothing; under `taken` the same code tells
`golem.check_history` what it does. So there is no second list of rules that could differ from
what is sent. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from contextvars import ContextVar
from typing import Final

from golem.errors import UnsupportedContentError
from golem.messages import Message
from golem.portability import Finding, FindingKind, HistoryCheck


class _Notes:
    """The notes on one request. `bound` are pieces of it that may still be left out."""

    __slots__ = ("bound", "found", "index")

    def __init__(self) -> None:
        self.found: dict[Finding, None] = {}
        self.index = 0
        self.bound: list[tuple[object, Finding]] = []


_notes: Final[ContextVar[_Notes | None]] = ContextVar("golem_notes", default=None)


def taken(write: Callable[[], object]) -> HistoryCheck:
    """What `write`, which writes a request and sends nothing, does to its messages."""
    notes = _Notes()
    token = _notes.set(notes)
    try:
        write()
    finally:
        _notes.reset(token)
    refused = {(f.message_index, f.member) for f in notes.found if f.kind == "refused"}
    found = [
        finding  # what is refused becomes nothing else
        for finding in notes.found
        if finding.kind == "refused" or (finding.message_index, finding.member) not in refused
    ]
    found.sort(key=lambda finding: finding.message_index)
    return HistoryCheck(tuple(found))


def noting() -> bool:
    """Whether notes are taken: what only they need is not worth its time otherwise."""
    return _notes.get() is not None


def placed(messages: Iterable[Message]) -> Iterator[tuple[int, Message]]:
    """The messages with their places; notes are about the one that was given out last."""
    notes = _notes.get()
    for index, message in enumerate(messages):
        if notes is not None:
            notes.index = index
        yield index, message


def note(kind: FindingKind, member: str, what: str, why: str) -> None:
    """Note what becomes of a `member` of the current message."""
    notes = _notes.get()
    if notes is not None:
        notes.found[Finding(kind, notes.index, member, what, why)] = None


def refuse(index: int, member: str, what: str, why: str) -> None:
    """Raise UnsupportedContentError for a `member` of the message at `index`, or note it."""
    notes = _notes.get()
    if notes is None:
        raise UnsupportedContentError(f"messages[{index}].{member}: {why}")
    notes.found[Finding("refused", index, member, what, why)] = None


# --- pieces that only the whole request decides about


def bind(piece: object, member: str, what: str, why: str) -> None:
    """Say that `piece`, an object of its own, stands for a `member` of the current message.

    `why` it is dropped, if it turns out to be (`settle`).
    """
    notes = _notes.get()
    if notes is not None:
        notes.bound.append((piece, Finding("dropped", notes.index, member, what, why)))


def settle(sent: Callable[[], Collection[object]]) -> None:
    """Note as dropped whatever was bound and is not among the pieces that are `sent`."""
    notes = _notes.get()
    if notes is not None and notes.bound:
        there = {id(piece) for piece in sent()}
        notes.found.update((f, None) for piece, f in notes.bound if id(piece) not in there)
