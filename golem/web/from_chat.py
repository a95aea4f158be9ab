"""Messages of a Chat Completions request, as golem's own.

Untrusted: give the result to `golem.sanitize_history`.
"""

from __future__ import annotations

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


def messages_from_chat(body: Document) -> list[Message]:
    """The messages of a request: the whole body, or its ``messages``.

    `reasoning_content` is read as other servers write it. Names of participants, log
    probabilities and the like are left out.

    Raises HistoryError, naming the message and the member, for what is no such conversation, and
    for content that only its maker could read (uploaded files, audio ids).
    """
    found = document(body)
    listed = found if isinstance(found.value, list) else found.at("messages")
    names: dict[str, str] = {}
    return [_message(message, names) for message in listed.messages()]


def _message(message: Item, names: dict[str, str]) -> Message:
    role = message.at("role").text()
    if role in ("system", "developer"):
        return SystemMessage(_content(message)[0])
    if role == "user":
        text, parts = _content(message)
        return UserMessage(text, parts=parts)
    if role == "assistant":
        return _assistant(message, names)
    if role == "tool":
        call_id = message.at("tool_call_id").text()
        text, parts = _content(message)
        name = names.get(call_id, "")
        return ToolMessage(text, parts=parts, tool_call_id=call_id, tool_name=name)
    raise message.at("role").error(f"unknown role {role[:64]!r}")


def _assistant(message: Item, names: dict[str, str]) -> AssistantMessage:
    calls = tuple(map(_call, message.at("tool_calls").items()))
    names.update((call.id, call.name) for call in calls)
    thought = message.at("reasoning_content").optional_text()
    text = "" if message.at("content").value is None else _content(message)[0]
    return AssistantMessage(
        text or message.at("refusal").optional_text(),
        tool_calls=calls,
        thinking=(Thinking(thought),) if thought else (),
    )


def _call(call: Item) -> ToolCall:
    kind = call.at("type").optional_text() or "function"
    if kind not in ("function", "custom"):
        raise call.at("type").error(f"unknown kind of call {kind[:64]!r}")
    asked = call.at(kind)
    args = asked.at("arguments" if kind == "function" else "input").text()
    return ToolCall.of(call.at("id").text(), asked.at("name").text(), args)


def _content(message: Item) -> tuple[str, tuple[Part, ...]]:
    content = message.at("content")
    if isinstance(content.value, str):
        return content.text(), ()
    if content.value is None:
        raise content.error("expected a string or an array, not nothing")
    texts: list[str] = []
    parts: list[Part] = []
    for part in content.items():
        kind = part.at("type").text()
        if kind in ("text", "refusal"):
            texts.append(part.at(kind).text())
        else:
            parts.append(_part(part, kind))
    return "\n".join(texts), tuple(parts)


def _part(part: Item, kind: str) -> Part:
    if kind == "image_url":
        return media(part.at(kind).at("url"), kind="image")
    if kind == "input_audio":
        audio = part.at(kind)
        return inline(audio.at("data"), f"audio/{audio.at('format').text()}", "audio")
    if kind == "file" and part.at(kind).at("file_data").value is not None:
        return media(part.at(kind).at("file_data"), kind="document")
    raise part.at("type").error(f"content of the type {kind[:64]!r} cannot be read here")
