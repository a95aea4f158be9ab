"""The part of JSON Schema that Gemini reads, and any schema brought into it.

What it does not read (patterns, lengths, constants …) is told to the model in the description;
golem's own decoding checks it. The list is in the documentation of ``responseJsonSchema``. Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.lenient import is_listing, is_mapping

_KEPT: Final = (
    *("type", "format", "title", "enum", "required", "propertyOrdering"),
    *("minimum", "maximum", "minItems", "maxItems", "default"),
)
_NAMED: Final = ("properties", "$defs")
_LISTED: Final = ("anyOf", "prefixItems")
_NESTED: Final = ("items", "additionalProperties")
_DROPPED: Final = frozenset({"$schema", "$id", "$comment", "discriminator", "examples"})


def readable(schema: Mapping[str, Any]) -> Wire:
    """`schema` in the part of the language that Gemini reads."""
    found: Wire = _converted(schema)
    reference = found.get("$ref")
    if isinstance(reference, str) and is_mapping(found.get("$defs")):
        # The root says what it is itself: a schema that is only a reference has no type.
        target = found["$defs"].get(reference.removeprefix("#/$defs/"))
        if is_mapping(target) and "$ref" not in target:
            return {**target, "$defs": found["$defs"]}
    return found


def parameters(schema: Mapping[str, Any]) -> Wire:
    """The schema of a tool's arguments, which are an object."""
    found = readable(schema)
    return found if found.get("type") == "object" else {"type": "object", **found}


def _converted(schema: Any) -> Any:
    if not is_mapping(schema):
        return schema  # true and false are schemas too
    rest: Wire = {name: value for name, value in schema.items() if name not in _DROPPED}
    found: Wire = {}
    if is_mapping(definitions := rest.pop("definitions", None)):
        rest["$defs"] = {**definitions, **rest.get("$defs", {})}
    for name in _KEPT:
        if name in rest:
            found[name] = rest.pop(name)
    if "const" in rest:
        found["enum"] = [rest.pop("const")]
    _variants(rest)
    for name in _NAMED:
        if is_mapping(rest.get(name)):
            found[name] = {key: _converted(value) for key, value in rest.pop(name).items()}
    for name in _LISTED:
        if is_listing(rest.get(name)):
            found[name] = [_converted(value) for value in rest.pop(name)]
    for name in _NESTED:
        if name in rest:
            found[name] = _converted(rest.pop(name))
    reference = rest.pop("$ref", None)
    _describe(rest, found)
    return found if reference is None else _referring(reference, found)


def _variants(rest: Wire) -> None:
    """``oneOf`` is read as ``anyOf``; ``allOf`` of one is that one."""
    if is_listing(variants := rest.get("oneOf")) and "anyOf" not in rest:
        del rest["oneOf"]
        rest["anyOf"] = variants
    if is_listing(variants := rest.get("allOf")) and len(variants) == 1 and "anyOf" not in rest:
        del rest["allOf"]
        rest["anyOf"] = variants


def _referring(reference: Any, found: Wire) -> Wire:
    """A reference, beside which nothing may stand but what begins with ``$``."""
    reference = _local(reference)
    beside = {name: value for name, value in found.items() if not name.startswith("$")}
    if not beside:
        return {"$ref": reference, **found}
    return {**found, "anyOf": [{"$ref": reference}]}


def _local(reference: Any) -> Any:
    if isinstance(reference, str) and reference.startswith("#/definitions/"):
        return "#/$defs/" + reference.removeprefix("#/definitions/")
    return reference


def _describe(rest: Wire, found: Wire) -> None:
    """Put the description, and after it what only the model can be asked to keep to."""
    said = rest.pop("description", "")
    words = [said] if isinstance(said, str) and said else []
    if rest:
        words.append(msgspec.json.encode(rest, enc_hook=dict).decode())
    if words:
        found["description"] = "\n\n".join(words)
