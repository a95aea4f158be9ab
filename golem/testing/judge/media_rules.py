"""What may stand in the content of a message: texts, images, sound, documents. Pure."""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final
from urllib.parse import urlsplit

from golem.testing.judge.chat_servers import ChatRules
from golem.testing.judge.findings import members, one_of
from golem.testing.judge.openai_words import Findings
from golem.testing.judge.word_rules import IMAGE_DETAILS, judge_word

_TEXT: Final = frozenset({"text"})


def judge_chat_part(role: str, part: Any, place: str, rules: ChatRules, findings: Findings) -> None:
    """One content part of a message of Chat Completions."""
    allowed = {
        "user": rules.user_parts,
        "tool": rules.tool_parts,
        "assistant": rules.assistant_parts,
    }.get(role, _TEXT)
    kind = members(part).get("type")
    if not one_of(kind, allowed):
        message = place.partition(".")[0]
        if role == "tool":
            text = (
                f"Invalid '{message}'. Content blocks are expected to be either text or image_url"
                " type."
            )
            findings.add("part_type", place, text, param=message)
        else:
            findings.wrong_value("part_type", place, kind, tuple(sorted(allowed)))
        return
    value = part.get(kind)
    match kind:
        case "text" | "refusal":
            if not isinstance(value, str):
                findings.wrong_type(f"{place}.{kind}", "a string", value)
        case "image_url" | "video_url":
            url = value if isinstance(value, str) else members(value).get("url")
            judge_link(url, f"{place}.{kind}.url", kind.removesuffix("_url"), findings)
            if rules.openai_words:
                detail = members(value).get("detail")
                judge_word(detail, f"{place}.{kind}.detail", IMAGE_DETAILS, findings)
        case "input_audio":
            judge_sound(value, f"{place}.input_audio", findings)
        case "file":
            _judge_file(value, f"{place}.file", rules, findings)
        case _:
            pass  # a provider's own: thinking, references


def judge_link(url: Any, place: str, kind: str, findings: Findings) -> None:
    """An http(s) address, or inline data of the right kind."""
    if not isinstance(url, str) or not (is_address(url) or is_data(url, f"{kind}/")):
        text = (
            f"Failed to download {kind} from {str(url)[:80]}. Expected a base64-encoded data URL"
            f" with an {kind} MIME type or a http(s) address."
        )
        findings.add("media_link", place, text, code=f"invalid_{kind}_url")


def judge_sound(value: Any, place: str, findings: Findings) -> None:
    """Inline sound in a format that providers know."""
    sound = members(value)
    if sound.get("format") not in ("wav", "mp3"):
        findings.wrong_value("sound_format", f"{place}.format", sound.get("format"), ("wav", "mp3"))
    if not is_base64(sound.get("data")):
        text = f"Invalid '{place}.data': expected base64-encoded data."
        findings.add("sound_data", f"{place}.data", text, code="invalid_value")


def _judge_file(value: Any, place: str, rules: ChatRules, findings: Findings) -> None:
    file = members(value)
    data, name = file.get("file_data"), file.get("filename")
    if file.get("file_id"):
        return
    if data is None:
        findings.missing(f"{place}.file_id")
    elif not (is_data(str(data)) or (rules.file_urls and is_address(str(data)))):
        text = (
            f"Invalid '{place}.file_data': expected a base64-encoded data URL with a MIME type"
            " (e.g. 'data:application/pdf;base64,...')."
        )
        findings.add("file_data", f"{place}.file_data", text, code="invalid_value")
    if data is not None and not name:
        findings.missing(f"{place}.filename")


def is_address(url: str) -> bool:
    """Whether `url` is an http(s) address."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.netloc)


def is_data(url: str, kind: str = "") -> bool:
    """Whether `url` is a data URL in base64 of a media type that begins with `kind`."""
    head, comma, data = url.partition(",")
    media_type = head.removeprefix("data:").removesuffix(";base64")
    return (
        bool(comma)
        and head.startswith("data:")
        and head.endswith(";base64")
        and "/" in media_type
        and media_type.startswith(kind)
        and is_base64(data)
    )


def is_base64(data: Any) -> bool:
    """Whether `data` is the base64 of something."""
    try:
        return isinstance(data, str) and bool(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False
