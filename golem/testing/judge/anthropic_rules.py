"""The judge of Messages requests. Pure: a decoded body in, what is wrong with it out.

The rules are those of §1.0 (the column of Anthropic) and §1.3 of the wire formats, and hold a
request to what every model takes where its name tells nothing. Error texts are the provider's
where they are on record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem.testing.judge.anthropic_blocks import judge_block
from golem.testing.judge.anthropic_models import ModelRules, rules_of
from golem.testing.judge.anthropic_tools import judge_enforced, judge_tools
from golem.testing.judge.anthropic_turns import judge_turns, turns_of
from golem.testing.judge.anthropic_words import NUMBER, SURROGATE, Findings
from golem.testing.judge.findings import (
    JSON,
    Violation,
    elements,
    endless_numbers,
    half_characters,
    is_array,
    is_object,
    members,
)

VERSIONS: Final = ("2023-01-01", "2023-06-01", "2026-10-21")
LAST_SAMPLING_VERSION: Final = "2023-06-01"
"""The last version of the API that has `temperature`, `top_p` and ``top_k``."""

MOST_MESSAGES: Final = 100_000
MOST_MARKS: Final = 4
SMALLEST_BUDGET: Final = 1024

_PROMPT: Final = frozenset(
    {
        *("model", "messages", "system", "tools", "tool_choice", "thinking", "output_config"),
        *("cache_control", "context_management", "output_format", "speed", "thread", "compaction"),
    }
)
_BODY: Final = _PROMPT | {
    *("max_tokens", "stop_sequences", "stream", "metadata", "service_tier", "diagnostics"),
    *(
        "mcp_servers",
        "container",
        "inference_geo",
        "fallbacks",
        "temperature",
        "top_p",
        "top_k",
        "betas",
    ),
}
_SAMPLING: Final[Mapping[str, tuple[float, float]]] = {
    "temperature": (0, 1),
    "top_p": (0, 1),
    "top_k": (0, 2**31),
}
_MODES: Final = ("adaptive", "between_tools", "disabled", "enabled")
_EFFORTS: Final = ("high", "low", "max", "medium", "xhigh")


def judge_anthropic(
    body: Any,
    *,
    version: str = LAST_SAMPLING_VERSION,
    counts: bool = False,
    made_with: Mapping[str, str] | None = None,
    own_thinking: bool = False,
) -> list[Violation]:
    """Everything in a request body that Messages refuses; empty: it takes it.

    Args:
        body: decoded JSON.
        version: the ``anthropic-version`` of the request.
        counts: whether it asks for a count of tokens, at ``/messages/count_tokens``.
        made_with: what earlier answers of the provider said of their thinking
            (`AnthropicProvider.links`); such thinking has to come back as it was.
        own_thinking: whether thinking that is not among `made_with` is refused, as the provider
            refuses what others signed. No request alone shows who did.
    """
    findings = Findings()
    if not is_object(body):
        findings.wrong_type("", "a valid dictionary or object to extract fields from")
        return findings.found
    models = rules_of(body.get("model"))
    _judge_text(body, findings)
    _judge_members(body, findings, counts=counts)
    _judge_sampling(body, version, models, findings)
    _judge_thinking(body, models, findings)
    _judge_output(body, findings)
    _judge_system(body.get("system"), findings)
    judge_tools(body, models, findings, counts=counts)
    _judge_marks(body, findings)
    _judge_messages(body.get("messages"), models, findings)
    judge_turns(
        turns_of(elements(body.get("messages"))),
        thinking=str(members(body.get("thinking")).get("type")),
        prefill=models.prefill,
        made_with=made_with or {},
        own_thinking=own_thinking,
        findings=findings,
    )
    return findings.found


# --- the request around the messages


def _judge_text(body: JSON, findings: Findings) -> None:
    """No half of a surrogate pair and no number past a double's range, which no server reads."""
    if half_characters(body):
        findings.add("valid_utf8", "", SURROGATE)
    if endless_numbers(body):
        findings.add("number", "", NUMBER)


def _judge_members(body: JSON, findings: Findings, *, counts: bool) -> None:
    for name in body:
        if name not in (_PROMPT if counts else _BODY):
            findings.unknown(name)
    if body.get("model") is None:
        findings.missing("model")
    elif not isinstance(body["model"], str) or not body["model"]:
        findings.wrong_type("model", "a valid string")
    if counts:
        return
    most = body.get("max_tokens")
    if most is None:
        findings.missing("max_tokens")
    elif not isinstance(most, int) or isinstance(most, bool):
        findings.wrong_type("max_tokens", "a valid integer")
    elif most < 0:
        findings.add("sampling", "max_tokens", "Input should be greater than or equal to 0")
    if body.get("stream") not in (None, True, False):
        findings.wrong_type("stream", "a valid boolean")
    stop = body.get("stop_sequences")
    if stop is not None and not (is_array(stop) and all(isinstance(s, str) for s in stop)):
        findings.wrong_type("stop_sequences", "a valid list")


def _judge_sampling(body: JSON, version: str, models: ModelRules, findings: Findings) -> None:
    for name, (least, most) in _SAMPLING.items():
        value = body.get(name)
        if value is None:
            continue
        if version > LAST_SAMPLING_VERSION:
            findings.unknown(name)
        elif not models.sampling:
            text = f"`{name}` is deprecated for this model."
            findings.add("sampling", name, text, bare=True)
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            findings.wrong_type(name, "a valid number")
        elif not least <= value <= most:
            findings.add("sampling", name, f"range: {least}..{most}")


