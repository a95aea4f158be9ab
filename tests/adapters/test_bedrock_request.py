"""What goes out to Converse: turns, calls, results, thinking, and the service's own blocks."""

from __future__ import annotations

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
from golem.model import Settings, ToolChoice
from tests.adapters.conversing import (
    CLAUDE,
    LLAMA,
    MISTRAL,
    MODELS,
    MP4,
    NOVA,
    PDF,
    PNG,
    SPEC,
    TITAN,
    WRITER,
    answered,
    body_of,
    encode,
    result,
    shape,
    turn,
    wire,
)

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
