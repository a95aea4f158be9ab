"""The committed JSON Schema is the one of the structs, and golem writes what it says."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import golem
from golem import (
    AssistantMessage,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA: dict[str, Any] = json.loads((DOCS / "schema" / "message.json").read_text("utf-8"))

EVERYTHING: list[Message] = [
    SystemMessage("Be brief."),
    UserMessage("Look.", parts=(Part.image(b"\x89PNG", "image/png"), Part.audio_url("https://a"))),
    AssistantMessage(
        "I look.",
        thinking=(Thinking("so", signature="s", provider="p"), Thinking(redacted="r")),
        tool_calls=(
            ToolCall.of("a", "look", '{"at": 1}'),
            ToolCall.of("b", "look", '{"at'),
            ToolCall.of("c", "look", ""),
        ),
        run_id=golem.new_id(),
        conversation_id=golem.new_id(),
    ),
    ToolMessage("nothing", tool_call_id="a", tool_name="look", failed=True),
    golem.load_message(b'{"role":"user","content":"hi","newer":{"deep":[1]}}'),
    golem.load_message(
        b'{"role":"assistant","native":{"provider":"p","items":[{"type":"x"},null]}}'
    ),
]


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_schema", DOCS / "generate_schema.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_schema_is_current() -> None:
    current: str = generator().generate()
    committed = (DOCS / "schema" / "message.json").read_text("utf-8")
    assert committed == current, "run docs/generate_schema.py"


@pytest.mark.parametrize("message", EVERYTHING, ids=lambda message: type(message).__name__)
def test_what_golem_writes_follows_the_schema(message: Message) -> None:
    Draft202012Validator(SCHEMA).validate(json.loads(golem.dump_message(message)))


@pytest.mark.parametrize(
    "stored",
    [
        {"role": "developer", "content": "hi"},
        {"content": "hi"},
        {"role": "user", "content": 1},
        {"role": "assistant", "toolCalls": [{"id": "a", "name": "f"}]},
        {"role": "assistant", "toolCalls": [{"id": "a", "name": "f", "args": 1}]},
    ],
)
def test_what_golem_never_writes_does_not(stored: dict[str, Any]) -> None:
    assert not Draft202012Validator(SCHEMA).is_valid(stored)


def test_the_schema_leaves_room_for_newer_members_and_has_none_for_unknown_ones() -> None:
    for name, schema in SCHEMA["$defs"].items():
        assert schema["additionalProperties"] is True, name
        assert "unknown" not in schema["properties"], name
    assert Native.__name__ in SCHEMA["$defs"]
