"""What Gemini refuses about the contents of a request. Pure.

Contents are read already: names are in JSON's spelling and values of their types
(`gemini_proto`). Three rules are stricter than what is on record, so that nothing hides: results
name calls of their turn, an id is used once in a turn, and the current turn, whose calls have to
be signed, goes back to the last content that is the user's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

from golem.testing.judge.findings import JSON, elements, members
from golem.testing.judge.gemini_servers import NAME, NAME_TEXT, RESULT_TYPES, GeminiRules
from golem.testing.judge.gemini_words import LEARN_SIGNATURES, Findings

_USER: Final = "user"
_MODEL: Final = "model"
_ROLES: Final = frozenset({"", _USER, _MODEL, "function"})
DATA: Final = (
    *("text", "inlineData", "fileData", "functionCall", "functionResponse"),
    *("executableCode", "codeExecutionResult", "toolCall", "toolResponse"),
)
"""What a part is; it is one of them."""

_TYPES: Final = ("image/", "audio/", "video/", "text/", "application/pdf")

CALL_ORDER: Final = (
    "Please ensure that function call turn comes immediately after a user turn or after a function"
    " response turn."
)
RESULT_ORDER: Final = (
    "Please ensure that function response turn comes immediately after a function call turn."
)
RESULT_COUNT: Final = (
    "Please ensure that the number of function response parts is equal to the number of function"
    " call parts of the function call turn."
)
MIXED: Final = (
    "Please ensure that function call turn contains at least one function_call part which can not"
    " be mixed with function_response parts."
)
ENDS: Final = (
    "Please ensure that single turn requests end with a user role or the role field is empty."
)
BEGINS: Final = "Please ensure that multiturn requests begin with a user role."
CORRUPTED: Final = "Corrupted thought signature."


def judge_contents(
    contents: list[JSON],
    rules: GeminiRules,
    findings: Findings,
    made_with: Mapping[str, str],
) -> None:
    """Roles, parts, the pairing of calls and results, signatures, names, media.

    `made_with`: which part each signature of the server's own answers was made for.
    """
    if not contents:
        findings.add("empty_contents", "contents", rules.words.no_contents)
        return
    for index, content in enumerate(contents):
        place = f"contents[{index}]"
        if content.get("role", "") not in _ROLES:
            findings.add("role", f"{place}.role", "Please use a valid role: user, model.")
        _judge_parts(elements(content.get("parts")), place, rules, findings)
        _judge_signed(elements(content.get("parts")), place, findings, made_with)
    _judge_order(contents, findings)
    if rules.checks_signatures:
        _judge_current_turn(contents, findings)


# --- parts


def _judge_parts(parts: list[JSON], place: str, rules: GeminiRules, findings: Findings) -> None:
    if not parts:
        findings.add("empty_parts", f"{place}.parts", rules.words.no_parts.format(place=place))
    for number, part in enumerate(parts):
        where = f"{place}.parts[{number}]"
        kinds = [name for name in DATA if name in part]
        if not kinds:
            text = "required oneof field 'data' must have one initialized field"
            findings.request("part_data", f"{where}.data", text)
        elif len(kinds) > 1:
            text = f"Invalid value at '{where}' (oneof), oneof field 'data' is already set."
            findings.field("part_data", where, f"{text} Cannot set '{kinds[1]}'")
        else:
            judge = _PARTS.get(kinds[0])
            if judge is not None:
                judge(part[kinds[0]], f"{where}.{kinds[0]}", rules, findings)


def _judge_call(call: JSON, place: str, rules: GeminiRules, findings: Findings) -> None:
    _judge_name(call.get("name", ""), f"{place}.name", findings)


def _judge_response(response: JSON, place: str, rules: GeminiRules, findings: Findings) -> None:
    _judge_name(response.get("name", ""), f"{place}.name", findings)
    if "response" not in response:
        findings.request("result_body", f"{place}.response", "response must be set.")
    for number, part in enumerate(elements(response.get("parts"))):
        where = f"{place}.parts[{number}]"
        if not rules.media_in_results:
            text = "Multimodal function responses are not supported for this model."
            findings.add("result_media", where, text)
            continue
        medium = members(part.get("inlineData", part.get("fileData")))
        if not medium:
            text = "required oneof field 'data' must have one initialized field"
            findings.request("part_data", f"{where}.data", text)
        elif _bare(medium) not in RESULT_TYPES:
            findings.add("mime_type", where, f"Unsupported MIME type: {medium.get('mimeType')}")


def _judge_inline(blob: JSON, place: str, rules: GeminiRules, findings: Findings) -> None:
    _judge_type(blob, place, findings)
    if not blob.get("data"):
        findings.request("media_data", f"{place}.data", "data must not be empty.")


def _judge_file(file: JSON, place: str, rules: GeminiRules, findings: Findings) -> None:
    if file.get("mimeType") or rules.vertex:
        _judge_type(file, place, findings)
    scheme, separator, rest = str(file.get("fileUri", "")).partition("://")
    if scheme not in ("http", "https", "gs") or not separator or not rest:
        text = f"Invalid or unsupported file uri: {str(file.get('fileUri', ''))[:80]}"
        findings.add("media_link", f"{place}.fileUri", text)


def _judge_type(medium: JSON, place: str, findings: Findings) -> None:
    if not _bare(medium).startswith(_TYPES):
        text = f"Unsupported MIME type: {medium.get('mimeType', '')}"
        findings.add("mime_type", f"{place}.mimeType", text)


def _bare(medium: JSON) -> str:
    return str(medium.get("mimeType", "")).partition(";")[0].strip().lower()


_PARTS: Final[Mapping[str, Callable[[Any, str, GeminiRules, Findings], None]]] = {
    "functionCall": _judge_call,
    "functionResponse": _judge_response,
    "inlineData": _judge_inline,
    "fileData": _judge_file,
}


def _judge_name(name: str, place: str, findings: Findings) -> None:
    if not name:
        findings.request("name", place, "Name cannot be empty.")
    elif not NAME.fullmatch(name):
        findings.request("name", place, NAME_TEXT)


# --- the order of contents


def _judge_order(contents: list[JSON], findings: Findings) -> None:
    if contents[0].get("role") == _MODEL and not _calls(contents[0]):
        findings.add("first_content", "contents[0]", BEGINS)
    if contents[-1].get("role") == _MODEL and not _calls(contents[-1]):
        findings.add("last_content", f"contents[{len(contents) - 1}]", ENDS)
    before: JSON = {"role": _MODEL}  # nobody has spoken: a call may not come first
    for index, (content, after) in enumerate(pairwise([*contents, JSON()])):
        place = f"contents[{index}]"
        if _calls(content):
            _judge_call_turn(content, before, after, place, findings)
        if _responses(content):
            _judge_response_turn(content, before, place, findings)
        before = content


def _judge_call_turn(
    content: JSON, before: JSON, after: JSON, place: str, findings: Findings
) -> None:
    if content.get("role") != _MODEL or _responses(content):
        findings.add("mixed_turn", place, MIXED)
    if before.get("role") == _MODEL:
        findings.add("call_order", place, CALL_ORDER)
    if not _responses(after):
        findings.add("unanswered_call", place, RESULT_COUNT)
    ids = [call["id"] for call in _calls(content) if call.get("id")]
    for call_id in {call_id for call_id in ids if ids.count(call_id) > 1}:
        findings.add("repeated_id", place, f"Duplicate function call id '{call_id}' in one turn.")


def _judge_response_turn(content: JSON, before: JSON, place: str, findings: Findings) -> None:
    calls, responses = _calls(before), _responses(content)
    if content.get("role") == _MODEL:
        findings.add("mixed_turn", place, MIXED)
    if not calls:
        findings.add("orphan_result", place, RESULT_ORDER)
    elif len(calls) != len(responses):
        findings.add("result_count", place, RESULT_COUNT)
    else:
        for response in responses:
            match = next((call for call in calls if _answers(response, call)), None)
            if match is None:
                text = f"Function response '{response.get('name')}' matches no function call."
                findings.add("result_match", place, text)
            else:
                calls.remove(match)


def _answers(response: JSON, call: JSON) -> bool:
    named = response.get("name") == call.get("name")
    return named and response.get("id", "") in ("", call.get("id", ""))


def _calls(content: JSON) -> list[JSON]:
    parts = elements(content.get("parts"))
    return [part["functionCall"] for part in parts if "functionCall" in part]


def _responses(content: JSON) -> list[JSON]:
    parts = elements(content.get("parts"))
    return [part["functionResponse"] for part in parts if "functionResponse" in part]


# --- thought signatures


def signed_for(part: JSON) -> str:
    """What a signature is bound to: what its part says."""
    call = members(part.get("functionCall"))
    return f"{call.get('name')} {call.get('args')}" if call else str(part.get("text", ""))


def _judge_signed(
    parts: list[JSON], place: str, findings: Findings, made_with: Mapping[str, str]
) -> None:
    """A signature of the server's own goes back in the part it came in."""
    for number, part in enumerate(parts):
        made_for = made_with.get(part.get("thoughtSignature", ""))
        if made_for is not None and made_for != signed_for(part):
            where = f"{place}.parts[{number}].thoughtSignature"
            findings.add("moved_signature", where, CORRUPTED)


def _judge_current_turn(contents: list[JSON], findings: Findings) -> None:
    """The first call of each step since the user last spoke has a signature."""
    begin = max((i for i, content in enumerate(contents) if _is_prompt(content)), default=0)
    for index, content in enumerate(contents[begin:], begin):
        parts = elements(content.get("parts"))
        first = next((part for part in parts if "functionCall" in part), None)
        if first is not None and not first.get("thoughtSignature"):
            text = (
                "Function call is missing a thought_signature in functionCall parts. This is"
                " required for tools to work correctly, and missing thought_signature may lead to"
                " degraded model performance. Additional data, function call"
                f" `default_api:{first['functionCall'].get('name')}` , position {index + 1}."
                f" {LEARN_SIGNATURES}"
            )
            findings.add("missing_signature", f"contents[{index}]", text)


def _is_prompt(content: JSON) -> bool:
    """Whether a content is the user's own, and not the results of calls."""
    return content.get("role") != _MODEL and not _responses(content)
