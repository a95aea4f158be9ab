"""What goes out: settings, tools, media, ids, and how the servers' dialects differ."""

from __future__ import annotations

import json
from types import MappingProxyType
from typing import Any

import pytest
from msgspec import Raw

from golem.messages import (
    AssistantMessage,
    Message,
    Native,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.model import OutputSchema, Settings, ToolChoice, ToolSpec
from golem_adapters._toolkit.body import merged
from golem_adapters._toolkit.calls import INTERRUPTED, wire_tool_name
from golem_adapters._toolkit.walk import OPENING
from tests.adapters.encoding import body_of, wire

HI = [UserMessage("hi")]
WEATHER = ToolSpec("get_weather", "Weather.", {"type": "object", "properties": {}})


def turn(*ids: str, name: str = "f", **members: Any) -> AssistantMessage:
    calls = tuple(ToolCall.of(stored, name, "{}") for stored in ids)
    return AssistantMessage(tool_calls=calls, **members)


def result(id: str, content: str = "r", **members: Any) -> ToolMessage:
    return ToolMessage(content, tool_call_id=id, tool_name="f", **members)


# --- settings, tools, output


def test_settings_become_the_fields_of_the_wire() -> None:
    settings = Settings(
        max_tokens=5,
        temperature=0.0,
        top_p=0.5,
        seed=1,
        stop=("END",),
        presence_penalty=0.1,
        frequency_penalty=0.2,
        reasoning_effort="low",
    )
    body = body_of(HI, settings=settings)
    del body["messages"]
    assert body == {
        "model": "m",
        "max_completion_tokens": 5,
        "temperature": 0.0,
        "top_p": 0.5,
        "seed": 1,
        "stop": ["END"],
        "presence_penalty": 0.1,
        "frequency_penalty": 0.2,
        "reasoning_effort": "low",
    }


@pytest.mark.parametrize(
    ("dialect", "expected"),
    [
        ("groq", {"max_tokens": 5, "seed": 1, "reasoning_effort": "low"}),
        ("mistral", {"max_tokens": 5, "random_seed": 1, "reasoning_effort": "low"}),
        ("openrouter", {"max_tokens": 5, "seed": 1, "reasoning": {"effort": "low"}}),
        ("xai", {"max_completion_tokens": 5, "seed": 1, "reasoning_effort": "low"}),
        ("cerebras", {"max_completion_tokens": 5, "seed": 1, "reasoning_effort": "low"}),
        ("together", {"max_tokens": 5, "seed": 1, "reasoning_effort": "low"}),
        ("fireworks", {"max_tokens": 5, "seed": 1, "reasoning_effort": "low"}),
    ],
)
def test_a_dialect_has_its_own_words(dialect: str, expected: dict[str, Any]) -> None:
    settings = Settings(max_tokens=5, seed=1, reasoning_effort="low")
    body = body_of(HI, settings=settings, dialect=dialect)
    assert expected.items() <= body.items()


@pytest.mark.parametrize(
    ("dialect", "member"),
    [
        ("openai", "prompt_cache_key"),
        ("azure", "prompt_cache_key"),
        ("mistral", "prompt_cache_key"),
        ("fireworks", "prompt_cache_key"),
        ("kimi", "prompt_cache_key"),
        ("openrouter", "session_id"),
    ],
)
def test_a_cache_key_has_its_name_at_each_server(dialect: str, member: str) -> None:
    body = body_of(HI, settings=Settings(prompt_cache_key="c1"), dialect=dialect)
    assert body[member] == "c1"
    assert member not in body_of(HI, dialect=dialect)


@pytest.mark.parametrize("dialect", ["groq", "cerebras", "vllm", "xai"])
def test_a_server_without_cache_keys_in_its_body_gets_none(dialect: str) -> None:
    keyed = Settings(prompt_cache_key="c1")
    assert body_of(HI, settings=keyed, dialect=dialect) == body_of(HI, dialect=dialect)


def test_an_extra_body_goes_over_everything_and_messages_stay_last() -> None:
    extra = MappingProxyType({"model": "other", "user": "u", "nested": MappingProxyType({"a": 1})})
    body = body_of(HI, settings=Settings(extra_body=extra))
    assert list(body) == ["model", "user", "nested", "messages"]
    assert (body["model"], body["nested"]) == ("other", {"a": 1})


def test_settings_of_a_request_go_over_the_models_own() -> None:
    own = Settings(temperature=0.5, stop=("A",), extra_body={"a": 1, "b": 1})
    over = Settings(temperature=0.0, max_tokens=7, extra_body={"b": 2})
    assert merged(own, over) == Settings(
        temperature=0.0, max_tokens=7, stop=("A",), extra_body={"a": 1, "b": 2}
    )
    assert merged(own, None) is own
    assert merged(own, Settings()) is own


def test_a_stream_asks_for_its_usage() -> None:
    body = body_of(HI, stream=True)
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert "stream_options" not in body_of(HI, stream=True, dialect="mistral")


def test_tools_are_functions_with_their_schema() -> None:
    body = body_of(HI, tools=[WEATHER], settings=Settings(parallel_tool_calls=False))
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "get_weather",
                "description": "Weather.",
                "parameters": {"type": "object", "properties": {}},
            },
        }
    ]
    assert body["parallel_tool_calls"] is False
    assert "tool_choice" not in body


