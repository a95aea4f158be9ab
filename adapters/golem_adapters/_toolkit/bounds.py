"""How much of an answer is taken in: bounds that no answer of a model reaches. Pure.

The bytes of an answer are bounded where they arrive. Here is what a few of them may unfold to: an
empty JSON object is two bytes on the wire and a hundred times that in memory.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from msgspec import Raw

from golem.errors import ProtocolError

MAX_ANSWER: Final = 256 * 1024 * 1024
"""Most bytes of one streamed answer, as of a plain one: no server fills the memory."""

MAX_ITEMS: Final = 100_000
"""Most calls, items or blocks of one answer. Each costs about a kilobyte however few bytes it
came in; a model that wrote nothing else would be past its longest output."""

MAX_VALUES: Final = 2_000_000
"""Most JSON values of one document that is decoded whole, and most of those that are kept of a
stream until its end. At the hundred bytes or so that each
costs they are as much memory as `MAX_ANSWER`; the log-probabilities of ten thousand tokens, with
twenty alternatives each, are fewer."""

_SMALL: Final = 1024 * 1024
"""Bytes of a document that needs no counting: it unfolds to some tens of megabytes at most."""

_MARKS: Final = (b"{", b"[", b",")
_MARK: Final = re.compile(rb'(?:[^"{\[,]++|"[^"\\]*+(?:\\.[^"\\]*+)*+"?)*+[{\[,]', re.DOTALL)
"""What all values but the first stand behind; strings before it, with what they hold, count not."""


def room_for(count: int, what: str) -> None:
    """Raise ProtocolError where an answer that has `count` calls, items or blocks gets one more."""
    if count >= MAX_ITEMS:
        raise ProtocolError(f"the answer has more than {MAX_ITEMS} {what}")


def bounded(document: bytes) -> bytes:
    """`document`, which is to be decoded; ProtocolError for one of more than `MAX_VALUES`."""
    if len(document) <= _SMALL:
        return document
    if sum(map(document.count, _MARKS)) > MAX_VALUES:  # a text may be full of them
        values = sum(1 for _ in islice(_MARK.finditer(document), MAX_VALUES + 1))
        if values > MAX_VALUES:
            raise ProtocolError(f"the answer has more than {MAX_VALUES} JSON values")
    return document


class Room:
    """Counts the values that an answer keeps until its end, whatever events they came in."""

    __slots__ = ("_taken",)

    def __init__(self) -> None:
        self._taken = 0

    def take(self, document: Raw) -> None:
        """Count those of `document`; ProtocolError past `MAX_VALUES`."""
        self.take_count(sum(map(bytes(document).count, _MARKS)))

    def take_count(self, count: int) -> None:
        """Count `count` more; ProtocolError past `MAX_VALUES`."""
        self._taken += count
        if self._taken > MAX_VALUES:
            raise ProtocolError(f"the answer has more than {MAX_VALUES} JSON values")
