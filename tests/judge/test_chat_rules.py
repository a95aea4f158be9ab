"""Every rule about Chat Completions requests: a body that keeps it, and one that does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.testing.judge import judge_chat
from golem.testing.judge.chat_servers import RULES

JSON = dict[str, Any]
ID = "abcDEF123"  # takes every dialect
USER: JSON = {"role": "user", "content": "hi"}
PNG = "data:image/png;base64,aGk="


def call(id: Any = ID, name: Any = "f", arguments: Any = "{}", **more: Any) -> JSON:
    return {
        "id": id,
        "type": "function",
        "function": {"name": name, "arguments": arguments},
        **more,
    }


def asks(*calls: JSON, **more: Any) -> JSON:
    return {"role": "assistant", "content": None, "tool_calls": list(calls or [call()]), **more}


def result(id: Any = ID, content: Any = "ok") -> JSON:
    return {"role": "tool", "tool_call_id": id, "content": content}


def body(*messages: JSON, **more: Any) -> JSON:
    return {"model": "m", "messages": list(messages or [USER]), **more}


def user(*parts: JSON) -> JSON:
    return body({"role": "user", "content": list(parts)})


def tool(name: Any = "f", parameters: Any = None, **more: Any) -> JSON:
    schema = {"type": "object", "properties": {}} if parameters is None else parameters
    return {"type": "function", "function": {"name": name, "parameters": schema, **more}}


def schema(name: str = "out", strict: bool = True, **members: Any) -> JSON:
    object_ = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    object_ |= {"additionalProperties": False} | members
    return {
        "type": "json_schema",
        "json_schema": {"name": name, "schema": object_, "strict": strict},
    }


CLOSED = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}
SAID = {"role": "assistant", "content": "yes"}
IMAGE = {"type": "image_url", "image_url": {"url": PNG}}
SOUND = {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "wav"}}
FILE = {
    "type": "file",
    "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="},
}
TEXT = {"type": "text", "text": "hi"}

ACCEPTED: list[tuple[str, JSON]] = [
    ("openai", body()),
    (
        "openai",
        body({"role": "system", "content": "s"}, {"role": "developer", "content": [TEXT]}, USER),
    ),
    ("openai", body(USER, asks(), result(), USER)),
    ("openai", body(USER, asks(call("a"), call("b")), result("b"), result("a"), SAID)),
    ("openai", body(USER, asks(), result(), asks(), result())),
    ("openai", body(USER, asks(call("x" * 40)), result("x" * 40))),
    ("openai", body(USER, {"role": "assistant", "content": ""})),
    ("openai", body({"role": "user", "content": ""})),
    ("openai", user(TEXT, IMAGE, SOUND, FILE)),
    ("openai", user({"type": "image_url", "image_url": {"url": "https://e/x.png"}})),
    ("openai", body(USER, asks(), result(content=[TEXT]))),
    ("openai", body(stream=True, stream_options={"include_usage": True})),
    ("openai", body(tools=[tool()], tool_choice="required", parallel_tool_calls=False)),
    (
        "openai",
        body(
            tools=[tool(), tool("g")], tool_choice={"type": "function", "function": {"name": "g"}}
        ),
    ),
    ("openai", body(tools=[tool(parameters=CLOSED, strict=True)])),
    ("openai", body(tools=[{"type": "custom", "custom": {"name": "sql"}}])),
    ("openai", body(response_format=schema())),
    ("openai", body(response_format=schema(strict=False, additionalProperties=True))),
    (
        "openai",
        body({"role": "user", "content": "as JSON"}, response_format={"type": "json_object"}),
    ),
    ("openai", body(temperature=2, top_p=0.5, max_completion_tokens=1, stop=["a"] * 4)),
    ("azure", user(IMAGE)),
    ("mistral", body(USER, asks(), result(), SAID, USER)),
    ("mistral", body(USER, asks(call(arguments={"a": 1})), result(content=[TEXT, IMAGE]))),
    ("mistral", body(tools=[tool()], tool_choice="any", random_seed=1)),
    (
        "mistral",
        body(USER, {"role": "assistant", "content": [{"type": "thinking", "thinking": []}]}),
    ),
    ("deepseek", body(USER, asks(reasoning_content=""), result(), USER)),
    ("deepseek", body(USER, SAID, USER)),
    ("groq", body(USER, asks(reasoning="hm"), result())),
    ("moonshot", body(USER, asks(call("functions.f:0")), result("functions.f:0"))),
    (
        "openrouter",
        user({"type": "file", "file": {"filename": "a", "file_data": "https://e/a.pdf"}}),
    ),
    ("openrouter", body(tools=[{"type": "openrouter:web_search"}])),
    ("openai", body(USER, {**SAID, "annotations": []}, USER)),
    ("mistral", body(tools=[{"function": {"name": "f", "parameters": {"type": "object"}}}])),
    ("mistral", body(USER, {**asks(), "content": []}, result())),
    ("vllm", body({"role": "system", "content": "s"}, USER, {"role": "system", "content": "t"})),
]

REFUSED: list[tuple[str, str, str, JSON]] = [
    ("openai", "member_type", "", []),  # type: ignore[list-item]
    ("openai", "required_member", "model", {"messages": [USER]}),
    ("openai", "required_member", "messages", {"model": "m"}),
    ("openai", "member_type", "messages", {"model": "m", "messages": "hi"}),
    ("openai", "empty_array", "messages", {"model": "m", "messages": []}),
    ("openai", "unknown_member", "top_k", body(top_k=3)),
    ("openai", "valid_utf8", "", body({"role": "user", "content": "\ud800"})),
    ("openai", "valid_utf8", "", body(USER, metadata={"a": {"\udfff": 1}})),
    ("openai", "role", "messages[0].role", body({"role": "critic", "content": "x"})),
    ("openai", "member_type", "messages[0]", body("hi")),  # type: ignore[arg-type]
    ("openai", "required_member", "messages[0].content", body({"role": "user"})),
    ("openai", "member_type", "messages[0].content", body({"role": "user", "content": 3})),
    ("openai", "empty_array", "messages[0].content", body({"role": "user", "content": []})),
    (
        "openai",
        "unknown_member",
        "messages[1].reasoning_content",
        body(USER, {**SAID, "reasoning_content": "x"}),
    ),
    (
        "openai",
        "unknown_member",
        "messages[1].tool_calls[0].extra_content",
        body(USER, asks(call(extra_content={})), result()),
    ),
    ("openai", "orphan_result", "messages[1]", body(USER, result())),
    ("openai", "orphan_result", "messages[3]", body(USER, asks(), result(), result())),
    ("openai", "orphan_result", "messages[4]", body(USER, asks(), result(), USER, result())),
    (
        "openai",
        "required_member",
        "messages[2].tool_call_id",
        body(USER, asks(), {"role": "tool", "content": ""}),
    ),
    ("openai", "unanswered_call", "messages[1]", body(USER, asks())),
    ("openai", "unanswered_call", "messages[1]", body(USER, asks(), USER, result())),
    (
        "openai",
        "unanswered_call",
        "messages[1]",
        body(USER, asks(call("a"), call("b")), result("a"), SAID),
    ),
    (
        "openai",
        "repeated_id",
        "messages[1].tool_calls[1].id",
        body(USER, asks(call(), call()), result(), result()),
    ),
    (
        "openai",
        "call_id",
        "messages[1].tool_calls[0].id",
        body(USER, asks(call("x" * 41)), result("x" * 41)),
    ),
    ("openai", "call_id", "messages[1].tool_calls[0].id", body(USER, asks(call("")), result(""))),
    (
        "openai",
        "member_type",
        "messages[1].tool_calls[0].id",
        body(USER, asks(call(None)), result()),
    ),
    (
        "openai",
        "name",
        "messages[1].tool_calls[0].function.name",
        body(USER, asks(call(name="a.b")), result()),
    ),
    (
        "openai",
        "name",
        "messages[1].tool_calls[0].function.name",
        body(USER, asks(call(name="f\n")), result()),
    ),
    (
        "openai",
        "name",
        "messages[1].tool_calls[0].function.name",
        body(USER, asks(call(name="x" * 65)), result()),
    ),
    (
        "openai",
        "name",
        "messages[1].tool_calls[0].function.name",
        body(USER, asks(call(name="")), result()),
    ),
    (
        "openai",
        "arguments",
        "messages[1].tool_calls[0].function.arguments",
        body(USER, asks(call(arguments='{"a":')), result()),
    ),
    (
        "openai",
        "arguments",
        "messages[1].tool_calls[0].function.arguments",
        body(USER, asks(call(arguments='{"a":NaN}')), result()),
    ),
    (
        "openai",
        "arguments",
        "messages[1].tool_calls[0].function.arguments",
        body(USER, asks(call(arguments="")), result()),
    ),
    (
        "openai",
        "member_type",
        "messages[1].tool_calls[0].function.arguments",
        body(USER, asks(call(arguments={})), result()),
    ),
    (
        "openai",
        "call_type",
        "messages[1].tool_calls[0].type",
        body(USER, asks({**call(), "type": "x"}), result()),
    ),
    (
        "openai",
        "empty_assistant",
        "messages[1].content",
        body(USER, {"role": "assistant", "content": None}),
    ),
    ("openai", "empty_array", "messages[1].tool_calls", body(USER, {**SAID, "tool_calls": []})),
    (
        "openai",
        "part_type",
        "messages[0].content[0]",
        user({"type": "video_url", "video_url": {"url": "https://e/x"}}),
    ),
    ("openai", "part_type", "messages[2].content[0]", body(USER, asks(), result(content=[IMAGE]))),
    (
        "openai",
        "part_type",
        "messages[1].content[0]",
        body(USER, {"role": "assistant", "content": [IMAGE]}),
    ),
    ("openai", "part_type", "messages[0].content[0]", body({"role": "system", "content": [IMAGE]})),
    ("openai", "member_type", "messages[0].content[0].text", user({"type": "text", "text": None})),
    (
        "openai",
        "media_link",
        "messages[0].content[0].image_url.url",
        user({"type": "image_url", "image_url": {"url": "file:///x"}}),
    ),
    (
        "openai",
        "media_link",
        "messages[0].content[0].image_url.url",
        user({"type": "image_url", "image_url": {"url": "data:image/png;base64,?"}}),
    ),
    (
        "openai",
        "sound_format",
        "messages[0].content[0].input_audio.format",
        user({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "ogg"}}),
    ),
    (
        "openai",
        "sound_data",
        "messages[0].content[0].input_audio.data",
        user({"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}),
    ),
    (
        "openai",
        "file_data",
        "messages[0].content[0].file.file_data",
        user({"type": "file", "file": {"filename": "a", "file_data": "https://e/a.pdf"}}),
    ),
    (
        "openai",
        "required_member",
        "messages[0].content[0].file.filename",
        user({"type": "file", "file": {"file_data": "data:a/b;base64,aGk="}}),
    ),
    (
        "openai",
        "required_member",
        "messages[0].content[0].file.file_id",
        user({"type": "file", "file": {}}),
    ),
    ("openai", "stream_options", "stream_options", body(stream_options={"include_usage": True})),
    ("openai", "stop", "stop", body(stop=["a"] * 5)),
    ("openai", "sampling", "temperature", body(temperature=-1)),
    ("openai", "sampling", "top_p", body(top_p=1.1)),
    ("openai", "sampling", "max_completion_tokens", body(max_completion_tokens=0)),
    ("openai", "member_type", "temperature", body(temperature="hot")),
    ("openai", "empty_array", "tools", body(tools=[])),
    ("openai", "tool_choice", "tool_choice", body(tool_choice="auto")),
    ("openai", "tool_choice", "parallel_tool_calls", body(parallel_tool_calls=True)),
    ("openai", "tool_choice", "tool_choice", body(tools=[tool()], tool_choice="any")),
    (
        "openai",
        "tool_choice",
        "tool_choice",
        body(tools=[tool()], tool_choice={"type": "function", "function": {"name": "g"}}),
    ),
    ("openai", "tool_type", "tools[0].type", body(tools=[{"type": "web_search"}])),
    ("openai", "name", "tools[0].function.name", body(tools=[tool("a b")])),
    (
        "openai",
        "schema",
        "tools[0].function.parameters",
        body(tools=[tool(parameters={"type": "string"})]),
    ),
    ("openai", "member_type", "tools[0].function.parameters", body(tools=[tool(parameters="x")])),
    ("openai", "strict_schema", "tools[0].function.parameters", body(tools=[tool(strict=True)])),
    ("openai", "strict_schema", "response_format", body(response_format=schema(required=[]))),
    ("openai", "name", "response_format.json_schema.name", body(response_format=schema("a b"))),
    (
        "openai",
        "required_member",
        "response_format.json_schema.schema",
        body(response_format={"type": "json_schema", "json_schema": {"name": "x"}}),
    ),
    ("openai", "json_word", "messages", body(response_format={"type": "json_object"})),
    ("openai", "response_format", "response_format", body(response_format={"type": "xml"})),
    ("azure", "part_type", "messages[0].content[0]", user(FILE)),
    (
        "mistral",
        "call_id",
        "messages[1].tool_calls[0].id",
        body(USER, asks(call("call_1")), result("call_1")),
    ),
    ("mistral", "role_order", "messages[3]", body(USER, asks(), result(), USER)),
    (
        "mistral",
        "role_order",
        "messages[3]",
        body(USER, asks(), result(), {"role": "system", "content": "x"}),
    ),
    ("mistral", "unanswered_call", "messages[1]", body(USER, asks())),
    ("mistral", "orphan_result", "messages[1]", body(USER, result())),
    ("mistral", "empty_assistant", "messages[1]", body(USER, {"role": "assistant", "content": ""})),
    ("mistral", "unknown_member", "stream_options", body(stream=True, stream_options={})),
    ("mistral", "tool_choice", "tool_choice", body(tools=[tool()], tool_choice="some")),
    ("deepseek", "reasoning_passback", "messages[1]", body(USER, asks(), result())),
    ("deepseek", "response_format", "response_format", body(response_format=schema())),
    (
        "moonshot",
        "call_id",
        "messages[1].tool_calls[0].id",
        body(USER, asks(call("é")), result("é")),
    ),
    ("moonshot", "tool_choice", "tool_choice", body(tools=[tool()], tool_choice="required")),
    (
        "vllm",
        "one_system_message",
        "messages[1]",
        body({"role": "system", "content": "a"}, {"role": "system", "content": "b"}, USER),
    ),
]


@pytest.mark.parametrize(("dialect", "request_body"), ACCEPTED)
def test_a_body_in_order_is_accepted(dialect: str, request_body: JSON) -> None:
    assert judge_chat(request_body, dialect=dialect) == []


@pytest.mark.parametrize(("dialect", "rule", "place", "request_body"), REFUSED)
def test_a_body_that_breaks_a_rule_is_refused_at_its_place(
    dialect: str, rule: str, place: str, request_body: JSON
) -> None:
    found = judge_chat(request_body, dialect=dialect)
    assert (rule, place) in [(violation.rule, violation.place) for violation in found]
    assert len({(violation.rule, violation.place) for violation in found}) <= 3
    assert all(violation.text and json.dumps(violation.body) for violation in found)


RECORDED: list[tuple[str, JSON, JSON]] = [
    (
        "openai",
        body(
            USER, asks(), result(), asks(), {"role": "tool", "tool_call_id": ID, "content": [IMAGE]}
        ),
        {
            "error": {
                "message": (
                    "Invalid 'messages[4]'. Content blocks are expected to be either text or"
                    " image_url type."
                ),
                "type": "invalid_request_error",
                "param": "messages[4]",
                "code": None,
            }
        },
    ),
    (
        "openai",
        body(
            tools=[
                tool(
                    "get_current_weather",
                    {
                        "type": "object",
                        "properties": {"unit": {"type": "string"}},
                        "required": [],
                        "additionalProperties": False,
                    },
                    strict=True,
                )
            ]
        ),
        {
            "error": {
                "message": (
                    "Invalid schema for function 'get_current_weather': In context=(),"
                    " 'required' is required to be supplied and to be an array including every"
                    " key in properties. Missing 'unit'."
                ),
                "type": "invalid_request_error",
                "param": "tools[0].function.parameters",
                "code": "invalid_function_parameters",
            }
        },
    ),
    (
        "openai",
        body(temperature=-1),
        {
            "error": {
                "message": (
                    "Invalid 'temperature': decimal below minimum value. Expected a value >= 0,"
                    " but got -1 instead."
                ),
                "type": "invalid_request_error",
                "param": "temperature",
                "code": "decimal_below_min_value",
            }
        },
    ),
    (
        "mistral",
        body(USER, asks(), result(), USER),
        {
            "object": "error",
            "message": "Unexpected role 'user' after role 'tool'",
            "type": "invalid_request_message_order",
            "param": None,
            "code": "3230",
        },
    ),
    (
        "mistral",
        body(USER, asks(call("call_search")), result("call_search")),
        {
            "object": "error",
            "message": (
                "Tool call id was call_search but must be a-z, A-Z, 0-9, with a length of 9."
            ),
            "type": "invalid_function_call",
            "param": None,
            "code": "3280",
        },
    ),
]


@pytest.mark.parametrize(("dialect", "request_body", "answer"), RECORDED)
def test_a_refusal_is_worded_as_the_provider_words_it(
    dialect: str, request_body: JSON, answer: JSON
) -> None:
    assert judge_chat(request_body, dialect=dialect)[0].body == answer


def test_the_rules_of_an_unknown_server_are_asked_for_in_vain() -> None:
    with pytest.raises(ValueError, match=r"known are azure, cerebras, deepseek"):
        judge_chat(body(), dialect="x")


@pytest.mark.parametrize("dialect", sorted(RULES))
def test_every_dialect_takes_a_conversation_with_a_tool(dialect: str) -> None:
    extra = {"reasoning_content": ""} if dialect == "deepseek" else {}
    assert judge_chat(body(USER, asks(**extra), result(), SAID, USER), dialect=dialect) == []
