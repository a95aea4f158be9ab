"""Messages of an AG-UI client's input (``RunAgentInput``), as golem's own.

The inverse of ``golem.web.agui``. Untrusted: give the result to `golem.sanitize_history`.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from golem.deferral import Approval, DeferredResults, Pending
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
from golem.web.untrusted import Document, Item, document, inline, media


def messages_from_agui(input: Document) -> list[Message]:
    """The conversation of the client's input: the whole of it, or its ``messages``.

    Reasoning joins the assistant message behind it, encrypted values and all; activities are for
    showing only and left out. Arguments are taken as they are, JSON or not.

    Raises HistoryError, naming the message and the member, for what is no such conversation.
    """
    found = document(input)
    listed = found if isinstance(found.value, list) else found.at("messages")
    reader = _Reader()
    for message in listed.messages():
        reader.read(message)
    return reader.made


def answers_from_agui(input: Document, pending: Pending) -> DeferredResults:
    """What the client's ``resume`` says to the calls that the server knows to be `pending`.

    An entry answers the interrupt of its id. For an approval `payload` is true, false, or an
    object with `approved` and maybe `reason`; one that was cancelled is denied. For an external
    result it is the result. Entries for anything else are ignored.

    Raises HistoryError where an entry is malformed.
    """
    given = {
        entry.at("interruptId").text(): entry for entry in document(input).at("resume").items()
    }
    approvals = {
        call.call_id: _approval(given[call.call_id])
        for call in pending.approvals
        if call.call_id in given
    }
    external = {
        call.call_id: given[call.call_id].at("payload").json()
        for call in pending.external
        if call.call_id in given and given[call.call_id].at("status").text() == "resolved"
    }
    return DeferredResults(approvals=approvals, external=external)


def _approval(entry: Item) -> Approval:
    status, payload = entry.at("status").text(), entry.at("payload")
    if status == "cancelled":
        return Approval(False)
    if status != "resolved":
        raise entry.at("status").error(f"unknown status {status[:64]!r}")
    if isinstance(payload.value, bool):
        return Approval(payload.value)
    approved = payload.at("approved")
    if not isinstance(approved.value, bool):
        raise approved.error("expected true or false")
    return Approval(approved.value, payload.at("reason").optional_text())


class _Reader:
    def __init__(self) -> None:
        self.made: list[Message] = []
        self._thinking: list[Thinking] = []
        self._names: dict[str, str] = {}

    def read(self, message: Item) -> None:
        role = message.at("role").text()
        if role in ("system", "developer"):
            self.made.append(SystemMessage(message.at("content").text()))
        elif role == "user":
            text, parts = _content(message.at("content"))
            self.made.append(UserMessage(text, parts=parts))
        elif role == "assistant":
            self.made.append(self._assistant(message))
        elif role == "tool":
            self.made.append(self._tool(message))
        elif role == "reasoning":
            self._thinking.append(_thinking(message))
        elif role != "activity":
            raise message.at("role").error(f"unknown role {role[:64]!r}")

    def _assistant(self, message: Item) -> AssistantMessage:
        calls = tuple(map(_call, message.at("toolCalls").items()))
        self._names.update((call.id, call.name) for call in calls)
        thinking, self._thinking = _with_hidden(message, self._thinking), []
        text = message.at("content").optional_text()
        return AssistantMessage(text, tool_calls=calls, thinking=thinking)

    def _tool(self, message: Item) -> ToolMessage:
        call_id, error = message.at("toolCallId").text(), message.at("error").optional_text()
        text, parts = _content(message.at("content"))
        return ToolMessage(
            text or error,
            parts=parts,
            tool_call_id=call_id,
            tool_name=self._names.get(call_id, ""),
            failed=bool(error) or _failed(message),
        )


def _failed(message: Item) -> bool:
    metadata = message.at("metadata")
    return metadata.value is not None and metadata.at("failed").value is True


def _call(call: Item) -> ToolCall:
    function = call.at("function")
    return ToolCall.of(
        call.at("id").text(),
        function.at("name").text(),
        function.at("arguments").text(),
        call.at("encryptedValue").optional_text(),
    )


class _Packed(Struct, forbid_unknown_fields=True):
    """What ``golem.web.agui`` puts into an encrypted value of reasoning."""

    signature: str = ""
    redacted: str = ""
    provider: str = ""
    id: str = ""


class _Hidden(Struct, forbid_unknown_fields=True):
    """And of an assistant's message: blocks without words, and their places."""

    hidden: list[tuple[int, _Packed]]


def _thinking(message: Item) -> Thinking:
    text, value = message.at("content").text(), message.at("encryptedValue").optional_text()
    try:
        packed = msgspec.json.decode(value, type=_Packed)
    except (msgspec.MsgspecError, RecursionError):  # another agent's
        packed = _Packed(value)
    return _block(message, text, packed)


def _block(message: Item, text: str, packed: _Packed) -> Thinking:
    made = Thinking(text, packed.signature, packed.redacted, packed.provider, packed.id)
    try:
        made.validate()
    except ValueError as error:
        raise message.at("encryptedValue").error(str(error)) from error
    return made


def _with_hidden(message: Item, thinking: list[Thinking]) -> tuple[Thinking, ...]:
    """The turn's reasoning with the blocks that have no words in their places."""
    value = message.at("encryptedValue").optional_text()
    try:
        kept = msgspec.json.decode(value, type=_Hidden)
    except (msgspec.MsgspecError, RecursionError):  # another agent's, for which nothing is known
        return tuple(thinking)
    for place, packed in kept.hidden:
        thinking.insert(place, _block(message, "", packed))
    return tuple(thinking)


def _content(content: Item) -> tuple[str, tuple[Part, ...]]:
    if isinstance(content.value, str):
        return content.text(), ()
    if content.value is None:
        raise content.error("expected a string or an array, not nothing")
    texts: list[str] = []
    parts: list[Part] = []
    for part in content.items():
        kind = part.at("type").text()
        if kind == "text":
            texts.append(part.at("text").text())
        elif kind in ("image", "audio", "video", "document"):
            parts.append(_part(part, kind))
        else:
            raise part.at("type").error(f"unknown kind of content {kind[:64]!r}")
    return "\n".join(texts), tuple(parts)


def _part(part: Item, kind: str) -> Part:
    source = part.at("source")
    how, value = source.at("type").text(), source.at("value")
    if how == "data":
        return inline(value, source.at("mimeType").text(), kind)
    if how == "url":
        return media(value, source.at("mimeType").optional_text(), kind)
    raise source.at("type").error(f"a source of type {how[:64]!r} cannot be read here")
