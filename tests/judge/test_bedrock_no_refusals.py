"""Whatever a history went through: repaired and encoded, the judge of Converse refuses it not.

The judge has a record of the facts of its own, so what is proved is that two readings of the
rules agree; nothing here is asked of a provider.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golem import AssistantMessage, Message, Part, UserMessage, repair
from golem.model import OutputSchema, Request, Settings, ToolChoice
from golem.testing.judge import BedrockJudge, judge_bedrock
from golem.testing.judge.bedrock_turns import thoughts_of
from golem_adapters import Bedrock
from golem_adapters.bedrock.dialect import dialect_of
from golem_adapters.bedrock.request import Options, encode_count
from tests.adapters.conversing import CLAUDE, MODELS, answered, encode
from tests.judge.aging import EDITS, SCHEMA, TOOLS, edited, go_on, lived, lives, unless_named
from tests.judge.anthropic_histories import Told, conversations, told
from tests.strategies import HISTORIES, ODD_TEXT, TEXT

EVERY = ("m", "qwen.qwen3-32b-v1:0", "us.deepseek.r1-v1:0", "nvidia.nemotron-nano-12b-v2", *MODELS)
SERVER_IDS = st.sampled_from(["s_1", "s_2", "s.3"])
CALL_IDS = st.sampled_from(["tooluse_1", "tooluse_1", "tooluse_2", "functions.f:0"])
INPUTS = st.sampled_from([{}, {"a": 1}, {"a": "\ud800"}, {"b": [1.50, None]}])
SERVER = {"name": "n", "input": {}, "type": "server_tool_use"}
BLOCK = st.one_of(
    ODD_TEXT.map(lambda text: {"text": text}),
    ODD_TEXT.map(lambda t: {"citationsContent": {"content": [{"text": t}], "citations": []}}),
    TEXT.map(lambda t: {"reasoningContent": {"reasoningText": {"text": t}}}),
    st.just({"reasoningContent": {"redactedContent": ""}}),
    st.builds(
        lambda given, name, args: {"toolUse": {"toolUseId": given, "name": name, "input": args}},
        CALL_IDS,
        st.sampled_from(["f", "get_weather_1"]),
        INPUTS,
    ),
    SERVER_IDS.map(lambda given: {"toolUse": {**SERVER, "toolUseId": given}}),
    SERVER_IDS.map(
        lambda given: {"toolResult": {"toolUseId": given, "content": [{"json": {"a": 1}}]}}
    ),
)
USUAL = st.sampled_from(
    [
        [
            {"toolUse": {**SERVER, "toolUseId": "s_1"}},
            {"toolResult": {"toolUseId": "s_1", "content": [{"json": {"a": 1}}]}},
            {"text": "So it is."},
        ],
        [
            {"reasoningContent": {"reasoningText": {"text": "hm"}}},
            {"text": "Let me see."},
            {"toolUse": {"toolUseId": "tooluse_1", "name": "f", "input": {}}},
            {"toolUse": {"toolUseId": "tooluse_2", "name": "f", "input": {}}},
        ],
    ]
)
"""Answers as they come, beside those that nobody ever saw."""

PIECES = conversations(st.lists(BLOCK, max_size=5) | USUAL)


def signed(block: dict[str, Any], proof: str) -> dict[str, Any]:
    """A block, which where it is thinking nobody else has signed."""
    match block:
        case {"reasoningContent": {"reasoningText": readable}}:
            return {"reasoningContent": {"reasoningText": {**readable, "signature": proof}}}
        case {"reasoningContent": _}:
            return {"reasoningContent": {"redactedContent": proof}}
        case _:
            return block


def history_of(pieces: list[Any], model: str) -> Told:
    return told(pieces, signed, lambda blocks: answered(blocks, model), thoughts_of)


def refused(
    messages: list[Message], made_with: Any, model: str, *, own: bool = True, **options: Any
) -> list[str]:
    body = json.loads(encode(messages, model=model, **options))
    wire = quote(model, safe="")
    found = judge_bedrock(body, model=wire, made_with=made_with, own_thinking=own)
    return list(map(str, found))


@pytest.mark.parametrize("model", EVERY)
@given(pieces=PIECES)
def test_any_repaired_history_is_taken(model: str, pieces: list[Any]) -> None:
    messages, made_with = history_of(pieces, model)
    assert refused(messages, made_with, model) == []


BUDGET = {"additionalModelRequestFields": {"thinking": {"type": "enabled", "budget_tokens": 1024}}}


@pytest.mark.parametrize("model", EVERY)
@given(
    pieces=PIECES,
    choice=st.sampled_from([None, ToolChoice("auto"), ToolChoice("none")]),
    tools=st.sampled_from([(), TOOLS]),
    schema=st.sampled_from([None, OutputSchema("an answer", SCHEMA)]),
    cache=st.sampled_from([None, "5m", "1h"]),
    extra=st.sampled_from([None, BUDGET]),
)
@settings(max_examples=40)
def test_any_request_around_it_is_taken(
    model: str,
    pieces: list[Any],
    choice: ToolChoice | None,
    tools: Any,
    schema: OutputSchema | None,
    cache: Any,
    extra: Any,
) -> None:
    messages, made_with = history_of(pieces, model)
    found = refused(
        messages,
        made_with,
        model,
        tools=tools,
        tool_choice=choice,
        output_schema=schema,
        cache=cache,
        settings=Settings(max_tokens=5000, temperature=0.5, extra_body=extra),
    )
    assert found == []


@pytest.mark.parametrize("model", EVERY)
@given(tools=st.sampled_from([(), TOOLS]), pieces=PIECES)
@settings(max_examples=20)
def test_a_forced_call_is_asked_as_the_family_takes_it(
    model: str, tools: Any, pieces: list[Any]
) -> None:
    messages, made_with = history_of(pieces, model)
    for choice in (ToolChoice("required"), ToolChoice("tool", "get weather")) if tools else ():
        assert refused(messages, made_with, model, tools=tools, tool_choice=choice) == []


@given(PIECES, EDITS, st.sampled_from(EVERY))
def test_an_edited_history_is_taken(pieces: list[Any], edits: Any, model: str) -> None:
    messages, made_with = history_of(pieces, model)
    assert refused(edited(messages, edits), made_with, model) == []


@pytest.mark.parametrize("model", EVERY)
@given(life=lives(PIECES), budget=st.booleans())
@settings(max_examples=5)
def test_a_run_on_whatever_earlier_runs_left_is_taken(model: str, life: Any, budget: bool) -> None:
    extra = BUDGET if budget and model == CLAUDE else None

    def model_at(judge: Any) -> Bedrock:
        return Bedrock(model, base_url=judge.base_url, api_key=judge.key, extra_body=extra)

    go_on(BedrockJudge(), model_at, lived(life, lambda pieces: history_of(pieces, model).messages))


ADDRESSES = st.sampled_from(
    [
        "s3://bucket/key.png",
        "S3://bucket/k",
        "s3://b/k",
        "s3://",
        "s3://A_b/k",
        "https://e/x.png",
        "data:image/png;base64,aGk=",
    ]
)
LINKED = st.builds(
    UserMessage,
    TEXT,
    parts=st.builds(
        Part,
        kind=st.sampled_from(["image", "document", "video", "audio"]),
        url=ADDRESSES,
        media_type=st.sampled_from(["", "image/png", "application/pdf", "video/mp4", "audio/mp3"]),
    ).map(lambda part: (part,)),
)


@pytest.mark.parametrize("model", EVERY)
@given(history=HISTORIES | st.lists(LINKED, max_size=2))
@settings(max_examples=50)
def test_any_stored_history_is_taken_or_refused_by_name(model: str, history: list[Message]) -> None:
    assert unless_named(lambda: refused(history, {}, model, own=False)) == []


@pytest.mark.parametrize("model", EVERY)
@given(pieces=PIECES, tools=st.sampled_from([(), TOOLS]))
@settings(max_examples=30)
def test_the_count_of_any_history_is_taken(model: str, pieces: list[Any], tools: Any) -> None:
    messages, made_with = history_of(pieces, model)
    request = Request(list(repair(messages)), tools)
    body = encode_count(request, dialect=dialect_of(model), options=Options())
    found = judge_bedrock(
        json.loads(body),
        model=quote(model, safe=""),
        counts=True,
        made_with=made_with,
        own_thinking=True,
    )
    assert list(map(str, found)) == []


@pytest.mark.parametrize("model", EVERY)
def test_a_conversation_of_nobody_is_taken(model: str) -> None:
    for messages in ([], [AssistantMessage("")], [UserMessage("")]):
        assert refused(messages, {}, model) == []
