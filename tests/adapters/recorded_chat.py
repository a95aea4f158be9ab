"""Reads recorded Chat Completions requests into golem's terms, and takes normal forms away.

`request_of` is the way in: a body as others sent it to a request, its settings and its dialect.
`canonical` is the list of docs/providers/openai.md as code: what golem spells differently, spelled
one way. It knows nothing of how golem encodes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

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
from golem.model import OutputSchema, Request, Settings, ToolChoice, ToolSpec
from golem_adapters.openai.dialect import ChatDialect

Row = dict[str, Any]

REASONING = ("reasoning", "reasoning_content")
MODES: dict[Any, Any] = {"any": "required", **{m: m for m in ("auto", "none", "required")}}
SETTINGS = ("temperature", "top_p", "presence_penalty", "frequency_penalty", "parallel_tool_calls")


class NoPlaceError(Exception):
    """A recorded request holds what golem's messages have no place for: a server's file id."""


# --- in


def request_of(body: Row, dialect: ChatDialect) -> tuple[Request, Settings]:
    """The request that `body` makes, as a program using golem would have put it."""
    rest = {name: value for name, value in body.items() if value is not None}
    messages = [message_of(message, dialect) for message in rest.pop("messages")]
    rest.pop("model")
    rest.pop("stream", None)
    rest.pop("stream_options", None)
    tools: tuple[ToolSpec, ...] = ()
    if all(tool.get("type", "function") == "function" for tool in rest.get("tools", ())):
        tools = tuple(map(tool_of, rest.pop("tools", ())))
    choice = choice_of(rest.pop("tool_choice")) if tools and "tool_choice" in rest else None
    output = None
    if rest.get("response_format", {}).get("type") == "json_schema":
        output = output_of(rest.pop("response_format")["json_schema"])
    settings: dict[str, Any] = {name: rest.pop(name) for name in SETTINGS if name in rest}
    for name in ("max_tokens", "max_completion_tokens"):
        if name in rest:
            settings["max_tokens"] = rest.pop(name)
    if dialect.seed in rest:
        settings["seed"] = rest.pop(dialect.seed)
    if "stop" in rest:
        settings["stop"] = rest.pop("stop")
    if dialect.reasoning_effort in rest and isinstance(rest[dialect.reasoning_effort], str):
        settings["reasoning_effort"] = rest.pop(dialect.reasoning_effort)
    if dialect.cache_key in rest:
        settings["prompt_cache_key"] = rest.pop(dialect.cache_key)
    request = Request(messages, tools=tools, output_schema=output, tool_choice=choice)
    return request, Settings(**settings, extra_body=rest or None)


def message_of(message: Row, dialect: ChatDialect) -> Message:
    text, parts = content_of(message.get("content"))
    match message["role"]:
        case "system" | "developer":
            return SystemMessage(text)
        case "user":
            return UserMessage(text, parts=parts)
        case "tool":
            return ToolMessage(text, tool_call_id=message["tool_call_id"])
        case _:
            calls = message.get("tool_calls") or ()
            thoughts = filter(None, (message.get(name) for name in REASONING))
            return AssistantMessage(
                text,
                tool_calls=tuple(map(call_of, calls)),
                thinking=tuple(Thinking(said, provider=dialect.name) for said in thoughts),
            )


def call_of(call: Row) -> ToolCall:
    return ToolCall.of(call["id"], call["function"]["name"], call["function"]["arguments"])


def content_of(content: Any) -> tuple[str, tuple[Part, ...]]:
    """All text, and all else, of a content."""
    if isinstance(content, str) or content is None:
        return content or "", ()
    texts = [part["text"] for part in content if part["type"] == "text"]
    return "".join(texts), tuple(part_of(part) for part in content if part["type"] != "text")


def part_of(part: Row) -> Part:
    match part["type"]:
        case "image_url":
            return linked("image", part["image_url"]["url"])
        case "video_url":
            return linked("video", part["video_url"]["url"])
        case "document_url":
            return linked("document", part["document_url"])
        case "file" if "file_data" in part["file"]:
            return linked("document", part["file"]["file_data"])
        case "input_audio":
            sound = part["input_audio"]
            return Part.audio(base64.b64decode(sound["data"]), f"audio/{sound['format']}")
        case kind:
            raise NoPlaceError(kind)


def linked(kind: str, link: str) -> Part:
    if not link.startswith("data:"):
        return Part(kind, url=link)
    media_type, _, data = link.removeprefix("data:").partition(";base64,")
    return Part(kind, data=base64.b64decode(data), media_type=media_type)


def tool_of(tool: Row) -> ToolSpec:
    function = tool["function"]
    return ToolSpec(function["name"], function.get("description", ""), function["parameters"])


def choice_of(choice: Any) -> ToolChoice:
    if isinstance(choice, str):
        return ToolChoice(MODES[choice])
    return ToolChoice("tool", choice["function"]["name"])


def output_of(schema: Row) -> OutputSchema:
    return OutputSchema(
        schema["name"],
        schema["schema"],
        description=schema.get("description", ""),
        strict=bool(schema.get("strict")),
    )


# --- normal forms


def canonical(body: Row, dialect: ChatDialect) -> Row:
    """`body` in one spelling."""
    said: Row = {name: value for name, value in body.items() if value is not None}
    said.pop("stream_options", None)
    if not said.get("stream"):
        said.pop("stream", None)
    for name in ("max_tokens", "max_completion_tokens"):
        if name in said:
            said["max"] = said.pop(name)
    if isinstance(said.get("stop"), str):
        said["stop"] = [said["stop"]]
    if said.get("tool_choice") == "any":
        said["tool_choice"] = "required"
    said["tools"] = [canonical_tool(tool) for tool in said.get("tools", ())]
    schema = said.get("response_format", {}).get("json_schema")
    if schema:
        said["response_format"]["json_schema"] = {"strict": False, **schema}
    said["messages"] = list(canonical_messages(said["messages"], dialect))
    return said


def canonical_tool(tool: Row) -> Row:
    if "function" not in tool:
        return tool
    function = {name: v for name, v in tool["function"].items() if name != "strict" and v}
    return {"type": "function", "function": {"parameters": {}, **function}}


def canonical_messages(messages: list[Row], dialect: ChatDialect) -> Iterator[Any]:
    """Each message as a tuple; calls by number in place of ids, results by their call's."""
    waiting: dict[str, list[int]] = {}
    count = 0
    for message in messages:
        role, content = message["role"], canonical_content(message.get("content"))
        if role == "tool":
            yield role, content, waiting[message["tool_call_id"]].pop(0)
            continue
        if role != "assistant":
            yield "system" if role == "developer" else role, content
            continue
        calls = []
        for call in message.get("tool_calls") or ():
            waiting.setdefault(call["id"], []).append(count)
            function = call["function"]
            calls.append((count, function["name"], json.loads(function["arguments"] or "{}")))
            count += 1
        back = dialect.reasoning_out and (calls or dialect.reasoning_back == "always")
        thoughts = filter(None, (message.get(name) for name in REASONING))
        if calls or content:
            yield role, content, calls, list(thoughts) if back else []


def canonical_content(content: Any) -> list[Any]:
    """The text and then the media of a content, without marks and names."""
    text, parts = content_of(content)
    return [text, *parts] if text or parts else []
