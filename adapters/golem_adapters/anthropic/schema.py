"""The part of JSON Schema that Anthropic holds an answer to, and any schema brought into it.

An object takes the properties it names and no others; ranges, lengths and patterns are not
enforced, so they are told to the model in the description, and golem's own decoding checks
them. What would allow anything (a free object, an empty schema) cannot be enforced at all.
Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from golem.errors import UnsupportedContentError
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.lenient import is_listing, is_mapping

_FORMATS: Final = frozenset(
    {
        *("date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6"),
        "uuid",
    }
)
_KEPT: Final = ("type", "title", "enum", "const", "required", "default")
_DROPPED: Final = frozenset({"$schema", "$id", "$comment", "additionalProperties", "discriminator"})


def enforceable(schema: Mapping[str, Any]) -> Wire:
    """`schema` in the enforced part of the language.

    Raises UnsupportedContentError, naming the place, for what cannot be enforced.
    """
    return _converted(schema, "$")


def _converted(schema: object, place: str) -> Wire:
    if not is_mapping(schema) or not schema:
        raise _refused(place, "allows any value")
    found: Wire = {}
    rest = {name: value for name, value in schema.items() if name not in _DROPPED}
    for name in ("$defs", "definitions"):
        if is_mapping(defs := rest.pop(name, None)):
            found[name] = {key: _converted(v, f"{place}.{name}.{key}") for key, v in defs.items()}
    if "$ref" in rest:
        return {**found, "$ref": rest["$ref"]}
    if is_listing(types := rest.get("type")):
        variants = [{**rest, "type": one} for one in types]
        return {**found, "anyOf": [_converted(variant, place) for variant in variants]}
    for name in _KEPT:
        if name in rest:
            found[name] = rest.pop(name)
    _variants(rest, found, place)
    match found.get("type"):
        case "object":
            _object(schema, rest, found, place)
        case "array":
            _array(rest, found, place)
        case "string":
            if rest.get("format") in _FORMATS:
                found["format"] = rest.pop("format")
        case None if not {"enum", "const", "anyOf", "allOf"} & set(found):
            raise _refused(place, "allows any value")
        case _:
            pass
    _describe(rest, found)
    return found


def _variants(rest: Wire, found: Wire, place: str) -> None:
    for name, wire in (("anyOf", "anyOf"), ("oneOf", "anyOf"), ("allOf", "allOf")):
        if is_listing(rest.get(name)):
            choices = enumerate(rest.pop(name))
            found[wire] = [_converted(one, f"{place}.{name}[{at}]") for at, one in choices]


def _object(schema: Mapping[str, Any], rest: Wire, found: Wire, place: str) -> None:
    properties = rest.pop("properties", None)
    named: Mapping[str, Any] = properties if is_mapping(properties) else {}
    others = schema.get("additionalProperties")
    if is_mapping(others) or (not named and others is not False):
        raise _refused(place, "is an object with properties of any name")
    found["properties"] = {
        name: _converted(value, f"{place}.{name}") for name, value in named.items()
    }
    found["additionalProperties"] = False


def _array(rest: Wire, found: Wire, place: str) -> None:
    if "prefixItems" in rest:
        raise _refused(place, "is an array whose items differ by place")
    found["items"] = _converted(rest.pop("items", None), f"{place}[]")
    if rest.get("minItems") in (0, 1):
        found["minItems"] = rest.pop("minItems")


def _describe(rest: Wire, found: Wire) -> None:
    """Put the description, and after it what only the model can be asked to keep to."""
    said = rest.pop("description", "")
    words = [said] if isinstance(said, str) and said else []
    if rest:
        words.append(msgspec.json.encode(rest, enc_hook=dict).decode())
    if words:
        found["description"] = "\n\n".join(words)


def _refused(place: str, why: str) -> UnsupportedContentError:
    return UnsupportedContentError(
        f"the output schema at {place} {why}, which Anthropic cannot enforce;"
        " ask for it with output_mode='tool'"
    )
