"""Reads recorded Responses requests into golem's terms, and takes normal forms away.

`request_of` is the way in, `canonical` the list of docs/providers/openai.md as code: what golem
spells differently, spelled one way. It knows nothing of how golem encodes.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from golem.messages import Message, Part, SystemMessage, ToolMessage, UserMessage
from golem.model import OutputSchema, Request, Settings, ToolChoice, ToolSpec
from golem_adapters.openai_responses.dialect import ResponsesDialect
from golem_adapters.openai_responses.response import decode_response

Row = dict[str, Any]
Item = dict[str, Any]

GIVEN = ("function_call_output", "additional_tools")
SETTINGS = ("temperature", "top_p", "parallel_tool_calls")


class NoPlaceError(Exception):
    """A recorded request holds what golem's messages have no place for.

    Files by a server's id, tools given in the middle of a conversation, searches for tools that
    the program answers, and state that the server keeps.
    """


# --- in


def request_of(body: Row, dialect: ResponsesDialect) -> tuple[Request, Settings, str | None]:
    """The request that `body` makes, its settings, and what is asked of summaries."""
    rest = {name: value for name, value in body.items() if value is not None}
    for name in ("previous_response_id", "conversation"):
        if name in rest:
            raise NoPlaceError(name)
    messages: list[Message] = []
    if rest.get("instructions"):
        messages.append(SystemMessage(rest.pop("instructions")))
    messages += history_of(rest.pop("input"), dialect)
    for name in ("model", "stream", "store"):
        rest.pop(name, None)
    rest["include"] = sorted({*rest.get("include", ()), "reasoning.encrypted_content"})
    tools: tuple[ToolSpec, ...] = ()
    if all(plain_tool(tool) for tool in rest.get("tools", ())):
        tools = tuple(
            ToolSpec(tool["name"], tool.get("description") or "", tool["parameters"])
            for tool in rest.pop("tools", ())
        )
    choice = rest.get("tool_choice")
    if tools and (isinstance(choice, str) or (choice or {}).get("type") == "function"):
        rest.pop("tool_choice")
    else:
        choice = None
    output = None
    if set(rest.get("text", ())) == {"format"} and rest["text"]["format"]["type"] == "json_schema":
        output = output_of(rest.pop("text")["format"])
    settings: dict[str, Any] = {name: rest.pop(name) for name in SETTINGS if name in rest}
    if "max_output_tokens" in rest:
        settings["max_tokens"] = rest.pop("max_output_tokens")
    summary = None
    if rest.get("reasoning", {}).keys() <= {"effort", "summary"}:
        reasoning = rest.pop("reasoning", {})
        settings["reasoning_effort"], summary = reasoning.get("effort"), reasoning.get("summary")
    request = Request(
        messages,
        tools=tools,
        output_schema=output,
        tool_choice=choice_of(choice) if choice else None,
    )
    return request, Settings(**settings, extra_body=rest), summary


def plain_tool(tool: Row) -> bool:
    return tool["type"] == "function" and "defer_loading" not in tool


def choice_of(choice: Any) -> ToolChoice:
    return ToolChoice(choice) if isinstance(choice, str) else ToolChoice("tool", choice["name"])


def output_of(said: Row) -> OutputSchema:
    description = said.get("description") or ""
    strict = bool(said.get("strict"))
    return OutputSchema(said["name"], said["schema"], description=description, strict=strict)


def history_of(recorded: str | list[Item], dialect: ResponsesDialect) -> list[Message]:
    """A recorded input as golem would have it in a history."""
    if isinstance(recorded, str):
        return [UserMessage(recorded)]
    history: list[Message] = []
    searches = {item["call_id"] for item in recorded if item.get("execution") == "client"}
    for given, items in groupby(recorded, is_given):
        if given:
            found = list(items)
            if any(item.get("call_id") in searches for item in found):
                raise NoPlaceError("tool_search_call")
            history.extend(map(message_of, found))
            continue
        output = [{"type": "message", **item} for item in items]
        body = json.dumps({"output": output}).encode()
        answer = decode_response(body, request=Request(()), dialect=dialect, headers={}, secret="")
        history.append(answer.message)
    return history


def is_given(item: Item) -> bool:
    """Whether the program said it, and not the model."""
    kind, role = item.get("type", "message"), item.get("role")
    return kind in GIVEN or (kind == "message" and role != "assistant")


def message_of(item: Item) -> Message:
    if item.get("type") == "additional_tools":
        raise NoPlaceError("additional_tools")
    if item.get("type") == "function_call_output":
        text, parts = content_of(item["output"])
        return ToolMessage(text, parts=parts, tool_call_id=item["call_id"])
    text, parts = content_of(item["content"])
    return UserMessage(text, parts=parts) if item["role"] == "user" else SystemMessage(text)


def content_of(content: Any) -> tuple[str, tuple[Part, ...]]:
    """All text, and all else, of a content."""
    if isinstance(content, str):
        return content, ()
    texts = [part["text"] for part in content if part["type"].endswith("_text")]
    rest = [part for part in content if not part["type"].endswith("_text")]
    return "".join(texts), tuple(map(part_of, rest))


def part_of(part: Item) -> Part:
    if "file_id" in part:
        raise NoPlaceError("file_id")
    kind = "image" if part["type"] == "input_image" else "document"
    link: str = part.get("image_url") or part.get("file_url") or part.get("file_data")
    if not link.startswith("data:"):
        return Part(kind, url=link)
    media_type, _, data = link.removeprefix("data:").partition(";base64,")
    return Part(kind, data=base64.b64decode(data), media_type=media_type)


# --- normal forms


def canonical(body: Row) -> Row:
    """`body` in one spelling."""
    said: Row = {name: value for name, value in body.items() if value is not None}
    said.pop("store", None)
    if not said.get("stream"):
        said.pop("stream", None)
    said["include"] = {*said.get("include", ())} - {"reasoning.encrypted_content"}
    said["tools"] = [canonical_tool(tool) for tool in said.get("tools", ())]
    if said.get("reasoning"):
        said["reasoning"] = {name: v for name, v in said["reasoning"].items() if v is not None}
    if said.get("text", {}).get("format"):
        said["text"] = {**said["text"], "format": canonical_schema(said["text"]["format"])}
    given = said["input"]
    items = [{"role": "user", "content": given}] if isinstance(given, str) else given
    if instructions := said.pop("instructions", None):
        items = [{"role": "system", "content": instructions}, *items]
    said["input"] = list(canonical_items(items))
    return said


def canonical_tool(tool: Row) -> Row:
    if not plain_tool(tool):
        return tool
    return {name: value for name, value in tool.items() if name != "strict" and value}


def canonical_schema(said: Row) -> Row:
    return {**said, "strict": bool(said.get("strict"))}


def canonical_items(items: Iterable[Item]) -> Iterator[Any]:
    """Each item as a tuple; calls by number in place of ids, results by their call's.

    What hangs together by ids with reasoning that nobody can read is left out with it, and so
    are those ids: a turn with such reasoning goes out from its texts and calls.
    """
    waiting: dict[str, list[int]] = {}
    count = 0
    for given, group in groupby(items, is_given):
        turn = list(group)
        sealed = all(item.get("encrypted_content") for item in turn if kind(item) == "reasoning")
        for item in turn:
            role = item.get("role")
            if kind(item) == "function_call_output":
                yield "result", waiting[item["call_id"]].pop(0), content_of(item["output"])
            elif given:
                yield "user" if role == "user" else "system", content_of(item["content"])
            elif kind(item) == "message":
                text, _ = content_of(item["content"])
                if text:
                    yield role, text
            elif kind(item) == "function_call":
                waiting.setdefault(item["call_id"], []).append(count)
                yield "call", count, item["name"], item["arguments"] or "{}"
                count += 1
            elif sealed:
                yield kind(item), item.get("encrypted_content") or item.get("id")


def kind(item: Item) -> str:
    found: str = item.get("type", "message")
    return found
