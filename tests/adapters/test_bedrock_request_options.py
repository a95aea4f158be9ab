"""What goes out to Converse beside the messages: tools, settings, schemas, marks of caches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.errors import UnsupportedContentError
from golem.messages import AssistantMessage, SystemMessage, UserMessage
from golem.model import OutputSchema, Settings, ToolChoice, ToolSpec
from golem_adapters.bedrock.dialect import dialect_of
from tests.adapters.conversing import (
    CLAUDE,
    LLAMA,
    MISTRAL,
    MODELS,
    NOVA,
    PDF,
    PNG,
    SPEC,
    answered,
    body_of,
    encode,
    result,
    shape,
    turn,
    wire,
)

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


def test_what_the_services_own_tools_did_needs_tools_in_the_request() -> None:
    use = {"toolUseId": "s", "name": "n", "input": {}, "type": "server_tool_use"}
    told = {"toolResult": {"toolUseId": "s", "content": [{"json": {}}]}}
    message = answered([{"toolUse": use}, told, {"text": "so"}], NOVA)
    body = body_of([UserMessage("q"), message, UserMessage("and?")], model=NOVA)
    assert [tool["toolSpec"]["name"] for tool in body["toolConfig"]["tools"]] == ["n"]


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


# --- families


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
