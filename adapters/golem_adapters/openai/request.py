"""From a golem request to the body of a Chat Completions call. Pure and deterministic.

`messages` stand last in the body, so that the body of a longer conversation begins with the
same bytes. The history is a repaired one; what this wire still cannot take is mapped here (ids,
tool names, media in results), left out silently where it means nothing elsewhere (foreign
thinking, signatures, native items) or refused as `golem.errors.UnsupportedContentError`.
"""

from __future__ import annotations

import re
from typing import Final

from golem.messages import AssistantMessage, Part, SystemMessage, ToolCall, ToolMessage, UserMessage
from golem.model import OutputSchema, Request, Settings, ToolChoice
from golem.wire.notes import note, noting
from golem_adapters._toolkit.body import Wire, encoded, parallel_switch, schema_words
from golem_adapters._toolkit.calls import INTERRUPTED, CallIds, wire_args, wire_tool_name
from golem_adapters._toolkit.noting import (
    NO_TEXT,
    note_calls,
    note_native,
    note_parts,
    note_thinking,
)
from golem_adapters._toolkit.signatures import is_googles
from golem_adapters._toolkit.walk import OPENING, Walk, label_of
from golem_adapters.openai.dialect import ChatDialect
from golem_adapters.openai.media import content_part
from golem_adapters.openai.reasoning import (
    own_reasoning,
    own_signature,
    reasoning_details,
    sent_reasoning,
)

_SCHEMA_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")


def encode_request(
    request: Request, *, model: str, settings: Settings, dialect: ChatDialect, stream: bool
) -> bytes:
    """The body that asks `model` for `request`, with `settings` already merged.

    Raises UnsupportedContentError, naming the message and part, for what cannot be carried.
    """
    body: Wire = {"model": model}
    body.update(_sampling(settings, dialect))
    body.update(_tools(request, settings, dialect))
    if request.output_schema is not None:
        body["response_format"] = _response_format(request.output_schema, dialect)
    if stream:
        body["stream"] = True
        if dialect.stream_options:
            body["stream_options"] = {"include_usage": True}
    body.update(settings.extra_body or {})
    body.setdefault("messages", _Messages(dialect).encoded(request))
    return encoded(body)


# --- everything but the messages


def _sampling(settings: Settings, dialect: ChatDialect) -> Wire:
    effort: object = settings.reasoning_effort
    if effort is not None and dialect.reasoning_effort == "reasoning":
        effort = {"effort": effort}
    fields: Wire = {
        dialect.max_tokens: settings.max_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        dialect.seed: settings.seed,
        "stop": list(settings.stop) or None,
        "presence_penalty": settings.presence_penalty,
        "frequency_penalty": settings.frequency_penalty,
        dialect.reasoning_effort: effort,
    }
    if dialect.cache_key:
        fields[dialect.cache_key] = settings.prompt_cache_key
    return {name: value for name, value in fields.items() if value is not None}


def _tools(request: Request, settings: Settings, dialect: ChatDialect) -> Wire:
    choice = request.tool_choice or ToolChoice()
    if not request.tools or (choice.mode == "none" and dialect.drops_tools_for_none):
        # A choice without tools is an error on this wire; the caller's own may be there.
        return parallel_switch(settings) if "tools" in (settings.extra_body or {}) else {}
    tools: list[Wire] = []
    for tool in request.tools:
        function: Wire = {"name": wire_tool_name(tool.name)}
        if tool.description:
            function["description"] = tool.description
        function["parameters"] = tool.schema
        tools.append({"type": "function", "function": function})
    fields: Wire = {"tools": tools}
    if choice.mode == "tool":
        named = {"name": wire_tool_name(choice.name)}
        fields["tool_choice"] = {"type": "function", "function": named}
    elif request.tool_choice is not None:
        fields["tool_choice"] = dialect.tool_choice_words.get(choice.mode, choice.mode)
    return fields | parallel_switch(settings)


def _response_format(output: OutputSchema, dialect: ChatDialect) -> Wire:
    if dialect.structured_output == "json_object":
        return {"type": "json_object"}
    name = output.name
    if not _SCHEMA_NAME.fullmatch(name):
        name = wire_tool_name(name)
    schema: Wire = {"name": name}
    if output.description:
        schema["description"] = output.description
    schema["schema"] = output.schema
    schema["strict"] = output.strict
    return {"type": "json_schema", "json_schema": schema}


# --- messages


