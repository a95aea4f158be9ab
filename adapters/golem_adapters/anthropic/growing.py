"""A content block of a stream that is still coming: pieces in, the whole block at the end. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Raw

from golem_adapters._toolkit.bounds import room_for
from golem_adapters._toolkit.lenient import NOTHING, clean, elements, written
from golem_adapters._toolkit.pieces import Halves, Pieces
from golem_adapters._toolkit.reading import argument_json
from golem_adapters._toolkit.story import trimmed
from golem_adapters._toolkit.telling import ToldCall
from golem_adapters.anthropic.blocks import TEXT, THINKING, TOOL_USE, Block, read_block

_MEMBERS: Final[Mapping[str, str]] = {TEXT: "text", THINKING: "thinking"}


class GrowingBlock:
    """A block as far as it has come. `call` is set once a call is given out."""

    __slots__ = (
        "_argued",
        "_citations",
        "_grown",
        "_halves",
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
        self._halves = Halves()
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
        said = self._halves.mended(piece)
        if said:
            self._pieces.append(said)
        return said

    def rest(self) -> str:
        """What half a character at the end of the pieces stands for."""
        rest = self._halves.rest()
        if rest:
            (self._input if self._argued else self._pieces).append(rest)
        return rest

    @property
    def told(self) -> bool:
        """Whether something of the block was given out."""
        return self.call is not None or bool(self._pieces)

    # --- what else comes in pieces

    def argued(self, piece: str) -> str:
        """What a piece of a tool's input says, behind a half character that came before."""
        self._argued = True
        said = self._halves.mended(piece)
        if said:
            self._input.append(said)
        return said

    @property
    def args(self) -> str:
        """The argument text; where no pieces came, what the block began with."""
        came = "".join(self._input)
        return came if trimmed(came) else self._start.args

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
            found["input"] = argument_json(args or "{}")
        elif name := _MEMBERS.get(self.kind):
            found[name] = "".join(self._pieces)
        return read_block(Raw(msgspec.json.encode(found)))


def begun(kind: str) -> Block:
    """A block of `kind` of which nobody said that it begins."""
    empty: dict[str, Any] = {"type": kind}
    if kind == TOOL_USE:
        empty |= {"id": "", "name": "", "input": {}}
    elif name := _MEMBERS.get(kind):
        empty[name] = ""
    return Block(written(empty), empty, "")
