"""From a history to `input`. Pure and deterministic.

One walk writes each message's items. Of a longer history the same items stand at the front, so
that prompt caches hold. The history is a repaired one; what this wire still cannot take is mapped
here (ids, tool names), left out silently where it means nothing elsewhere (foreign thinking and
items) or refused as `golem.errors.UnsupportedContentError`.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from msgspec import Raw

from golem import rawjson
from golem.messages import (
    AssistantMessage,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.model import Request
from golem.wire.notes import note, noting
from golem_adapters._toolkit.body import Wire, schema_words
from golem_adapters._toolkit.calls import INTERRUPTED, CallIds, wire_args, wire_tool_name
from golem_adapters._toolkit.lenient import text
from golem_adapters._toolkit.noting import (
    LOOSE,
    NO_TEXT,
    note_calls,
    note_native,
    note_parts,
    note_thinking,
)
from golem_adapters._toolkit.walk import Walk, label_of
from golem_adapters.openai_responses.dialect import OWN_CALL_IDS, ResponsesDialect
from golem_adapters.openai_responses.items import (
    CALLS,
    CUSTOM_CALL,
    FUNCTION_CALL,
    IMAGE_CALL,
    MESSAGE,
    REASONING,
    Item,
    asked,
    kind,
    own_items,
    sealed_reasoning,
    sent_thinking,
)
from golem_adapters.openai_responses.media import content_part, fits_in_result

WITHOUT_IDS: Final = "their ids cannot stand here: texts and calls go out without them"


def written_input(request: Request, dialect: ResponsesDialect, *, stored: bool) -> list[Wire | Raw]:
    """The items for the messages of `request`; `stored`: the server keeps what it answers.

    Raises UnsupportedContentError for a part of a message that the wire cannot carry.
    """
    return _Input(dialect, stored=stored).written(request)


class _Entry(NamedTuple):
    """An item of an assistant turn; `call_id` where it is a call."""

    item: Wire | Raw
    kind: str
    call_id: str = ""


class _Input(Walk):
    """One walk over a history, writing its items.

    A *batch* is an assistant turn and the results of its calls. It is written as a whole, each
    result between the calls and whatever else the turn goes on with: every server accepts that,
    some nothing else. Media that no result can hold follow the batch, as a user message.
    """

    def __init__(self, dialect: ResponsesDialect, *, stored: bool) -> None:
        super().__init__(CallIds(dialect.ids), f"in Responses ({dialect.name})")
        self._dialect = dialect
        self._stored = stored
        self._item_ids: set[str] = set()
        self._out: list[Wire | Raw] = []
        self._turn: list[_Entry] = []
        self._custom: set[str] = set()  # calls of the turn that are of free-text tools
        self._results: dict[str, Wire] = {}

    def written(self, request: Request) -> list[Wire | Raw]:
        if request.output_schema is not None and self._dialect.structured_output != "json_schema":
            self._say(self._dialect.system_role, schema_words(request.output_schema))
        self.walked(request.messages)
        return self._out

    def _say(self, role: str, content: object) -> None:
        self._out.append({"type": MESSAGE, "role": role, "content": content})

    def _system(self, message: SystemMessage) -> None:
        if message.content:
            self._say(self._dialect.system_role, message.content)

    def _user(self, index: int, message: UserMessage) -> None:
        if not message.parts:
            self._say("user", message.content)
            return
        said = [self._text(message.content)] if message.content else []
        self._say("user", said + self._carried(index, message.parts, message.parts))

    # --- assistant turns

    def _assistant(self, index: int, message: AssistantMessage) -> None:
        items = own_items(message, self._dialect.name)
        wire_ids = self._ids.open_turn(
            (call.id for call in message.tool_calls), OWN_CALL_IDS if items else None
        )
        came = bool(items) and self._goes_as_it_came(items, message, wire_ids)
        if came:
            self._turn = self._verbatim(items)
        elif items:
            self._turn = _without_ids([item for _, item in items], message, wire_ids)
        else:
            self._turn = _from_fields(message, wire_ids, self._dialect)
        self._note(message, wire_ids, [item for _, item in items], came=came)
        self._custom = {entry.call_id for entry in self._turn if entry.kind == CUSTOM_CALL}
        if any(entry.kind == IMAGE_CALL for entry in self._turn):
            return  # what the server made is among its items
        self._attach_made(index, message)

    def _note(
        self, message: AssistantMessage, wire_ids: list[str], items: list[Item], *, came: bool
    ) -> None:
        if not noting():
            return
        name, turn = self._dialect.name, self._turn
        while turn and turn[-1].kind == REASONING:
            turn = turn[:-1]  # it led to nothing
        sealed = any(entry.kind == REASONING for entry in turn)
        note_calls(message.tool_calls, wire_ids)
        note_thinking(message, sent_thinking(message, name, came=came, sealed=sealed), name)
        note_native(message, name, sent=bool(items))
        if items and not came:
            note("flattened", "native", f"{len(items)} native items", WITHOUT_IDS)
        for number, item in enumerate(items):
            sent = number < len(turn) if came else kind(item) in (MESSAGE, *CALLS)
            if not sent:
                note("dropped", f"native.items[{number}]", kind(item) or "item", LOOSE)
        if not turn and not message.parts:
            note("dropped", "", "answer", NO_TEXT)

    def _goes_as_it_came(
        self, items: list[tuple[Raw, Item]], message: AssistantMessage, wire_ids: list[str]
    ) -> bool:
        """Whether the server takes these items of its own unchanged, at this place."""
        ids = [text(item.get("id")) for _, item in items if item.get("id")]
        calls = [item for _, item in items if kind(item) in CALLS]
        return (
            len(set(ids)) == len(ids)
            and self._item_ids.isdisjoint(ids)
            and all(self._readable(item) for _, item in items if kind(item) == REASONING)
            and all(map(_same_on_the_wire, calls, message.tool_calls, wire_ids))
        )

    def _readable(self, reasoning: Item) -> bool:
        """Whether the server can read a reasoning item that it did not store."""
        sealed = bool(text(reasoning.get("encrypted_content")))
        return sealed or self._stored or self._dialect.plain_reasoning

    def _verbatim(self, items: list[tuple[Raw, Item]]) -> list[_Entry]:
        self._item_ids.update(text(item.get("id")) for _, item in items)
        return [
            _Entry(
                Raw(rawjson.without_lone_surrogates(bytes(raw))),
                kind(item),
                text(item.get("call_id")) if kind(item) in CALLS else "",
            )
            for raw, item in items
        ]

    # --- results

    def _result(self, index: int, message: ToolMessage) -> None:
        wire_id = self._ids.answer(message.tool_call_id, message.content)
        if wire_id is None:
            return  # not in a repaired history; the provider would refuse the whole request
        said = message.content
        if message.failed:
            # No flag on this wire: without the word a model takes a failure for a result.
            said = f"Error: {said}" if said else "Error: the tool failed."
            note("flattened", "failed", "failed", "told in the text: there is no mark for it")
        inside = tuple(p for p in message.parts if fits_in_result(p, self._dialect))
        output: object = said
        if inside:
            spoken = [self._text(said)] if said else []
            output = spoken + self._carried(index, inside, message.parts)
        self._answer(wire_id, output)
        if beside := tuple(p for p in message.parts if p not in inside):
            note_parts(beside, message.parts)
            media = self._carried(index, beside, message.parts)
            self._attach(label_of(message, wire_id), media)

    def _answer(self, wire_id: str, output: object) -> None:
        of = CUSTOM_CALL if wire_id in self._custom else FUNCTION_CALL
        self._results[wire_id] = {"type": f"{of}_output", "call_id": wire_id, "output": output}

    def _end_batch(self) -> None:
        for wire_id in self._ids.close_turn():
            self._answer(wire_id, INTERRUPTED)
        self._write_turn()
        self._turn, self._results = [], {}
        if media := self._taken_media():
            self._say("user", media)

    def _write_turn(self) -> None:
        """The turn's items, and the results of its calls before it goes on without them.

        Reasoning stays directly before what it led to; where that never came, it is left out.
        """
        waiting: set[str] = set()
        thoughts: list[Wire | Raw] = []
        for entry in self._turn:
            if entry.kind == REASONING:
                thoughts.append(entry.item)
                continue
            if entry.kind not in CALLS:
                self._write_results(waiting)
            self._out += [*thoughts, entry.item]
            thoughts = []
            if entry.call_id:
                waiting.add(entry.call_id)
        self._write_results(set(self._results))

    def _write_results(self, waiting: set[str]) -> None:
        for wire_id in [found for found in self._results if found in waiting]:
            self._out.append(self._results.pop(wire_id))
        waiting.clear()

    # --- texts and media

    def _text(self, words: str) -> Wire:
        return {"type": "input_text", "text": words}

    def _medium(self, part: Part) -> Wire | str:
        return content_part(part, self._dialect)


def _same_on_the_wire(item: Item, call: ToolCall, wire_id: str) -> bool:
    """Whether a call item says what would be written for its call now."""
    if item.get("call_id") != wire_id or item.get("name") != wire_tool_name(call.name):
        return False
    return kind(item) == CUSTOM_CALL or item.get("arguments") == wire_args(call)


def _from_fields(
    message: AssistantMessage, wire_ids: list[str], dialect: ResponsesDialect
) -> list[_Entry]:
    """A turn as the ordinary fields have it: text, then calls, without the ids of items."""
    entries: list[_Entry] = []
    if message.content:
        said = {"type": MESSAGE, "role": "assistant", "content": message.content}
        entries.append(_Entry(said, MESSAGE))
    for call, wire_id in zip(message.tool_calls, wire_ids, strict=True):
        entries.append(_Entry(_function_call(call, wire_id), FUNCTION_CALL, wire_id))
    reasoning = sealed_reasoning(message, dialect.name) if entries else None
    return [_Entry(reasoning, REASONING), *entries] if reasoning else entries


def _without_ids(items: list[Item], message: AssistantMessage, wire_ids: list[str]) -> list[_Entry]:
    """The items of a turn that cannot go back as they came: what can be said without ids.

    Reasoning and what hosted tools did hang together by ids and are left out; the place of
    texts and calls, phases and refusals stay.
    """
    entries: list[_Entry] = []
    calls = iter(zip(message.tool_calls, wire_ids, strict=True))
    for item in items:
        bare = {name: value for name, value in item.items() if name not in ("id", "status")}
        if kind(item) == MESSAGE:
            entries.append(_Entry({**bare, "type": MESSAGE}, MESSAGE))
        elif kind(item) == FUNCTION_CALL:
            call, wire_id = next(calls)
            bare |= _function_call(call, wire_id)
            entries.append(_Entry(bare, FUNCTION_CALL, wire_id))
        elif kind(item) == CUSTOM_CALL:
            _, wire_id = next(calls)
            bare |= {"call_id": wire_id, "name": wire_tool_name(asked(item).name)}
            entries.append(_Entry(bare, CUSTOM_CALL, wire_id))
    return entries


def _function_call(call: ToolCall, wire_id: str) -> Wire:
    return {
        "type": FUNCTION_CALL,
        "call_id": wire_id,
        "name": wire_tool_name(call.name),
        "arguments": wire_args(call),
    }
