"""Rules that Chat Completions and Responses share: tools, schemas, names, sampling. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from golem.testing.judge.findings import JSON, elements, is_array, is_object, members
from golem.testing.judge.openai_words import Findings

NAME: Final = re.compile(r"[a-zA-Z0-9_-]+")
NAME_PATTERN: Final = "^[a-zA-Z0-9_-]+$"
LONGEST_NAME: Final = 64

_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "presence_penalty": (-2, 2),
    "frequency_penalty": (-2, 2),
}
_COUNTS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_ONLY_WITH_TOOLS: Final = ("tool_choice", "parallel_tool_calls")


def judge_name(value: object, place: str, findings: Findings) -> None:
    """The name of a tool or of an output schema."""
    if not isinstance(value, str):
        findings.wrong_type(place, "a string", value)
    elif not value or len(value) > LONGEST_NAME:
        findings.length("name", place, value, LONGEST_NAME)
    elif not NAME.fullmatch(value):
        findings.pattern("name", place, NAME_PATTERN)


def judge_model(body: JSON, findings: Findings) -> None:
    """Which model is asked."""
    if not isinstance(body.get("model"), str) or not body["model"]:
        findings.add("required_member", "model", "you must provide a model parameter", param="")


def judge_members(
    body: JSON, known: frozenset[str], findings: Findings, *, place: str = ""
) -> None:
    """No member that the provider does not know."""
    for name in body:
        if name not in known:
            findings.unknown(f"{place}.{name}" if place else name)


def judge_sampling(body: JSON, findings: Findings) -> None:
    """Numbers inside their bounds."""
    for name, (least, most) in _RANGES.items():
        value = body.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            findings.wrong_type(name, "a decimal", value)
        elif not least <= value <= most:
            low = value < least
            text = (
                f"Invalid '{name}': decimal {'below minimum' if low else 'above maximum'} value."
                f" Expected a value {'>=' if low else '<='} {least if low else most},"
                f" but got {value} instead."
            )
            code = "decimal_below_min_value" if low else "decimal_above_max_value"
            findings.add("sampling", name, text, code=code)
    for name in _COUNTS:
        value = body.get(name)
        if value is not None and (not isinstance(value, int) or value < 1):
            text = (
                f"Invalid '{name}': integer below minimum value."
                f" Expected a value >= 1, but got {value} instead."
            )
            findings.add("sampling", name, text, code="integer_below_min_value")


def judge_tool_switches(body: JSON, findings: Findings, *, idle: tuple[str, ...]) -> None:
    """Nothing is said about tools where there are none, but for `idle` choices."""
    if body.get("tools"):
        return
    for name in _ONLY_WITH_TOOLS:
        if body.get(name) is not None and body.get(name) not in idle:
            text = (
                f"Invalid value for '{name}': '{name}' is only allowed when 'tools' are specified."
            )
            findings.add("tool_choice", name, text)


def judge_function(function: JSON, place: str, findings: Findings) -> str:
    """A function that a model may call. Returns its name.

    Where it does not say whether it is strict, a server may make it so, and then refuses nothing.
    """
    judge_name(function.get("name"), f"{place}.name", findings)
    name = str(function.get("name"))
    schema = function.get("parameters")
    if schema is not None and not is_object(schema):
        findings.wrong_type(f"{place}.parameters", "an object", schema)
    elif schema and schema.get("type") != "object":
        text = (
            f"Invalid schema for function '{name}': schema must be a JSON Schema of"
            f" 'type: \"object\"', got 'type: \"{schema.get('type')}\"'."
        )
        findings.add("schema", f"{place}.parameters", text, code="invalid_function_parameters")
    if function.get("strict"):
        judge_strict(
            schema,
            f"{place}.parameters",
            f"function '{name}'",
            "invalid_function_parameters",
            findings,
        )
    return name


def judge_strict(schema: object, place: str, owner: str, code: str, findings: Findings) -> None:
    """A schema in strict mode: every object closed, every property required."""
    waiting: list[tuple[str, Any]] = [("", schema)]
    while waiting:
        path, node = waiting.pop()
        if is_array(node):
            waiting.extend((path, item) for item in node)
        if not is_object(node):
            continue
        properties = node.get("properties")
        if node.get("type") == "object" or is_object(properties):
            fault = _fault_of_object(node, members(properties))
            if fault:
                text = f"Invalid schema for {owner}: In context=({path}), {fault}"
                findings.add("strict_schema", place, text, code=code)
        for name, item in members(properties).items():
            waiting.append((f"{path}{', ' if path else ''}'properties', '{name}'", item))
        waiting.extend((path, value) for name, value in node.items() if name in _HOLD_SCHEMAS)
        for name in ("$defs", "definitions"):
            waiting.extend((path, item) for item in members(node.get(name)).values())


_HOLD_SCHEMAS: Final = frozenset({"items", "anyOf", "oneOf", "allOf", "prefixItems", "not"})


def _fault_of_object(node: JSON, properties: JSON) -> str:
    if node.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    required = elements(node.get("required"))
    lost = [name for name in properties if name not in required]
    if lost:
        return (
            "'required' is required to be supplied and to be an array including every key in"
            f" properties. Missing '{lost[0]}'."
        )
    return ""
