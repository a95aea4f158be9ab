"""What may stand in one content block of a Converse request. Pure. §1.5 of the wire formats."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from golem.testing.judge.bedrock_families import MEDIA, FamilyRules
from golem.testing.judge.bedrock_words import Findings
from golem.testing.judge.findings import JSON, elements, is_array, is_object, members
from golem.testing.judge.media_rules import is_base64

CALL_ID: Final = "[a-zA-Z0-9_.:-]+"
TOOL_NAME: Final = "[a-zA-Z0-9_-]+"
LONGEST: Final = 64
CALL: Final = "toolUse"
RESULT: Final = "toolResult"
REASONING: Final = "reasoningContent"

_DOCUMENT_NAME: Final = r"[A-Za-z0-9()\[\]-]+( [A-Za-z0-9()\[\]-]+)*"
_PLACE: Final = "s3://.+"
_USERS: Final = frozenset({"text", RESULT, "guardContent", "cachePoint", "searchResult", *MEDIA})
_ASSISTANTS: Final = frozenset(
    {"text", CALL, RESULT, REASONING, "citationsContent", "cachePoint", "guardContent"}
)
_SYSTEMS: Final = frozenset({"text", "cachePoint", "guardContent", "toolAddition", "toolRemoval"})
_RESULTS: Final = frozenset({"json", "text", "image", "document", "video", "searchResult"})
_KINDS: Final[Mapping[str, frozenset[str]]] = {
    "user": _USERS,
    "assistant": _ASSISTANTS,
    "system": _SYSTEMS,
    RESULT: _RESULTS,
}
_FORMATS: Final[Mapping[str, frozenset[str]]] = {
    "image": frozenset({"png", "jpeg", "gif", "webp"}),
    "document": frozenset({"pdf", "csv", "doc", "docx", "xls", "xlsx", "html", "txt", "md"}),
    "video": frozenset({"mkv", "mov", "mp4", "webm", "flv", "mpeg", "mpg", "wmv", "three_gp"}),
    "audio": frozenset(
        {
            *("mp3", "opus", "wav", "aac", "flac", "mp4", "ogg", "mkv", "mka", "x-aac", "m4a"),
            *("mpeg", "mpga", "pcm", "webm"),
        }
    ),
}


def kind_of(block: Any) -> str:
    """The one member of a block; empty for what is no block."""
    return str(next(iter(block))) if is_object(block) and len(block) == 1 else ""


def own_use(block: Any) -> bool:
    """Whether a block is a use of a tool that the service runs itself."""
    return members(members(block).get(CALL)).get("type") == "server_tool_use"


def judge_block(role: str, block: Any, place: str, family: FamilyRules, findings: Findings) -> None:
    """One block in a message of `role`, or (``toolResult``) in the content of a result."""
    kind = kind_of(block)
    if not kind:
        text = f"The ContentBlock object at {place} must set exactly one member."
        findings.add("block_kind", place, text)
    elif kind not in _KINDS[role]:
        _misplaced(role, kind, place, findings)
    elif kind in MEDIA:
        _judge_media(role, kind, block[kind], place, family, findings)
    else:
        _judge_known(role, kind, block[kind], place, family, findings)


def _misplaced(role: str, kind: str, place: str, findings: Findings) -> None:
    if role == "assistant" and kind in MEDIA:
        text = f"The {kind} block at {place} is only supported in user messages."
    elif role == "user" and kind == REASONING:
        text = "User messages cannot contain reasoning content. Please remove the reasoning content"
        text += " and try again."
    else:
        text = f"The block at {place} sets an unknown or misplaced member: {kind}."
    findings.add("block_kind", place, text)


def _judge_known(
    role: str, kind: str, value: Any, place: str, family: FamilyRules, findings: Findings
) -> None:
    match kind:
        case "text" if not isinstance(value, str):
            findings.wrong_type(f"{place}.text", "a string")
        case "text" if not value.strip() and role != RESULT:
            findings.blank("ContentBlock", place)
        case "toolUse":
            _judge_call(members(value), f"{place}.{CALL}", findings)
        case "toolResult":
            _judge_result(role, members(value), f"{place}.{RESULT}", family, findings)
        case "reasoningContent":
            _judge_thought(members(value), place, family, findings)
        case "cachePoint":
            judge_mark(value, place, family, findings)
        case "json" if not is_object(value) and not is_array(value):
            findings.wrong_type(f"{place}.json", "an object")
        case _:
            pass


# --- calls, results, thinking


def judge_word(rule: str, value: object, pattern: str, place: str, findings: Findings) -> None:
    """An id or a name: its characters and its length."""
    if not isinstance(value, str):
        findings.missing(place)
    elif not value:
        bound = "have length greater than or equal to 1"
        findings.constraint(rule, place, value, bound)
    elif len(value) > LONGEST:
        bound = f"have length less than or equal to {LONGEST}"
        findings.constraint(rule, place, value, bound)
    elif not re.fullmatch(pattern, value):
        bound = f"satisfy regular expression pattern: {pattern}"
        findings.constraint(rule, place, value, bound)


def _judge_call(call: JSON, place: str, findings: Findings) -> None:
    judge_word("call_id", call.get("toolUseId"), CALL_ID, f"{place}.toolUseId", findings)
    judge_word("name", call.get("name"), TOOL_NAME, f"{place}.name", findings)
    if not is_object(call.get("input")):
        text = f"The format of the value at {place}.input is invalid. Provide a json object for the"
        text += " field and try again."
        findings.add("arguments", f"{place}.input", text)
    for name in call:
        if name not in ("toolUseId", "name", "input", "type"):
            findings.unknown(f"{place}.{name}")


def _judge_result(
    role: str, result: JSON, place: str, family: FamilyRules, findings: Findings
) -> None:
    judge_word("call_id", result.get("toolUseId"), CALL_ID, f"{place}.toolUseId", findings)
    content, status = result.get("content"), result.get("status")
    if not is_array(content):
        findings.missing(f"{place}.content")
    if role == "assistant":
        return  # the service's own
    for number, block in enumerate(elements(content)):
        judge_block(RESULT, block, f"{place}.content.{number}", family, findings)
    if status not in (None, "success", "error"):
        findings.constraint(
            "status", f"{place}.status", status, "satisfy enum value set: [success, error]"
        )
    if status is not None and not family.status:
        findings.no_field("status", f"{place}.status", "status")
    if status == "error" and not content:
        text = (
            f"The content field in the ToolResultBlock object at {place} is empty although its"
            " status is error. Add a ToolResultContentBlock object and try again."
        )
        findings.add("failed_result", place, text)


def _judge_thought(value: JSON, place: str, family: FamilyRules, findings: Findings) -> None:
    if "redactedContent" in value:
        if not is_base64(value["redactedContent"]):
            findings.wrong_type(f"{place}.{REASONING}.redactedContent", "base64")
        return
    readable = members(value.get("reasoningText"))
    if not isinstance(readable.get("text"), str):
        findings.missing(f"{place}.{REASONING}.reasoningText.text")
    if family.signed and not readable.get("signature"):
        findings.add("signature", place, f"{place}.thinking.signature: Field required")


def judge_mark(mark: object, place: str, family: FamilyRules, findings: Findings) -> None:
    """The mark of a prompt cache."""
    found = members(mark)
    if found.get("type") != "default" or found.get("ttl") not in (None, "5m", "1h"):
        findings.constraint("cache_mark", place, mark, "satisfy enum value set: [default]")
    if not family.marks:
        findings.no_field("cache_mark", place, "cachePoint")


# --- media


def _judge_media(
    role: str, kind: str, value: Any, place: str, family: FamilyRules, findings: Findings
) -> None:
    found, source = members(value), members(members(value).get("source"))
    if kind not in (family.result_media if role == RESULT else family.media):
        findings.no_block(place, kind)
        return
    spelled = str(found.get("format")).rpartition("/")[2]  # `video/mp4` was taken
    if spelled not in _FORMATS[kind]:
        known = ", ".join(sorted(_FORMATS[kind]))
        bound = f"satisfy enum value set: [{known}]"
        findings.constraint("media_type", f"{place}.{kind}.format", found.get("format"), bound)
    if "s3Location" in source:
        uri = members(source["s3Location"]).get("uri")
        if not re.fullmatch(_PLACE, str(uri)):
            bound = f"satisfy regular expression pattern: {_PLACE}"
            findings.constraint("media_link", f"{place}.{kind}.source", uri, bound)
        elif kind not in family.s3:
            findings.no_field("media_link", place, "s3Uri")
    elif "bytes" in source:
        if not is_base64(source["bytes"]):
            findings.add("media_data", place, f"The {kind} at {place} is not valid base64.")
    elif kind != "document" or not {"text", "content"} & set(source):
        findings.missing(f"{place}.{kind}.source")
    if kind == "document" and not re.fullmatch(_DOCUMENT_NAME, str(found.get("name", ""))):
        text = (
            "The document file name can only contain alphanumeric characters, whitespace"
            " characters, hyphens, parentheses, and square brackets. The name can't contain more"
            " than one consecutive whitespace character."
        )
        findings.add("document_name", f"{place}.{kind}.name", text)
