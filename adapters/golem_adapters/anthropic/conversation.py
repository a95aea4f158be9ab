"""From a history to `system` and `messages`. Pure and deterministic.

One walk writes each message's blocks into turns that alternate. What only the whole request can
tell is settled after it (`_Settled`): whether a server-side tool's use was ever answered, and
what may stand at the end. Of a longer history the same blocks stand at the front, so that prompt
caches hold. The history is a repaired one; what this wire still cannot take is mapped here
(ids, tool names), left out silently where it means nothing elsewhere (foreign thinking and
blocks) or refused as `golem.errors.UnsupportedContentError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from msgspec import Raw

from golem import rawjson
from golem.errors import UnsupportedContentError
from golem.messages import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.calls import INTERRUPTED, CallIds, embedded_args, wire_tool_name
from golem_adapters._toolkit.lenient import text
from golem_adapters.anthropic.blocks import (
    REDACTED,
    TEXT,
    THINKING,
    THOUGHTS,
    TOOL_RESULT,
    TOOL_USE,
    Block,
    own_blocks,
    read_block,
    server_result,
    server_use,
    source_of,
    thought,
)
from golem_adapters.anthropic.dialect import MessagesDialect
from golem_adapters.anthropic.media import content_block

OPENING: Final = "(The conversation so far:)"
"""What a user is given to say where a history begins with the assistant or with nobody."""

SAID_NOTHING: Final = "(no text)"
"""Stands for a user's blank message, which the API refuses; left out, its neighbors would run
together, or the request would end with the assistant's words."""

FAILED: Final = "The tool failed."
"""Stands for the text of a failed call that has none, which the API refuses."""

_ON: Final = ("enabled", "adaptive", "between_tools")


class Entry(NamedTuple):
    """A block of a turn.

    `id` is what a call or a server-side tool's use is known by, `answers` the id of the use that
    a server-side tool's result is for, `source` the id of the use that made a call.
    """

    block: Wire | Raw
    kind: str
    id: str = ""
    answers: str = ""
    source: str = ""


@dataclass(slots=True)
class Turn:
    """Everything that one side says before the other does."""

    role: str
    entries: list[Entry] = field(default_factory=list[Entry])


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
    for index, message in enumerate(messages):
        walk.take(index, message)
    walk.end_batch()
    return _Settled(walk.turns, thinking).conversation(walk.system)


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
            self._say("user", [_said(message.content)])
        else:
            self.system.append(_text(message.content))

    def _user(self, index: int, message: UserMessage) -> None:
        entries = [_said(message.content)] if message.content.strip() else []
        entries += map(_medium, self._blocks(index, message.parts, message.parts))
        self._say("user", entries or [_said(SAID_NOTHING)])

    # --- assistant turns

    def _assistant(self, index: int, message: AssistantMessage) -> None:
        blocks = own_blocks(message, self._dialect.name)
        wire_ids = self._ids.open_turn(call.id for call in message.tool_calls)
        if blocks:
            entries = self._as_it_came(blocks, message, wire_ids)
        else:
            entries = self._from_fields(message, wire_ids)
        if entries:
            self._say("assistant", entries)
        # The transcript of a spoken answer is its content: the sound need not go back.
        parts = tuple(p for p in message.parts if not (p.kind == "audio" and message.content))
        if parts:
            self._attach("Part of the answer above:", self._blocks(index, parts, message.parts))

    def _as_it_came(
        self, blocks: list[Block], message: AssistantMessage, wire_ids: list[str]
    ) -> list[Entry]:
        """The provider's own blocks, to the byte; calls as they are known in this request."""
        calls = iter(zip(message.tool_calls, wire_ids, strict=True))
        entries: list[Entry] = []
        for block in blocks:
            if block.kind == TOOL_USE:
                call, wire_id = next(calls)
                entries.append(_called(block, call, wire_id))
            else:
                entries += self._kept(block)
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
        if message.content.strip():
            entries.append(_said(message.content))
        for call, wire_id in zip(message.tool_calls, wire_ids, strict=True):
            entries.append(Entry(_tool_use(call, wire_id), TOOL_USE, wire_id))
        return entries

    def _thoughts(self, message: AssistantMessage) -> list[Entry]:
        entries: list[Entry] = []
        for block in message.thinking:
            if block.provider != self._dialect.name:
                continue
            if block.redacted:
                entries.append(Entry({"type": REDACTED, "data": block.redacted}, REDACTED))
                continue
            wire: Wire = {"type": THINKING, "thinking": block.text}
            if block.signature:
                wire["signature"] = block.signature
            if block.signature or (block.text and self._dialect.unsigned_thinking):
                entries.append(Entry(wire, THINKING))
        return entries

    # --- results

    def _result(self, index: int, message: ToolMessage) -> None:
        wire_id = self._ids.answer(message.tool_call_id)
        if wire_id is None:
            return  # not in a repaired history; the provider would refuse the whole request
        parts = self._blocks(index, message.parts, message.parts)
        said = message.content if message.content.strip() else ""
        if message.failed:
            self._answer(wire_id, said or FAILED, failed=True)  # text only, and never none
            if parts:
                label = f"Attached to the result of {message.tool_name or 'the tool'} ({wire_id}):"
                self._attach(label, parts)
        elif parts:
            self._answer(wire_id, [_text(said), *parts] if said else parts, failed=False)
        else:
            self._answer(wire_id, said, failed=False)

    def _answer(self, wire_id: str, content: str | list[Wire], *, failed: bool) -> None:
        block: Wire = {"type": TOOL_RESULT, "tool_use_id": wire_id}
        if content:
            block["content"] = content
        if failed:
            block["is_error"] = True
        self._say("user", [Entry(block, TOOL_RESULT)])

    # --- media

    def _attach(self, label: str, blocks: list[Wire]) -> None:
        self._media += [_text(label), *blocks]

    def _blocks(self, index: int, parts: tuple[Part, ...], among: tuple[Part, ...]) -> list[Wire]:
        """The blocks for `parts`, which are numbered as they stand `among` the message's."""
        found: list[Wire] = []
        for part in parts:
            wire = content_block(part)
            if isinstance(wire, str):
                place = f"messages[{index}].parts[{among.index(part)}]"
                raise UnsupportedContentError(f"{place}: {wire} in Messages ({self._dialect.name})")
            found.append(wire)
        return found