@pytest.mark.parametrize(
    ("choice", "dialect", "expected"),
    [
        (ToolChoice("auto"), "openai", "auto"),
        (ToolChoice("none"), "openai", "none"),
        (ToolChoice("required"), "openai", "required"),
        (ToolChoice("required"), "mistral", "any"),
        (ToolChoice("required"), "kimi", "auto"),
        (
            ToolChoice("tool", "a.b"),
            "openai",
            {"type": "function", "function": {"name": wire_tool_name("a.b")}},
        ),
    ],
)
def test_a_tool_choice_is_said_in_the_servers_words(
    choice: ToolChoice, dialect: str, expected: Any
) -> None:
    assert (
        expected == body_of(HI, tools=[WEATHER], tool_choice=choice, dialect=dialect)["tool_choice"]
    )


def test_nothing_about_tools_is_said_without_tools() -> None:
    settings = Settings(parallel_tool_calls=True)
    body = body_of(HI, tool_choice=ToolChoice("required"), settings=settings)
    assert list(body) == ["model", "messages"]


def test_the_parallel_switch_goes_out_with_tools_of_the_callers_own_too() -> None:
    hosted = Settings(parallel_tool_calls=False, extra_body={"tools": [{"type": "web_search"}]})
    assert body_of(HI, settings=hosted)["parallel_tool_calls"] is False
    assert "parallel_tool_calls" not in body_of(HI, settings=Settings(parallel_tool_calls=False))


def test_a_server_that_does_not_obey_none_gets_no_tools() -> None:
    body = body_of(HI, tools=[WEATHER], tool_choice=ToolChoice("none"), dialect="llama.cpp")
    assert list(body) == ["model", "messages"]


def test_an_output_schema_is_a_response_format() -> None:
    schema = OutputSchema("My Answer", {"type": "object"}, description="d")
    assert body_of(HI, output_schema=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {
            "name": wire_tool_name("My Answer"),
            "description": "d",
            "schema": {"type": "object"},
            "strict": True,
        },
    }
    assert body_of(HI, output_schema=schema, dialect="deepseek")["response_format"] == {
        "type": "json_object"
    }


@pytest.mark.parametrize("dialect", ["deepseek", "z.ai"])
def test_a_server_that_holds_to_json_only_is_told_the_schema_in_words(dialect: str) -> None:
    schema = OutputSchema("point", {"type": "object", "properties": {"x": {"type": "integer"}}})
    body = body_of(HI, output_schema=schema, dialect=dialect)
    assert body["response_format"] == {"type": "json_object"}
    instruction, *rest = body["messages"]
    assert instruction["role"] == "system"
    assert "JSON" in instruction["content"]
    assert '"properties":{"x":{"type":"integer"}}' in instruction["content"]
    assert rest == wire(HI, dialect=dialect)


# --- turns


