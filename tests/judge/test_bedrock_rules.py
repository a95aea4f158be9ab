"""Every rule about Converse requests: a body that keeps it, and one that does not."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.testing.judge import BedrockProvider, judge_bedrock
from golem.testing.judge.answers import response_of
from golem.testing.judge.bedrock_families import FAMILIES, known_form, rules_of
from golem.testing.judge.bedrock_turns import thoughts_of
from tests.adapters.conversing import CLAUDE, LLAMA, NOVA

JSON = dict[str, Any]
TITAN = "amazon.titan-text-express-v1"
WRITER = "us.writer.palmyra-x4-v1:0"
MISTRAL = "us.mistral.pixtral-large-2502-v1:0"
QWEN = "qwen.qwen3-32b-v1:0"

TEXT: JSON = {"text": "hi"}
IMAGE: JSON = {"image": {"format": "png", "source": {"bytes": "aGk="}}}
VIDEO: JSON = {"video": {"format": "mp4", "source": {"bytes": "aGk="}}}
MARK: JSON = {"cachePoint": {"type": "default"}}
THOUGHT: JSON = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "EqRa"}}}
SEALED: JSON = {"reasoningContent": {"redactedContent": "aGk="}}
CLOSED: JSON = {"type": "object", "properties": {}, "additionalProperties": False}
BUDGET: JSON = {"thinking": {"type": "enabled", "budget_tokens": 1024}}


def user(*blocks: Any) -> JSON:
    return {"role": "user", "content": list(blocks or [TEXT])}


def says(*blocks: Any) -> JSON:
    return {"role": "assistant", "content": list(blocks or [TEXT])}


USER, SAID = user(), says()


def use(id: Any = "a", name: Any = "f", args: Any = None, **more: Any) -> JSON:
    given = {} if args is None else args
    return {"toolUse": {"toolUseId": id, "name": name, "input": given, **more}}


def result(id: Any = "a", content: Any = None, **more: Any) -> JSON:
    told = [TEXT] if content is None else content
    return {"toolResult": {"toolUseId": id, "content": told, **more}}


def server(id: str = "s") -> JSON:
    return use(id, type="server_tool_use")


def document(name: Any = "document-1", **more: Any) -> JSON:
    whole = {"format": "pdf", "name": name, "source": {"bytes": "aGk="}, **more}
    return {"document": whole}


def s3(kind: str, format: str, uri: str = "s3://bucket/key") -> JSON:
    return {kind: {"format": format, "source": {"s3Location": {"uri": uri}}, "name": "a"}}


def tool(name: Any = "f", **more: Any) -> JSON:
    return {"toolSpec": {"name": name, "inputSchema": {"json": {"type": "object"}}, **more}}


def body(*messages: Any, **more: Any) -> JSON:
    whole = {"messages": list(messages or [USER]), **more}
    return {name: value for name, value in whole.items() if value != "leave out"}


def asked(*messages: Any, choice: Any = None, **more: Any) -> JSON:
    """A body with a tool."""
    config: JSON = {"tools": [tool()], **({"toolChoice": choice} if choice else {})}
    return body(*messages, toolConfig=config, **more)


def output(schema: Any = None) -> JSON:
    whole = {"name": "out", "schema": json.dumps(CLOSED if schema is None else schema)}
    return {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": whole}}}


ACCEPTED: list[tuple[str, JSON]] = [
    ("", body()),
    ("", body(system=[])),
    ("", body(system=[TEXT, MARK], inferenceConfig={"maxTokens": 5, "temperature": 0.5})),
    ("", body(USER, SAID, USER)),
    ("", asked(USER, says(use()), user(result()))),
    ("", asked(USER, says(use("a"), use("b")), user(result("b"), result("a")))),
    ("", asked(USER, says(use("functions.f:0")), user(result("functions.f:0")))),
    ("", asked(USER, says(use()), user(result(content=[{"text": ""}])))),
    ("", asked(USER, says(use()), user(result(content=[{"json": {}}, IMAGE])))),
    ("", asked(USER, says(use()), user(result(status="error")))),
    ("", asked(USER, says(server(), result("s"), TEXT), USER)),
    ("", body(user(TEXT, IMAGE, document("A document (1) [2]"), VIDEO))),
    ("", body(user(TEXT, s3("video", "mp4"), MARK))),
    ("", body(user(*[IMAGE] * 20, *[document()] * 5, TEXT))),
    ("", body(USER, says(THOUGHT, SEALED, TEXT), USER)),
    ("", asked(choice={"any": {}})),
    ("", asked(choice={"tool": {"name": "f"}})),
    ("", body(outputConfig=output())),
    (CLAUDE, body(SAID, USER)),
    (CLAUDE, asked(USER, says(use()), user(result(), TEXT, IMAGE, document()))),
    (CLAUDE, body(user(TEXT, s3("document", "pdf")))),
    (
        CLAUDE,
        asked(
            USER, says(THOUGHT, use()), user(result()), additionalModelRequestFields=dict(BUDGET)
        ),
    ),
    (NOVA, asked(USER, says(use()), user(result(), TEXT, VIDEO))),
    (NOVA, body(user(TEXT, {"video": {"format": "video/mp4", "source": {"bytes": "aGk="}}}))),
    (NOVA, body(toolConfig={"tools": [{"systemTool": {"name": "nova_code_interpreter"}}]})),
    (TITAN, body(USER, USER)),
    (QWEN, body(SAID, USER)),
    (WRITER, asked(USER, says(use()), user(result()), choice={"auto": {}})),
]


@pytest.mark.parametrize(("model", "request_body"), ACCEPTED)
def test_what_keeps_the_rules_is_taken(model: str, request_body: JSON) -> None:
    assert judge_bedrock(request_body, model=quote(model, safe="")) == []


MEANT = "messages.2.content.0.toolResult"
REFUSED: list[tuple[str, str, Any]] = [
    ("", "member_type at the body", []),
    ("", "required_member at messages", {}),
    ("", "empty_messages at messages", {"messages": []}),
    ("", "unknown_member at model", body(model="m")),
    ("", "valid_utf8 at the body", body(user({"text": "\ud800"}))),
    ("", "number at the body", asked(USER, says(use(args={"a": float("inf")})), user(result()))),
    ("", "member_type at inferenceConfig", body(inferenceConfig=[])),
    ("", "unknown_member at inferenceConfig.topK", body(inferenceConfig={"topK": 1})),
    ("", "sampling at inferenceConfig.temperature", body(inferenceConfig={"temperature": 2})),
    ("", "sampling at inferenceConfig.maxTokens", body(inferenceConfig={"maxTokens": 0})),
    ("", "member_type at inferenceConfig.topP", body(inferenceConfig={"topP": "1"})),
    (
        "",
        "member_type at inferenceConfig.stopSequences",
        body(inferenceConfig={"stopSequences": [""]}),
    ),
    ("", "member_type at system", body(system="be brief")),
    ("", "blank_text at system.0", body(system=[{"text": " "}])),
    ("", "block_kind at system.0", body(system=[IMAGE])),
    (TITAN, "system at system", body(system=[TEXT])),
    # messages and blocks
    ("", "role at messages.0.role", body({"role": "tool", "content": [TEXT]})),
    ("", "empty_message at messages.0", body({"role": "user", "content": []})),
    ("", "empty_message at messages.0", body({"role": "user", "content": "hi"})),
    ("", "unknown_member at messages.0.name", body({**USER, "name": "x"})),
    ("", "blank_text at messages.0.content.0", body(user({"text": ""}))),
    ("", "member_type at messages.0.content.0.text", body(user({"text": 1}))),
    ("", "block_kind at messages.0.content.0", body(user({**TEXT, **IMAGE}))),
    ("", "block_kind at messages.0.content.0", body(user({"what": 1}))),
    ("", "block_kind at messages.0.content.0", body(user(THOUGHT, TEXT))),
    ("", "block_kind at messages.1.content.0", body(USER, says(IMAGE), USER)),
    ("", "user_first at messages.0", body(SAID, USER)),
    ("", "prefill at messages.1", body(USER, SAID)),
    ("", "alternation at messages.1", body(USER, USER)),
    (CLAUDE, "alternation at messages.1", body(USER, USER)),
    # calls and results
    (
        "",
        "call_id at messages.1.content.0.toolUse.toolUseId",
        asked(USER, says(use("a b")), user(result("a b"))),
    ),
    (
        "",
        "call_id at messages.1.content.0.toolUse.toolUseId",
        asked(USER, says(use("x" * 65)), user(result("x" * 65))),
    ),
    (
        "",
        "name at messages.1.content.0.toolUse.name",
        asked(USER, says(use(name="a.b")), user(result())),
    ),
    (
        "",
        "arguments at messages.1.content.0.toolUse.input",
        asked(USER, says(use(args="{}")), user(result())),
    ),
    ("", "repeated_id at messages.1", asked(USER, says(use(), use()), user(result()))),
    ("", "unanswered_call at messages.1", asked(USER, says(use()), USER)),
    ("", "unanswered_call at messages.1", asked(USER, says(use()))),
    ("", "unanswered_call at messages.1", asked(USER, says(use("a"), use("b")), user(result()))),
    ("", "orphan_result at messages.0", asked(user(result()))),
    ("", "orphan_result at messages.2", asked(USER, says(use()), user(result(), result()))),
    ("", "orphan_result at messages.2", asked(USER, says(use()), user(result("b")))),
    (CLAUDE, "result_order at messages.2", asked(USER, says(use()), user(TEXT, result()))),
    ("", f"status at {MEANT}.status", asked(USER, says(use()), user(result(status="bad")))),
    (
        WRITER,
        f"status at {MEANT}.status",
        asked(USER, says(use()), user(result(status="success"))),
    ),
    (
        "",
        f"failed_result at {MEANT}",
        asked(USER, says(use()), user(result(content=[], status="error"))),
    ),
    (
        NOVA,
        f"block_kind at {MEANT}.content.0",
        asked(USER, says(use()), user(result(content=[VIDEO]))),
    ),
    ("", "tool_config at toolConfig", body(USER, says(use()), user(result()))),
    ("", "server_pairing at messages.1", asked(USER, says(server(), TEXT), USER)),
    ("", "server_pairing at messages.1", asked(USER, says(result("s"), TEXT), USER)),
    # what stands together
    (LLAMA, "beside_results at messages.2", asked(USER, says(use()), user(result(), TEXT))),
    (MISTRAL, "beside_results at messages.2", asked(USER, says(use()), user(result(), TEXT))),
    (CLAUDE, "block_kind at messages.2.content.1", asked(USER, says(use()), user(result(), VIDEO))),
    ("", "document_text at messages.0", body(user(document()))),
    ("", "many_media at messages.0", body(user(*[IMAGE] * 21))),
    ("", "many_media at messages.0", body(user(TEXT, *[document()] * 6))),
    # media
    (CLAUDE, "block_kind at messages.0.content.0", body(user(VIDEO))),
    (CLAUDE, "media_link at messages.0.content.0", body(user(s3("image", "png")))),
    (
        "",
        "media_link at messages.0.content.0.image.source",
        body(user(s3("image", "png", "https://example.com/a.png"))),
    ),
    (
        "",
        "media_type at messages.0.content.0.image.format",
        body(user({"image": {"format": "bmp", "source": {"bytes": "aGk="}}})),
    ),
    (
        "",
        "media_data at messages.0.content.0",
        body(user({"image": {"format": "png", "source": {"bytes": "no base64"}}})),
    ),
    (
        "",
        "required_member at messages.0.content.0.image.source",
        body(user({"image": {"format": "png"}})),
    ),
    (
        "",
        "document_name at messages.0.content.1.document.name",
        body(user(TEXT, document("report.pdf"))),
    ),
    (
        "",
        "document_name at messages.0.content.1.document.name",
        body(user(TEXT, document("two  blanks"))),
    ),
    # thinking
    ("", "last_thinking at messages.1", body(USER, says(TEXT, THOUGHT), USER)),
    (
        CLAUDE,
        "signature at messages.1.content.0",
        body(USER, says({"reasoningContent": {"reasoningText": {"text": "hm"}}}, TEXT), USER),
    ),
    (
        CLAUDE,
        "first_thinking at messages.1",
        asked(USER, says(use()), user(result()), additionalModelRequestFields=BUDGET),
    ),
    (
        CLAUDE,
        "forced_thinking at toolConfig.toolChoice.any",
        asked(choice={"any": {}}, additionalModelRequestFields=BUDGET),
    ),
    # tools, output, caches
    (
        "",
        "tools at toolConfig.tools",
        body(toolConfig={"tools": []}),
    ),
    ("", "tool_type at toolConfig.tools.0", body(toolConfig={"tools": [{"function": {}}]})),
    (
        "",
        "name at toolConfig.tools.0.toolSpec.name",
        body(toolConfig={"tools": [tool("get weather")]}),
    ),
    (
        "",
        "repeated_name at toolConfig.tools",
        body(toolConfig={"tools": [tool(), tool()]}),
    ),
    (
        "",
        "description at toolConfig.tools.0.toolSpec.description",
        body(toolConfig={"tools": [tool(description="")]}),
    ),
    (
        "",
        "schema at toolConfig.tools.0.toolSpec.inputSchema.json.type",
        body(toolConfig={"tools": [tool(inputSchema={"json": {}})]}),
    ),
    ("", "tool_choice at toolConfig.toolChoice", asked(choice={"none": {}})),
    ("", "tool_choice at toolConfig.toolChoice.tool", asked(choice={"tool": {"name": "g"}})),
    (LLAMA, "tool_choice at toolConfig.toolChoice.any", asked(choice={"any": {}})),
    (NOVA, "output_schema at outputConfig.textFormat", body(outputConfig=output())),
    (
        "",
        "schema at outputConfig.textFormat.structure.jsonSchema.schema",
        body(outputConfig=output({"type": "object"})),
    ),
    (
        "",
        "member_type at outputConfig.textFormat.structure.jsonSchema.schema",
        body(outputConfig=output("x")),
    ),
    ("", "cache_marks at the body", body(user(TEXT, *[MARK] * 5))),
    ("", "cache_mark at messages.0.content.1", body(user(TEXT, {"cachePoint": {}}))),
    (LLAMA, "cache_mark at messages.0.content.1", body(user(TEXT, MARK))),
]


@pytest.mark.parametrize(("model", "rule", "request_body"), REFUSED)
def test_what_breaks_a_rule_is_refused_where_it_does(
    model: str, rule: str, request_body: Any
) -> None:
    broken = judge_bedrock(request_body, model=quote(model, safe=""))
    assert rule in [str(violation).partition(": ")[0] for violation in broken]


RECORDED: list[tuple[str, JSON, str]] = [
    (
        CLAUDE,
        asked(USER, says(use()), user(result(content=[s3("image", "jpeg")]))),
        "This model doesn't support the s3Uri field. Remove s3Uri and try again.",
    ),
    (
        CLAUDE,
        asked(USER, says(use()), user(result(content=[s3("video", "mp4")]))),
        "This model doesn't support the video content block that you provided. Update the content"
        " block and try again.",
    ),
    (
        "",
        body(user({"text": " "})),
        "The text field in the ContentBlock object at messages.0.content.0 is blank. Add text to"
        " the text field, and try again.",
    ),
    (
        "",
        asked(USER, says(use("t1")), USER),
        "Expected toolResult blocks at messages.2.content for the following Ids: t1",
    ),
    (
        "",
        asked(user(result())),
        "The number of toolResult blocks at messages.0.content exceeds the number of toolUse blocks"
        " of previous turn.",
    ),
    (
        "",
        body(USER, says(use()), user(result())),
        "The toolConfig field must be defined when using toolUse and toolResult content blocks.",
    ),
]


@pytest.mark.parametrize(("model", "request_body", "text"), RECORDED)
def test_a_refusal_is_worded_as_the_service_words_it(
    model: str, request_body: JSON, text: str
) -> None:
    assert {"message": text} in [found.body for found in judge_bedrock(request_body, model=model)]


# --- what takes more than a body


def test_a_count_asks_of_a_conversation() -> None:
    counted = {"input": {"converse": asked(USER)}}
    assert judge_bedrock(counted, counts=True) == []
    assert judge_bedrock({"input": {"invokeModel": {"body": "e30="}}}, counts=True) == []
    (found,) = judge_bedrock(body(), counts=True)
    assert found.place == "input"
    (found,) = judge_bedrock({"input": {"converse": body(inferenceConfig={})}}, counts=True)
    assert found.place == "inferenceConfig"


def test_thinking_comes_back_as_it_was_and_only_its_own() -> None:
    made_with = thoughts_of([THOUGHT, SEALED, TEXT])
    other: JSON = {"reasoningContent": {"reasoningText": {"text": "Hm!", "signature": "EqRa"}}}
    stranger: JSON = {"reasoningContent": {"reasoningText": {"text": "", "signature": "c2ln"}}}

    def thinks(*blocks: JSON, own: bool = True) -> list[str]:
        whole = body(USER, says(*blocks), USER)
        found = judge_bedrock(whole, made_with=made_with, own_thinking=own)
        return [violation.rule for violation in found]

    assert thinks(THOUGHT, SEALED, TEXT) == []
    assert thinks(THOUGHT, TEXT) == []
    assert thinks(other, TEXT) == ["signature"]
    assert thinks(stranger, TEXT) == ["signature"]
    assert thinks(stranger, TEXT, own=False) == []


@pytest.mark.parametrize("model", [CLAUDE, NOVA, LLAMA, TITAN, "m", "arn:aws:bedrock:x:1:y/z"])
def test_a_models_identifier_has_a_form(model: str) -> None:
    assert known_form(quote(model, safe=""))


@pytest.mark.parametrize("model", ["us.amazon.nova-micro-v1:O", "us.does-not-exist-model-v1:0"])
def test_the_identifiers_that_were_refused_have_it_not(model: str) -> None:
    assert not known_form(quote(model, safe=""))


def test_the_family_is_told_by_the_name_with_a_region_or_an_arn_around_it() -> None:
    claude = FAMILIES[0][1]
    arn = "arn:aws:bedrock:us-east-1:1:inference-profile/us.anthropic.claude-x"
    assert {id(rules_of(name)) for name in ("anthropic.claude-v2", CLAUDE, arn)} == {id(claude)}


# --- any JSON whatever

WORDS = st.sampled_from(
    [
        *("role", "content", "text", "toolUse", "toolResult", "toolUseId", "name", "input"),
        *("status", "json", "image", "document", "format", "source", "bytes", "s3Location", "uri"),
        *("reasoningContent", "reasoningText", "signature", "redactedContent", "cachePoint"),
        *("type", "default", "user", "assistant", "system", "server_tool_use", "toolSpec"),
        *(
            "tools",
            "toolChoice",
            "inputSchema",
            "any",
            "tool",
            "object",
            "textFormat",
            "jsonSchema",
        ),
        *("schema", "structure", "json_schema", "{}", "thinking", "enabled", "png", "pdf"),
    ]
)
ANY = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | WORDS
    | st.text(max_size=3)
    | st.just("\ud800"),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(WORDS | st.text(max_size=3), inner, max_size=5)
    ),
    max_leaves=20,
)
NAMES = (
    *("messages", "system", "toolConfig", "inferenceConfig", "outputConfig"),
    *("additionalModelRequestFields", "input"),
)
BODIES = st.one_of(
    ANY,
    st.fixed_dictionaries({}, optional=dict.fromkeys(NAMES, ANY)),
    st.fixed_dictionaries({"messages": st.just([USER])}, optional=dict.fromkeys(NAMES[1:], ANY)),
    st.lists(ANY, max_size=3).map(lambda blocks: body(user(*blocks))),
    st.lists(ANY, max_size=3).map(lambda blocks: body(USER, says(*blocks), USER)),
    st.lists(ANY, max_size=3).map(lambda messages: body(*messages)),
)
PATHS = [f"/model/{model}/{action}" for model in ("m", "us.meta.x") for action in ("converse",)]
PATHS += ["/v1/model/anthropic.claude/converse-stream", "/model/m/count-tokens"]


@given(BODIES, st.sampled_from(PATHS))
def test_any_json_is_answered_and_never_a_crash(request_body: Any, path: str) -> None:
    provider = BedrockProvider()
    found = provider.judge_request(path, {}, request_body, {})
    assert all(json.dumps(violation.body) for violation in found)
    if not found and provider.aside(path, request_body) is None:
        said = response_of(provider.default(request_body))
        assert provider.links(provider.answer(request_body, said)) == {}
        assert provider.events(request_body, said)
