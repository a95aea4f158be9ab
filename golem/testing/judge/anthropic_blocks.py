"""What may stand in one content block of a Messages request. Pure.

The shapes of §1.3 of the wire formats: texts, media, calls, results, thinking. What the provider
made itself and only it understands (server-side tools, compactions, what came later) is not
looked into: it goes back as it came.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from golem.testing.judge.anthropic_words import Findings
from golem.testing.judge.findings import JSON, is_array, is_object, members
from golem.testing.judge.media_rules import is_address, is_base64

CALL_ID: Final = "^[a-zA-Z0-9_-]+$"
TOOL_NAME: Final = "^[a-zA-Z0-9_-]{1,128}$"
SERVER_ID: Final = "^srvtoolu_[a-zA-Z0-9_]+$"
THOUGHTS: Final = ("thinking", "redacted_thinking")
RESULT: Final = "tool_result"
CALL: Final = "tool_use"

_IMAGES: Final = ("image/jpeg", "image/png", "image/gif", "image/webp")
_CACHED: Final = frozenset({"type", "cache_control"})
_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "text": _CACHED | {"text", "citations"},
    "image": _CACHED | {"source", "transformations"},
    "document": _CACHED | {"source", "title", "context", "citations"},
    "search_result": _CACHED | {"source", "title", "content", "citations"},
    RESULT: _CACHED | {"tool_use_id", "content", "is_error"},
    "container_upload": _CACHED | {"file_id"},
    "tool_reference": _CACHED | {"tool_name"},
    "tool_addition": _CACHED | {"tool"},
}
"""What a caller's blocks may hold. Blocks of the assistant are the provider's own."""

_ALLOWED: Final[Mapping[str, tuple[str, ...]]] = {
    "user": ("container_upload", "document", "image", "search_result", "text", RESULT),
    "system": ("text", "tool_addition"),
    RESULT: ("document", "image", "search_result", "text", "tool_reference"),
}
_NOT_THE_ASSISTANTS: Final = ("container_upload", "document", "image", "search_result")


def server_use(block: JSON) -> bool:
    """Whether a block is a use of a tool that the server runs."""
    return str(block.get("type")).endswith("_tool_use") or block.get("type") == "server_tool_use"


def server_result(block: JSON) -> bool:
    """Whether a block is the result of a tool that the server runs."""
    return str(block.get("type")).endswith("_tool_result")


def judge_block(role: str, block: Any, place: str, findings: Findings) -> None:
    """One block in a message of `role`, or (``tool_result``) in the content of a result."""
    if not is_object(block):
        findings.wrong_type(place, "a valid dictionary or object to extract fields from")
        return
    kind = block.get("type")
    if not isinstance(kind, str):
        text = "Unable to extract tag using discriminator 'type'"
        findings.add("block_type", place, text)
    elif not _fits(role, kind):
        _misplaced(role, kind, place, findings)
    else:
        _judge_known(role, kind, block, f"{place}.{kind}", findings)


def _fits(role: str, kind: str) -> bool:
    if role == "assistant":
        return kind not in (RESULT, *_NOT_THE_ASSISTANTS)
    return kind in _ALLOWED[role]


def _misplaced(role: str, kind: str, place: str, findings: Findings) -> None:
    if kind == CALL or kind in THOUGHTS:
        text = f"`{kind}` blocks can only be in `assistant` messages"
    elif kind == RESULT:
        text = f"`{RESULT}` blocks can only be in `user` messages"
    else:
        known = ", ".join(f"'{word}'" for word in _ALLOWED.get(role, ("text", *THOUGHTS, CALL)))
        text = f"Input tag '{kind}' found using 'type' does not match any of the expected tags: "
        text += known
    findings.add("block_type", place, text)


def _judge_known(role: str, kind: str, block: JSON, place: str, findings: Findings) -> None:
    if role != "assistant":
        for name in block:
            if name not in _MEMBERS[kind]:
                findings.unknown(f"{place}.{name}")
    match kind:
        case "text":
            judge_text(block.get("text"), place, findings)
        case "image" | "document":
            _judge_source(kind, block.get("source"), f"{place}.source", findings)
        case "tool_use":
            _judge_call(block, place, findings)
        case "tool_result":
            _judge_result(block, place, findings)
        case "thinking" | "redacted_thinking":
            _judge_thought(kind, block, place, findings)
        case "server_tool_use":
            _judge_id(block.get("id"), SERVER_ID, f"{place}.id", findings)
        case _:
            pass  # the provider's own


def judge_text(value: object, place: str, findings: Findings) -> None:
    """A text, which says something."""
    if value is None:
        findings.missing(f"{place}.text")
    elif not isinstance(value, str):
        findings.wrong_type(f"{place}.text", "a valid string")
    elif not value:
        text = "messages: text content blocks must be non-empty"
        findings.add("blank_text", place, text, bare=True)
    elif not value.strip():
        text = "messages: text content blocks must contain non-whitespace text"
        findings.add("blank_text", place, text, bare=True)


# --- calls, results, thinking


def _judge_id(value: object, pattern: str, place: str, findings: Findings) -> None:
    if not isinstance(value, str):
        findings.wrong_type(place, "a valid string")
    elif not re.fullmatch(pattern.strip("^$"), value):
        findings.pattern("call_id", place, pattern)


def _judge_call(block: JSON, place: str, findings: Findings) -> None:
    _judge_id(block.get("id"), CALL_ID, f"{place}.id", findings)
    judge_name(block.get("name"), f"{place}.name", findings)
    if "input" not in block:
        findings.missing(f"{place}.input")
    elif not is_object(block["input"]):
        findings.add("arguments", f"{place}.input", "Input should be a valid dictionary")


def judge_name(value: object, place: str, findings: Findings) -> None:
    """The name of a tool."""
    if not isinstance(value, str):
        findings.wrong_type(place, "a valid string")
    elif not re.fullmatch(TOOL_NAME.strip("^$"), value):
        findings.pattern("name", place, TOOL_NAME)


def _judge_result(block: JSON, place: str, findings: Findings) -> None:
    _judge_id(block.get("tool_use_id"), CALL_ID, f"{place}.tool_use_id", findings)
    content, failed = block.get("content"), block.get("is_error")
    if failed not in (None, True, False):
        findings.wrong_type(f"{place}.is_error", "a valid boolean")
    if content is None or isinstance(content, str):
        if failed is True and not (content or "").strip():
            text = "content cannot be empty if `is_error` is true"
            findings.add("failed_result", place, text)
        return
    if not is_array(content):
        findings.wrong_type(f"{place}.content", "a valid list")
        return
    if not content:
        findings.add("empty_content", f"{place}.content", "content must not be an empty list")
    for number, part in enumerate(content):
        judge_block(RESULT, part, f"{place}.content.{number}", findings)
    if failed is True and any(members(part).get("type") != "text" for part in content):
        text = "all content must be type `text` if `is_error` is true"
        findings.add("failed_result", place, text)


def _judge_thought(kind: str, block: JSON, place: str, findings: Findings) -> None:
    names = ("thinking", "signature") if kind == "thinking" else ("data",)
    for name in names:
        if name not in block:
            findings.missing(f"{place}.{name}")
        elif not isinstance(block[name], str):
            findings.wrong_type(f"{place}.{name}", "a valid string")
        elif not block[name] and name != "thinking":
            text = f"Invalid `{name}` in `{kind}` block"
            findings.add("signature", place.removesuffix(f".{kind}"), text)
    if block.get("cache_control") is not None:
        findings.unknown(f"{place}.cache_control")


# --- media


def _judge_source(kind: str, source: object, place: str, findings: Findings) -> None:
    found = members(source)
    match found.get("type"):
        case "base64":
            known: tuple[str, ...] = _IMAGES if kind == "image" else ("application/pdf",)
            if found.get("media_type") not in known:
                findings.wrong_value("media_type", f"{place}.base64.media_type", known)
            if not is_base64(found.get("data")):
                findings.add("media_data", f"{place}.base64.data", "Invalid base64 data")
        case "url":
            if not is_address(str(found.get("url"))):
                text = "Only HTTPS URLs are supported"
                findings.add("media_link", f"{place}.url.url", text)
        case "file":
            if not found.get("file_id"):
                findings.missing(f"{place}.file.file_id")
        case "text" if kind == "document":
            if found.get("media_type") != "text/plain":
                findings.wrong_value("media_type", f"{place}.text.media_type", ("text/plain",))
            if not isinstance(found.get("data"), str) or not found["data"]:
                findings.add("media_data", f"{place}.text.data", "Text must be non-empty")
        case "content" if kind == "document":
            pass  # blocks for citing
        case _:
            known = ("base64", "file", "url")
            if kind == "document":
                known = ("base64", "content", "file", "text", "url")
            findings.wrong_value("source_type", f"{place}.type", known)
