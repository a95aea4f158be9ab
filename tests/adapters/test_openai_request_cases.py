"""The field reports and conformance vectors about Chat Completions requests."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from golem.messages import ToolCall
from golem_adapters._toolkit.calls import wire_args
from tests.adapters.encoding import check, encode
from tests.cases import field_reports, messages, name_of, vectors

DIALECTS = {"mistral9": "mistral"}


def encoded(case: dict[str, Any]) -> bytes:
    args = case.get("args", {})
    dialect = DIALECTS.get(args.get("idStyle", ""), args.get("profile", "openai"))
    neutral = [{**m, "content": m.get("content") or ""} for m in case["messages"]]
    return encode(messages(neutral), dialect=dialect)


@pytest.mark.parametrize("case", field_reports("serialize:openai-chat"), ids=name_of)
def test_a_reported_history_becomes_a_request_the_provider_takes(case: dict[str, Any]) -> None:
    data = encoded(case)
    body, expect = json.loads(data), case["expect"]
    assert not set(check("openai-chat", body)) & set(expect.get("invariants", ()))
    ids = [call["id"] for m in body["messages"] for call in m.get("tool_calls", ())]
    assert all(len(name) <= expect.get("maxIdLen", len(name)) for name in ids)
    assert all(re.match(expect.get("idPattern", ""), name) for name in ids)
    for text in expect.get("contentPresent", ()):
        assert text in data.decode()
    for assertion in expect.get("assert", ()):
        assert assertion["equals"] == at(body, assertion["path"])
    results = [m["content"] for m in body["messages"] if m["role"] == "tool"]
    assert all(isinstance(content, str) for content in results)
    assert encoded(case) == data


def at(value: Any, path: str) -> Any:
    for step in re.findall(r"[^.\[\]]+", path):
        value = value[int(step)] if step.isdigit() else value[step]
    return value


@pytest.mark.parametrize("case", vectors("wire_args"), ids=name_of)
def test_arguments_go_out_as_an_object(case: dict[str, Any]) -> None:
    sent = wire_args(ToolCall.of("c", "f", case["input"]["argsRaw"]))
    wanted = case["expected"]["wire"]
    # The Go encoder escapes < > & in the wrapper: compare the wrapped values.
    assert wanted == sent or json.loads(wanted) == json.loads(sent)


@pytest.mark.parametrize(
    ("args", "sent"),
    [
        ("", "{}"),
        (" \n", "{}"),
        ('{"b":1,"a":2.0,"b":3}', '{"b":1,"a":2.0,"b":3}'),
        ('{"a":"\\ud800"}', '{"a":"\\ufffd"}'),
        ('{"a":"\\ud83d\\ude00"}', '{"a":"\\ud83d\\ude00"}'),
        ('{"a":', '{"truncated_args":"{\\"a\\":"}'),
        ("[1]", '{"truncated_args":"[1]"}'),
        ('{"a":NaN}', '{"truncated_args":"{\\"a\\":NaN}"}'),
    ],
)
def test_arguments_are_kept_to_the_byte_or_wrapped(args: str, sent: str) -> None:
    assert sent == wire_args(ToolCall.of("c", "f", args))
