"""Writes docs/schema/message.json: the JSON Schema of a stored message, from the structs.

Run it after a change to ``golem.messages``; a test fails while the file is not current. The
schema says what golem writes. It reads a little more (docs/messages.md), and leaves every object
open, because the contract only grows.
"""

from __future__ import annotations

import inspect as python_inspect
import json
from pathlib import Path
from typing import Any, get_args

from msgspec import NODEFAULT, Struct, inspect

from golem.messages import Message, ToolCall

TARGET = Path(__file__).parent / "schema" / "message.json"

SIMPLE: dict[type[inspect.Type], dict[str, Any]] = {
    inspect.StrType: {"type": "string"},
    inspect.BoolType: {"type": "boolean"},
    inspect.NoneType: {"type": "null"},
    inspect.BytesType: {"type": "string", "contentEncoding": "base64"},
    inspect.RawType: {},  # any JSON value, kept verbatim
}


class Schemas:
    """The schemas of structs, each under its name in `definitions`."""

    def __init__(self) -> None:
        self.definitions: dict[str, Any] = {}

    def of(self, kind: inspect.Type) -> dict[str, Any]:
        """The schema of one type."""
        if isinstance(kind, inspect.Metadata):
            return {**self.of(kind.type), **(kind.extra_json_schema or {})}
        if isinstance(kind, inspect.VarTupleType):
            return {"type": "array", "items": self.of(kind.item_type)}
        if isinstance(kind, inspect.UnionType):
            return {"anyOf": [self.of(member) for member in kind.types]}
        if isinstance(kind, inspect.StructType):
            return self.reference(kind)
        return dict(SIMPLE[type(kind)])

    def reference(self, kind: inspect.StructType) -> dict[str, Any]:
        """A reference to a struct, which is described on the way."""
        name = kind.cls.__name__
        if name not in self.definitions:
            self.definitions[name] = {}  # its place in the order
            self.definitions[name] = self.struct(kind)
        return {"$ref": f"#/$defs/{name}"}

    def struct(self, kind: inspect.StructType) -> dict[str, Any]:
        """The schema of a struct: its known members, and room for those of a newer writer."""
        properties: dict[str, Any] = {}
        required: list[str] = []
        if kind.tag_field:
            properties[kind.tag_field] = {"const": kind.tag}
            required.append(kind.tag_field)
        for field in kind.fields:
            if field.name == "unknown":
                continue  # what is not known has no schema
            properties[field.encode_name] = self.member(kind.cls, field)
            if field.required:
                required.append(field.encode_name)
        return {
            "description": _summary(kind.cls),
            "type": "object",
            "properties": properties,
            **({"required": required} if required else {}),
            "additionalProperties": True,
        }

    def member(self, owner: type[Struct], field: inspect.Field) -> dict[str, Any]:
        """The schema of one member, with the value that its absence means."""
        schema = self.of(field.type)
        if owner is ToolCall and field.name == "raw":
            schema["anyOf"] = [{"type": "object"}, {"type": "string"}]
        if field.default is not NODEFAULT and isinstance(field.default, str | bool | None):
            schema["default"] = field.default
        return schema


def generate() -> str:
    """The text of the schema file."""
    schemas = Schemas()
    roots = [schemas.of(inspect.type_info(kind)) for kind in get_args(Message)]
    document = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "golem message",
        "description": "One message of a stored conversation, as golem writes it.",
        "oneOf": roots,
        "$defs": dict(sorted(schemas.definitions.items())),
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def _summary(struct: type[Struct]) -> str:
    """The first paragraph of a struct's docstring, on one line."""
    paragraph = (python_inspect.getdoc(struct) or "").partition("\n\n")[0]
    return " ".join(paragraph.split())


if __name__ == "__main__":
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text(generate(), encoding="utf-8")
    print(f"wrote {TARGET}")
