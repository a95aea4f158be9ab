"""Output schemas: what Anthropic enforces of them, and what it cannot."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
import pytest
from msgspec import Meta, Struct

from golem.errors import UnsupportedContentError
from golem_adapters.anthropic.schema import enforceable


class Place(Struct, tag=True):
    """Where it is."""

    city: Annotated[str, Meta(min_length=1, description="the town")]
    zip: str | None = None


class Trip(Struct):
    kind: Literal["a", "b"]
    stops: Annotated[list[Place], Meta(min_length=1, max_length=5)]
    nights: Annotated[int, Meta(ge=1, le=30)] = 1


def test_a_schema_of_structs_keeps_what_is_enforced_and_tells_the_rest() -> None:
    schema = msgspec.json.schema(Trip)
    found = enforceable(schema)
    place, trip = found["$defs"]["Place"], found["$defs"]["Trip"]
    assert found["$ref"] == "#/$defs/Trip"
    assert trip["additionalProperties"] is False
    assert trip["required"] == ["kind", "stops"]
    assert trip["properties"]["kind"] == {"enum": ["a", "b"]}
    assert trip["properties"]["stops"] == {
        "type": "array",
        "items": {"$ref": "#/$defs/Place"},
        "minItems": 1,
        "description": '{"maxItems":5}',
    }
    assert trip["properties"]["nights"] == {
        "type": "integer",
        "default": 1,
        "description": '{"minimum":1,"maximum":30}',
    }
    assert place["properties"]["city"] == {
        "type": "string",
        "description": 'the town\n\n{"minLength":1}',
    }
    assert place["properties"]["zip"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}],
        "default": None,
    }
    assert place["description"] == "Where it is."


@pytest.mark.parametrize(
    ("schema", "sent"),
    [
        ({"type": ["string", "null"]}, {"anyOf": [{"type": "string"}, {"type": "null"}]}),
        ({"oneOf": [{"type": "null"}, {"const": 1}]}, {"anyOf": [{"type": "null"}, {"const": 1}]}),
        ({"type": "string", "format": "uuid"}, {"type": "string", "format": "uuid"}),
        (
            {"type": "string", "format": "regex"},
            {"type": "string", "description": '{"format":"regex"}'},
        ),
        (
            {"type": "object", "additionalProperties": False},
            {"type": "object", "properties": {}, "additionalProperties": False},
        ),
        ({"allOf": [{"$ref": "#/$defs/a"}]}, {"allOf": [{"$ref": "#/$defs/a"}]}),
    ],
)
def test_other_spellings(schema: dict[str, Any], sent: dict[str, Any]) -> None:
    assert sent == enforceable(schema)


@pytest.mark.parametrize(
    ("schema", "place"),
    [
        ({}, r"\$ allows any value"),
        ({"type": "object"}, r"\$ is an object with properties of any name"),
        ({"type": "array"}, r"\$\[\] allows any value"),
        ({"type": "array", "prefixItems": [{"type": "null"}]}, r"\$ is an array whose items"),
        (msgspec.json.schema(dict[str, int]), r"\$ is an object with properties of any name"),
        ({"type": "object", "properties": {"a": {"description": "x"}}}, r"\$\.a allows any"),
        ({"anyOf": [{"type": "null"}, True]}, r"\$\.anyOf\[1\] allows any value"),
    ],
)
def test_what_cannot_be_enforced_is_refused_with_its_place(
    schema: dict[str, Any], place: str
) -> None:
    with pytest.raises(UnsupportedContentError, match=place):
        enforceable(schema)
