"""An output item of a stream that is still coming: pieces in, the whole item at the end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec
from msgspec import Raw

from golem_adapters._toolkit.bounds import room_for
from golem_adapters._toolkit.lenient import clean, text
from golem_adapters._toolkit.pieces import Halves
from golem_adapters._toolkit.story import Asked
from golem_adapters._toolkit.telling import ToldCall
from golem_adapters.openai_responses.items import (
    CALLS,
    CUSTOM_CALL,
    MESSAGE,
    PARAGRAPH,
    REASONING,
    Item,
    asked,
    kind,
    message_text,
    reasoning_text,
)

UNFINISHED: Final = "in_progress"
_PARTS: Final[Mapping[str, str]] = {MESSAGE: "output_text", REASONING: "summary_text"}
_TEXT_MEMBER: Final[Mapping[str, str]] = {"refusal": "refusal"}


class ItemCall(ToldCall):
    """A tool call that was given out, and what its item says of it."""

    __slots__ = ("said",)

    def __init__(self, index: int, id: str, name: str, said: Asked) -> None:
        super().__init__(index, id, name)
        self.said = said


class _Segment:
    """Pieces behind each other of the part of the kind `part` that stands at `place`."""

    __slots__ = ("part", "pieces", "place", "size")

    def __init__(self, part: str, place: int) -> None:
        self.part = part
        self.place = place
        self.pieces: list[str] = []
        self.size = 0

    def add(self, piece: str) -> None:
        self.pieces.append(piece)
        self.size += len(piece)

    def built(self) -> Item:
        name = _TEXT_MEMBER.get(self.part, "text")
        return {"type": self.part, name: "".join(self.pieces)}


class GrowingItem:
    """An item as far as it has come. What it has told stays told.

    `told` is its text, reasoning or argument text so far, in the order in which it came, and
    `new` gives out each piece of that once, as part of `call` if it is one; `raw` is the item
    itself, once it came whole and says what its pieces said.
    """

    __slots__ = (
        "_halves",
        "_parts",
        "_pending",
        "_pieces",
        "_segments",
        "call",
        "done",
        "item",
        "kind",
        "opened",
        "raw",
    )

    def __init__(self, item: Item) -> None:
        self.item = item
        self.kind = kind(item)
        self.raw: Raw | None = None
        self.opened = False
        self.done = False
        self._pieces: list[str] = []
        self._pending: list[str] = []
        self.call: ItemCall | None = None
        self._segments: list[_Segment] = []
        self._parts: dict[tuple[str, int], list[_Segment]] = {}
        self._halves = Halves()

    def add(self, part: str, place: int, piece: str) -> None:
        """Take in a piece of the part of the kind `part` that stands at `place`."""
        piece = self._halves.mended(piece)
        if self.kind in CALLS and not self._pieces:
            piece = piece.lstrip()
        if not piece:
            return
        last = self._segments[-1] if self._segments else None
        if last is None or (last.part, last.place) != (part, place):
            if last is not None and self.kind == REASONING:
                self._tell(PARAGRAPH)
            last = self._begin(part, place)
        last.add(piece)
        self._tell(piece)

    def _begin(self, part: str, place: int) -> _Segment:
        room_for(len(self._segments), "parts in an item")
        segment = _Segment(part, place)
        self._segments.append(segment)
        self._parts.setdefault((part, place), []).append(segment)
        return segment

    def _tell(self, piece: str) -> None:
        self._pieces.append(piece)
        self._pending.append(piece)

    @property
    def told(self) -> str:
        """All that the item has said so far."""
        return "".join(self._pieces)

    def complete(self, part: str, place: int, whole: str) -> None:
        """Take in a whole part, of which pieces may have come; one that differs is left out."""
        same = self._parts.get((part, place), [])
        if not same:
            self.add(part, place, whole)
            return
        segment = same[0]
        if segment is not self._segments[-1] or len(same) > 1 or len(whole) <= segment.size:
            return  # it goes on nowhere, or says nothing more
        if whole.startswith("".join(segment.pieces)):
            self._halves.rest()  # is in what comes now
            self.add(part, place, whole[segment.size :])

    def new(self) -> str:
        """What was told and not given out, and is now."""
        if not self._pending:
            return ""
        new = "".join(self._pending)
        self._pending.clear()
        return new

    def finish(self, raw: Raw, item: Item) -> None:
        """Take in the whole item; one that contradicts its pieces only ends them."""
        self.done = True
        said = _said(item)
        told = self.told
        fits = said.startswith(told) or (self.kind in CALLS and said == told.rstrip())
        if kind(item) == self.kind and fits:
            self.item, self.raw = item, raw
            if rest := said[len(told) :]:
                self._tell(rest)
        else:
            self._settle_half()
            self.item["status"] = "completed"

    def built(self, status: str) -> Raw:
        """The item as it came; else one of its pieces, with `status` unless it was ended."""
        if self.raw is not None:
            return self.raw
        self._settle_half()
        return Raw(msgspec.json.encode(clean(self._made(status))))

    def _made(self, status: str) -> Item:
        own = text(self.item.get("status"))
        item: Item = {**self.item, "status": status if own in ("", UNFINISHED) else own}
        texts = [segment.built() for segment in self._segments]
        if not texts:
            return item
        if self.kind == MESSAGE:
            item["content"] = texts
        elif self.kind == REASONING:
            item["summary"], item["content"] = texts, []
        else:
            item["input" if self.kind == CUSTOM_CALL else "arguments"] = self.told
        return item

    def _settle_half(self) -> None:
        """Tell the half of a surrogate pair whose other half will not come."""
        if not (rest := self._halves.rest()):
            return
        self._tell(rest)
        last = self._segments[-1] if self._segments else self._begin(_PARTS.get(self.kind, ""), 0)
        last.add(rest)


def _said(item: Item) -> str:
    """What `item` tells, of the kind that its pieces tell."""
    match kind(item):
        case "message":
            return message_text(item)
        case "reasoning":
            return reasoning_text(item)
        case "function_call" | "custom_tool_call":
            return asked(item).args
        case _:
            return ""
