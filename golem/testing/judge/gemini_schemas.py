"""The schemas that Gemini reads: its own, and JSON Schema. Pure, without recursion."""

from __future__ import annotations

from typing import Any, Final

from golem.testing.judge.findings import JSON, elements, is_array, is_object, members
from golem.testing.judge.gemini_servers import GeminiRules
from golem.testing.judge.gemini_words import Findings

_TYPES: Final = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_NOTES: Final = frozenset({"title", "description", "default"})
"""What a reference may have beside it, as recordings show; the documentation says nothing may."""

_DEEPEST: Final = 100
"""How deep a schema may be nested; the server's own bound is not on record."""


def judge_schema(schema: JSON, place: str, rules: GeminiRules, findings: Findings) -> None:
    """A schema in the dialect of OpenAPI, whose members the parser has read."""
    waiting = [(schema, place)]
    while waiting:
        node, where = waiting.pop()
        kind = str(node.get("type", "")).lower()
        if kind and kind not in _TYPES | {"type_unspecified"}:
            findings.wrong_type(f"{where}.type", "TYPE_ENUM", node["type"])
        if kind == "array" and "items" not in node and not rules.vertex:
            findings.request("schema", f"{where}.items", "missing field.")
        for name in elements(node.get("required")):
            if name not in members(node.get("properties")):
                text = f"property is not defined: {name}"
                findings.request("schema", f"{where}.required", text)
        if elements(node.get("enum")) and kind not in ("", "string", "integer", "number"):
            findings.request("schema", f"{where}.enum", "only allowed for STRING type")
        waiting += [(node["items"], f"{where}.items")] if "items" in node else []
        waiting += [(n, f"{where}.anyOf[{i}]") for i, n in enumerate(elements(node.get("anyOf")))]
        properties = members(node.get("properties"))
        waiting += [(n, f"{where}.properties.{name}") for name, n in properties.items()]


def judge_json_schema(schema: Any, place: str, findings: Findings) -> None:
    """A JSON Schema: its types are known, and beside a reference stands nothing that adds to it.

    Other keywords that Gemini does not read it passes over.
    """
    if not is_object(schema):
        findings.request("schema", place, "schema must be an object.")
        return
    waiting: list[tuple[Any, int]] = [(schema, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > _DEEPEST:
            findings.request("depth", place, "schema is nested too deep.")
            return
        if not is_object(node):
            continue
        _judge_node(node, place, findings)
        waiting += [(inner, depth + 1) for inner in _within(node)]


def _judge_node(node: JSON, place: str, findings: Findings) -> None:
    kinds = node.get("type", [])
    for kind in kinds if is_array(kinds) else [kinds]:
        if not isinstance(kind, str) or kind.lower() not in _TYPES:
            findings.request("schema", place, f"unknown type {str(kind)[:80]!r}")
    beside = [name for name in node if not name.startswith("$") and name not in _NOTES]
    if "$ref" in node and beside:
        text = f"beside $ref only properties that start with $ may be set, not {beside[0]!r}"
        findings.request("schema", place, text)


def _within(node: JSON) -> list[Any]:
    found = [node.get(name) for name in ("items", "additionalProperties")]
    for name in ("anyOf", "oneOf", "prefixItems"):
        found += elements(node.get(name))
    for name in ("properties", "$defs"):
        found += members(node.get(name)).values()
    return found
