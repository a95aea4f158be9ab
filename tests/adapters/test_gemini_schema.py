"""Schemas for Gemini: what it reads of them, and what only the model is told."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from golem_adapters.gemini.schema import parameters, readable


class Place(Struct, tag=True):
    """Where it is."""

    city: Annotated[str, Meta(min_length=1, description="the town")]
    zip: str | None = None


class Trip(Struct):
    kind: Literal["a", "b"]
    stops: Annotated[list[Place], Meta(min_length=1, max_length=5)]
    nights: Annotated[int, Meta(ge=1, lt=30)] = 1


def test_a_schema_of_structs_keeps_what_is_read_and_tells_the_rest() -> None:
    found = readable(msgspec.json.schema(Trip))
    place = found["$defs"]["Place"]
    assert "$ref" not in found
    assert (found["type"], found["required"]) == ("object", ["kind", "stops"])
    assert found["properties"]["kind"] == {"enum": ["a", "b"]}
    assert found["properties"]["stops"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Place"},
        "minItems": 1,
        "maxItems": 5,
    }
    assert found["properties"]["nights"] == {
        "type": "integer",
        "minimum": 1,
        "default": 1,
        "description": '{"exclusiveMaximum":30}',
    }
    assert place["properties"]["city"] == {
        "type": "string",
        "description": 'the town\n\n{"minLength":1}',
    }
    assert place["description"] == "Where it is."


@pytest.mark.parametrize(
    ("schema", "found"),
    [
        ({"const": "x"}, {"enum": ["x"]}),
        (
            {"$schema": "s", "$id": "i", "type": "string", "examples": ["a"]},
            {"type": "string"},
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "null"}]},
            {"anyOf": [{"type": "string"}, {"type": "null"}]},
        ),
        ({"allOf": [{"type": "string"}]}, {"anyOf": [{"type": "string"}]}),
        ({"type": ["string", "null"]}, {"type": ["string", "null"]}),
        (
            {"type": "object", "additionalProperties": {"const": 1}},
            {"type": "object", "additionalProperties": {"enum": [1]}},
        ),
        (
            {"type": "array", "prefixItems": [{"const": 1}], "items": False},
            {"type": "array", "prefixItems": [{"enum": [1]}], "items": False},
        ),
        ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}),
        (
            {"type": "string", "pattern": "^a"},
            {"type": "string", "description": '{"pattern":"^a"}'},
        ),
        (
            {"allOf": [{"type": "string"}, {"minLength": 1}]},
            {"description": '{"allOf":[{"type":"string"},{"minLength":1}]}'},
        ),
        (
            {"definitions": {"A": {"const": 1}}, "properties": {"a": {"$ref": "#/definitions/A"}}},
            {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"enum": [1]}}},
        ),
        (
            {"$ref": "#/$defs/A", "description": "d", "default": None},
            {"default": None, "description": "d", "anyOf": [{"$ref": "#/$defs/A"}]},
        ),
        ({}, {}),
    ],
)
def test_every_keyword_is_read_or_told(schema: dict[str, Any], found: dict[str, Any]) -> None:
    assert readable(schema) == found


def test_arguments_are_an_object() -> None:
    assert parameters({}) == {"type": "object"}
    assert parameters({"type": "object", "properties": {}}) == {"type": "object", "properties": {}}


def test_a_recursive_schema_stays_one() -> None:
    tree = {"$ref": "#/$defs/T", "$defs": {"T": {"items": {"$ref": "#/$defs/T"}, "type": "array"}}}
    found = readable(tree)
    assert found["items"] == {"$ref": "#/$defs/T"}
    assert found["$defs"]["T"]["items"] == {"$ref": "#/$defs/T"}
