"""Streams of Responses as servers send them: built from the output that they end with."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

Item = dict[str, Any]
Event = dict[str, Any]

_DELTAS = {
    "output_text": ("response.output_text", "content_index", "text"),
    "refusal": ("response.refusal", "content_index", "refusal"),
    "summary_text": ("response.reasoning_summary_text", "summary_index", "text"),
    "reasoning_text": ("response.reasoning_text", "content_index", "text"),
}


def sse(events: Iterable[Event], *, named: bool = True) -> bytes:
    """An event stream of JSON events."""
    text = ""
    for event in events:
        text += f"event: {event['type']}\n" if named else ""
        text += f"data: {json.dumps(event, separators=(',', ':'))}\n\n"
    return text.encode()


def response(output: Sequence[Item], **members: Any) -> Item:
    """A response object."""
    return {
        "id": "resp_1",
        "model": "m-1",
        "object": "response",
        "status": "completed",
        "output": list(output),
        "usage": {"input_tokens": 3, "output_tokens": 2},
        **members,
    }


def ending(output: Sequence[Item], **members: Any) -> Event:
    """The last event."""
    said = response(output, **members)
    return {"type": f"response.{said['status']}", "response": said}


def item_events(index: int, item: Item, size: int = 3) -> list[Event]:
    """The events of one item, whose texts come in pieces of `size`."""
    place = {"output_index": index, "item_id": item.get("id", "")}
    events = [added(index, item)]
    for member in ("summary", "content"):
        for number, part in enumerate(item.get(member) or ()):
            name, at, told = _DELTAS[part["type"]]
            where = {**place, at: number}
            text = part[told]
            events += pieces(name, text, size, where)
            events.append({"type": f"{name}.done", told: text, **where})
    if item["type"] == "function_call":
        name = "response.function_call_arguments"
        events += pieces(name, item["arguments"], size, place)
        events.append({"type": f"{name}.done", "arguments": item["arguments"], **place})
    if item["type"] == "custom_tool_call":
        events += pieces("response.custom_tool_call_input", item["input"], size, place)
    return [*events, {"type": "response.output_item.done", "output_index": index, "item": item}]


def added(index: int, item: Item) -> Event:
    """The event that opens an item."""
    empty = {"content": [], "summary": [], "arguments": "", "input": ""}
    opened = {name: empty.get(name, value) for name, value in item.items()}
    opened.pop("encrypted_content", None)
    opened["status"] = "in_progress"
    return {"type": "response.output_item.added", "output_index": index, "item": opened}


def pieces(name: str, text: str, size: int, where: Item) -> list[Event]:
    """The deltas of one text."""
    cuts = range(0, len(text), size)
    return [{"type": f"{name}.delta", "delta": text[at : at + size], **where} for at in cuts]


def stream_events(output: Sequence[Item], size: int = 3, **members: Any) -> list[Event]:
    """All events of an answer."""
    started = response([], status="in_progress", usage=None)
    events: list[Event] = [{"type": "response.created", "response": started}]
    for index, item in enumerate(output):
        events += item_events(index, item, size)
    return [*events, ending(output, **members)]
