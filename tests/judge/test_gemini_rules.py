"""Every rule about Gemini requests: a body that keeps it, and one that does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golem.testing.judge import GeminiProvider, judge_gemini
from golem.testing.judge.gemini_contents import (
    BEGINS,
    CALL_ORDER,
    CORRUPTED,
    ENDS,
    MIXED,
    RESULT_COUNT,
    RESULT_ORDER,
)

JSON = dict[str, Any]
USER: JSON = {"role": "user", "parts": [{"text": "hi"}]}
SAID: JSON = {"role": "model", "parts": [{"text": "yes"}]}
PNG = {"mimeType": "image/png", "data": "aGk="}
OBJECT = {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
SIGNED = "c2ln"


def call(name: Any = "f", signature: str = SIGNED, **more: Any) -> JSON:
    part: JSON = {"functionCall": {"name": name, "args": {}, **more}}
    return {**part, "thoughtSignature": signature} if signature else part


def asks(*calls: JSON) -> JSON:
    return {"role": "model", "parts": list(calls or [call()])}


def result(name: Any = "f", **more: Any) -> JSON:
    return {"functionResponse": {"name": name, "response": {"output": "ok"}, **more}}


def results(*found: JSON) -> JSON:
    return {"role": "user", "parts": list(found or [result()])}


def body(*contents: JSON, **more: Any) -> JSON:
    return {"contents": list(contents or [USER]), **more}


def user(*parts: JSON) -> JSON:
    return body({"role": "user", "parts": list(parts)})


def tools(*functions: JSON) -> JSON:
    return {"tools": [{"functionDeclarations": list(functions or [function()])}]}


def function(name: Any = "f", schema: Any = None) -> JSON:
    return {"name": name, "parametersJsonSchema": OBJECT if schema is None else schema}


def config(**members: Any) -> JSON:
    return body(generationConfig=members)


def output(schema: Any, **more: Any) -> JSON:
    return config(responseMimeType="application/json", responseJsonSchema=schema, **more)


def calling(**members: Any) -> JSON:
    return {"toolConfig": {"functionCallingConfig": members}}


ACCEPTED: list[tuple[str, JSON]] = [
    ("user", body()),
    ("no role", body({"parts": [{"text": "hi"}]})),
    ("one part, bare", body({"role": "user", "parts": {"text": "hi"}})),
    ("empty text", user({"text": ""})),
    ("several users", body(USER, USER, SAID, USER)),
    ("several models", body(USER, SAID, SAID, USER)),
    ("a step", body(USER, asks(), results())),
    ("two steps", body(USER, asks(), results(), asks(), results())),
    (
        "parallel calls, the first of which is signed",
        body(USER, asks(call("f"), call("g", "")), results(result("g"), result("f"))),
    ),
    ("ids", body(USER, asks(call(id="a"), call(id="b")), results(result(id="b"), result()))),
    ("more beside results", body(USER, asks(), results(result(), {"text": "and?"}))),
    ("results of functions", body(USER, asks(), {"role": "function", "parts": [result()]})),
    ("an old step without a signature", body(USER, asks(call("f", "")), results(), SAID, USER)),
    ("snake case", body(USER, asks({"function_call": {"name": "f"}, "thought_signature": SIGNED}),
                        results({"function_response": {"name": "f", "response": {}}}))),
    ("nulls", body(systemInstruction=None, tools=None)),
    ("media", user({"text": "see"}, {"inlineData": PNG}, {"fileData": {"fileUri": "gs://e/x"}})),
    ("media in a result", body(USER, asks(), results(result(parts=[{"inlineData": PNG}])))),
    ("server tools' parts", body(USER, {"role": "model", "parts": [{"toolCall": {}}]}, USER)),
    ("instructions", body(systemInstruction={"parts": [{"text": "be brief"}]})),
    ("tools", body(**tools())),
    ("any call", body(**tools(), **calling(mode="ANY", allowedFunctionNames=["f"]))),
    ("none", body(**tools(), **calling(mode="NONE"))),
    ("schemas of their own", body(**tools({"name": "f", "parameters": {"type": "OBJECT"}}))),
    ("an answer in JSON beside tools", {**output(OBJECT), **tools()}),
    ("a reference", output({"$ref": "#/$defs/a", "$defs": {"a": OBJECT}, "title": "A"})),
    ("numbers as texts", config(maxOutputTokens="5", topK=3)),
    ("thinking", config(thinkingConfig={"thinkingLevel": "low"})),
    ("no thinking", config(thinkingConfig={"thinkingBudget": 0})),
]  # fmt: skip
REFUSED: list[tuple[str, JSON]] = [
    ("member_type", {"contents": "hi"}),
    ("member_type", body({"role": 1, "parts": [{"text": "hi"}]})),
    ("member_type", user({"text": ["hi"]})),
    ("member_type", user({"text": "hi", "thought": "yes"})),
    ("member_type", body(USER, asks(call(args="{}")), results())),
    ("member_type", body(USER, asks(), results(result(response="ok")))),
    ("member_type", config(maxOutputTokens="many")),
    ("member_type", config(temperature=True)),
    ("member_type", body(labels=[{}])),
    ("unknown_member", body(messages=[])),
    ("unknown_member", user({"content": "hi"})),
    ("unknown_member", body({**USER, "name": "x"})),
    ("unknown_member", body(**tools({"name": "f", "parameters": {"const": 1}}))),
    ("repeated_member", user({"text": "hi", "inlineData": PNG, "inline_data": PNG})),
    ("base64", user({"inlineData": {**PNG, "data": "no base64"}})),
    ("base64", body(USER, asks(call(signature="c2lnc")), results())),
    ("valid_utf8", user({"text": "\ud800"})),
    ("empty_contents", {}),
    ("empty_contents", {"contents": []}),
    ("role", body({"role": "assistant", "parts": [{"text": "hi"}]})),
    ("empty_parts", body(USER, {"role": "model", "parts": []}, USER)),
    ("empty_parts", body({"role": "user"})),
    ("part_data", user({})),
    ("part_data", user({"thoughtSignature": SIGNED})),
    ("part_data", user({"text": "hi", "inlineData": PNG})),
    ("part_data", body(USER, asks(), results(result(parts=[{}])))),
    ("first_content", body(SAID, USER)),
    ("call_order", body(asks(), results())),
    ("call_order", body(USER, SAID, asks(), results())),
    ("last_content", body(USER, SAID)),
    ("unanswered_call", body(USER, asks())),
    ("unanswered_call", body(USER, asks(), USER)),
    ("result_count", body(USER, asks(), results(result(), result()))),
    ("result_count", body(USER, asks(call(), call()), results(), results())),
    ("orphan_result", body(USER, results())),
    ("orphan_result", body(USER, asks(), results(), results())),
    ("result_match", body(USER, asks(call("f")), results(result("g")))),
    ("result_match", body(USER, asks(call(id="a")), results(result(id="b")))),
    ("result_body", body(USER, asks(), {"parts": [{"functionResponse": {"name": "f"}}]})),
    ("repeated_id", body(USER, asks(call(id="a"), call(id="a")), results(result(), result()))),
    ("mixed_turn", body(USER, {"role": "user", "parts": [call()]}, results())),
    ("mixed_turn", body(USER, asks(), {"role": "model", "parts": [result()]})),
    ("missing_signature", body(USER, asks(call("f", "")), results())),
    ("missing_signature", body(USER, asks(), results(), asks(call("f", "")), results())),
    ("missing_signature", body(USER, asks(call("f", ""), call()), results(result(), result()))),
    ("name", body(USER, asks(call("")), results(result("")))),
    ("name", body(USER, asks(call("9f")), results(result("9f")))),
    ("name", body(**tools(function("get weather")))),
    ("name", body(**tools(function("x" * 129)))),
    ("mime_type", user({"inlineData": {**PNG, "mimeType": "application/zip"}})),
    ("mime_type", user({"inlineData": {"data": "aGk="}})),
    ("mime_type", body(USER, asks(), results(result(parts=[{"inlineData":
                                                            {**PNG, "mimeType": "audio/wav"}}])))),
    ("media_data", user({"inlineData": {"mimeType": "image/png", "data": ""}})),
    ("media_link", user({"fileData": {"fileUri": "file:///x"}})),
    ("media_link", user({"fileData": {}})),
    ("instruction_part", body(systemInstruction={"parts": [{"inlineData": PNG}]})),
    ("empty_parts", body(systemInstruction={"parts": []})),
    ("empty_tool", body(tools=[{}])),
    ("repeated_function", body(**tools(function(), function()))),
    ("function_count", body(**tools(*(function(f"f{n}") for n in range(513))))),
    ("schema", body(**tools(function(schema={"type": "string"})))),
    ("schema", body(**tools({"name": "f", "parametersJsonSchema": OBJECT, "parameters": {}}))),
    ("schema", body(**tools({"name": "f", "parameters": {"type": "ARRAY"}}))),
    ("schema", body(**tools({"name": "f", "parameters": {"type": "OBJECT", "required": ["a"]}}))),
    ("schema", body(**tools({"name": "f", "parameters": {"type": "BOOLEAN", "enum": ["a"]}}))),
    ("member_type", body(**tools({"name": "f", "parameters": {"type": "THING"}}))),
    ("schema", output({"type": "thing"})),
    ("schema", output({"type": [{}]})),
    ("schema", output([])),
    ("schema", output({"$ref": "#", "minItems": 1})),
    ("schema", output(OBJECT, responseSchema={"type": "OBJECT"})),
    ("tool_choice", body(**calling(mode="ANY"))),
    ("tool_choice", body(**tools(), **calling(mode="AUTO", allowedFunctionNames=["f"]))),
    ("tool_choice", body(**tools(), **calling(mode="ANY", allowedFunctionNames=["g"]))),
    ("member_type", body(**tools(), **calling(mode="SOME"))),
    ("sampling", config(temperature=2.5)),
    ("sampling", config(topP=-1)),
    ("sampling", config(maxOutputTokens=0)),
    ("stop", config(stopSequences=[*"abcdef"])),
    ("stop", config(stopSequences=[""])),
    ("response_type", config(responseMimeType="text/html")),
    ("response_type", config(responseJsonSchema=OBJECT)),
    ("thinking", config(thinkingConfig={"thinkingLevel": "low", "thinkingBudget": 5})),
    ("thinking", config(thinkingConfig={"thinkingBudget": -2})),
    ("member_type", config(thinkingConfig={"thinkingLevel": "deep"})),
]  # fmt: skip


@pytest.mark.parametrize(("name", "asked"), ACCEPTED, ids=[name for name, _ in ACCEPTED])
def test_what_keeps_the_rules_is_taken(name: str, asked: JSON) -> None:
    assert judge_gemini(asked) == []


@pytest.mark.parametrize(("rule", "asked"), REFUSED)
def test_what_breaks_a_rule_is_refused_by_name(rule: str, asked: JSON) -> None:
    found = judge_gemini(asked)
    assert rule in [violation.rule for violation in found]
    for violation in found:
        error = violation.body["error"]
        assert (error["code"], error["status"]) == (violation.status, "INVALID_ARGUMENT")
        assert error["message"] == violation.text


OLDER: list[tuple[str, JSON]] = [
    ("result_media", body(USER, asks(), results(result(parts=[{"inlineData": PNG}])))),
    ("response_type", {**output(OBJECT), **tools()}),
    ("thinking", config(thinkingConfig={"thinkingLevel": "LOW"})),
]


@pytest.mark.parametrize(("rule", "asked"), OLDER)
def test_what_only_new_models_take_older_ones_refuse(rule: str, asked: JSON) -> None:
    assert judge_gemini(asked, model="gemini-3-pro") == []
    assert [found.rule for found in judge_gemini(asked, model="gemini-2.5-pro")] == [rule]


def test_older_models_ask_for_no_signatures() -> None:
    asked = body(USER, asks(call("f", "")), results())
    assert judge_gemini(asked, model="gemini-2.5-pro") == []


def test_vertex_knows_no_parts_of_server_tools_and_wants_media_types() -> None:
    asked = body(USER, {"role": "model", "parts": [{"toolCall": {}}]}, USER)
    assert [found.rule for found in judge_gemini(asked, dialect="vertex")] == ["unknown_member"]
    asked = user({"fileData": {"fileUri": "https://e/x"}})
    assert [found.rule for found in judge_gemini(asked, dialect="vertex")] == ["mime_type"]


def test_each_server_has_its_own_words() -> None:
    told = {d: judge_gemini({}, dialect=d)[0].text for d in ("gemini", "vertex")}
    assert told["gemini"] == "* GenerateContentRequest.contents: contents is not specified\n"
    assert told["vertex"].startswith("Unable to submit request because at least one contents")


def test_the_texts_are_those_on_record() -> None:
    """From public reports of what people were refused with."""

    def told(asked: JSON) -> str:
        return judge_gemini(asked)[0].text

    assert told(user({"content": "x"})) == (
        "Invalid JSON payload received. Unknown name \"content\" at 'contents[0].parts[0]': Cannot"
        " find field."
    )
    assert told(body(USER, {"role": "model", "parts": []}, USER)) == (
        "* GenerateContentRequest.contents[1].parts: contents.parts must not be empty.\n"
    )
    assert told(user({})) == (
        "* GenerateContentRequest.contents[0].parts[0].data: required oneof field 'data' must have"
        " one initialized field\n"
    )
    missing = told(body(USER, asks(call("shell", "")), results(result("shell"))))
    assert missing.startswith("Function call is missing a thought_signature in functionCall parts.")
    assert "function call `default_api:shell` , position 2." in missing
    for asked, text in [
        (body(USER, SAID, asks(), results()), CALL_ORDER),
        (body(USER, results()), RESULT_ORDER),
        (body(USER, asks(), USER), RESULT_COUNT),
        (body(USER, asks(), {"role": "model", "parts": [result()]}), MIXED),
        (body(USER, SAID), ENDS),
        (body(SAID, USER), BEGINS),
    ]:
        assert text in [found.text for found in judge_gemini(asked)]


def test_the_parser_names_fields_in_the_protos_spelling() -> None:
    (found,) = judge_gemini(user({"inlineData": {"mimeType": 1, "data": "aGk="}}))
    (detail,) = found.body["error"]["details"]
    assert found.place == "contents[0].parts[0].inlineData.mimeType"
    assert detail["fieldViolations"][0]["field"] == "contents[0].parts[0].inline_data.mime_type"


def test_a_signature_of_the_servers_own_goes_back_in_its_part() -> None:
    signed = {"text": "yes", "thoughtSignature": SIGNED}
    made_with = {SIGNED: "yes"}
    right = body(USER, {"role": "model", "parts": [signed]}, USER)
    wrong = body(USER, {"role": "model", "parts": [{**signed, "text": "no"}]}, USER)
    assert judge_gemini(right, made_with=made_with) == []
    assert [found.text for found in judge_gemini(wrong, made_with=made_with)] == [CORRUPTED]


# --- counts


def test_a_count_takes_contents_or_a_whole_request() -> None:
    count = {"method": "countTokens"}
    whole = {"generateContentRequest": {"model": "models/m", **body(**tools())}}
    assert judge_gemini(body(), **count) == []
    assert judge_gemini(whole, **count) == []
    assert judge_gemini(body(**tools()), dialect="vertex", **count) == []
    for asked, dialect, rule in [
        (body(**tools()), "gemini", "unknown_member"),
        (whole, "vertex", "unknown_member"),
        ({**whole, **body()}, "gemini", "count_twice"),
        ({"generateContentRequest": body()}, "gemini", "required_member"),
        ({}, "gemini", "empty_contents"),
    ]:
        found = judge_gemini(asked, dialect=dialect, **count)
        assert [violation.rule for violation in found] == [rule]


def test_a_dialect_without_rules_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="no rules for 'nobody'; known are gemini, vertex"):
        judge_gemini({}, dialect="nobody")
    with pytest.raises(ValueError, match="no rules for 'nobody'"):
        GeminiProvider("nobody")


# --- whatever comes

WORDS = ["contents", "parts", "role", "user", "model", "text", "functionCall", "name", "args", "f"]
WORDS += ["functionResponse", "response", "tools", "functionDeclarations", "parametersJsonSchema"]
WORDS += ["type", "object", "properties", "parameters", "items", "anyOf", "required", "enum", "id"]
WORDS += ["generationConfig", "responseJsonSchema", "toolConfig", "functionCallingConfig", "mode"]
WORDS += ["thinkingConfig", "thinkingLevel", "inlineData", "mimeType", "data", "fileData"]
WORDS += ["systemInstruction", "generateContentRequest", "thoughtSignature", "$ref", "labels"]
ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(WORDS) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=4)
    ),
    max_leaves=30,
)


def like_a_request(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Anything, where a request has something."""
    part = st.dictionaries(st.sampled_from(WORDS), inner, max_size=2)
    content = st.fixed_dictionaries(
        {"role": st.sampled_from(["user", "model"]), "parts": st.lists(part, max_size=2) | inner}
    )
    contents = st.lists(content | inner, max_size=3)
    members = dict.fromkeys(("tools", "toolConfig", "generationConfig"), inner)
    return st.fixed_dictionaries({"contents": contents}, optional=members)


