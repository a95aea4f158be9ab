"""From a history to `systemInstruction` and `contents`. Pure and deterministic.

One walk writes each message's parts into contents that alternate: the user's side, the model's
side. Of a longer history the same parts stand at the front, so that prompt caches hold. The
history is a repaired one; what this wire still cannot take is mapped here (ids, tool names),
left out silently where it means nothing elsewhere (foreign thinking and parts) or refused as
`golem.errors.UnsupportedContentError`.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec import Raw

from golem import rawjson
from golem.messages import AssistantMessage, Message, Part, Thinking, ToolCall, ToolMessage
from golem.wire.notes import note, noting
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.calls import INTERRUPTED, CallIds, embedded_args, wire_tool_name
from golem_adapters._toolkit.noting import (
    NO_TEXT,
    note_calls,
    note_native,
    note_parts,
    note_thinking,
)
from golem_adapters._toolkit.signatures import is_googles, sendable
from golem_adapters._toolkit.walk import (
    FAILED,
    GO_ON,
    OPENING,
    USER,
    Turn,
    TurnWalk,
    alternating,
    label_of,
    made_parts,
)
from golem_adapters.gemini.dialect import CALL_IDS, PROVIDER, TOOL_NAME, GeminiDialect, Traits
from golem_adapters.gemini.media import RESULT_TYPES, content_part, media_type_of
from golem_adapters.gemini.parts import CALL, SIGNATURE, WirePart, asked, own_parts

UNSIGNED: Final = base64.b64encode(b"skip_thought_signature_validator").decode()
"""The signature that Google documents for calls which its model did not make."""

MODEL: Final = "model"


class Conversation(NamedTuple):
    """A history on the wire."""

    system: list[Wire]
    contents: list[Wire]


class _Open(NamedTuple):
    """A call that waits for its result. `shown`: whether it has its id on the wire."""

    wire_id: str
    name: str
    shown: bool


def conversation(
    messages: Iterable[Message], dialect: GeminiDialect, traits: Traits
) -> Conversation:
    """`messages` for a model with `traits` at the server of `dialect`.

    Raises UnsupportedContentError for a part of a message that the wire cannot carry.
    """
    walk = _Walk(dialect, traits)
    walk.walked(messages)
    turns = alternating(walk.turns, {"text": OPENING})
    if turns[-1].role == MODEL:
        turns.append(Turn(USER, [{"text": GO_ON}]))
    return Conversation(walk.system, [{"role": t.role, "parts": t.entries} for t in turns])


Entry = Wire | Raw
"""A part of a content."""


class _Walk(TurnWalk[Entry]):
    """Writes a history.

    The results of a batch open the user's next content, in the order of the calls; media that no
    result can hold follow them there.
    """

    def __init__(self, dialect: GeminiDialect, traits: Traits) -> None:
        super().__init__(CallIds(CALL_IDS), "to Gemini")
        self._vertex = dialect.vertex
        self._traits = traits
        self._batch: list[_Open] = []
        self._answers: dict[str, Wire] = {}

    # --- the model's turns

    def _assistant(self, index: int, message: AssistantMessage) -> None:
        own = own_parts(message, vertex=self._vertex)
        wire_ids = self._ids.open_turn(call.id for call in message.tool_calls)
        calls = list(zip(message.tool_calls, wire_ids, strict=True))
        parts = self._as_it_came(own, calls) if own else self._from_fields(index, message, calls)
        self._note(message, wire_ids, own, empty=not parts)
        if parts:
            self._say(MODEL, parts)

    def _note(
        self,
        message: AssistantMessage,
        wire_ids: list[str],
        own: list[WirePart],
        *,
        empty: bool,
    ) -> None:
        if not noting():
            return
        calls, thinking = message.tool_calls, message.thinking
        shown = [bool(asked(part).id) for part in own if part.kind == CALL] or [True] * len(calls)
        named = zip(calls, wire_ids, shown, strict=True)
        everything = range(max(len(calls), len(thinking)))
        signed = [n for n, call in enumerate(calls) if is_googles(message, call, (PROVIDER,))]
        sent = [n for n, block in enumerate(thinking) if not empty and _is_own(block)]
        note_calls(
            calls,
            [wire_id if known else call.id for call, wire_id, known in named],
            names=TOOL_NAME,
            args=embedded_args,
            signed=everything if own else signed,
        )
        note_thinking(message, everything if own else sent, PROVIDER)
        note_native(message, PROVIDER, sent=bool(own))
        if empty and not message.parts:
            note("dropped", "", "answer", NO_TEXT)

    def _as_it_came(self, own: list[WirePart], calls: list[tuple[ToolCall, str]]) -> list[Entry]:
        """The model's own parts, to the byte; calls as they are known in this request."""
        parts: list[Entry] = []
        known = iter(calls)
        for part in own:
            if part.kind != CALL:
                parts.append(_verbatim(part))
                continue
            call, wire_id = next(known)
            unsigned = self._unsigned(part.word(SIGNATURE))
            shown = bool(asked(part).id)
            parts.append(_called(part, call, wire_id if shown else "", unsigned))
            self._batch.append(_Open(wire_id, _name(call), shown))
        return parts

    def _from_fields(
        self, index: int, message: AssistantMessage, calls: list[tuple[ToolCall, str]]
    ) -> list[Entry]:
        parts: list[Entry] = []
        if message.content.strip():
            parts.append(self._said(message.content))
        parts += self._carried(index, made_parts(message), message.parts)
        for call, wire_id in calls:
            signature = call.signature if is_googles(message, call, (PROVIDER,)) else ""
            parts.append(_call_part(call, wire_id, signature or self._unsigned("")))
            self._batch.append(_Open(wire_id, _name(call), shown=True))
        thoughts = _thoughts(message)
        signed = any(SIGNATURE in part for part in thoughts)
        return [*thoughts, *parts] if parts or signed else []

    def _unsigned(self, signature: str) -> str:
        """What a call without a signature is sent with, where it is the first of its turn."""
        needed = self._traits.checks_signatures and not signature and not self._batch
        return UNSIGNED if needed else ""

    # --- results

    def _result(self, index: int, message: ToolMessage) -> None:
        wire_id = self._ids.answer(message.tool_call_id)
        if wire_id is None:
            return  # not in a repaired history; the provider would refuse the whole request
        media = self._carried(index, message.parts, message.parts)
        within = [part for part in media if self._fits_result(part)]
        response: Wire = {"output": message.content}
        if message.failed:
            response = {"error": message.content if message.content.strip() else FAILED}
        self._answers[wire_id] = {"response": response, **({"parts": within} if within else {})}
        if beside := [part for part in media if part not in within]:
            if noting():
                note_parts([p for p in message.parts if self._stands_beside(p)], message.parts)
            self._attach(label_of(message, wire_id), beside)

    def _fits_result(self, part: Wire) -> bool:
        return self._traits.media_in_results and media_type_of(part) in RESULT_TYPES

    def _stands_beside(self, part: Part) -> bool:
        wire = content_part(part)
        return isinstance(wire, dict) and not self._fits_result(wire)

    def _end_batch(self) -> None:
        """Answer every call of the turn, in order: as many results as there are calls."""
        self._ids.close_turn()
        batch, answers = self._batch, self._answers
        self._batch, self._answers = [], {}
        parts: list[Entry] = []
        for call in batch:
            answer = answers.get(call.wire_id, {"response": {"output": INTERRUPTED}})
            named: Wire = {"id": call.wire_id} if call.shown else {}
            parts.append({"functionResponse": {**named, "name": call.name, **answer}})
        if parts:
            self._say(USER, parts)
        self._say_media()

    # --- texts and media

    def _text(self, words: str) -> Wire:
        return {"text": words}

    def _medium(self, part: Part) -> Wire | str:
        return content_part(part)

    def _entry(self, wire: Wire) -> Entry:
        return wire


