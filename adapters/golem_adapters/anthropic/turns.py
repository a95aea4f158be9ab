"""What only a whole request can tell of its turns. Pure.

Whether a server-side tool's use was ever answered, what a turn and the request may end with, and
whether the model can go on thinking there.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Raw

from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.lenient import text
from golem_adapters._toolkit.walk import GO_ON, OPENING, USER, Turn, alternating
from golem_adapters.anthropic.blocks import TEXT, THOUGHTS, TOOL_RESULT, TOOL_USE, read_block


class Entry(NamedTuple):
    """A block of a turn.

    `id` is what a call or a server-side tool's use is known by, `answers` the id of the use that
    a server-side tool's result is for, `source` the id of the use that made a call.
    """

    block: Wire | Raw
    kind: str
    id: str = ""
    answers: str = ""
    source: str = ""


Turns = list[Turn[Entry]]


def text_block(words: str) -> Wire:
    """The block of a text."""
    return {"type": TEXT, "text": words}


def said(words: str) -> Entry:
    """The entry of a text."""
    return Entry(text_block(words), TEXT)


class _Paired:
    """Drops half of what server-side tools did, turn by turn in the order of the request.

    A use stays that has a result somewhere, or may still get one; a result stays behind its use,
    and so does the mark of a call that a tool's program made. Of a turn that stands in the
    history twice both stay once: ids must not be repeated.
    """

    def __init__(self, turns: Turns) -> None:
        self._unanswered = _unanswered(turns)
        self._uses: set[str] = set()
        self._results: set[str] = set()

    def entries(self, turn: Turn[Entry], *, goes_on: bool) -> list[Entry]:
        """What stays of `turn`; `goes_on`: the model itself will go on with it."""
        kept: list[Entry] = []
        for entry in turn.entries:
            if entry.answers:
                if entry.answers not in self._uses or entry.answers in self._results:
                    continue
                self._results.add(entry.answers)
            if entry.kind != TOOL_USE and entry.id:
                loose = not goes_on and entry.id in self._unanswered
                if loose or entry.id in self._uses:
                    continue
                self._uses.add(entry.id)
            if entry.source and entry.source not in self._uses:
                entry = entry._replace(block=_unsourced(entry.block))
            kept.append(entry)
        return kept


def settled(turns: Turns) -> Turns:
    """The turns without what the provider refuses in a whole request.

    A turn of the assistant must not end with thinking; where nothing else is left of it, its
    neighbors are one.
    """
    pairs = _Paired(turns)
    speaking = _goes_on(turns)
    for turn in turns:
        if turn.role != USER:
            turn.entries = pairs.entries(turn, goes_on=turn is speaking)
            while turn.entries and turn.entries[-1].kind in THOUGHTS:
                turn.entries.pop()
    return alternating(turns, said(OPENING))


def _goes_on(turns: Turns) -> Turn[Entry] | None:
    """The turn of the assistant that the model itself will go on with, if there is one.

    It was paused there, or waits for nothing but the results that follow.
    """
    if turns and turns[-1].role == "assistant":
        return turns[-1] if _paused(turns[-1]) else None
    if len(turns) > 1 and turns[-1].entries[0].kind == TOOL_RESULT:
        return turns[-2]
    return None


def mode_of(turns: Turns, thinking: str) -> str:
    """The mode of thinking that the last turn can be continued in.

    With a budget the turn that goes on has to begin with thinking; one of another provider does
    not, and can only be continued without.
    """
    turn = _goes_on(turns)
    if thinking != "enabled" or turn is None or turn.entries[0].kind in THOUGHTS:
        return thinking
    return "disabled"


def close(turns: Turns, thinking: str) -> None:
    """Let `turns` end with the user's side, or with a turn that the model goes on with.

    That one ends without blanks, and holds no thinking where `thinking` is off. Other words of
    the assistant at the end are no question: most models refuse them.
    """
    last = turns[-1]
    if last.role != "assistant":
        return
    if not _paused(last):
        turns.append(Turn(USER, [said(GO_ON)]))
    elif thinking == "disabled":
        last.entries = [entry for entry in last.entries if entry.kind not in THOUGHTS]
    last.entries[-1] = _trimmed(last.entries[-1])


def _paused(turn: Turn[Entry]) -> bool:
    """Whether tools that the server runs had a part in `turn`, so that it may have been paused."""
    return any(entry.answers or (entry.id and entry.kind != TOOL_USE) for entry in turn.entries)


def _unanswered(turns: Turns) -> set[str]:
    """The uses of server-side tools that no result follows."""
    results: set[str] = set()
    found: set[str] = set()
    for turn in reversed(turns):
        for entry in reversed(turn.entries):
            if entry.answers:
                results.add(entry.answers)
            elif entry.kind != TOOL_USE and entry.id and entry.id not in results:
                found.add(entry.id)
    return found


def _unsourced(block: Wire | Raw) -> Wire:
    """A call without the mark of the program that made it."""
    if not isinstance(block, Raw):
        return {name: value for name, value in block.items() if name != "caller"}
    read = read_block(block)
    found = dict(read.members) if read is not None else {}
    found.pop("caller", None)
    if read is not None:
        found["input"] = Raw(read.args.encode())
    return found


def _trimmed(entry: Entry) -> Entry:
    """The last block without blanks at its end, which the API refuses there."""
    if entry.kind != TEXT:
        return entry
    read = read_block(entry.block) if isinstance(entry.block, Raw) else None
    block = read.members if read is not None else entry.block
    if isinstance(block, Raw):
        return entry
    words = text(block["text"])
    return entry._replace(block={**block, "text": words.rstrip()}) if words[-1].isspace() else entry
