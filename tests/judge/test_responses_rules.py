"""Every rule about Responses requests: a body that keeps it, and one that does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.testing.judge import ResponsesProvider, judge_responses

JSON = dict[str, Any]
USER: JSON = {"role": "user", "content": "hi"}
SAID: JSON = {"role": "assistant", "content": "yes"}
CLOSED = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}


def call(call_id: Any = "c", name: Any = "f", arguments: Any = "{}", **more: Any) -> JSON:
    said = {"call_id": call_id, "name": name, "arguments": arguments}
    return {"type": "function_call", **said, **more}


def result(call_id: Any = "c", output: Any = "ok", kind: str = "function_call_output") -> JSON:
    return {"type": kind, "call_id": call_id, "output": output}


def reasoning(id: str = "rs_1", sealed: str = "x", **more: Any) -> JSON:
    return {"type": "reasoning", "id": id, "summary": [], "encrypted_content": sealed, **more}


def body(*items: JSON, **more: Any) -> JSON:
    return {"model": "m", "input": list(items or [USER]), "store": False, **more}


def user(*parts: JSON) -> JSON:
    return body({"role": "user", "content": list(parts)})


def tool(name: Any = "f", **more: Any) -> JSON:
    return {"type": "function", "name": name, "parameters": CLOSED, **more}


def text(**members: Any) -> JSON:
    return {
        "format": {
            "type": "json_schema",
            "name": "out",
            "schema": CLOSED,
            "strict": True,
            **members,
        }
    }


CUSTOM = {"type": "custom_tool_call", "call_id": "c", "name": "sql", "input": "select"}
IMAGE = {"type": "input_image", "image_url": "data:image/png;base64,aGk=", "detail": "auto"}
FILE = {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,aGk="}

ACCEPTED: list[tuple[str, JSON]] = [
    ("openai", {"model": "m", "input": "hi"}),
    ("openai", body({"role": "developer", "content": "x"}, USER, SAID, USER, instructions="x")),
    ("openai", body(USER, call(), result(), USER)),
    ("openai", body(USER, call("a"), call("b"), result("b"), result("a"))),
    ("openai", body(USER, call(), SAID, result())),
    ("openai", body(USER, CUSTOM, result(kind="custom_tool_call_output"))),
    ("openai", body(USER, reasoning(), call(id="fc_1"), result())),
    ("openai", body(USER, reasoning(), reasoning("rs_2"), SAID)),
    (
        "openai",
        body(
            USER,
            {
                "type": "message",
                "id": "msg_1",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": "x", "annotations": []}],
                "phase": "commentary",
            },
        ),
    ),
    ("openai", body(USER, {"type": "web_search_call", "id": "ws_1", "status": "completed"}, SAID)),
    (
        "openai",
        user(
            {"type": "input_text", "text": "x"},
            IMAGE,
            FILE,
            {"type": "input_file", "file_url": "https://e/a.pdf"},
        ),
    ),
    ("openai", body(USER, call(), result(output=[IMAGE]))),
    ("openai", body(tools=[tool()], tool_choice={"type": "function", "name": "f"})),
    (
        "openai",
        body(tools=[tool(strict=False, parameters={"type": "object"})], tool_choice="required"),
    ),
    ("openai", body(tools=[tool(parameters={"type": "object"})])),
    ("openai", body(tools=[], tool_choice="auto")),
    ("openai", body(result(), previous_response_id="resp_1")),
    (
        "openai",
        body(
            {"type": "tool_search_call", "call_id": "s", "arguments": {}, "execution": "client"},
            result("s", "found"),
        ),
    ),
    (
        "openai",
        body(text=text(), include=["reasoning.encrypted_content"], reasoning={"effort": "low"}),
    ),
    ("openai", body({"role": "user", "content": "JSON"}, text={"format": {"type": "json_object"}})),
    ("openai", body(USER, reasoning(sealed=""), SAID, store=True)),
    ("deepseek", body(USER, reasoning("eaa3", sealed=""), call(id="c830"), result(), SAID)),
]

REFUSED: list[tuple[str, str, str, JSON]] = [
    ("openai", "member_type", "", []),  # type: ignore[list-item]
    ("openai", "required_member", "model", {"input": "hi"}),
    ("openai", "required_member", "input", {"model": "m"}),
    ("openai", "member_type", "input", {"model": "m", "input": 3}),
    ("openai", "unknown_member", "stop", body(stop=["x"])),
    ("openai", "valid_utf8", "", body({"role": "user", "content": "\ud800"})),
    ("openai", "include", "include[0]", body(include=["all"])),
    ("openai", "member_type", "instructions", body(instructions=["x"])),
    ("openai", "sampling", "temperature", body(temperature=-1)),
    ("openai", "sampling", "max_output_tokens", body(max_output_tokens=0)),
    ("openai", "member_type", "input[0]", body("hi")),  # type: ignore[arg-type]
    ("openai", "required_member", "input[0].type", body({"content": "x"})),
    ("openai", "role", "input[0]", body({"role": "critic", "content": "x"})),
    ("openai", "required_member", "input[0].content", body({"role": "user"})),
    ("openai", "member_type", "input[0].content", body({"role": "user", "content": 3})),
    (
        "openai",
        "unknown_member",
        "input[0].name",
        body({"role": "user", "content": "x", "name": "n"}),
    ),
    ("openai", "orphan_result", "input[1]", body(USER, result())),
    ("openai", "orphan_result", "input[1]", body(USER, result(), call(), result())),
    ("openai", "orphan_result", "input[3]", body(USER, call(), result(), result())),
    ("openai", "orphan_result", "input[2]", body(USER, CUSTOM, result())),
    ("openai", "unanswered_call", "input[1]", body(USER, call(), USER)),
    ("openai", "unanswered_call", "input[1]", body(USER, CUSTOM)),
    (
        "openai",
        "repeated_call_id",
        "input[3].call_id",
        body(USER, call(), result(), call(), result()),
    ),
    ("openai", "call_id", "input[1].call_id", body(USER, call("x" * 65), result("x" * 65))),
    ("openai", "call_id", "input[1].call_id", body(USER, call(""), result(""))),
    (
        "openai",
        "required_member",
        "input[1].call_id",
        body(USER, {"type": "function_call", "name": "f", "arguments": "{}"}),
    ),
    ("openai", "name", "input[1].name", body(USER, call(name="a.b"), result())),
    ("openai", "arguments", "input[1].arguments", body(USER, call(arguments="{"), result())),
    ("openai", "member_type", "input[1].arguments", body(USER, call(arguments={}), result())),
    (
        "openai",
        "required_member",
        "input[2].output",
        body(USER, call(), {"type": "function_call_output", "call_id": "c"}),
    ),
    ("openai", "member_type", "input[2].output", body(USER, call(), result(output=3))),
    (
        "openai",
        "part_type",
        "input[2].output[0]",
        body(USER, call(), result(output=[{"type": "text", "text": "x"}])),
    ),
    ("openai", "item_id", "input[1].id", body(USER, call(id="call_1"), result())),
    ("openai", "item_id", "input[1].id", body(USER, {**SAID, "id": "x"})),
    (
        "openai",
        "repeated_item_id",
        "input[3].id",
        body(USER, call(id="fc_1"), result(), call("d", id="fc_1"), result("d")),
    ),
    ("openai", "reasoning_follower", "input[1]", body(USER, reasoning(), USER)),
    ("openai", "reasoning_follower", "input[1]", body(USER, reasoning())),
    ("openai", "reasoning_follower", "input[2]", body(USER, call(), reasoning(), result())),
    ("openai", "reasoning_not_stored", "input[1]", body(USER, reasoning(sealed=""), SAID)),
    (
        "openai",
        "required_member",
        "input[1].summary",
        body(USER, {"type": "reasoning", "id": "rs_1", "encrypted_content": "x"}, SAID),
    ),
    ("openai", "part_type", "input[0].content[0]", user({"type": "text", "text": "x"})),
    (
        "openai",
        "part_type",
        "input[1].content[0]",
        body(USER, {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}),
    ),
    ("openai", "member_type", "input[0].content[0].text", user({"type": "input_text"})),
    (
        "openai",
        "media_link",
        "input[0].content[0].image_url",
        user({"type": "input_image", "image_url": "x"}),
    ),
    ("openai", "media_link", "input[0].content[0]", user({"type": "input_file", "file_url": "x"})),
    (
        "openai",
        "file_type",
        "input[0].content[0]",
        user({"type": "input_file", "filename": "a", "file_data": "data:audio/mpeg;base64,aGk="}),
    ),
    (
        "openai",
        "file_data",
        "input[0].content[0].file_data",
        user({"type": "input_file", "filename": "a", "file_data": "?"}),
    ),
    ("openai", "required_member", "input[0].content[0].filename", user({**FILE, "filename": ""})),
    (
        "openai",
        "sound_format",
        "input[0].content[0].input_audio.format",
        user({"type": "input_audio", "input_audio": {"data": "aGk=", "format": "ogg"}}),
    ),
    ("openai", "tool_choice", "tool_choice", body(tool_choice="required")),
    ("openai", "tool_choice", "tool_choice", body(tools=[tool()], tool_choice="any")),
    (
        "openai",
        "tool_choice",
        "tool_choice",
        body(tools=[tool()], tool_choice={"type": "function", "name": "g"}),
    ),
    ("openai", "required_member", "tools[0].type", body(tools=[{"name": "f"}])),
    ("openai", "name", "tools[0].name", body(tools=[tool("a b")])),
    (
        "openai",
        "strict_schema",
        "tools[0].parameters",
        body(tools=[tool(strict=True, parameters={"type": "object"})]),
    ),
    ("openai", "strict_schema", "text.format.schema", body(text=text(schema={"type": "object"}))),
    ("openai", "name", "text.format.name", body(text=text(name="a b"))),
    ("openai", "required_member", "text.format.schema", body(text=text(schema=None))),
    (
        "openai",
        "json_word",
        "input",
        body(text={"format": {"type": "json_object"}}, instructions="json"),
    ),
    ("deepseek", "unanswered_call", "input[1]", body(USER, call(), SAID, result())),
    ("deepseek", "member_type", "input[2].output", body(USER, call(), result(output=[IMAGE]))),
]


@pytest.mark.parametrize(("dialect", "request_body"), ACCEPTED)
def test_a_body_in_order_is_accepted(dialect: str, request_body: JSON) -> None:
    assert judge_responses(request_body, dialect=dialect) == []


@pytest.mark.parametrize(("dialect", "rule", "place", "request_body"), REFUSED)
def test_a_body_that_breaks_a_rule_is_refused_at_its_place(
    dialect: str, rule: str, place: str, request_body: JSON
) -> None:
    found = judge_responses(request_body, dialect=dialect)
    assert (rule, place) in [(violation.rule, violation.place) for violation in found]
    assert len({(violation.rule, violation.place) for violation in found}) <= 3
    assert all(violation.text and json.dumps(violation.body) for violation in found)


def test_an_item_does_not_come_back_without_the_reasoning_it_was_made_after() -> None:
    made_with = {"fc_1": "rs_1"}
    whole = body(USER, reasoning(), call(id="fc_1"), result())
    without = body(USER, call(id="fc_1"), result())
    bare = body(USER, call(), result())
    assert judge_responses(whole, made_with=made_with) == []
    assert judge_responses(bare, made_with=made_with) == []
    (found,) = judge_responses(without, made_with=made_with)
    assert found.text == (
        "Item 'fc_1' of type 'function_call' was provided without its required 'reasoning' item:"
        " 'rs_1'."
    )


RECORDED: list[tuple[str, JSON, JSON]] = [
    (
        "deepseek",
        body(USER, call("call-a"), SAID, result("call-a")),
        {
            "error": {
                "message": "No tool output found for tool call call-a.",
                "type": "invalid_request_error",
                "param": None,
                "code": "invalid_request_error",
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
        "openai",
        body(
            tools=[
                tool(
                    "get_current_weather",
                    strict=True,
                    parameters={
                        "type": "object",
                        "properties": {"unit": {}},
                        "required": [],
                        "additionalProperties": False,
                    },
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
                "param": "tools[0].parameters",
                "code": "invalid_function_parameters",
            }
        },
    ),
]


@pytest.mark.parametrize(("dialect", "request_body", "answer"), RECORDED)
def test_a_refusal_is_worded_as_the_provider_words_it(
    dialect: str, request_body: JSON, answer: JSON
) -> None:
    assert judge_responses(request_body, dialect=dialect)[0].body == answer


def test_what_makes_no_prompt_is_not_counted() -> None:
    asked = {
        "model": "m",
        "input": "hi",
        "instructions": "be brief",
        "reasoning": {"effort": "low"},
    }
    assert judge_responses(asked, counts=True) == []
    found = judge_responses({**asked, "store": False, "stream": True}, counts=True)
    assert sorted(violation.place for violation in found) == ["store", "stream"]
    judge = ResponsesProvider("deepseek")
    assert not judge.serves("/responses/input_tokens")


def test_the_rules_of_an_unknown_server_are_asked_for_in_vain() -> None:
    with pytest.raises(ValueError, match="known are azure, deepseek, openai"):
        judge_responses(body(), dialect="x")