class _Messages(Walk):
    """One walk over a history, writing its messages.

    A *batch* is an assistant turn with calls and the results that follow it. The wire wants
    the batch whole and nothing in it but results, whose content is text: so calls that nothing
    answered are answered at its end, and media of the turn follow after that, as a user message.
    """

    def __init__(self, dialect: ChatDialect) -> None:
        super().__init__(CallIds(dialect.ids), f"in Chat Completions ({dialect.name})")
        self._dialect = dialect
        self._out: list[Wire] = []

    def encoded(self, request: Request) -> list[Wire]:
        if request.output_schema is not None and self._dialect.structured_output != "json_schema":
            self._system(SystemMessage(schema_words(request.output_schema)))
        self.walked(request.messages)
        if not self._out:
            self._say("user", OPENING)
        return self._out

    def _system(self, message: SystemMessage) -> None:
        if not message.content:
            return
        role = self._dialect.system_role
        last = self._out[-1] if self._out else None
        if last is not None and last["role"] == role and self._dialect.one_system_message:
            last["content"] += "\n\n" + message.content
        else:
            self._say(role, message.content)

    def _user(self, index: int, message: UserMessage) -> None:
        if not message.parts:
            self._say("user", message.content)
            return
        said = [self._text(message.content)] if message.content else []
        self._say("user", said + self._carried(index, message.parts, message.parts))

    def _assistant(self, index: int, message: AssistantMessage) -> None:
        calls = message.tool_calls
        if message.content or calls:
            turn: Wire = {"role": "assistant", "content": message.content or None}
            self._reasoning(turn, message)
            if calls:
                wire_ids = self._ids.open_turn(call.id for call in calls)
                turn["tool_calls"] = [
                    self._call(call, wire_id, signed=self._signed(message, call))
                    for call, wire_id in zip(calls, wire_ids, strict=True)
                ]
                signed = [n for n, call in enumerate(calls) if self._signed(message, call)]
                note_calls(calls, wire_ids, signed=signed)
            self._out.append(turn)
            self._note(message, turn)
        else:
            self._note(message, {})
            if not self._out and not message.parts:
                self._say("user", OPENING)
        self._attach_made(index, message)

    def _note(self, message: AssistantMessage, turn: Wire) -> None:
        if not noting():
            return
        if not turn and not message.parts:
            note("dropped", "", "answer", NO_TEXT)
        details = "reasoning_details" in turn
        sent = sent_reasoning(message, turn, self._dialect)
        note_thinking(message, sent, self._dialect.name)
        note_native(message, self._dialect.name, sent=details)

    def _signed(self, message: AssistantMessage, call: ToolCall) -> bool:
        """Whether the signature of `call` goes out: to Google, which made it."""
        makers = (self._dialect.name, "gemini")
        return self._dialect.google_signatures and is_googles(message, call, makers)

    def _call(self, call: ToolCall, wire_id: str, *, signed: bool) -> Wire:
        function = {"name": wire_tool_name(call.name), "arguments": wire_args(call)}
        wire: Wire = {"id": wire_id, "type": "function", "function": function}
        if signed:
            wire["extra_content"] = {"google": {"thought_signature": call.signature}}
        return wire

    def _reasoning(self, turn: Wire, message: AssistantMessage) -> None:
        dialect = self._dialect
        if dialect.google_signatures and (signature := own_signature(message, dialect.name)):
            turn["extra_content"] = {"google": {"thought_signature": signature}}
        if dialect.reasoning_details and (details := reasoning_details(message, dialect.name)):
            turn["reasoning_details"] = details
            return
        if not dialect.reasoning_out or not (
            message.tool_calls or dialect.reasoning_back == "always"
        ):
            return
        text = own_reasoning(message, dialect.name)
        if dialect.reasoning_out == "chunks":
            if text:
                thought = {"type": "thinking", "thinking": [{"type": "text", "text": text}]}
                spoken = [{"type": "text", "text": message.content}] if message.content else []
                turn["content"] = [thought, *spoken]
        elif text or (dialect.reasoning_required and message.tool_calls):
            turn[dialect.reasoning_out] = text

    def _result(self, index: int, message: ToolMessage) -> None:
        wire_id = self._ids.answer(message.tool_call_id, message.content)
        if wire_id is None:
            return  # not in a repaired history; the provider would refuse the whole request
        text = message.content
        if message.failed:
            # No flag on this wire: without the word a model takes a failure for a result.
            text = f"Error: {text}" if text else "Error: the tool failed."
            note("flattened", "failed", "failed", "told in the text: there is no mark for it")
        self._out.append({"role": "tool", "tool_call_id": wire_id, "content": text})
        if message.parts:
            note_parts(message.parts, message.parts)
            media = self._carried(index, message.parts, message.parts)
            self._attach(label_of(message, wire_id), media)

    def _end_batch(self) -> None:
        for wire_id in self._ids.close_turn():
            self._out.append({"role": "tool", "tool_call_id": wire_id, "content": INTERRUPTED})
        if media := self._taken_media():
            self._say("user", media)

    def _say(self, role: str, content: object) -> None:
        filler = self._dialect.between_tool_and_user
        if filler and self._out and self._out[-1]["role"] == "tool":
            self._out.append({"role": "assistant", "content": filler})
        self._out.append({"role": role, "content": content})

    def _text(self, words: str) -> Wire:
        return {"type": "text", "text": words}

    def _medium(self, part: Part) -> Wire | str:
        return content_part(part, self._dialect)
