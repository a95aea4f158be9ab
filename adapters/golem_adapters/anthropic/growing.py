"""A content block of a stream that is still coming: pieces in, the whole block at the end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from golem import rawjson
from golem_adapters._toolkit.bounds import room_for
from golem_adapters._toolkit.lenient import clean, elements, text
from golem_adapters._toolkit.pieces import ArgumentText, Pieces
from golem_adapters.anthropic.blocks import TEXT, THINKING, TOOL_USE, Block, read_block
from golem_adapters.anthropic.shapes import NOTHING, written

_MEMBERS: Final[Mapping[str, str]] = {TEXT: "text", THINKING: "thinking"}


class ToldCall:
    """A tool call of which deltas were given out; `name` is the tool's own."""

    __slots__ = ("args", "id", "index", "name")

    def __init__(self, index: int, id: str, name: str) -> None:
        self.index = index
        self.id = id
        self.name = name
        self.args = ArgumentText()


class GrowingBlock:
    """A block as far as it has come. `call` is set once a call is given out."""

    __slots__ = (
        "_argued",
        "_citations",
        "_grown",
        "_half",
        "_input",
        "_pieces",
        "_start",
        "_words",
        "call",
        "done",
        "kind",
        "repeat",
    )

    def __init__(self, start: Block) -> None:
        self._start = start
        self.kind = start.kind
        self.call: ToldCall | None = None
        self.done = False
        self.repeat = False  # the same call once more, which counts once
        self._argued = False
        self._grown = False
        self._half = ""
        self._pieces: list[str] = []
        self._input: list[str] = []
        self._words: dict[str, Pieces] = {}  # members that come in pieces
        self._citations: list[Raw] = []

    # --- text and thinking

    def opening(self) -> str:
        """What the block already says where it begins."""
        return self.added(self._start.word(_MEMBERS.get(self.kind, "")), grows=False)

    def added(self, piece: str, *, grows: bool = True) -> str:
        """What `piece` of text or thinking says, behind a half character that came before."""
        self._grown = self._grown or grows
        said = self._mended(piece)
        if said:
            self._pieces.append(said)
        return said

    def rest(self) -> str:
        """What half a character at the end of the pieces stands for."""
        if not self._half:
            return ""
        self._half = ""
        (self._input if self._argued else self._pieces).append("\ufffd")
        return "\ufffd"

    @property
    def told(self) -> bool:
        """Whether something of the block was given out."""
        return self.call is not None or bool(self._pieces)

    def _mended(self, piece: str) -> str:
        if not self._half and piece.isascii():
            return piece
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return text(piece)

    # --- what else comes in pieces

    def argued(self, piece: str) -> str:
        """What a piece of a tool's input says, behind a half character that came before."""
        self._argued = True
        said = self._mended(piece)
        if said:
            self._input.append(said)
        return said

    @property
    def args(self) -> str:
        """The argument text; where no pieces came, what the block began with."""
        came = "".join(self._input)
        return came if came.strip(rawjson.BLANKS.decode()) else self._start.args

    def signed(self, signature: str) -> None:
        """Take in a signature; a repeated one is one."""
        if signature and not self._said("signature").says(signature):
            self._add("signature", signature)

    def cited(self, citation: Raw) -> None:
        """Take in a citation."""
        if citation != NOTHING:
            room_for(len(self._citations), "citations in a block")
            self._grown = True
            self._citations.append(citation)

    def summarized(self, said: Mapping[str, str | None]) -> None:
        """Take in what a compaction says."""
        for name, piece in said.items():
            if piece:
                self._add(name, piece)

    def _said(self, name: str) -> Pieces:
        if name not in self._words:
            self._words[name] = Pieces(self._start.word(name))
        return self._words[name]

    def _add(self, name: str, piece: str) -> None:
        self._grown = True
        self._said(name).add(piece)

    # --- the whole

    def built(self) -> Block | None:
        """The block as far as it has come: what it began with, and the pieces in their place."""
        if not self._grown and not self._input:
            return self._start
        members = self._start.members
        said: dict[str, Any] = {name: pieces.text for name, pieces in self._words.items()}
        if self._citations:
            said["citations"] = [*elements(members.get("citations")), *self._citations]
        found: dict[str, Any] = clean({**members, **said})
        if self._input:
            args = self.call.args.text if self.call is not None else self.args.strip()
            found["input"] = _input(args or "{}")
        elif name := _MEMBERS.get(self.kind):
            found[name] = "".join(self._pieces)
        return read_block(Raw(msgspec.json.encode(found)))


def _input(args: str) -> Raw:
    """Argument text inside a block: an object as it is written, anything else as a string."""
    data = args.encode()
    return Raw(data) if rawjson.is_object(data) else written(args)


def begun(kind: str) -> Block:
    """A block of `kind` of which nobody said that it begins."""
    empty: dict[str, Any] = {"type": kind}
    if kind == TOOL_USE:
        empty |= {"id": "", "name": "", "input": {}}
    elif name := _MEMBERS.get(kind):
        empty[name] = ""
    return Block(written(empty), empty, "")