def test_a_conversation_is_written_message_by_message() -> None:
    history = [
        SystemMessage("rules"),
        UserMessage("q"),
        AssistantMessage("Let me look.", tool_calls=(ToolCall.of("c1", "f", '{"b":1}'),)),
        result("c1", "found"),
        AssistantMessage("done"),
        UserMessage(""),
    ]
    assert wire(history) == [
        {"role": "system", "content": "rules"},
        {"role": "user", "content": "q"},
        {
            "role": "assistant",
            "content": "Let me look.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "f", "arguments": '{"b":1}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
        {"role": "assistant", "content": "done"},
        {"role": "user", "content": ""},
    ]


def test_what_says_nothing_is_left_out() -> None:
    thought = Thinking("hm", provider="openai")
    history = [
        SystemMessage(""),
        UserMessage("q"),
        AssistantMessage(),
        AssistantMessage(thinking=(thought,)),
    ]
    assert wire(history) == [{"role": "user", "content": "q"}]


@pytest.mark.parametrize("blank", [AssistantMessage(), AssistantMessage(thinking=(Thinking("x"),))])
def test_a_blank_answer_at_the_beginning_is_a_message_all_the_same(blank: Message) -> None:
    """A server refuses a request without any, and what stood once has to stay."""
    opening = {"role": "user", "content": OPENING}
    assert wire([blank]) == wire([blank, blank]) == wire([SystemMessage(), blank]) == [opening]
    assert wire([blank, *HI]) == [opening, *wire(HI)]
    assert wire([*HI, blank]) == wire(HI)


def test_identity_and_what_others_made_never_go_out() -> None:
    native = Native("anthropic", (Raw(b'{"type":"secret"}'),))
    message = AssistantMessage(
        "a",
        thinking=(Thinking("hm", signature="sig", provider="anthropic"),),
        tool_calls=(ToolCall.of("c", "f", "{}", "sig"),),
        native=native,
        run_id="run",
        conversation_id="conv",
        seal="seal",
    )
    for dialect in ("openai", "openrouter", "deepseek", "mistral", "groq"):
        sent = json.dumps(wire([UserMessage("q"), message, result("c")], dialect=dialect))
        assert not [word for word in ("sig", "hm", "run", "conv", "seal", "secret") if word in sent]


def test_several_leading_system_messages_are_one_where_the_server_wants_that() -> None:
    history = [SystemMessage("a"), SystemMessage("b"), UserMessage("q")]
    assert [m["content"] for m in wire(history)] == ["a", "b", "q"]
    assert [m["content"] for m in wire(history, dialect="vllm")] == ["a\n\nb", "q"]


@pytest.mark.parametrize(
    ("following", "role"), [(UserMessage("next"), "user"), (SystemMessage("next"), "system")]
)
def test_what_follows_a_result_stands_behind_an_assistant_turn_where_the_server_wants_that(
    following: Message, role: str
) -> None:
    history = [UserMessage("q"), turn("c"), result("c"), following]
    assert [m["role"] for m in wire(history, dialect="mistral")] == [
        *("user", "assistant", "tool", "assistant", role)
    ]


def test_a_failed_result_says_so_before_its_own_words() -> None:
    history = [
        turn("a", "b", "c"),
        result("a", "no such city", failed=True),
        result("b", "", failed=True),
        result("c", "fine"),
    ]
    assert [m["content"] for m in wire(history)[1:]] == [
        *("Error: no such city", "Error: the tool failed.", "fine")
    ]


# --- ids


def ids_of(*history: Any, **options: Any) -> tuple[list[str], list[str]]:
    sent = wire(history, **options)
    asked = [call["id"] for m in sent for call in m.get("tool_calls", ())]
    return asked, [m["tool_call_id"] for m in sent if m["role"] == "tool"]


def test_ids_that_fit_stay() -> None:
    assert ids_of(turn("a", "toolu_1"), result("toolu_1"), result("a")) == (
        ["a", "toolu_1"],
        ["toolu_1", "a"],
    )


def test_an_id_that_is_used_again_is_another_one_from_the_second_time_on() -> None:
    asked, answered = ids_of(
        turn("a"), result("a"), turn("a"), result("a"), turn("a", "a"), result("a"), result("a")
    )
    assert asked == answered
    assert asked[0] == "a"
    assert len(set(asked)) == 4


def test_a_real_result_answers_the_first_call_of_its_id_and_a_filler_the_last() -> None:
    calls = tuple(ToolCall.of("x", "f", f'{{"n":{n}}}') for n in (1, 2, 3))
    asked = AssistantMessage(tool_calls=calls)
    results = [ToolMessage(text, tool_call_id="x") for text in ("one", "two")]
    for count, expected in ((1, ["one", None, None]), (2, ["one", "two", None])):
        turn, *answers = wire([UserMessage("hi"), asked, *results[:count]])[1:]
        said = {m["tool_call_id"]: m["content"] for m in answers}
        assert len(said) == 3
        for call, text in zip(turn["tool_calls"], expected, strict=True):
            assert said[call["id"]] == (text or INTERRUPTED)


def test_calls_without_id_pair_with_results_without_id_in_order() -> None:
    history = [turn("", "x", ""), result("", "first"), result("x", "x"), result("", "second")]
    sent = wire(history)
    asked = [call["id"] for call in sent[0]["tool_calls"]]
    told = {m["tool_call_id"]: m["content"] for m in sent[1:]}
    assert [told[wire_id] for wire_id in asked] == ["first", "x", "second"]


def test_a_call_without_id_and_result_is_answered_on_the_wire() -> None:
    sent = wire([turn("", ""), result("", "first"), UserMessage("next")])
    assert [m["content"] for m in sent[1:]] == ["first", INTERRUPTED, "next"]


def test_a_mapped_id_does_not_take_one_that_an_earlier_call_has() -> None:
    long = "x" * 50
    (mapped,), _ = ids_of(turn(long), result(long))
    asked, answered = ids_of(turn(mapped), result(mapped), turn(long), result(long))
    assert asked == answered
    assert len(set(asked)) == 2
    later, _ = ids_of(turn(long), result(long), turn(mapped), result(mapped))
    assert later[0] == mapped
    assert len(set(later)) == 2


@pytest.mark.parametrize("dialect", ["kimi", "mistral"])
def test_each_server_gets_ids_of_its_own_kind(dialect: str) -> None:
    (asked,), (answered,) = ids_of(turn("functions.f:0"), result("functions.f:0"), dialect=dialect)
    assert asked == answered
    assert asked == "functions.f:0" if dialect == "kimi" else len(asked) == 9


def test_a_tool_name_is_the_same_in_the_tools_and_in_the_history() -> None:
    spec = ToolSpec("my tool", "", {})
    body = body_of([turn("c", name="my tool"), result("c")], tools=[spec])
    name = body["tools"][0]["function"]["name"]
    assert name == body["messages"][0]["tool_calls"][0]["function"]["name"]
    assert name.startswith("my_tool_")
    assert wire_tool_name("my_tool") == "my_tool"
    assert wire_tool_name("x" * 65) != wire_tool_name("x" * 66)
