"""Repair of a history that was skimmed: from where it may be broken, by the rules of every repair.

What stands before that place is sound, asks for nothing that is still open, and goes around the
engine as it was read. The bytes are those that loading, normalizing and dumping the line give.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import cast

from golem.codec import dump_history, encode_json, load_history
from golem.corpus.skim import Skimmed, first_unsound, history_of, skim
from golem.history import HistoryRepair, normalize_history
from golem.history.engine import Engine
from golem.history.report import NOTHING_REPAIRED
from golem.messages import Message


def mended(line: bytes) -> tuple[bytes | None, HistoryRepair]:
    """The history in `line`, normalized, and the report; None where that changes nothing.

    Raises HistoryError where it holds no history.
    """
    skimmed = skim(line)
    if skimmed is None:
        return _mended_whole(line)
    unsound = first_unsound(skimmed)
    if unsound is None:
        return None, NOTHING_REPAIRED
    place = next(place for place, message in enumerate(skimmed) if message is unsound)
    rest = history_of(skimmed[place:])
    if rest is None:
        return _mended_whole(line)
    return _mended_from(skimmed[:place], rest)


def _mended_whole(line: bytes) -> tuple[bytes | None, HistoryRepair]:
    history = load_history(line)
    messages, report = normalize_history(history)
    return None if is_same(history, messages) else dump_history(messages), report


def _mended_from(sound: list[Skimmed], rest: list[Message]) -> tuple[bytes | None, HistoryRepair]:
    """Repair `rest`, before which `sound` stands."""
    engine = Engine()
    engine.take_whole(cast("list[Message]", sound))
    messages = [*engine.take_all(rest), *engine.close()]
    same = is_same(rest, messages)
    return None if same else encode_json([*sound, *messages]), engine.report


def is_same(before: Sequence[Message], after: Sequence[Message]) -> bool:
    """Whether a pass gave back the very messages that it was given."""
    return len(before) == len(after) and all(map(operator.is_, before, after))
