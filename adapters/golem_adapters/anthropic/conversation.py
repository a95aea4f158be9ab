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
from typing import Final, NamedTuple

from msgspec import Raw

from golem import rawjson
from golem.messages import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.wire.notes import bind, note, placed, refuse, settle
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.calls import INTERRUPTED, CallIds, embedded_args, wire_tool_name
from golem_adapters._toolkit.lenient import text
from golem_adapters._toolkit.noting import (
    AS_USER,
    LOOSE,
    NO_TEXT,
    UNSIGNED,
    medium,
    note_calls,
    note_native,
    note_parts,
    note_sound,
    note_thinking,
)
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
from golem_adapters.anthropic.turns import Entry, Turn, close, mode_of, said, settled, text_block

SAID_NOTHING: Final = "(no text)"
"""Stands for a user's blank message, which the API refuses; left out, its neighbors would run
together, or the request would end with the assistant's words."""

FAILED: Final = "The tool failed."
"""Stands for the text of a failed call that has none, which the API refuses."""


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
    for index, message in placed(messages):
        walk.take(index, message)
    walk.end_batch()
    turns = settled(walk.turns)
    mode = mode_of(turns, thinking)
    close(turns, mode)
    settle(lambda: [entry.block for turn in turns for entry in turn.entries])
    written = [{"role": t.role, "content": [e.block for e in t.entries]} for t in turns]
    return Conversation(walk.system, written, mode)


class _Walk:
    """Writes the messages of one history, in order.

    A *batch* is an assistant turn and the results of its calls, which open the next user turn;
    media that no result can hold follow them there.
    """

    def __init__(self, dialect: MessagesDialect) -> None:
        self._dialect = dialect
        self._ids = CallIds(dialect.ids)
        self._media: list[Wire] = []
        self.system: list[Wire] = []
        self.turns: list[Turn] = []

    def take(self, index: int, message: Message) -> None:
        if not isinstance(message, ToolMessage):
            self.end_batch()
        match message:
            case SystemMessage():
                self._instructions(message)
            case UserMessage():
                self._user(index, message)
            case AssistantMessage():
                self._assistant(index, message)
            case ToolMessage():
                self._result(index, message)

    def end_batch(self) -> None:
        for wire_id in self._ids.close_turn():
            self._answer(wire_id, INTERRUPTED, failed=False)
        if self._media:
            media, self._media = self._media, []
            self._say("user", list(map(_medium, media)))

    def _say(self, role: str, entries: list[Entry]) -> None:
        if not self.turns or self.turns[-1].role != role:
            self.turns.append(Turn(role))
        self.turns[-1].entries += entries

    def _instructions(self, message: SystemMessage) -> None:
        """Instructions; behind the conversation's beginning they stand where they were given.

        In front of it they would change what caches know of everything that follows.
        """
        if not message.content.strip():
            return
        if self.turns:
            note("flattened", "content", "instructions", AS_USER)
            self._say("user", [said(message.content)])
        else:
            self.system.append(text_block(message.content))

    def _user(self, index: int, message: UserMessage) -> None:
        entries = [said(message.content)] if message.content.strip() else []
        entries += map(_medium, self._blocks(index, message.parts, message.parts))
        if not entries and not message.parts:
            note("flattened", "content", "blank text", f"goes out as {SAID_NOTHING!r}")
        self._say("user", entries or [said(SAID_NOTHING)])

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
        # The transcript of a spoken answer is its content: the sound need not go back.
        parts = tuple(p for p in message.parts if not (p.kind == "audio" and message.content))
        note_sound(parts, message.parts)
        if parts:
            note_parts(parts, message.parts)
            self._attach("Part of the answer above:", self._blocks(index, parts, message.parts))

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
            entries.append(said(message.content))
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
        parts = self._blocks(index, message.parts, message.parts)
        words = message.content if message.content.strip() else ""
        if message.failed:
            self._answer(wire_id, words or FAILED, failed=True)  # text only, and never none
            if parts:
                note_parts(message.parts, message.parts)
                label = f"Attached to the result of {message.tool_name or 'the tool'} ({wire_id}):"
                self._attach(label, parts)
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

    # --- media

    def _attach(self, label: str, blocks: list[Wire]) -> None:
        self._media += [text_block(label), *blocks]

    def _blocks(self, index: int, parts: tuple[Part, ...], among: tuple[Part, ...]) -> list[Wire]:
        """The blocks for `parts`, which are numbered as they stand `among` the message's."""
        found: list[Wire] = []
        for part in parts:
            wire = content_block(part)
            if isinstance(wire, str):
                why = f"{wire} in Messages ({self._dialect.name})"
                refuse(index, f"parts[{among.index(part)}]", medium(part), why)
                continue
            found.append(wire)
        return found


def _medium(block: Wire) -> Entry:
    return Entry(block, text(block["type"]))


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
