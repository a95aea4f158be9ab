"""What goes out to Converse: turns, calls, results, media, tools, settings, schemas, caches."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from msgspec import structs

from golem.errors import UnsupportedContentError
from golem.messages import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.model import OutputSchema, Settings, ToolChoice, ToolSpec
from golem_adapters.bedrock.dialect import UNKNOWN, dialect_of
from tests.adapters.conversing import (
    CLAUDE,
    LLAMA,
    MODELS,
    NOVA,
    answered,
    body_of,
    encode,
    shape,
    wire,
)

MISTRAL = "us.mistral.pixtral-large-2502-v1:0"
TITAN = "amazon.titan-text-express-v1"
WRITER = "us.writer.palmyra-x4-v1:0"
SPEC = ToolSpec("f", "does f", {"type": "object", "properties": {}})
PNG = Part.image(b"png", "image/png")
PDF = Part.document(b"pdf", "application/pdf")
MP4 = Part.video(b"mp4", "video/mp4")
ENCODED = base64.b64encode(b"png").decode()


def turn(*results: ToolMessage, args: str = "{}") -> list[Message]:
    """A question, a call of `f` and its results."""
    return [
        UserMessage("q"),
        AssistantMessage(tool_calls=(ToolCall.of("c1", "f", args),)),
        *results,
    ]


def result(text: str = "r", *parts: Part, failed: bool = False) -> ToolMessage:
    return ToolMessage(text, parts=parts, tool_call_id="c1", tool_name="f", failed=failed)


# --- turns


def test_instructions_are_system_and_messages_alternate() -> None:
    history: list[Message] = [
        SystemMessage("a"),
        SystemMessage(" "),
        SystemMessage("b"),
        UserMessage("one"),
        UserMessage("two"),
        AssistantMessage("x"),
        AssistantMessage("y"),
        SystemMessage("later"),
        UserMessage("three"),
    ]
    body = body_of(history)
    assert body["system"] == [{"text": "a"}, {"text": "b"}]
    assert shape(body["messages"]) == ["user:text,text", "assistant:text,text", "user:text,text"]
    assert body["messages"][2]["content"] == [{"text": "later"}, {"text": "three"}]


def test_a_family_without_instructions_gets_them_from_the_user() -> None:
    body = body_of([SystemMessage("be brief"), UserMessage("q")], model=TITAN)
    assert "system" not in body
    assert body["messages"] == [{"role": "user", "content": [{"text": "be brief"}, {"text": "q"}]}]


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ([], ["user:text"]),
        ([SystemMessage("s")], ["user:text"]),
        ([AssistantMessage("a"), UserMessage("q")], ["user:text", "assistant:text", "user:text"]),
        ([UserMessage("q"), AssistantMessage("a")], ["user:text", "assistant:text", "user:text"]),
        ([UserMessage("q"), AssistantMessage(" "), UserMessage("n")], ["user:text,text"]),
        ([UserMessage(" ")], ["user:text"]),
    ],
)
def test_the_user_speaks_first_and_last(history: list[Message], expected: list[str]) -> None:
    for model in MODELS:
        assert expected == shape(wire(history, model=model))


def test_what_has_to_be_said_is_said() -> None:
    said = [
        wire(h)[at]["content"]
        for h, at in [
            ([AssistantMessage("a")], 0),
            ([UserMessage("q"), AssistantMessage("a")], 2),
            ([UserMessage("\n")], 0),
        ]
    ]
    assert said == [
        [{"text": "(The conversation so far:)"}],
        [{"text": "Continue."}],
        [{"text": "(no text)"}],
    ]


# --- calls and results


def test_calls_and_results_are_blocks_and_success_is_not_said() -> None:
    messages = wire(turn(result(), args='{"a": 1.50}'))
    assert messages[1]["content"] == [
        {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"a": 1.5}}}
    ]
    assert messages[2]["content"] == [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "r"}]}}
    ]
    assert b'{"a": 1.50}' in encode(turn(result(), args='{"a": 1.50}'))


@pytest.mark.parametrize(
    ("args", "sent"),
    [
        ("", {}),
        (" ", {}),
        ('{"a":', {"truncated_args": '{"a":'}),
        ("[1]", {"truncated_args": "[1]"}),
        ('{"a":"\\ud800"}', {"a": "\ufffd"}),
        ('{"a":1e999}', {"a": 1.7976931348623157e308}),
    ],
)
def test_arguments_are_always_an_object(args: str, sent: dict[str, Any]) -> None:
    assert wire(turn(result(), args=args))[1]["content"][0]["toolUse"]["input"] == sent


@pytest.mark.parametrize(
    ("message", "content", "status"),
    [
        (result(""), [{"text": "(no result)"}], None),
        (result(" \n"), [{"text": "(no result)"}], None),
        (result("", failed=True), [{"text": "The tool failed."}], "error"),
        (result("no", failed=True), [{"text": "no"}], "error"),
    ],
)
def test_results_always_have_words(message: ToolMessage, content: Any, status: str | None) -> None:
    found = wire(turn(message))[2]["content"][0]["toolResult"]
    assert (content, status) == (found["content"], found.get("status"))


def test_a_family_that_refuses_the_mark_of_a_failure_gets_none() -> None:
    found = wire(turn(result("no", failed=True)), model=WRITER)[2]["content"][0]["toolResult"]
    assert found == {"toolUseId": "c1", "content": [{"text": "no"}]}


def test_ids_and_names_are_mapped_where_they_would_be_refused() -> None:
    calls = (
        ToolCall.of("call|1", "a.b", "{}"),
        ToolCall.of("x" * 65, "n" * 70, "{}"),
        ToolCall.of("functions.f:0", "f", "{}"),
        ToolCall.of("", "f", "{}"),
    )
    history: list[Message] = [
        UserMessage("q"),
        AssistantMessage(tool_calls=calls),
        *(ToolMessage(c.name, tool_call_id=c.id) for c in calls if c.id),
    ]
    for model in MODELS:
        messages = wire(history, model=model)
        uses = [block["toolUse"] for block in messages[1]["content"]]
        ids = [use["toolUseId"] for use in uses]
        assert ids == [block["toolResult"]["toolUseId"] for block in messages[2]["content"]]
        assert len(set(ids)) == 4
        assert ids[2] != "functions.f:0"
        assert all(len(use["name"]) <= 64 for use in uses)


@pytest.mark.parametrize(
    ("model", "part", "expected"),
    [
        (CLAUDE, None, ["user:toolResult,text"]),
        (CLAUDE, PNG, ["user:toolResult,text,image"]),
        (CLAUDE, PDF, ["user:toolResult", "assistant:text", "user:text,document"]),
        (NOVA, None, ["user:toolResult,text"]),
        (NOVA, PDF, ["user:toolResult,text,document"]),
        (NOVA, MP4, ["user:toolResult,text,video"]),
        (LLAMA, None, ["user:toolResult", "assistant:text", "user:text"]),
        (MISTRAL, PNG, ["user:toolResult", "assistant:text", "user:text,image"]),
        (WRITER, None, ["user:toolResult", "assistant:text", "user:text"]),
    ],
)
def test_what_stands_beside_results_is_the_familys_affair(
    model: str, part: Part | None, expected: list[str]
) -> None:
    history = [*turn(result()), UserMessage("and?", parts=(part,) if part else ())]
    messages = wire(history, model=model)
    assert expected == shape(messages)[2:]
    assert len(messages) == 3 or messages[3]["content"] == [{"text": "."}]


# --- media


@pytest.mark.parametrize(
    ("part", "block"),
    [
        (PNG, {"image": {"format": "png", "source": {"bytes": ENCODED}}}),
        (
            Part.image(b"png", "image/JPG; q=1"),
            {"image": {"format": "jpeg", "source": {"bytes": ENCODED}}},
        ),
        (
            Part.image_url(f"data:image/webp;base64,{ENCODED}"),
            {"image": {"format": "webp", "source": {"bytes": ENCODED}}},
        ),
        (
            Part.video_url("s3://b/k.mov"),
            {"video": {"format": "mov", "source": {"s3Location": {"uri": "s3://b/k.mov"}}}},
        ),
        (
            Part.video_url("S3://b/k", "video/3gpp"),
            {"video": {"format": "three_gp", "source": {"s3Location": {"uri": "s3://b/k"}}}},
        ),
    ],
)
def test_media_go_inline_or_from_s3(part: Part, block: dict[str, Any]) -> None:
    assert block == wire([UserMessage("see", parts=(part,))], model=NOVA)[0]["content"][1]


@pytest.mark.parametrize(
    ("media_type", "spelled"),
    [
        ("application/pdf", "pdf"),
        ("text/csv", "csv"),
        ("text/plain; charset=utf-8", "txt"),
        ("text/x-python", "txt"),
        ("application/json", "txt"),
        ("text/markdown", "md"),
        ("text/html", "html"),
        ("application/msword", "doc"),
        ("application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"),
        ("application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"),
    ],
)
def test_documents_by_their_media_type(media_type: str, spelled: str) -> None:
    messages = wire([UserMessage("see", parts=(Part.document(b"x", media_type),))])
    assert messages[0]["content"][1]["document"]["format"] == spelled


def test_documents_have_neutral_names_that_differ_and_a_text_beside_them() -> None:
    history = [
        UserMessage("", parts=(PDF, PDF)),
        AssistantMessage("a"),
        UserMessage("", parts=(PDF,)),
    ]
    messages = wire(history)
    assert shape(messages) == [
        "user:text,document,document",
        "assistant:text",
        "user:text,document",
    ]
    names = [b["document"]["name"] for m in messages for b in m["content"] if "document" in b]
    assert names == ["document-1", "document-2", "document-3"]


def test_media_of_a_result_stand_in_it_where_the_family_takes_them_there() -> None:
    history = turn(result("see", PNG, PDF))
    inside = wire(history)[2]["content"]
    assert [next(iter(b)) for b in inside[0]["toolResult"]["content"]] == [
        "text",
        "image",
        "document",
    ]
    beside = wire(history, model=NOVA)[2]["content"]
    assert [next(iter(b)) for b in beside[0]["toolResult"]["content"]] == ["text", "image"]
    assert beside[1] == {"text": "Attached to the result of f (c1):"}
    assert "document" in beside[2]
    alone = wire(turn(result("", PDF)), model=NOVA)[2]["content"]
    assert alone[0]["toolResult"]["content"] == [{"text": "(no result)"}]


def test_media_that_a_model_made_follow_its_turn() -> None:
    history = [UserMessage("q"), AssistantMessage("here", parts=(PNG,)), UserMessage("n")]
    assert shape(wire(history)) == ["user:text", "assistant:text", "user:text,image,text"]


@pytest.mark.parametrize(
    ("model", "part", "why"),
    [
        (CLAUDE, Part.image_url("https://e/x.png"), "a URL that is not in S3"),
        (CLAUDE, Part.image_url("s3://b/x.png"), "image part from S3"),
        (CLAUDE, MP4, "video part cannot be sent"),
        (NOVA, Part.audio(b"x", "audio/wav"), "audio part cannot be sent"),
        (NOVA, Part.image(b"x", "image/tiff"), "'image/tiff'"),
        (NOVA, Part.image_url("s3://b/x"), "cannot be sent"),
        (NOVA, Part.image_url("s3://", "image/png"), "without a place"),
        (NOVA, Part.image_url("data:image/png;base64,%%%"), "data URL that cannot be read"),
        (NOVA, Part("image"), "neither a URL nor data"),
        (UNKNOWN, Part("hologram", url="s3://b/x"), "hologram part"),
    ],
)
def test_what_cannot_be_carried_is_refused_with_its_place(model: Any, part: Part, why: str) -> None:
    family = model.name if model is UNKNOWN else dialect_of(model).name
    with pytest.raises(UnsupportedContentError, match=r"messages\[1\]\.parts\[1\]") as caught:
        wire([UserMessage("a"), UserMessage("b", parts=(PNG, part))], model=model)
    assert why in str(caught.value)
    assert family in str(caught.value)


# --- thinking, native blocks

SIGNED = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}}
HIDDEN = {"reasoningContent": {"redactedContent": "ZW5j"}}
USE = {"toolUse": {"toolUseId": "c1", "name": "f", "input": {}}}
SERVER_USE = {
    "toolUse": {
        "toolUseId": "s1",
        "name": "nova_code_interpreter",
        "input": {"a": 1},
        "type": "server_tool_use",
    }
}
SERVER_RESULT = {
    "toolResult": {
        "toolUseId": "s1",
        "content": [{"json": {"x": 1}}],
        "status": "success",
        "type": "nova_code_interpreter_result",
    }
}


def test_signed_and_hidden_thinking_goes_back_to_its_family_only() -> None:
    message = answered([SIGNED, HIDDEN, {"text": "a"}, USE])
    assert message.native is None
    history: list[Message] = [UserMessage("q"), message, result()]
    assert wire(history)[1]["content"] == [SIGNED, HIDDEN, {"text": "a"}, USE]
    older = wire(history, model="anthropic.claude-3-sonnet-20240229-v1:0")
    assert older[1]["content"] == [SIGNED, HIDDEN, {"text": "a"}, USE]
    for model in MODELS[1:]:
        assert b"c2ln" not in encode(history, model=model)
        assert b"ZW5j" not in encode(history, model=model)


@pytest.mark.parametrize("provider", ["anthropic", "", "bedrock-nova", "openai-responses"])
def test_foreign_thinking_is_left_out(provider: str) -> None:
    thinking = (Thinking("hm", signature="sig", provider=provider),)
    history = [UserMessage("q"), AssistantMessage("a", thinking=thinking), UserMessage("n")]
    assert wire(history)[1]["content"] == [{"text": "a"}]


def test_unsigned_thinking_and_thinking_at_the_end_are_left_out() -> None:
    unsigned = {"reasoningContent": {"reasoningText": {"text": "hm"}}}
    history = [UserMessage("q"), answered([unsigned, {"text": "a"}, SIGNED]), UserMessage("n")]
    assert wire(history)[1]["content"] == [{"text": "a"}]
    empty = [UserMessage("q"), answered([SIGNED]), UserMessage("n")]
    assert shape(wire(empty)) == ["user:text,text"]


def test_what_the_services_own_tools_did_goes_back_to_the_byte() -> None:
    call = {"toolUse": {"toolUseId": "c1", "name": "f", "input": {"x": 7.0}}}
    message = answered([{"text": "a"}, SERVER_USE, SERVER_RESULT, {"text": "b"}, call], NOVA)
    assert message.content == "ab"
    assert [c.id for c in message.tool_calls] == ["c1"]
    history: list[Message] = [UserMessage("q"), message, result()]
    assert wire(history, model=NOVA)[1]["content"] == [
        {"text": "a"},
        SERVER_USE,
        SERVER_RESULT,
        {"text": "b"},
        call,
    ]
    assert b"7.0" in encode(history, model=NOVA)
    assert wire(history)[1]["content"] == [{"text": "ab"}, call]
    edited = structs.replace(message, content="c")
    assert wire([UserMessage("q"), edited, result()], model=NOVA)[1]["content"] == [
        {"text": "c"},
        call,
    ]


@pytest.mark.parametrize(
    "content",
    [[SERVER_USE, {"text": "a"}], [SERVER_RESULT, {"text": "a"}]],
)
def test_half_of_what_a_services_tool_did_does_not_go_back(content: list[Any]) -> None:
    history = [UserMessage("q"), answered(content, NOVA), UserMessage("n")]
    assert wire(history, model=NOVA)[1]["content"] == [{"text": "a"}]


def test_a_turn_that_stands_twice_says_what_tools_did_once() -> None:
    message = answered([SERVER_USE, SERVER_RESULT, {"text": "a"}], NOVA)
    history = [UserMessage("q"), message, UserMessage("n"), message, UserMessage("m")]
    messages = wire(history, model=NOVA)
    assert messages[1]["content"] == [SERVER_USE, SERVER_RESULT, {"text": "a"}]
    assert messages[3]["content"] == [{"text": "a"}]


# --- tools


def test_tools_and_choices() -> None:
    config = body_of([UserMessage("q")], tools=[SPEC])["toolConfig"]
    assert config == {
        "tools": [
            {
                "toolSpec": {
                    "name": "f",
                    "description": "does f",
                    "inputSchema": {"json": SPEC.schema},
                }
            }
        ]
    }
    bare = ToolSpec("a.b", " ", {})
    spec = body_of([UserMessage("q")], tools=[bare])["toolConfig"]["tools"][0]["toolSpec"]
    assert spec["inputSchema"] == {"json": {"type": "object"}}
    assert "description" not in spec
    assert spec["name"].startswith("a_b_")


@pytest.mark.parametrize(
    ("model", "choice", "sent"),
    [
        (CLAUDE, ToolChoice("auto"), None),
        (CLAUDE, ToolChoice("required"), {"any": {}}),
        (CLAUDE, ToolChoice("tool", "f"), {"tool": {"name": "f"}}),
        (NOVA, ToolChoice("tool", "f"), {"tool": {"name": "f"}}),
        (MISTRAL, ToolChoice("required"), {"any": {}}),
        (LLAMA, ToolChoice("required"), None),
        (LLAMA, ToolChoice("tool", "f"), None),
    ],
)
def test_choices_are_sent_where_the_family_has_them(
    model: str, choice: ToolChoice, sent: dict[str, Any] | None
) -> None:
    config = body_of([UserMessage("q")], tools=[SPEC], tool_choice=choice, model=model)[
        "toolConfig"
    ]
    assert sent == config.get("toolChoice")


def test_one_tool_is_forced_by_showing_no_other() -> None:
    tools, choice = [SPEC, ToolSpec("g", "", {})], ToolChoice("tool", "g")
    config = body_of([UserMessage("q")], tools=tools, tool_choice=choice, model=MISTRAL)[
        "toolConfig"
    ]
    assert config["toolChoice"] == {"any": {}}
    assert [t["toolSpec"]["name"] for t in config["tools"]] == ["g"]


def test_a_history_with_calls_always_has_tools() -> None:
    assert "toolConfig" not in body_of(
        [UserMessage("q")], tool_choice=ToolChoice("none"), tools=[SPEC]
    )
    stub = body_of(turn(result()))["toolConfig"]["tools"]
    assert stub == [
        {
            "toolSpec": {
                "name": "f",
                "description": "This tool is no longer available.",
                "inputSchema": {"json": {"type": "object"}},
            }
        }
    ]
    none = body_of(turn(result()), tools=[SPEC], tool_choice=ToolChoice("none"))["toolConfig"]
    assert [t["toolSpec"]["description"] for t in none["tools"]] == ["does f"]


def test_the_services_own_tools_stand_in_front() -> None:
    own = {"systemTool": {"name": "nova_code_interpreter"}}
    config = body_of([UserMessage("q")], tools=[SPEC], server_tools=[own], model=NOVA)["toolConfig"]
    assert [next(iter(tool)) for tool in config["tools"]] == ["systemTool", "toolSpec"]


# --- settings


def test_settings_are_the_inference_config() -> None:
    settings = Settings(
        max_tokens=5, temperature=0.5, top_p=0.9, stop=("x",), parallel_tool_calls=True
    )
    body = body_of([UserMessage("q")], settings=settings)
    assert body["inferenceConfig"] == {
        "maxTokens": 5,
        "temperature": 0.5,
        "topP": 0.9,
        "stopSequences": ["x"],
    }
    assert "inferenceConfig" not in body_of([UserMessage("q")])


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        (Settings(seed=1), "seed"),
        (Settings(presence_penalty=1.0), "presence_penalty"),
        (Settings(frequency_penalty=1.0), "frequency_penalty"),
        (Settings(parallel_tool_calls=False), "parallel_tool_calls"),
    ],
)
def test_settings_that_the_api_does_not_have_are_refused_by_name(
    settings: Settings, name: str
) -> None:
    with pytest.raises(UnsupportedContentError, match=f"no setting '{name}'"):
        encode([UserMessage("q")], settings=settings)


@pytest.mark.parametrize(
    ("model", "fields"),
    [
        (CLAUDE, {"output_config": {"effort": "high"}}),
        (NOVA, {"reasoningConfig": {"type": "enabled", "maxReasoningEffort": "high"}}),
        ("openai.gpt-oss-120b-1:0", {"reasoning_effort": "high"}),
        ("qwen.qwen3-32b-v1:0", {"reasoning_config": "high"}),
        (LLAMA, None),
        ("us.amazon.nova-pro-v1:0", None),
    ],
)
def test_effort_is_spelled_as_each_family_has_it(model: str, fields: Any) -> None:
    settings = Settings(reasoning_effort="high")
    if fields is None:
        with pytest.raises(UnsupportedContentError, match="no setting 'reasoning_effort'"):
            encode([UserMessage("q")], model=model, settings=settings)
    else:
        body = body_of([UserMessage("q")], model=model, settings=settings)
        assert body["additionalModelRequestFields"] == fields


def test_an_extra_body_goes_over_golems_own_and_into_the_model_fields() -> None:
    own = {
        "additionalModelRequestFields": {"top_k": 5, "output_config": {"task": 1}},
        "guardrailConfig": {"a": 1},
    }
    settings = Settings(reasoning_effort="low", extra_body={**own, "system": [{"text": "mine"}]})
    body = body_of([SystemMessage("s"), UserMessage("q")], settings=settings)
    assert body["additionalModelRequestFields"] == {
        "output_config": {"effort": "low", "task": 1},
        "top_k": 5,
    }
    assert (body["guardrailConfig"], body["system"]) == ({"a": 1}, [{"text": "mine"}])
    assert list(body)[-1] == "messages"


BUDGET = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}


def test_a_turn_of_another_provider_is_continued_without_a_budget() -> None:
    settings = Settings(extra_body=BUDGET)

    def thinking(history: list[Message]) -> str:
        fields = body_of(history, settings=settings)["additionalModelRequestFields"]
        return str(fields["thinking"]["type"])

    own: list[Message] = [UserMessage("q"), answered([SIGNED, USE]), result()]
    assert thinking(turn(result())) == "disabled"
    assert thinking(own) == "enabled"
    assert thinking([*turn(result()), AssistantMessage("a"), UserMessage("n")]) == "enabled"
    with pytest.raises(UnsupportedContentError, match="thinks with a budget"):
        encode(own, settings=settings, tools=[SPEC], tool_choice=ToolChoice("required"))


# --- structured output


def test_a_schema_is_text_in_the_output_config() -> None:
    schema = OutputSchema(
        "My Point",
        {"type": "object", "properties": {"x": {"type": "integer", "minimum": 1}}},
        "A point.",
    )
    config = body_of([UserMessage("q")], output_schema=schema)["outputConfig"]["textFormat"]
    assert config["type"] == "json_schema"
    sent = config["structure"]["jsonSchema"]
    assert sent["description"] == "A point."
    assert " " not in sent["name"]
    assert json.loads(sent["schema"])["additionalProperties"] is False
    assert "outputConfig" not in body_of([UserMessage("q")], output_schema=schema, model=LLAMA)


# --- caches


def test_marks_stand_behind_the_instructions_and_at_the_end() -> None:
    history = [SystemMessage("s"), UserMessage("q")]
    body = body_of(history, cache="1h", tools=[SPEC])
    mark = {"cachePoint": {"type": "default", "ttl": "1h"}}
    assert body["system"] == [{"text": "s"}, mark]
    assert body["messages"][0]["content"] == [{"text": "q"}, mark]
    assert mark not in body["toolConfig"]["tools"]
    bare = body_of([UserMessage("q")], cache="5m", tools=[SPEC])
    assert bare["toolConfig"]["tools"][-1] == {"cachePoint": {"type": "default"}}
    nova = body_of([UserMessage("q")], cache="5m", tools=[SPEC], model=NOVA)
    assert "cachePoint" not in nova["toolConfig"]["tools"][-1]


def test_no_mark_stands_behind_a_document() -> None:
    messages = wire([UserMessage("q", parts=(PNG, PDF))], cache="5m")
    assert shape(messages) == ["user:text,image,cachePoint,document"]


def test_equal_requests_are_equal_bytes_and_longer_ones_begin_alike() -> None:
    history = [SystemMessage("s"), *turn(result()), AssistantMessage("a"), UserMessage("n")]
    for model in MODELS:
        assert encode(history, model=model) == encode(list(history), model=model)
        longer = encode(
            [*history, AssistantMessage("b"), UserMessage("m")], model=model, tools=[SPEC]
        )
        assert longer.startswith(encode(history, model=model, tools=[SPEC]).removesuffix(b"]}]}"))


@pytest.mark.parametrize(
    ("model", "name", "native"),
    [
        (CLAUDE, "bedrock-claude", True),
        ("anthropic.claude-opus-4-20250514-v1:0", "bedrock-claude", False),
        ("global.anthropic.claude-sonnet-4-6", "bedrock-claude", True),
        ("us.anthropic.claude-opus-5-v1:0", "bedrock-claude", True),
        (
            "arn:aws:bedrock:us-east-1::foundation-model/anthropic.claude-v2",
            "bedrock-claude",
            False,
        ),
        (
            "arn:aws:bedrock:us-east-1:1:inference-profile/us.amazon.nova-2-lite-v1:0",
            "bedrock-nova",
            False,
        ),
        ("mistral.mistral-large-3-675b-instruct", "bedrock-mistral", True),
        ("qwen.qwen3-32b-v1:0", "bedrock-qwen", True),
        ("arn:aws:bedrock:us-east-1:1:application-inference-profile/x", "bedrock", False),
        ("m", "bedrock", False),
    ],
)
def test_a_models_name_tells_its_family(model: str, name: str, native: bool) -> None:
    found = dialect_of(model)
    assert (found.name, found.structured_output) == (name, native)


def test_more_media_than_one_message_may_hold_are_several_messages() -> None:
    pictures = UserMessage("see", parts=(PNG,) * 25)
    papers = UserMessage("", parts=(PDF,) * 7)
    assert shape(wire([pictures], model=NOVA)) == [
        "user:" + ",".join(["text", *["image"] * 20]),
        "assistant:text",
        "user:" + ",".join(["image"] * 5),
    ]
    messages = wire([*turn(result()), papers], model=NOVA)[2:]
    assert shape(messages) == [
        "user:" + ",".join(["toolResult", "text", *["document"] * 5]),
        "assistant:text",
        "user:" + ",".join(["text", *["document"] * 2]),
    ]


def test_what_the_services_own_tools_did_needs_tools_in_the_request() -> None:
    use = {"toolUseId": "s", "name": "n", "input": {}, "type": "server_tool_use"}
    told = {"toolResult": {"toolUseId": "s", "content": [{"json": {}}]}}
    message = answered([{"toolUse": use}, told, {"text": "so"}], NOVA)
    body = body_of([UserMessage("q"), message, UserMessage("and?")], model=NOVA)
    assert [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]] == ["n"]