def _name(call: ToolCall) -> str:
    return wire_tool_name(call.name, TOOL_NAME)


def _verbatim(part: WirePart) -> Raw:
    return Raw(rawjson.without_lone_surrogates(bytes(part.raw)))


def _call_part(call: ToolCall, wire_id: str, signature: str) -> Wire:
    function: Wire = {"id": wire_id} if wire_id else {}
    function |= {"name": _name(call), "args": Raw(embedded_args(call).encode())}
    wire: Wire = {"functionCall": function}
    if signature:
        wire[SIGNATURE] = signature
    return wire


def _called(part: WirePart, call: ToolCall, wire_id: str, unsigned: str) -> Wire | Raw:
    """A call of the model's own: the part it came as, where that still says the same."""
    now = _call_part(call, wire_id, unsigned)
    said, function = asked(part), now["functionCall"]
    known = dict(part.members["functionCall"])
    named = known.pop("id", None) == (wire_id or None) and said.name == function["name"]
    if named and not unsigned and part.args.encode() == bytes(function["args"]):
        return _verbatim(part)
    return {**part.members, **now, "functionCall": {**known, **function}}


def _thoughts(message: AssistantMessage) -> list[Wire]:
    """Gemini's own thoughts, with their signatures where they have one."""
    parts: list[Wire] = []
    for block in message.thinking:
        signed = sendable(block.signature)
        if _is_own(block):
            wire: Wire = {"text": block.text, "thought": True}
            parts.append({**wire, SIGNATURE: block.signature} if signed else wire)
    return parts


def _is_own(block: Thinking) -> bool:
    """Whether a thought is Gemini's own, and says or proves something."""
    return block.provider == PROVIDER and (sendable(block.signature) or bool(block.text.strip()))
