"""What a pass over a corpus says: about a line, about a line it could not read, in total."""

from __future__ import annotations

import base64
import operator
from typing import Annotated, Any

from msgspec import Meta, Struct
from msgspec.structs import astuple

from golem import rawjson
from golem.history import HistoryRepair, SanitizeReport


class LineReport(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a pass found in the history of one line; `repair` or `sanitized`, as the pass is."""

    line: Annotated[int, Meta(description="number of the line; the first is 1")]
    repair: HistoryRepair | None = None
    sanitized: SanitizeReport | None = None
    respelled: Annotated[
        bool, Meta(description="written anew, for readers may disagree about its bytes")
    ] = False


class RejectedLine(Struct, frozen=True, rename="camel", omit_defaults=True):
    """A line that is no history, which the output is without.

    The line itself is in `text`, or in `data` where it is not UTF-8; a line over the length limit
    is not kept.
    """

    line: Annotated[int, Meta(description="number of the line; the first is 1")]
    reason: str
    size: Annotated[int, Meta(description="bytes, without the line break")]
    text: str | None = None
    data: Annotated[str | None, Meta(description="the line in standard base64")] = None

    @classmethod
    def of(cls, line: int, reason: str, content: bytes) -> RejectedLine:
        """The record of a line with what it holds."""
        reason = rawjson.clean_text(reason)
        if rawjson.is_utf8(content):
            return cls(line, reason, len(content), text=content.decode())
        return cls(line, reason, len(content), data=base64.b64encode(content).decode())


class CorpusTotal(Struct, frozen=True, rename="camel"):
    """What a pass did to a corpus: every line is in exactly one of the first four counts."""

    unchanged: Annotated[int, Meta(description="lines that came back as the same bytes")] = 0
    rewritten: Annotated[int, Meta(description="lines that did not")] = 0
    rejected: Annotated[int, Meta(description="lines that are no history; see the rejects")] = 0
    blank: Annotated[int, Meta(description="lines with nothing in them, kept")] = 0
    reported: Annotated[int, Meta(description="lines with a report, changed or not")] = 0
    synthesized: Annotated[int, Meta(description="results written for unanswered calls")] = 0
    dropped: Annotated[int, Meta(description="results that answered nothing")] = 0
    moved: Annotated[int, Meta(description="results moved up to their turn")] = 0
    truncated: Annotated[int, Meta(description="calls whose arguments are no JSON object")] = 0

    @property
    def lines(self) -> int:
        """All lines that were read."""
        return self.unchanged + self.rewritten + self.rejected + self.blank

    def __add__(self, other: CorpusTotal) -> CorpusTotal:
        """The total of two parts of a corpus."""
        mine: tuple[Any, ...] = astuple(self)
        return CorpusTotal(*map(operator.add, mine, astuple(other)))
