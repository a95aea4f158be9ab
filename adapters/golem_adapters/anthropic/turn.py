"""One answer as it comes together: blocks and pieces in, deltas out, the response at the end.

A plain answer is the same blocks, each in one piece, so plain and streamed answers cannot
differ. Pure; knows neither SSE nor HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw

from golem.ids import new_id
from golem.messages import AssistantMessage, Native, Thinking
from golem.model import (
    Delta,
    Details,
    FinishReason,
    Response,
    TextDelta,
    ThinkingDelta,
)
from golem_adapters._toolkit.bounds import room_for
from golem_adapters._toolkit.lenient import text
from golem_adapters._toolkit.telling import ToldCall, finish_reason
from golem_adapters.anthropic.blocks import (
    TEXT,
    THINKING,
    TOOL_USE,
    Block,
    plain,
    read_block,
    thought,
)
from golem_adapters.anthropic.growing import GrowingBlock, begun
from golem_adapters.anthropic.shapes import Answer, Piece
from golem_adapters.anthropic.usage import later, usage_of

_FINISH: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_call",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}
_PIECES: Final[Mapping[str, str]] = {
    "text_delta": TEXT,
    "citations_delta": TEXT,
    "thinking_delta": THINKING,
    "signature_delta": THINKING,
    "input_json_delta": TOOL_USE,
    "compaction_delta": "compaction",
}
"""The kind of block that each type of delta is a piece of; others are skipped."""


class Turn:
    """Collects one answer of `provider`; `names` maps wire tool names back to the tools' own."""

    def __init__(self, provider: str, names: Mapping[str, str]) -> None:
        self._provider = provider
        self._names = names
        self._id = ""
        self._model = ""
        self._usage: dict[str, Any] = {}
        self._stop_reason = ""
        self._stop_details: dict[str, Any] = {}
        self._blocks: list[GrowingBlock] = []
        self._open_blocks: list[GrowingBlock] = []  # some of them may be done
        self._by_index: dict[int, GrowingBlock] = {}
        self._said: list[str] = []
        self._calls: list[ToldCall] = []
        self._by_id: dict[str, GrowingBlock] = {}
        self._whole: dict[str, Block | None] = {}  # by id, blocks that others repeat

    # --- taking in

    def begin(self, answer: Answer, deltas: list[Delta]) -> bool:
        """Take in the message that a stream begins with, or a plain answer.

        Gateways repeat it, which changes nothing, or start over with another message when
        theirs broke off: False where that comes too late, after something was given out.
        """
        another = bool(self._id and answer.id and answer.id != self._id)
        if self._blocks and not another:
            return True
        if another and any(growing.told for growing in self._blocks):
            return False
        self._blocks, self._open_blocks, self._by_index, self._by_id = [], [], {}, {}
        self._id, self._model = answer.id or "", answer.model or ""
        self._usage = answer.usage or {}
        self.end(answer.stop_reason, answer.stop_details, None)
        for index, raw in enumerate(answer.content or ()):
            self.open(index, raw, deltas)
            self.close(index, deltas)
        return True

    def open(self, index: int | None, raw: Raw, deltas: list[Delta]) -> None:
        """A block begins."""
        block = read_block(raw)
        if block is not None:
            self._open(index, block, deltas)

    def _open(self, index: int | None, block: Block, deltas: list[Delta]) -> GrowingBlock:
        if index is not None and index in self._by_index:
            self._close(self._by_index[index], deltas)
        self._tell_rest(deltas)
        room_for(len(self._blocks), "blocks")
        growing = GrowingBlock(block)
        self._blocks.append(growing)
        self._open_blocks.append(growing)
        if index is not None:
            self._by_index[index] = growing
        if growing.kind == TOOL_USE:
            self._open_call(growing, block, deltas)
        else:
            self._tell(growing, growing.opening(), deltas)
        return growing

    def _open_call(self, growing: GrowingBlock, block: Block, deltas: list[Delta]) -> None:
        """Give out that a call begins, unless it may be one that has come before."""
        given = block.word("id")
        if given in self._by_id:
            return
        if given:
            self._by_id[given] = growing
        self._begin_call(growing, given or new_id(), block.word("name"), deltas)

    def add(self, index: int | None, piece: Piece, deltas: list[Delta]) -> None:
        """A piece of a block comes."""
        kind = _PIECES.get(piece.type or "")
        if kind is None:
            return
        growing = self._target(index, kind, deltas)
        if piece.type == "text_delta":
            self._tell(growing, growing.added(piece.text or ""), deltas)
        elif piece.type == "thinking_delta":
            self._tell(growing, growing.added(piece.thinking or ""), deltas)
        elif piece.type == "input_json_delta":
            self._argue(growing, piece.partial_json or "", deltas)
        elif piece.type == "signature_delta":
            growing.signed(text(piece.signature))
        elif piece.type == "citations_delta":
            growing.cited(piece.citation)
        else:
            said = {"content": piece.content, "encrypted_content": piece.encrypted_content}
            growing.summarized(said)

    def _target(self, index: int | None, kind: str, deltas: list[Delta]) -> GrowingBlock:
        """The open block of `kind` that is meant: by index, else the last one.

        A text or thought that goes on behind another block is told there, and stands there.
        """
        growing = self._by_index.get(index) if index is not None else self._last_open()
        fits = growing is not None and not growing.done and _takes(growing.kind, kind)
        if growing is not None and fits and (kind == TOOL_USE or growing is self._blocks[-1]):
            return growing
        return self._open(index, begun(kind), deltas)

    def _last_open(self) -> GrowingBlock | None:
        while self._open_blocks and self._open_blocks[-1].done:
            self._open_blocks.pop()
        return self._open_blocks[-1] if self._open_blocks else None

    def _argue(self, growing: GrowingBlock, piece: str, deltas: list[Delta]) -> None:
        said = growing.argued(piece)
        if growing.call is not None:
            growing.call.add(said, deltas)

    def close(self, index: int | None, deltas: list[Delta]) -> None:
        """A block is whole."""
        growing = self._by_index.get(index) if index is not None else self._last_open()
        if growing is not None:
            self._close(growing, deltas)

    def _close(self, growing: GrowingBlock, deltas: list[Delta]) -> None:
        if growing.done:
            return
        growing.done = True
        rest = growing.rest()
        if growing.kind != TOOL_USE:
            self._tell(growing, rest, deltas)
            return
        if growing.call is not None:
            growing.call.add(rest, deltas)
        else:
            self._settle_repeat(growing, deltas)
        if (call := growing.call) is not None and not call.args.text:
            call.add(growing.args, deltas)
            call.end(deltas)

    def _settle_repeat(self, growing: GrowingBlock, deltas: list[Delta]) -> None:
        """Whether a call under a known id is that call again, which must not run twice."""
        block = growing.built()
        if block is None:
            return
        known = self._first(block.word("id"))
        same = known is not None and (known.word("name"), known.args) == (
            block.word("name"),
            block.args,
        )
        if same:
            growing.repeat = True
        else:
            self._begin_call(growing, new_id(), block.word("name"), deltas)

    def _first(self, id: str) -> Block | None:
        """The first block of a call that is repeated; built once, when it is done."""
        if id in self._whole:
            return self._whole[id]
        first = self._by_id[id]
        built = first.built()
        if first.done:
            self._whole[id] = built
        return built

    def end(
        self,
        reason: str | None,
        details: dict[str, Any] | None,
        usage: dict[str, Any] | None,
    ) -> None:
        """The message is about to end: why, and what it took in all."""
        self._stop_reason = reason or self._stop_reason
        self._stop_details = details or self._stop_details
        if usage:
            self._usage = later(self._usage, usage)

    # --- telling

    def _tell(self, growing: GrowingBlock, words: str, deltas: list[Delta]) -> None:
        if not words:
            return
        if growing.kind == TEXT:
            self._said.append(words)
            deltas.append(TextDelta(words))
        elif growing.kind == THINKING:
            deltas.append(ThinkingDelta(words))

    def _tell_rest(self, deltas: list[Delta]) -> None:
        """Half a character does not wait for what comes behind another block."""
        if self._blocks and self._blocks[-1].kind in (TEXT, THINKING):
            self._tell(self._blocks[-1], self._blocks[-1].rest(), deltas)

    def _begin_call(self, growing: GrowingBlock, id: str, name: str, deltas: list[Delta]) -> None:
        growing.call = ToldCall(len(self._calls), id, self._names.get(name, name))
        self._calls.append(growing.call)
        growing.call.begin(deltas)

    # --- giving out

    def partial(self) -> AssistantMessage | None:
        """The message as far as it has come, calls cut off included; None before anything."""
        message = self._message(self._built(), None)
        return message if message != AssistantMessage() else None

    def finished(self, request_id: str, deltas: list[Delta]) -> Response:
        """The response. `deltas` get what only the end can tell."""
        for growing in self._blocks:
            self._close(growing, deltas)
        blocks = self._built()
        native = None
        if not plain(blocks):
            native = Native(self._provider, tuple(block.raw for block in blocks))
        details = Details(
            response_id=self._id,
            request_id=request_id,
            model=self._model,
            finish_reason=self._stop_reason,
            finish_message=_words(self._stop_details),
        )
        reason = finish_reason(_FINISH, self._stop_reason, called=bool(self._calls))
        return Response(self._message(blocks, native), usage_of(self._usage), reason, details)

    def _built(self) -> list[Block]:
        built = (growing.built() for growing in self._blocks if not growing.repeat)
        return [block for block in built if block is not None]

    def _message(self, blocks: list[Block], native: Native | None) -> AssistantMessage:
        thinking: list[Thinking] = []
        for block in blocks:
            thinking.extend(thought(block, self._provider))
        return AssistantMessage(
            content="".join(self._said),
            tool_calls=tuple(call.call() for call in self._calls),
            thinking=tuple(thinking),
            native=native,
        )


def _takes(kind: str, piece: str) -> bool:
    """Whether a block of `kind` can hold a piece of a block of the kind `piece`."""
    return kind == piece or (piece == TOOL_USE and kind.endswith("tool_use"))


def _words(details: dict[str, Any]) -> str:
    """What the provider says about the end, beside its reason."""
    said = (text(details.get(name)) for name in ("category", "explanation"))
    return ": ".join(filter(None, said))