DEEP: Any = []
for _ in range(600):
    DEEP = [DEEP]
NESTED: Any = {"type": "object"}
for _ in range(150):
    NESTED = {"type": "object", "properties": {"a": NESTED}}


@pytest.mark.parametrize("method", ["generateContent", "countTokens"])
@pytest.mark.parametrize("dialect", ["gemini", "vertex"])
@given(asked=ANY_JSON | like_a_request(ANY_JSON))
@settings(max_examples=60)
def test_any_json_is_taken_or_gets_a_400(dialect: str, method: str, asked: Any) -> None:
    for violation in judge_gemini(asked, dialect=dialect, method=method):
        assert violation.status == 400
        assert json.loads(json.dumps(violation.body))["error"]["message"]


@pytest.mark.parametrize(
    ("rule", "asked"),
    [
        ("depth", DEEP),
        ("depth", body(USER, asks(call(args={"a": DEEP})), results())),
        ("depth", body(**tools(function(schema=NESTED)))),
        ("depth", body(**tools({"name": "f", "parameters": NESTED}))),
    ],
    ids=["all", "arguments", "a JSON Schema", "a schema of their own"],
)
def test_what_is_nested_too_deep_is_refused(rule: str, asked: Any) -> None:
    assert [violation.rule for violation in judge_gemini(asked)] == [rule]