def _text(words: str) -> Wire:
    return {"type": TEXT, "text": words}


def _said(words: str) -> Entry:
    return Entry(_text(words), TEXT)


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


# --- what only the whole request can tell


class _Settled:
    """The turns of a request, without what the provider refuses in them as a whole."""

    def __init__(self, turns: list[Turn], thinking: str) -> None:
        self._turns = turns
        spoken = [at for at, turn in enumerate(turns) if turn.role == "assistant"]
        self._last = spoken[-1] if spoken else -1  # where the assistant speaks last
        self._unanswered = _unanswered(turns)
        self._kept: set[str] = set()  # uses that are sent, and those whose result is
        self._given: set[str] = set()
        for at in spoken:
            turns[at].entries = self._paired(turns[at].entries, open_ends=self._goes_on(at))
        self._thinking = self._mode(thinking)

    def conversation(self, system: list[Wire]) -> Conversation:
        turns: list[Turn] = []
        for at, turn in enumerate(self._turns):
            entries = turn.entries
            if turn.role == "assistant":
                entries = self._without_loose_thoughts(entries, at)
            if entries and turns and turns[-1].role == turn.role:
                turns[-1].entries += entries  # what stood between them is gone
            elif entries:
                turns.append(Turn(turn.role, entries))
        if not turns or turns[0].role != "user":
            turns.insert(0, Turn("user", [_said(OPENING)]))
        if turns[-1].role == "assistant":
            turns[-1].entries[-1] = _trimmed(turns[-1].entries[-1])
        written = [{"role": t.role, "content": [e.block for e in t.entries]} for t in turns]
        return Conversation(system, written, self._thinking)

    def _goes_on(self, at: int) -> bool:
        """Whether the model itself will go on with the turn at `at`.

        It was paused there, or waits for nothing but the results that follow.
        """
        if at != self._last:
            return False
        rest = self._turns[at + 1 :]
        return not rest or (len(rest) == 1 and rest[0].entries[0].kind == TOOL_RESULT)

    def _paired(self, entries: list[Entry], *, open_ends: bool) -> list[Entry]:
        """`entries` without half of what a server-side tool did.

        A use stays that has a result somewhere, or (`open_ends`) may still get one; a result
        stays behind its use, and so does the mark of a call that a tool's program made. Of a
        turn that stands in the history twice both stay once: ids must not be repeated.
        """
        kept: list[Entry] = []
        for entry in entries:
            if entry.answers:
                if entry.answers not in self._kept or entry.answers in self._given:
                    continue
                self._given.add(entry.answers)
            if entry.kind != TOOL_USE and entry.id:
                loose = not open_ends and entry.id in self._unanswered
                if loose or entry.id in self._kept:
                    continue
                self._kept.add(entry.id)
            if entry.source and entry.source not in self._kept:
                entry = entry._replace(block=_unsourced(entry.block))
            kept.append(entry)
        return kept

    def _mode(self, thinking: str) -> str:
        """The mode of thinking that the last turn can be continued in.

        With a budget the turn that goes on has to begin with thinking; one of another provider
        does not, and can only be continued without.
        """
        if thinking != "enabled" or self._last < 0 or not self._goes_on(self._last):
            return thinking
        entries = self._turns[self._last].entries
        return thinking if entries and entries[0].kind in THOUGHTS else "disabled"

    def _without_loose_thoughts(self, entries: list[Entry], at: int) -> list[Entry]:
        """`entries` without thinking that leads to nothing, which no turn may end with.

        At the end of the request there is none at all unless the model thinks on there.
        """
        end = len(entries)
        while end and entries[end - 1].kind in THOUGHTS:
            end -= 1
        kept = entries[:end]
        paused = any(e.answers or (e.id and e.kind != TOOL_USE) for e in kept)
        thinks = self._thinking in _ON or (paused and not self._thinking)
        if at < len(self._turns) - 1 or thinks:
            return kept
        return [entry for entry in kept if entry.kind not in THOUGHTS]


def _unanswered(turns: list[Turn]) -> set[str]:
    """The uses of server-side tools that no result follows."""
    results: set[str] = set()
    found: set[str] = set()
    for turn in reversed(turns):
        for entry in reversed(turn.entries):
            if entry.answers:
                results.add(entry.answers)
            elif entry.kind != TOOL_USE and entry.id and entry.id not in results:
                found.add(entry.id)
    return found


def _unsourced(block: Wire | Raw) -> Wire:
    """A call without the mark of the program that made it."""
    if not isinstance(block, Raw):
        return {name: value for name, value in block.items() if name != "caller"}
    read = read_block(block)
    found = dict(read.members) if read is not None else {}
    found.pop("caller", None)
    if read is not None:
        found["input"] = Raw(read.args.encode())
    return found


def _trimmed(entry: Entry) -> Entry:
    """The last block without blanks at its end, which the API refuses there."""
    if entry.kind != TEXT:
        return entry
    read = read_block(entry.block) if isinstance(entry.block, Raw) else None
    block = read.members if read is not None else entry.block
    if isinstance(block, Raw):
        return entry
    words = text(block["text"])
    return entry._replace(block={**block, "text": words.rstrip()}) if words[-1].isspace() else entry
