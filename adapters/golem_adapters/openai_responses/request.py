"""From a golem request to the body of a Responses call. Pure and deterministic.

The server keeps nothing (``store: false``): the whole conversation goes out every time, and with
it what the model has to get back. `input` stands last in the body, so that the body of a longer
conversation begins with the same bytes. The history is a repaired one; what this wire still
cannot take is mapped here (ids, tool names), left out silently where it means nothing elsewhere
(foreign thinking and items) or refused as `golem.errors.UnsupportedContentError`.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from msgspec import Raw

from golem import rawjson
from golem.errors import UnsupportedContentError
from golem.messages import (
    AssistantMessage,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.model import OutputSchema, Request, Settings, ToolChoice
from golem.wire.notes import note, noting, placed, refuse
from golem_adapters._toolkit.body import Wire, encoded, parallel_switch, schema_words
from golem_adapters._toolkit.calls import INTERRUPTED, CallIds, wire_args, wire_tool_name
from golem_adapters._toolkit.lenient import text
from golem_adapters._toolkit.noting import (
    LOOSE,
    NO_TEXT,
    medium,
    note_calls,
    note_native,
    note_parts,
    note_sound,
    note_thinking,
)
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
_SCHEMA_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_NO_SETTING: Final = ("seed", "stop", "presence_penalty", "frequency_penalty")


def encode_request(
    request: Request,
    *,
    model: str,
    settings: Settings,
    dialect: ResponsesDialect,
    stream: bool,
    reasoning_summary: str | None = None,
) -> bytes:
    """The body that asks `model` for `request`, with `settings` already merged.

    Raises UnsupportedContentError, naming it, for a setting that this API does not have or a
    part of a message that it cannot carry.
    """
    body: Wire = {"model": model}
    body.update(_sampling(settings, reasoning_summary))
    if dialect.cache_key and settings.prompt_cache_key is not None:
        body[dialect.cache_key] = settings.prompt_cache_key
    body.update(_tools(request, settings, dialect))
    if request.output_schema is not None and dialect.structured_output:
        body["text"] = {"format": _format(request.output_schema, dialect)}
    if stream:
        body["stream"] = True
    body["store"] = False
    if dialect.encrypted_reasoning:
        body["include"] = ["reasoning.encrypted_content"]
    body.update(settings.extra_body or {})
    if "input" not in body:
        stored = bool((settings.extra_body or {}).get("store"))
        body["input"] = _Input(dialect, stored=stored).encoded(request)
    return encoded(body)


def encode_count(
    request: Request, *, model: str, dialect: ResponsesDialect, effort: str | None
) -> bytes:
    """The body that asks how many tokens the prompt of `request` has.

    The endpoint takes what makes the prompt and nothing else: no sampling, nothing about streams
    or storage.
    """
    body: Wire = {"model": model}
    if effort is not None:
        body["reasoning"] = {"effort": effort}
    body.update(_tools(request, Settings(), dialect))
    body["input"] = _Input(dialect, stored=False).encoded(request)
    return encoded(body)


# --- everything but the input


def _sampling(settings: Settings, reasoning_summary: str | None) -> Wire:
    for name in _NO_SETTING:
        if getattr(settings, name) not in (None, ()):
            raise UnsupportedContentError(f"the Responses API has no setting {name!r}")
    reasoning = {"effort": settings.reasoning_effort, "summary": reasoning_summary}
    fields: Wire = {
        "max_output_tokens": settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "reasoning": {name: word for name, word in reasoning.items() if word is not None} or None,
    }
    return {name: value for name, value in fields.items() if value is not None}


def _tools(request: Request, settings: Settings, dialect: ResponsesDialect) -> Wire:
    choice = request.tool_choice or ToolChoice()
    if not request.tools or (choice.mode == "none" and dialect.drops_tools_for_none):
        # A choice without tools is an error on this wire; the caller's own may be there.
        return parallel_switch(settings) if "tools" in (settings.extra_body or {}) else {}
    tools: list[Wire] = []
    for tool in request.tools:
        function: Wire = {"type": "function", "name": wire_tool_name(tool.name)}
        if tool.description:
            function["description"] = tool.description
        # Left out, `strict` means true to the server, which then rewrites or refuses schemas.
        function.update(parameters=tool.schema, strict=False)
        tools.append(function)
    fields: Wire = {"tools": tools}
    if choice.mode == "tool":
        fields["tool_choice"] = {"type": "function", "name": wire_tool_name(choice.name)}
    elif request.tool_choice is not None:
        fields["tool_choice"] = choice.mode
    return fields | parallel_switch(settings)


def _format(output: OutputSchema, dialect: ResponsesDialect) -> Wire:
    if dialect.structured_output == "json_object":
        return {"type": "json_object"}
    name = output.name
    if not _SCHEMA_NAME.fullmatch(name):
        name = wire_tool_name(name)
    schema: Wire = {"type": "json_schema", "name": name}
    if output.description:
        schema["description"] = output.description
    schema["schema"] = output.schema
    schema["strict"] = output.strict
    return schema


# --- the input


class _Entry(NamedTuple):
    """An item of an assistant turn; `call_id` where it is a call."""

    item: Wire | Raw
    kind: str
    call_id: str = ""


class _Input:
    """One walk over a history, writing its items.

    A *batch* is an assistant turn and the results of its calls. It is written as a whole, each
    result between the calls and whatever else the turn goes on with: every server accepts that,
    some nothing else. Media that no result can hold follow the batch, as a user message.
    """

    def __init__(self, dialect: ResponsesDialect, *, stored: bool) -> None:
        self._dialect = dialect
        self._stored = stored
        self._ids = CallIds(dialect.ids)
        self._item_ids: set[str] = set()
        self._out: list[Wire | Raw] = []
        self._turn: list[_Entry] = []
        self._custom: set[str] = set()  # calls of the turn that are of free-text tools
        self._results: dict[str, Wire] = {}
        self._media: list[Wire] = []  # content parts that wait for the end of the batch

    def encoded(self, request: Request) -> list[Wire | Raw]:
        if request.output_schema is not None and self._dialect.structured_output != "json_schema":
            self._say(self._dialect.system_role, schema_words(request.output_schema))
        for index, message in placed(request.messages):
            if not isinstance(message, ToolMessage):
                self._end_batch()
            match message:
                case SystemMessage():
                    if message.content:
                        self._say(self._dialect.system_role, message.content)
                case UserMessage():
                    self._user(index, message)
                case AssistantMessage():
                    self._assistant(index, message)
                case ToolMessage():
                    self._result(index, message)
        self._end_batch()
        return self._out

    def _say(self, role: str, content: object) -> None:
        self._out.append({"type": MESSAGE, "role": role, "content": content})

    def _user(self, index: int, message: UserMessage) -> None:
        if not message.parts:
            self._say("user", message.content)
            return
        content = [_text(message.content)] if message.content else []
        self._say("user", content + self._parts(index, message.parts, message.parts))

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
        # The transcript of a spoken answer is its content: the sound need not go back.
        parts = tuple(p for p in message.parts if not (p.kind == "audio" and message.content))
        note_sound(parts, message.parts)
        if parts:
            note_parts(parts, message.parts)
            self._attach("Part of the answer above:", self._parts(index, parts, message.parts))

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
            spoken = [_text(said)] if said else []
            output = spoken + self._parts(index, inside, message.parts)
        self._answer(wire_id, output)
        if beside := tuple(p for p in message.parts if p not in inside):
            note_parts(beside, message.parts)
            label = f"Attached to the result of {message.tool_name or 'the tool'} ({wire_id}):"
            self._attach(label, self._parts(index, beside, message.parts))

    def _answer(self, wire_id: str, output: object) -> None:
        of = CUSTOM_CALL if wire_id in self._custom else FUNCTION_CALL
        self._results[wire_id] = {"type": f"{of}_output", "call_id": wire_id, "output": output}

    def _end_batch(self) -> None:
        for wire_id in self._ids.close_turn():
            self._answer(wire_id, INTERRUPTED)
        self._write_turn()
        self._turn, self._results = [], {}
        if self._media:
            media, self._media = self._media, []
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

    # --- media

    def _attach(self, label: str, parts: list[Wire]) -> None:
        self._media += [_text(label), *parts]

    def _parts(self, index: int, parts: tuple[Part, ...], among: tuple[Part, ...]) -> list[Wire]:
        """The content parts for `parts`, which are numbered as they stand `among` the message's."""
        found: list[Wire] = []
        for part in parts:
            wire = content_part(part, self._dialect)
            if isinstance(wire, str):
                why = f"{wire} in Responses ({self._dialect.name})"
                refuse(index, f"parts[{among.index(part)}]", medium(part), why)
                continue
            found.append(wire)
        return found


def _text(words: str) -> Wire:
    return {"type": "input_text", "text": words}


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