def _judge_thinking(body: JSON, models: ModelRules, findings: Findings) -> None:
    thinking = body.get("thinking")
    if thinking is None:
        return
    kind = members(thinking).get("type")
    if kind not in _MODES:
        findings.wrong_value("thinking", "thinking.type", _MODES)
    if kind != "enabled":
        return
    if not models.budget:
        text = '"thinking.type.enabled" is not supported for this model.'
        findings.add("thinking", "thinking.type", text, bare=True)
    budget, most = members(thinking).get("budget_tokens"), body.get("max_tokens")
    place = "thinking.enabled.budget_tokens"
    if not isinstance(budget, int) or isinstance(budget, bool):
        findings.missing(place)
    elif budget < SMALLEST_BUDGET:
        text = f"Input should be greater than or equal to {SMALLEST_BUDGET}"
        findings.add("thinking", place, text)
    elif isinstance(most, int) and most <= budget:
        text = "`max_tokens` must be greater than `thinking.budget_tokens`."
        findings.add("thinking", place, text, bare=True)


def _judge_output(body: JSON, findings: Findings) -> None:
    config = body.get("output_config")
    if config is not None and not is_object(config):
        findings.wrong_type("output_config", "a valid dictionary")
    effort = members(config).get("effort")
    if effort is not None and effort not in _EFFORTS:
        findings.wrong_value("effort", "output_config.effort", _EFFORTS)
    for place, wanted in (
        ("output_config.format", members(config).get("format")),
        ("output_format", body.get("output_format")),
    ):
        if wanted is None:
            continue
        if members(wanted).get("type") != "json_schema":
            findings.wrong_value("format", f"{place}.type", ("json_schema",))
        elif not is_object(wanted.get("schema")):
            findings.missing(f"{place}.schema")
        else:
            judge_enforced(wanted["schema"], f"{place}.schema", findings)


def _judge_system(system: object, findings: Findings) -> None:
    if system is None or isinstance(system, str):
        return
    if not is_array(system):
        findings.wrong_type("system", "a valid list")
    for number, block in enumerate(elements(system)):
        if members(block).get("type") != "text":
            findings.wrong_value("block_type", f"system.{number}.type", ("text",))
        else:
            judge_block("system", block, f"system.{number}", findings)


def _judge_marks(body: JSON, findings: Findings) -> None:
    """At most four marks for caches, of a known kind. §1.3 "Prompt caching"."""
    marks: list[object] = []
    waiting: list[tuple[str, object]] = [(n, v) for n, v in body.items() if n in _MARKED]
    while waiting:
        name, item = waiting.pop()
        if name == "cache_control" and item is not None:
            marks.append(item)
        elif is_object(item):
            waiting += [(n, v) for n, v in item.items() if n in _MARKED]
        elif is_array(item):
            waiting += [(name, each) for each in item]
    if len(marks) > MOST_MARKS:
        text = (
            f"A maximum of {MOST_MARKS} blocks with cache_control may be provided. Found"
            f" {len(marks)}."
        )
        findings.add("cache_marks", "", text)
    for mark in map(members, marks):
        if mark.get("type") != "ephemeral" or mark.get("ttl") not in (None, "5m", "1h"):
            text = "cache_control: Input should be of type 'ephemeral', for '5m' or '1h'"
            findings.add("cache_mark", "", text)


_MARKED: Final = frozenset({"cache_control", "system", "tools", "messages", "content"})
"""Members under which marks are looked for: not in arguments and schemas."""


# --- messages


def _judge_messages(messages: object, models: ModelRules, findings: Findings) -> None:
    if messages is None:
        findings.missing("messages")
    elif not is_array(messages):
        findings.wrong_type("messages", "a valid list")
    elif not messages:
        findings.add("empty_messages", "messages", "at least one message is required")
    elif len(messages) > MOST_MESSAGES:
        text = f"List should have at most {MOST_MESSAGES} items"
        findings.add("many_messages", "messages", text)
    for index, message in enumerate(elements(messages)):
        _judge_message(message, f"messages.{index}", models, findings)
    if models.system_messages:
        _judge_system_order([members(m).get("role") for m in elements(messages)], findings)


def _judge_system_order(roles: list[Any], findings: Findings) -> None:
    """Instructions between messages: behind the user, before the assistant or at the end."""
    places = [index for index, role in enumerate(roles) if role == "system"]
    for index in places:
        before, after = roles[:index][-1:], roles[index + 1 : index + 2]
        if before != ["user"] or after not in ([], ["assistant"]):
            text = (
                "`system` messages must follow a `user` message, and stand before an `assistant`"
                " message or at the end."
            )
            findings.add("role_order", f"messages.{index}", text)


def _judge_message(message: object, place: str, models: ModelRules, findings: Findings) -> None:
    if not is_object(message):
        findings.wrong_type(place, "a valid dictionary or object to extract fields from")
        return
    role, content = message.get("role"), message.get("content")
    roles = ("user", "assistant", *(("system",) if models.system_messages else ()))
    if role not in roles:
        findings.wrong_value("role", f"{place}.role", roles)
        return
    for name in message:
        if name not in ("role", "content"):
            findings.unknown(f"{place}.{name}")
    if content is None:
        findings.missing(f"{place}.content")
    elif not isinstance(content, str) and not is_array(content):
        findings.wrong_type(f"{place}.content", "a valid list")
    elif not content:
        findings.add("empty_message", place, f"{role} messages must have non-empty content")
    elif isinstance(content, str):
        if not content.strip():
            text = "messages: text content blocks must contain non-whitespace text"
            findings.add("blank_text", f"{place}.content", text, bare=True)
    else:
        for number, block in enumerate(content):
            judge_block(str(role), block, f"{place}.content.{number}", findings)
