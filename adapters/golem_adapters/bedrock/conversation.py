"""From a history to `system` and `messages`. Pure and deterministic.

One walk writes each message's blocks into turns that alternate; what only the whole request can
tell is settled after it (``turns``). Of a longer history the same blocks stand at the front, so
that prompt caches hold. The history is a repaired one; what this wire still cannot take is
mapped here (ids, tool names), left out silently where it means nothing elsewhere (foreign
thinking and blocks) or refused as `golem.errors.UnsupportedContentError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Raw

from golem import rawjson
from golem.messages import AssistantMessage, Message, Part, ToolCall, ToolMessage
from golem.wire.notes import bind, note, settle
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.calls import INTERRUPTED, CallIds, embedded_args, wire_tool_name
from golem_adapters._toolkit.lenient import members
from golem_adapters._toolkit.noting import (
    LOOSE,
    NO_TEXT,
    UNSIGNED,
    note_calls,
    note_native,
    note_parts,
    note_thinking,
)
from golem_adapters._toolkit.walk import FAILED, Turn, TurnWalk, label_of
from golem_adapters.bedrock.blocks import (
    REASONING,
    TEXT,
    TOOL_RESULT,
    TOOL_USE,
    Block,
    own_blocks,
    thought,
)
from golem_adapters.bedrock.dialect import CALL_IDS, ConverseDialect
from golem_adapters.bedrock.media import content_block
from golem_adapters.bedrock.turns import Entry, kind_of, settled

NO_RESULT: Final = "(no result)"
"""Stands for the text of a result that has none: a result needs content, and no blank one."""


class Conversation(NamedTuple):
    """A history on the wire.

    `called` are the wire names of the tools that it calls, the service's own too, in order.
    """

    system: list[Wire]
    turns: list[Turn[Entry]]
    called: dict[str, None]


def conversation(messages: Iterable[Message], dialect: ConverseDialect) -> Conversation:
    """`messages` for `dialect`.

    Raises UnsupportedContentError for a part of a message that the family cannot take.
    """
    walk = _Walk(dialect)
    walk.walked(messages)
    turns = settled(walk.turns, dialect)
    settle(lambda: [entry.block for turn in turns for entry in turn.entries])
    return Conversation(walk.system, turns, walk.called)


class _Walk(TurnWalk[Entry]):
    """Writes a history. The results of a batch open the next user turn, media follow them."""

    def __init__(self, dialect: ConverseDialect) -> None:
        super().__init__(CallIds(CALL_IDS), f"in Converse ({dialect.name})")
        self._dialect = dialect
        self._used: set[str] = set()  # ids of what the server's own tools did
        self._documents = 0
        self.called: dict[str, None] = {}

    def _end_batch(self) -> None:
        for wire_id in self._ids.close_turn():
            self._answer(wire_id, [{TEXT: INTERRUPTED}], failed=False)
        self._say_media()

    # --- assistant turns

    def _assistant(self, index: int, message: AssistantMessage) -> None:
        blocks = own_blocks(message, self._dialect.name)
        wire_ids = self._ids.open_turn(call.id for call in message.tool_calls)
        self.called.update(dict.fromkeys(wire_tool_name(c.name) for c in message.tool_calls))
        came = bool(blocks) and self._paired(blocks)
        if came:
            entries = self._as_it_came(blocks, message, wire_ids)
        else:
            entries = self._from_fields(message, wire_ids)
        note_calls(message.tool_calls, wire_ids, args=embedded_args)
        note_native(message, self._dialect.name, sent=came)
        if entries:
            self._say("assistant", entries)
        elif not message.parts:
            note("dropped", "", "answer", NO_TEXT)
        self._attach_made(index, message)

    def _paired(self, blocks: list[Block]) -> bool:
        """Whether all that the server's own tools did has its result here, and was not yet said."""
        uses = [b.word("toolUseId") for b in blocks if b.kind == TOOL_USE and not b.call]
        results = [b.word("toolUseId") for b in blocks if b.kind == TOOL_RESULT]
        fits = sorted(uses) == sorted(results) and len(set(uses)) == len(uses)
        fits = fits and self._used.isdisjoint(uses)
        self._used.update(uses)
        return fits

    def _as_it_came(
        self, blocks: list[Block], message: AssistantMessage, wire_ids: list[str]
    ) -> list[Entry]:
        """The provider's own blocks, to the byte; calls as they are known in this request."""
        calls = iter(zip(message.tool_calls, wire_ids, strict=True))
        entries: list[Entry] = []
        for number, block in enumerate(blocks):
            if block.call:
                call, wire_id = next(calls)
                entries.append(_called(block, call, wire_id))
            elif _may_go_back(block):
                entries.append(Entry(_verbatim(block), block.kind))
                if block.kind == REASONING:
                    bind(entries[-1].block, f"native.items[{number}]", "thinking", LOOSE)
                if block.kind == TOOL_USE:
                    self.called[wire_tool_name(block.word("name"))] = None
            elif block.kind == REASONING:
                note("dropped", f"native.items[{number}]", "thinking", UNSIGNED)
        return entries

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
            entries.append(Entry({TOOL_USE: _tool_use(call, wire_id)}, TOOL_USE))
        return entries

    def _thoughts(self, message: AssistantMessage) -> list[Entry]:
        """The thinking that its maker has signed or hidden; other thinking no model takes back."""
        entries: list[Entry] = []
        sent: list[int] = []
        for number, block in enumerate(message.thinking):
            if block.provider != self._dialect.name:
                continue
            if block.redacted:
                entries.append(Entry({REASONING: {"redactedContent": block.redacted}}, REASONING))
            elif block.signature:
                readable = {"text": block.text, "signature": block.signature}
                entries.append(Entry({REASONING: {"reasoningText": readable}}, REASONING))
            else:
                continue
            bind(entries[-1].block, f"thinking[{number}]", "thinking", LOOSE)
            sent.append(number)
        note_thinking(message, sent, self._dialect.name)
        return entries

    # --- results

    def _result(self, index: int, message: ToolMessage) -> None:
        wire_id = self._ids.answer(message.tool_call_id)
        if wire_id is None:
            return  # not in a repaired history; the provider would refuse the whole request
        media = self._carried(index, message.parts, message.parts)
        inside = [wire for wire in media if kind_of(wire) in self._dialect.result_media]
        outside = [wire for wire in media if kind_of(wire) not in self._dialect.result_media]
        content: list[Wire | Raw] = [*inside]
        if message.content.strip():
            content.insert(0, {TEXT: message.content})
        elif not inside:
            content.append({TEXT: FAILED if message.failed else NO_RESULT})
        self._answer(wire_id, content, failed=message.failed)
        if message.failed and not self._dialect.status:
            note("dropped", "failed", "failed", "the family takes no mark of a failed call")
        if outside:
            kinds = set(map(kind_of, outside))
            note_parts([p for p in message.parts if p.kind in kinds], message.parts)
            self._attach(label_of(message, wire_id), outside)

    def _answer(self, wire_id: str, content: list[Wire | Raw], *, failed: bool) -> None:
        result: Wire = {"toolUseId": wire_id, "content": content}
        if failed and self._dialect.status:
            result["status"] = "error"
        self._say("user", [Entry({TOOL_RESULT: result}, TOOL_RESULT)])

    # --- texts and media

    def _takes_system(self) -> bool:
        return self._dialect.system

    def _text(self, words: str) -> Wire:
        return {TEXT: words}

    def _medium(self, part: Part) -> Wire | str:
        self._documents += part.kind == "document"
        return content_block(part, self._dialect, self._documents)

    def _entry(self, wire: Wire) -> Entry:
        return Entry(wire, kind_of(wire))


def _may_go_back(block: Block) -> bool:
    """Whether a block that is no call says something that the API takes."""
    if block.kind == TEXT:
        return isinstance(block.value, str) and bool(block.value.strip())
    if block.kind == REASONING:
        return any(known.signature or known.redacted for known in thought(block, ""))
    return True


def _tool_use(call: ToolCall, wire_id: str) -> Wire:
    return {
        "toolUseId": wire_id,
        "name": wire_tool_name(call.name),
        "input": Raw(embedded_args(call).encode()),
    }


def _verbatim(block: Block) -> Raw:
    return Raw(rawjson.without_lone_surrogates(bytes(block.raw)))


def _called(block: Block, call: ToolCall, wire_id: str) -> Entry:
    """A call of the provider's own: the block it came as, where that still says the same."""
    now = _tool_use(call, wire_id)
    same = block.word("toolUseId") == wire_id and block.word("name") == now["name"]
    found = members(block.value)
    if same and "type" not in found and block.args.encode() == bytes(now["input"]):
        return Entry(_verbatim(block), TOOL_USE)
    # `type` comes in answers, and says nothing that the service would take back.
    kept = {name: value for name, value in found.items() if name != "type"}
    return Entry({TOOL_USE: {**kept, **now}}, TOOL_USE)
