"""A content block of a stream that is still coming: pieces in, the whole block at the end. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec
from msgspec import Raw

from golem_adapters._toolkit.bounds import room_for
from golem_adapters._toolkit.lenient import NOTHING, clean, is_array, is_object, text, written
from golem_adapters._toolkit.pieces import Halves, Pieces
from golem_adapters._toolkit.reading import argument_json
from golem_adapters._toolkit.story import trimmed
from golem_adapters._toolkit.telling import ToldCall
from golem_adapters.bedrock.blocks import (
    CITED,
    REASONING,
    TEXT,
    TOOL_RESULT,
    TOOL_USE,
    Block,
    read_block,
)

_BLOB: Final = "bytes"


class GrowingBlock:
    """A block as far as it has come. `call` is set once a call is given out.

    `start` is what the block began with: the members under its kind.
    """

    __slots__ = (
        "_citations",
        "_grown",
        "_halves",
        "_input",
        "_pieces",
        "_redacted",
        "_signature",
        "_start",
        "call",
        "done",
        "kind",
    )

    def __init__(self, kind: str, start: Any = None) -> None:
        self.kind = kind
        self.call: ToldCall | None = None
        self.done = False
        self._start: Any = start
        self._halves = Halves()
        self._pieces: list[str] = []
        self._input: list[str] = []
        self._redacted: list[str] = []
        self._signature = Pieces()
        self._citations: list[Raw] = []
        self._grown = _Pile()

    def word(self, name: str) -> str:
        """The text under `name` of what the block began with."""
        return text(self._start.get(name)) if is_object(self._start) else ""

    def begun_as(self, kind: str, start: Any) -> bool:
        """Whether the block is one of `kind` that began with the same."""
        return self.kind == kind and self._start == start

    @property
    def began_with(self) -> str:
        """The argument text that stood where the block began; servers send it in pieces."""
        given = self._start.get("input") if is_object(self._start) else None
        found = bytes(written(given)).decode() if is_object(given) else text(given)
        return "" if found == "null" else found

    # --- pieces

    def added(self, piece: str) -> str:
        """What `piece` of text or reasoning says, behind a half character that came before."""
        said = self._halves.mended(piece)
        if said:
            self._pieces.append(said)
        return said

    def argued(self, piece: str) -> str:
        """What a piece of a tool's input says, behind a half character that came before."""
        said = self._halves.mended(piece)
        if said:
            self._input.append(said)
        return said

    def rest(self) -> str:
        """What half a character at the end of the pieces stands for."""
        rest = self._halves.rest()
        if rest:
            (self._input if self.kind == TOOL_USE else self._pieces).append(rest)
        return rest

    def signed(self, signature: str) -> None:
        """Take in a piece of a signature; the whole one once more is no piece."""
        if not self._signature.says(signature):
            self._signature.add(signature)

    def redacted(self, data: str) -> None:
        """Take in a piece of hidden reasoning."""
        self._redacted.append(data)

    def cited(self, citation: Raw) -> None:
        """Take in a citation."""
        room_for(len(self._citations), "citations in a block")
        self._citations.append(citation)

    def grown(self, piece: Any) -> None:
        """Take in a piece of a block of any other kind."""
        if self.kind == TOOL_RESULT:
            piece = {"content": piece}
        self._grown.add(piece)

    # --- the whole

    def built(self) -> list[Block]:
        """The block as far as it has come; two where reasoning is shown and hidden."""
        found = ({self._kind_now(): value} for value in self._values())
        return [block for one in found if (block := read_block(_encoded(one))) is not None]

    def _kind_now(self) -> str:
        return CITED if self.kind == TEXT and self._citations else self.kind

    def _values(self) -> list[Any]:
        said = "".join(self._pieces)
        if self.kind == TEXT:
            if not self._citations:
                return [said]
            return [{"content": [{"text": said}], "citations": self._citations}]
        if self.kind == REASONING:
            return self._reasoning(said)
        if self.kind == TOOL_USE:
            return [self._use()]
        whole = _joined(self._start, self._grown.joined())
        return [{} if whole is None else whole]

    def _reasoning(self, said: str) -> list[Any]:
        values: list[Any] = []
        if said or self._signature.size or not self._redacted:
            readable = {"text": said}
            if self._signature.size:
                readable["signature"] = self._signature.text
            values.append({"reasoningText": readable})
        if self._redacted:
            values.append({"redactedContent": _one_blob(self._redacted)})
        return values

    def _use(self) -> dict[str, Any]:
        args = self.call.args.text if self.call is not None else "".join(self._input)
        args = trimmed(args) or self.began_with or "{}"
        started: dict[str, Any] = self._start if is_object(self._start) else {}
        return {"toolUseId": "", "name": "", **started, "input": argument_json(args)}


class _Pile:
    """Pieces of a value of any shape, joined pairwise, so that n of them are copied log n times.

    Each entry stands for twice as many pieces as the one behind it, or more.
    """

    __slots__ = ("_entries",)

    def __init__(self) -> None:
        self._entries: list[tuple[int, Any]] = []

    def add(self, piece: Any) -> None:
        count = 1
        while self._entries and self._entries[-1][0] <= count:
            before, value = self._entries.pop()
            count, piece = count + before, _joined(value, piece)
        self._entries.append((count, piece))

    def joined(self) -> Any:
        """All pieces as one value; None for no piece."""
        whole = None
        for _, value in reversed(self._entries):
            whole = _joined(value, whole)
        return whole


def _encoded(block: dict[str, Any]) -> Raw:
    """`block` as JSON; nothing for one that is nested past every use."""
    try:
        return Raw(msgspec.json.encode(clean(block)))
    except RecursionError:
        return NOTHING


def _joined(before: Any, piece: Any) -> Any:
    """`before` with `piece` added: texts and lists behind each other, objects member by member."""
    if is_object(before) and is_object(piece):
        both = {name: _joined(before[name], piece[name]) for name in before.keys() & piece.keys()}
        if _BLOB in both:
            both[_BLOB] = _one_blob([text(before[_BLOB]), text(piece[_BLOB])])
        return {**before, **piece, **both}
    if isinstance(before, str) and isinstance(piece, str):
        return before + piece
    if is_array(before) and is_array(piece):
        return before + piece
    return before if piece is None else piece


def _one_blob(pieces: list[str]) -> str:
    """Pieces of base64, each spelled by itself, as one."""
    if len(pieces) == 1:
        return pieces[0]
    try:
        data = b"".join(base64.b64decode(piece, validate=True) for piece in pieces)
    except (binascii.Error, ValueError):
        return "".join(pieces)
    return base64.b64encode(data).decode()
