"""What Messages refuses about tools, choices and schemas. Pure. §1.3 of the wire formats."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from golem.testing.judge.anthropic_blocks import judge_name
from golem.testing.judge.anthropic_models import ModelRules
from golem.testing.judge.anthropic_words import Findings
from golem.testing.judge.findings import JSON, elements, is_array, is_object, members

CHOICES: Final = ("any", "auto", "none", "tool")
_TOOL: Final = frozenset(
    {
        *("name", "description", "input_schema", "type", "strict", "cache_control"),
        *("defer_loading", "input_examples", "eager_input_streaming", "allowed_callers"),
    }
)
_SERVER_TOOL: Final = re.compile(r"[a-z0-9_]+_\d{8}|mcp_toolset")
_CLIENT_TOOL: Final = re.compile(r"(bash|text_editor|computer|memory)_\d{8}")
_NOT_ENFORCED: Final[Mapping[str, tuple[str, ...]]] = {
    "string": ("minLength", "maxLength", "pattern"),
    "integer": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    "array": ("maxItems", "uniqueItems"),
}


def runs_at_server(tool: object) -> bool:
    """Whether a tool is one that the server runs itself."""
    kind = str(members(tool).get("type", "custom"))
    return kind != "custom" and _CLIENT_TOOL.fullmatch(kind) is None


def judge_tools(body: JSON, models: ModelRules, findings: Findings, *, counts: bool) -> None:
    """The tools, and the choice among them; no server's tools where tokens are counted."""
    tools = body.get("tools")
    if tools is not None and not is_array(tools):
        findings.wrong_type("tools", "a valid list")
    names: list[str] = []
    for index, tool in enumerate(elements(tools)):
        place = f"tools.{index}"
        if not is_object(tool):
            findings.wrong_type(place, "a valid dictionary or object to extract fields from")
            continue
        kind = tool.get("type", "custom")
        if kind in ("custom", None):
            _judge_tool(tool, f"{place}.custom", findings)
        elif not _SERVER_TOOL.fullmatch(str(kind)) or (counts and runs_at_server(tool)):
            text = (
                f"Input tag '{kind}' found using 'type' does not match any of the expected tags:"
                " 'custom'"
            )
            findings.add("tool_type", place, text)
        names.append(str(tool.get("name")))
    if len(set(names)) != len(names):
        findings.add("repeated_name", "tools", "Tool names must be unique.")
    _judge_choice(body, names, models, findings)


def _judge_tool(tool: JSON, place: str, findings: Findings) -> None:
    for name in tool:
        if name not in _TOOL:
            findings.unknown(f"{place}.{name}")
    judge_name(tool.get("name"), f"{place}.name", findings)
    description = tool.get("description")
    if description is not None and not isinstance(description, str):
        findings.wrong_type(f"{place}.description", "a valid string")
    schema = tool.get("input_schema")
    if schema is None:
        findings.missing(f"{place}.input_schema")
    elif not is_object(schema):
        findings.wrong_type(f"{place}.input_schema", "a valid dictionary")
    elif schema.get("type") != "object":
        if "type" not in schema:
            findings.missing(f"{place}.input_schema.type")
        else:
            findings.wrong_value("schema", f"{place}.input_schema.type", ("object",))
    elif tool.get("strict"):
        judge_enforced(schema, f"{place}.input_schema", findings)


def _judge_choice(body: JSON, names: list[str], models: ModelRules, findings: Findings) -> None:
    choice = body.get("tool_choice")
    if choice is None:
        return
    kind = members(choice).get("type")
    if kind not in CHOICES:
        findings.wrong_value("tool_choice", "tool_choice.type", CHOICES)
        return
    if not names and not body.get("mcp_servers"):
        text = "tool_choice may only be specified while providing tools"
        findings.add("tool_choice", "tool_choice", text, bare=True)
    elif kind == "tool" and members(choice).get("name") not in names:
        text = f"Tool '{members(choice).get('name')}' not found in provided tools"
        findings.add("tool_choice", "tool_choice", text, bare=True)
    known = {"type"} | ({"name"} if kind == "tool" else set[str]())
    known |= {"disable_parallel_tool_use"} if kind != "none" else set[str]()
    for name in members(choice):
        if name not in known:
            findings.unknown(f"tool_choice.{kind}.{name}")
    if kind in ("any", "tool") and members(body.get("thinking")).get("type") == "enabled":
        text = "Thinking may not be enabled when tool_choice forces tool use."
        findings.add("forced_thinking", "tool_choice", text, bare=True)
    if kind in ("any", "tool") and not models.forced:
        text = f"tool_choice '{kind}' is not supported by this model."
        findings.add("forced_choice", "tool_choice", text, bare=True)


# --- schemas


def judge_enforced(schema: Any, place: str, findings: Findings) -> None:
    """A schema that the answer is held to: closed objects, no ranges, lengths and patterns."""
    for node in nodes_of(schema):
        kind = node.get("type")
        if (kind == "object" or "properties" in node) and node.get(
            "additionalProperties"
        ) is not False:
            text = "For 'object' type, 'additionalProperties' must be explicitly set to false"
            findings.add("schema", place, text)
        named = [name for name in _NOT_ENFORCED.get(str(kind), ()) if name in node]
        if named:
            words = ", ".join(named)
            text = f"For '{kind}' type, properties {words} are not supported"
            findings.add("schema", place, text)
        if kind == "array" and node.get("minItems") not in (None, 0, 1):
            text = "For 'array' type, 'minItems' values other than 0 or 1 are not supported"
            findings.add("schema", place, text)


def nodes_of(schema: Any) -> Iterator[JSON]:
    """Every schema inside a schema, without recursion."""
    waiting: list[Any] = [schema]
    while waiting:
        node = waiting.pop()
        if is_array(node):
            waiting.extend(node)
        elif is_object(node):
            yield node
            waiting.extend(node[name] for name in _HOLD_SCHEMAS if name in node)
            for name in ("properties", "$defs", "definitions"):
                waiting.extend(members(node.get(name)).values())


_HOLD_SCHEMAS: Final = ("items", "anyOf", "oneOf", "allOf", "prefixItems", "not")
