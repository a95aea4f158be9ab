"""One answer as it comes together: blocks and pieces in, deltas out, the response at the end.

A plain answer is the same blocks, each in one piece, so plain and streamed answers cannot
differ. Pure; knows neither frames nor HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Raw

from golem.ids import new_id
from golem.messages import AssistantMessage, Native, Part, Thinking
from golem.model import (
    Delta,
    Details,
    FinishReason,
    Response,
    TextDelta,
    ThinkingDelta,
)
from golem_adapters._toolkit.bounds import Room, room_for
from golem_adapters._toolkit.lenient import NOTHING, members, text
from golem_adapters._toolkit.telling import ToldCall, finish_reason
from golem_adapters.bedrock.blocks import (
    REASONING,
    TEXT,
    TOOL_USE,
    Block,
    plain,
    read_block,
    thought,
    told,
)
from golem_adapters.bedrock.dialect import ALL_MEDIA
from golem_adapters.bedrock.growing import GrowingBlock
from golem_adapters.bedrock.media import made_part
from golem_adapters.bedrock.shapes import Answer, Piece, Thought, read_members, read_piece
from golem_adapters.bedrock.usage import usage_of

_FINISH: Final[Mapping[str, FinishReason]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_call",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}

_TOLD: Final = (TEXT, REASONING)
"""Kinds of blocks that are given out as they come, in one line with each other."""


class Turn:
    """Collects one answer of `provider`; `names` maps wire tool names back to the tools' own."""

    def __init__(self, provider: str, names: Mapping[str, str]) -> None:
        self._provider = provider
        self._names = names
        self._usage: dict[str, Any] = {}
        self._trace: dict[str, Any] = {}
        self._stop_reason = ""
        self._blocks: list[GrowingBlock | Block] = []
        self._by_index: dict[int, GrowingBlock] = {}
        self._last: GrowingBlock | None = None
        self._calls: list[ToldCall] = []
        self._call_ids: set[str] = set()
        self._room = Room()

    # --- a plain answer

    def take(self, answer: Answer, deltas: list[Delta]) -> None:
        """Take in a whole answer."""
        output = answer.output.message if answer.output is not None else None
        for raw in (output.content if output is not None else None) or ():
            block = read_block(raw)
            if block is not None:
                room_for(len(self._blocks), "blocks")
                self._blocks.append(block)
                self._tell_whole(block, deltas)
        self.end(answer.stopReason)
        self.measure(answer.usage, answer.trace)

    def _tell_whole(self, block: Block, deltas: list[Delta]) -> None:
        if words := told(block):
            deltas.append(TextDelta(words))
        thinking = thought(block, self._provider)
        deltas.extend(ThinkingDelta(found.text) for found in thinking if found.text)
        if block.call:
            call = self._begin_call(block.word("toolUseId"), block.word("name"), deltas)
            call.add(block.args, deltas)
            call.end(deltas)

    # --- a stream

    def open(self, index: int | None, start: Raw, deltas: list[Delta]) -> None:
        """A block begins; most only begin with their first piece."""
        self._room.take(start)
        found = read_members(start)
        for kind, value in found.items():
            if kind not in _TOLD:
                known = self._by_index.get(index) if index is not None else None
                if known is None or known.done or not known.begun_as(kind, value):
                    self._open(index, GrowingBlock(kind, value), deltas)

    def _open(self, index: int | None, growing: GrowingBlock, deltas: list[Delta]) -> GrowingBlock:
        if index is not None and index in self._by_index:
            self._close(self._by_index[index], deltas)
        if self._last is not None and self._last.kind in _TOLD:
            self._tell(self._last, self._last.rest(), deltas)  # waits for nothing behind a block
        room_for(len(self._blocks), "blocks")
        self._blocks.append(growing)
        self._last = growing
        if index is not None:
            self._by_index[index] = growing
        if growing.kind == TOOL_USE and growing.word("type") in ("", "tool_use"):
            name = growing.word("name")
            growing.call = self._begin_call(growing.word("toolUseId"), name, deltas)
        return growing

    def add(self, index: int | None, raw: Raw, deltas: list[Delta]) -> None:
        """A piece of a block comes."""
        piece = read_piece(raw)
        if piece.text is not None:
            growing = self._target(index, TEXT, deltas)
            self._tell(growing, growing.added(piece.text), deltas)
        if piece.reasoningContent is not None:
            self._reason(self._target(index, REASONING, deltas), piece.reasoningContent, deltas)
        if piece.toolUse is not None:
            growing = self._target(index, TOOL_USE, deltas)
            said = growing.argued(piece.toolUse.input or "")
            if growing.call is not None:
                growing.call.add(said, deltas)
        if piece.citation != NOTHING:
            self._target(index, TEXT, deltas).cited(piece.citation)
        if piece == _NO_PIECE:
            self._room.take(raw)
            for kind, value in read_members(raw).items():
                self._target(index, kind, deltas).grown(value)

    def _reason(self, growing: GrowingBlock, piece: Thought, deltas: list[Delta]) -> None:
        if piece.text is not None:
            self._tell(growing, growing.added(piece.text), deltas)
        if piece.signature is not None:
            growing.signed(text(piece.signature))
        if piece.redactedContent:
            growing.redacted(text(piece.redactedContent))

    def _target(self, index: int | None, kind: str, deltas: list[Delta]) -> GrowingBlock:
        """The open block of `kind` that is meant: by index, else the last one.

        A text or thought that goes on behind another block is told there, and stands there.
        """
        growing = self._by_index.get(index) if index is not None else self._last
        fits = growing is not None and growing.kind == kind and not growing.done
        if growing is not None and fits and (kind not in _TOLD or growing is self._last):
            return growing
        return self._open(index, GrowingBlock(kind), deltas)

    def close(self, index: int | None, deltas: list[Delta]) -> None:
        """A block is whole."""
        growing = self._by_index.get(index) if index is not None else self._last
        if growing is not None:
            self._close(growing, deltas)

    def _close(self, growing: GrowingBlock, deltas: list[Delta]) -> None:
        if growing.done:
            return
        growing.done = True
        rest = growing.rest()
        if growing.call is None:
            self._tell(growing, rest, deltas)
        else:
            growing.call.add(rest, deltas)
            if not growing.call.args.text:
                growing.call.add(growing.began_with, deltas)
            growing.call.end(deltas)

    def end(self, reason: str | None) -> None:
        """The message is whole: why it ended."""
        self._stop_reason = reason or ""

    def measure(self, usage: dict[str, Any] | None, trace: dict[str, Any] | None) -> None:
        """What the message took, and what guardrails say of it."""
        self._usage = usage or {}
        self._trace = trace or {}

    # --- telling

    def _tell(self, growing: GrowingBlock, words: str, deltas: list[Delta]) -> None:
        if words and growing.kind == TEXT:
            deltas.append(TextDelta(words))
        elif words and growing.kind == REASONING:
            deltas.append(ThinkingDelta(words))

    def _begin_call(self, id: str, name: str, deltas: list[Delta]) -> ToldCall:
        given = id if id and id not in self._call_ids else new_id()
        call = ToldCall(len(self._calls), given, self._names.get(name, name))
        self._calls.append(call)
        self._call_ids.add(given)
        call.begin(deltas)
        return call

    # --- giving out

    def partial(self) -> AssistantMessage | None:
        """The message as far as it has come, calls cut off included; None before anything."""
        message = self._message(self._built(), None)
        return message if message != AssistantMessage() else None

    def finished(self, request_id: str, deltas: list[Delta]) -> Response:
        """The response. `deltas` get what only the end can tell."""
        for growing in self._blocks:
            if isinstance(growing, GrowingBlock):
                self._close(growing, deltas)
        blocks = self._built()
        kept = [block for block in blocks if block.kind not in ALL_MEDIA]
        native = None
        if not plain(kept):
            native = Native(self._provider, tuple(block.raw for block in kept))
        guardrail = members(self._trace.get("guardrail"))
        router = members(self._trace.get("promptRouter"))
        details = Details(
            request_id=request_id,
            model=text(router.get("invokedModelId")),
            finish_reason=self._stop_reason,
            finish_message=text(guardrail.get("actionReason")),
        )
        reason = finish_reason(_FINISH, self._stop_reason, called=bool(self._calls))
        return Response(self._message(blocks, native), usage_of(self._usage), reason, details)

    def _built(self) -> list[Block]:
        found: list[Block] = []
        for block in self._blocks:
            found += block.built() if isinstance(block, GrowingBlock) else [block]
        return found

    def _message(self, blocks: list[Block], native: Native | None) -> AssistantMessage:
        thinking: list[Thinking] = []
        parts: list[Part] = []
        for block in blocks:
            thinking.extend(thought(block, self._provider))
            if block.kind in ALL_MEDIA and (part := made_part(block.kind, block.value)):
                parts.append(part)
        return AssistantMessage(
            content="".join(map(told, blocks)),
            parts=tuple(parts),
            tool_calls=tuple(call.call() for call in self._calls),
            thinking=tuple(thinking),
            native=native,
        )


_NO_PIECE: Final = Piece()
