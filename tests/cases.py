"""Loaders of the executable cases under ``data/cases``: their neutral form as golem messages.

Two files, two spellings. `vectors.json` uses the durable JSON names, with a call's arguments as a
value (`args`) or as exact text (`argsRaw`). `field-reports.json` uses the same names with the
argument text under `arguments` and everything beside the text under `parts`.
"""

from __future__ import annotations

import base64
import json
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from golem import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
)

Case = dict[str, Any]

CASES = Path(__file__).parent / "data" / "cases"

STAMPS = frozenset({"synthesized", "interrupted"})
"""Members of the neutral form that describe a message and are not stored."""


class NotApplicableError(Exception):
    """The case relies on what the contract refuses: a role that does not exist."""


@cache
def _read(name: str) -> list[Case]:
    cases: list[Case] = json.loads((CASES / name).read_text())
    return cases


def vectors(*ops: str) -> list[Case]:
    """The conformance cases of these operations."""
    return [case for case in _read("vectors.json") if case["op"] in ops]


def field_reports(*ops: str) -> list[Case]:
    """The cases rebuilt from bug reports, of these operations."""
    return [case for case in _read("field-reports.json") if case["op"] in ops]


def name_of(case: Case) -> str:
    """How a case is called in test ids."""
    name: str = case.get("name") or case["id"]
    return name


def messages(neutral: list[Case]) -> list[Message]:
    """The golem messages of a case's history, in either spelling."""
    return [message(item) for item in neutral]


def message(neutral: Case) -> Message:
    """One message. Fields that its role does not have are left out."""
    common = {
        "content": neutral.get("content", "") + _text_of_parts(neutral),
        "run_id": neutral.get("runId", ""),
        "conversation_id": neutral.get("conversationId", ""),
        "unknown": _unknown(neutral),
    }
    match neutral["role"]:
        case "system":
            return SystemMessage(**common)
        case "user":
            return UserMessage(**common, parts=_media(neutral))
        case "assistant":
            return AssistantMessage(
                **common,
                parts=_media(neutral),
                tool_calls=tuple(_call(item, neutral) for item in neutral.get("toolCalls") or ()),
                thinking=_thinking(neutral),
            )
        case "tool":
            return ToolMessage(
                **common,
                parts=_media(neutral),
                tool_call_id=neutral.get("toolCallId", ""),
                tool_name=neutral.get("toolName", ""),
                failed=neutral.get("failed", False),
            )
        case role:
            raise NotApplicableError(f"role {role!r}")


def argument_text(call: Case) -> str:
    """The exact argument text that a call of a case stands for; absent is empty."""
    if "arguments" in call:
        return str(call["arguments"])
    if "argsRaw" in call:
        return str(call["argsRaw"])
    if "args" in call:
        return json.dumps(call["args"], separators=(",", ":"), ensure_ascii=False)
    return ""


def part(neutral: Case) -> Part:
    """A piece of media; `data` is base64 in the cases."""
    return Part(
        neutral.get("kind", neutral.get("type", "")),
        url=neutral.get("url", ""),
        data=base64.b64decode(neutral.get("data", "")),
        media_type=neutral.get("mediaType", ""),
    )


def thinking(neutral: Case) -> Thinking:
    """A block of reasoning, readable or redacted."""
    return Thinking(
        text=neutral.get("text", ""),
        signature=neutral.get("signature", ""),
        redacted=neutral.get("redacted", neutral.get("data", neutral.get("encrypted", ""))),
        provider=neutral.get("provider", ""),
        id=neutral.get("itemId", neutral.get("id", "")),
    )


_KNOWN = STAMPS | {
    *("role", "content", "parts", "toolCalls", "toolCallId", "toolName", "failed", "thinking"),
    *("native", "runId", "conversationId", "seal"),
}


def _unknown(neutral: Case) -> UnknownMembers:
    extra = {name: json.dumps(value).encode() for name, value in neutral.items()}
    return UnknownMembers({name: text for name, text in extra.items() if name not in _KNOWN})


def _typed(neutral: Case) -> list[tuple[str, Case]]:
    return [(item.get("type", "media"), item) for item in neutral.get("parts") or ()]


def _text_of_parts(neutral: Case) -> str:
    """Text parts, and native values as a tool's result would spell them."""
    found = ""
    for kind, item in _typed(neutral):
        if kind == "text":
            found += item["text"]
        elif kind == "json":
            value = eval(item["valueExpr"], {"__builtins__": {}, "float": float})
            found += msgspec.json.encode(value).decode()
    return found


def _media(neutral: Case) -> tuple[Part, ...]:
    media = ("media", "image", "document", "audio", "video")
    return tuple(part(item) for kind, item in _typed(neutral) if kind in media)


def _thinking(neutral: Case) -> tuple[Thinking, ...]:
    kinds = ("thinking", "redacted_thinking")
    stamped = [item for kind, item in _typed(neutral) if kind in kinds]
    return tuple(thinking(item) for item in [*(neutral.get("thinking") or ()), *stamped])


def _call(neutral: Case, owner: Case) -> ToolCall:
    marks = [item for kind, item in _typed(owner) if kind == "toolCall"]
    signatures = [mark.get("signature", "") for mark in marks if mark["id"] == neutral.get("id")]
    return ToolCall.of(
        neutral.get("id", ""),
        neutral.get("name", ""),
        argument_text(neutral),
        neutral.get("signature") or next(iter(signatures), ""),
    )
