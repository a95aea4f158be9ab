"""From a history to `system` and `messages`. Pure and deterministic.

One walk writes each message's blocks into turns that alternate. What only the whole request can
tell is settled after it (``turns``): whether a server-side tool's use was ever answered, and
what may stand at the end. Of a longer history the same blocks stand at the front, so that prompt
caches hold. The history is a repaired one; what this wire still cannot take is mapped here
(ids, tool names), left out silently where it means nothing elsewhere (foreign thinking and
blocks) or refused as `golem.errors.UnsupportedContentError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from msgspec import Raw

from golem import rawjson
from golem.messages import AssistantMessage, Message, Part, Thinking, ToolCall, ToolMessage
from golem.wire.notes import bind, note, settle
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.calls import INTERRUPTED, CallIds, embedded_args, wire_tool_name
from golem_adapters._toolkit.lenient import text
from golem_adapters._toolkit.noting import (
    LOOSE,
    NO_TEXT,
    UNSIGNED,
    note_calls,
    note_native,
    note_parts,
    note_thinking,
)
from golem_adapters._toolkit.walk import FAILED, TurnWalk, label_of
from golem_adapters.anthropic.blocks import (
    REDACTED,
    TEXT,
    THINKING,
    THOUGHTS,
    TOOL_RESULT,
    TOOL_USE,
    Block,
    own_blocks,
    server_result,
    server_use,
    source_of,
    thought,
)
from golem_adapters.anthropic.dialect import MessagesDialect
from golem_adapters.anthropic.media import content_block
from golem_adapters.anthropic.turns import Entry, close, mode_of, settled, text_block


class Conversation(NamedTuple):
    """A history on the wire. `thinking` is the mode that it can be continued in."""

    system: list[Wire]
    messages: list[Wire]
    thinking: str


def conversation(
    messages: Iterable[Message], dialect: MessagesDialect, thinking: str
) -> Conversation:
    """`messages` for `dialect`, in a request whose thinking mode is `thinking` (empty: unsaid).

    Raises UnsupportedContentError for a part of a message that the wire cannot carry.
    """
    walk = _Walk(dialect)
    walk.walked(messages)
    turns = settled(walk.turns)
    mode = mode_of(turns, thinking)
    close(turns, mode)
    settle(lambda: [entry.block for turn in turns for entry in turn.entries])
    written = [{"role": t.role, "content": [e.block for e in t.entries]} for t in turns]
    return Conversation(walk.system, written, mode)


class _Walk(TurnWalk[Entry]):
    """Writes a history. The results of a batch open the next user turn, media follow them."""

    def __init__(self, dialect: MessagesDialect) -> None:
        super().__init__(CallIds(dialect.ids), f"in Messages ({dialect.name})")
        self._dialect = dialect

    def _end_batch(self) -> None:
        for wire_id in self._ids.close_turn():
            self._answer(wire_id, INTERRUPTED, failed=False)
        self._say_media()

    # --- assistant turns

    def _assistant(self, index: int, message: AssistantMessage) -> None:
        blocks = own_blocks(message, self._dialect.name)
        wire_ids = self._ids.open_turn(call.id for call in message.tool_calls)
        if blocks:
            entries = self._as_it_came(blocks, message, wire_ids)
        else:
            entries = self._from_fields(message, wire_ids)
        note_calls(message.tool_calls, wire_ids, args=embedded_args)
        note_native(message, self._dialect.name, sent=bool(blocks))
        if entries:
            self._say("assistant", entries)
        elif not message.parts:
            note("dropped", "", "answer", NO_TEXT)
        self._attach_made(index, message)

    def _as_it_came(
        self, blocks: list[Block], message: AssistantMessage, wire_ids: list[str]
    ) -> list[Entry]:
        """The provider's own blocks, to the byte; calls as they are known in this request."""
        calls = iter(zip(message.tool_calls, wire_ids, strict=True))
        entries: list[Entry] = []
        for number, block in enumerate(blocks):
            if block.kind == TOOL_USE:
                call, wire_id = next(calls)
                entries.append(_called(block, call, wire_id))
            else:
                kept = self._kept(block)
                entries += kept
                place = f"native.items[{number}]"
                if not kept and block.kind in THOUGHTS:
                    note("dropped", place, "thinking", UNSIGNED)
                elif kept and (block.kind in THOUGHTS or kept[0].id or kept[0].answers):
                    bind(kept[0].block, place, block.kind, LOOSE)
        return entries

    def _kept(self, block: Block) -> list[Entry]:
        """A block that is no call, unless the API refuses it."""
        if block.kind == TEXT and not block.word("text").strip():
            return []
        if block.kind in THOUGHTS:
            known = thought(block, "")
            signed = bool(known) and (known[0].signature or known[0].redacted)
            if not (signed or (known and self._dialect.unsigned_thinking)):
                return []
        return [Entry(_verbatim(block), block.kind, server_use(block), server_result(block))]

    def _from_fields(self, message: AssistantMessage, wire_ids: list[str]) -> list[Entry]:
        """A turn as the ordinary fields have it: thinking, text, calls.

        Thinking of a turn whose native blocks do not fit was part of something else.
        """
        entries = self._thoughts(message) if message.native is None else []
        if message.native is not None:
            note_thinking(message, (), self._dialect.name)
        if message.content.strip():
            entries.append(self._said(message.content))
        for call, wire_id in zip(message.tool_calls, wire_ids, strict=True):
            entries.append(Entry(_tool_use(call, wire_id), TOOL_USE, wire_id))
        return entries

    def _thoughts(self, message: AssistantMessage) -> list[Entry]:
        entries: list[Entry] = []
        sent: list[int] = []
        for number, block in enumerate(message.thinking):
            entry = self._thought(block) if block.provider == self._dialect.name else None
            if entry is not None:
                bind(entry.block, f"thinking[{number}]", "thinking", LOOSE)
                entries.append(entry)
                sent.append(number)
        note_thinking(message, sent, self._dialect.name)
        return entries

    def _thought(self, block: Thinking) -> Entry | None:
        if block.redacted:
            return Entry({"type": REDACTED, "data": block.redacted}, REDACTED)
        wire: Wire = {"type": THINKING, "thinking": block.text}
        if block.signature:
            wire["signature"] = block.signature
        sendable = block.signature or (block.text and self._dialect.unsigned_thinking)
        return Entry(wire, THINKING) if sendable else None

    # --- results

    def _result(self, index: int, message: ToolMessage) -> None:
        wire_id = self._ids.answer(message.tool_call_id)
        if wire_id is None:
            return  # not in a repaired history; the provider would refuse the whole request
        parts = self._carried(index, message.parts, message.parts)
        words = message.content if message.content.strip() else ""
        if message.failed:
            self._answer(wire_id, words or FAILED, failed=True)  # text only, and never none
            if parts:
                note_parts(message.parts, message.parts)
                self._attach(label_of(message, wire_id), parts)
        elif parts:
            self._answer(wire_id, [text_block(words), *parts] if words else parts, failed=False)
        else:
            self._answer(wire_id, words, failed=False)

    def _answer(self, wire_id: str, content: str | list[Wire], *, failed: bool) -> None:
        block: Wire = {"type": TOOL_RESULT, "tool_use_id": wire_id}
        if content:
            block["content"] = content
        if failed:
            block["is_error"] = True
        self._say("user", [Entry(block, TOOL_RESULT)])

    # --- texts and media

    def _text(self, words: str) -> Wire:
        return text_block(words)

    def _medium(self, part: Part) -> Wire | str:
        return content_block(part)

    def _entry(self, wire: Wire) -> Entry:
        return Entry(wire, text(wire["type"]))


def _tool_use(call: ToolCall, wire_id: str) -> Wire:
    return {
        "type": TOOL_USE,
        "id": wire_id,
        "name": wire_tool_name(call.name),
        "input": Raw(embedded_args(call).encode()),
    }


def _verbatim(block: Block) -> Raw:
    return Raw(rawjson.without_lone_surrogates(bytes(block.raw)))


def _called(block: Block, call: ToolCall, wire_id: str) -> Entry:
    """A call of the provider's own: the block it came as, where that still says the same."""
    now = _tool_use(call, wire_id)
    same = block.word("id") == wire_id and block.word("name") == now["name"]
    if same and block.args.encode() == bytes(now["input"]):
        wire: Wire | Raw = _verbatim(block)
    else:
        wire = {**block.members, **now}
    return Entry(wire, TOOL_USE, wire_id, source=source_of(block))
