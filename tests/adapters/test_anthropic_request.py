"""What goes out to Messages: settings, tools, schemas, content, thinking, marks for caches."""

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
from golem.model import OutputSchema, Request, Settings, ToolChoice, ToolSpec
from golem_adapters._toolkit.walk import FAILED, GO_ON, OPENING, SAID_NOTHING
from golem_adapters.anthropic.dialect import dialect_named
from golem_adapters.anthropic.request import Options, api_version, encode_count
from tests.adapters.encoding import check
from tests.adapters.messaging import answered, body_of, encode, shape, wire

ASK = [UserMessage("hi")]
WEATHER = ToolSpec("weather", "Tells it.", {"type": "object", "properties": {}})
POINT = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
BUDGET = {"type": "enabled", "budget_tokens": 2048}


def asks(*calls: ToolCall, content: str = "", **members: Any) -> AssistantMessage:
    return AssistantMessage(content, tool_calls=calls, **members)


def call(name: str = "c1", args: str = "{}") -> ToolCall:
    return ToolCall.of(name, "f", args)


# --- the request


def test_the_smallest_request() -> None:
    assert body_of(ASK) == {
        "model": "m",
        "max_tokens": 16_384,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
    }


def test_every_setting_has_its_member() -> None:
    settings = Settings(
        max_tokens=9,
        temperature=0.5,
        top_p=0.9,
        stop=("END",),
        reasoning_effort="low",
        parallel_tool_calls=False,
        extra_body={"metadata": {"user_id": "u"}, "top_k": 3},
    )
    body = body_of(ASK, settings=settings, tools=[WEATHER], stream=True)
    del body["messages"], body["tools"]
    assert body == {
        "model": "m",
        "max_tokens": 9,
        "temperature": 0.5,
        "top_p": 0.9,
        "stop_sequences": ["END"],
        "output_config": {"effort": "low"},
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
        "stream": True,
        "metadata": {"user_id": "u"},
        "top_k": 3,
    }


@pytest.mark.parametrize("name", ["seed", "presence_penalty", "frequency_penalty"])
def test_a_setting_the_api_does_not_have_is_refused_by_name(name: str) -> None:
    with pytest.raises(UnsupportedContentError, match=name):
        encode(ASK, settings=Settings(**{name: 1}))


@pytest.mark.parametrize(
    ("settings", "chosen", "version"),
    [
        (Settings(), None, "2026-10-21"),
        (Settings(temperature=0.0), None, "2023-06-01"),
        (Settings(top_p=1.0), None, "2023-06-01"),
        (Settings(extra_body={"top_k": 1}), None, "2023-06-01"),
        (Settings(max_tokens=1), "2023-06-01", "2023-06-01"),
        (Settings(temperature=1.0), "2023-06-01", "2023-06-01"),
        (Settings(), "2027-01-01", "2027-01-01"),
    ],
)
def test_the_version_is_the_newest_that_has_the_settings(
    settings: Settings, chosen: str | None, version: str
) -> None:
    assert version == api_version(settings, dialect_named("anthropic"), chosen)


@pytest.mark.parametrize("name", ["temperature", "top_p", "top_k"])
def test_a_sampling_setting_is_refused_by_name_where_the_chosen_version_has_none(name: str) -> None:
    settings = Settings(extra_body={name: 1})
    with pytest.raises(UnsupportedContentError, match=f"2026-10-21 .* no setting '{name}'"):
        api_version(settings, dialect_named("anthropic"), "2026-10-21")
    assert api_version(settings, dialect_named("ollama"), "2026-10-21") == "2026-10-21"


def test_tools_and_the_choices_among_them() -> None:
    tools = [WEATHER, ToolSpec("get it", "", {})]
    body = body_of(ASK, tools=tools)
    assert body["tools"][0] == {
        "name": "weather",
        "description": "Tells it.",
        "input_schema": {"type": "object", "properties": {}},
    }
    assert body["tools"][1]["input_schema"] == {"type": "object"}
    assert (
        body["tools"][1]["name"]
        == body_of(ASK, tools=tools, tool_choice=ToolChoice("tool", "get it"))["tool_choice"][
            "name"
        ]
    )
    assert "tool_choice" not in body
    for mode, kind in (("auto", "auto"), ("none", "none"), ("required", "any")):
        choice = ToolChoice(mode)  # type: ignore[arg-type]
        assert body_of(ASK, tools=tools, tool_choice=choice)["tool_choice"] == {"type": kind}
    assert "tool_choice" not in body_of(ASK, tool_choice=ToolChoice("required"))


def test_several_calls_can_be_forbidden_with_any_choice_that_allows_one() -> None:
    def choice(mode: Any, parallel: bool) -> dict[str, Any]:
        settings = Settings(parallel_tool_calls=parallel)
        options = {"tools": [WEATHER], "tool_choice": ToolChoice(mode), "settings": settings}
        found: dict[str, Any] = body_of(ASK, **options)["tool_choice"]
        return found

    assert choice("required", False) == {"type": "any", "disable_parallel_tool_use": True}
    assert choice("none", False) == {"type": "none"}
    assert choice("auto", True) == {"type": "auto"}


def test_what_the_server_runs_stands_before_the_tools() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    body = body_of(ASK, tools=[WEATHER], server_tools=[search])
    assert [tool["name"] for tool in body["tools"]] == ["web_search", "weather"]
    assert body_of(ASK, server_tools=[search])["tools"] == [search]


def test_a_schema_is_the_format_of_the_output() -> None:
    output = OutputSchema("point", POINT)
    body = body_of(ASK, output_schema=output, settings=Settings(reasoning_effort="high"))
    assert body["output_config"] == {
        "effort": "high",
        "format": {"type": "json_schema", "schema": {**POINT, "additionalProperties": False}},
    }
    assert "output_config" not in body_of(ASK, output_schema=output, dialect="llama.cpp")


def test_a_server_that_does_not_obey_none_gets_no_tools() -> None:
    choice = ToolChoice("none")
    assert "tools" not in body_of(ASK, tools=[WEATHER], tool_choice=choice, dialect="llama.cpp")
    assert "tools" in body_of(ASK, tools=[WEATHER], tool_choice=choice)


# --- caches


def test_a_prompt_is_cached_at_its_end_and_behind_the_instructions() -> None:
    history = [SystemMessage("Be brief."), *ASK]
    mark = {"type": "ephemeral", "ttl": "1h"}
    body = body_of(history, cache="1h", tools=[WEATHER])
    assert body["cache_control"] == mark
    assert body["system"] == [{"type": "text", "text": "Be brief.", "cache_control": mark}]
    assert "cache_control" not in json.dumps([body["tools"], body["messages"]])


def test_without_instructions_the_tools_are_marked() -> None:
    body = body_of(ASK, cache="5m", tools=[WEATHER, WEATHER])
    marks = [tool.get("cache_control") for tool in body["tools"]]
    assert marks == [None, {"type": "ephemeral", "ttl": "5m"}]
    assert "tools" not in body_of(ASK, cache="5m")
    own = {"type": "x", "name": "x", "cache_control": {"type": "ephemeral"}}
    assert body_of(ASK, cache="5m", server_tools=[own])["tools"] == [own]


def test_a_marked_request_that_grows_begins_with_the_same_bytes() -> None:
    longer = [*ASK, AssistantMessage("a"), UserMessage("b")]
    assert encode(longer, cache="5m").startswith(encode(ASK, cache="5m").removesuffix(b"]}]}"))


# --- content


def test_instructions_are_the_system_text_and_later_ones_stay_where_they_are() -> None:
    history = [SystemMessage("a"), SystemMessage(" "), SystemMessage("b"), *ASK, SystemMessage("c")]
    body = body_of(history)
    assert [block["text"] for block in body["system"]] == ["a", "b"]
    assert [block["text"] for block in body["messages"][0]["content"]] == ["hi", "c"]


def test_text_comes_before_media() -> None:
    png = base64.b64encode(b"png").decode()
    parts = (Part.image(b"png", "image/png"), Part.document_url("https://e/a.pdf"))
    assert wire([UserMessage("look", parts=parts)])[0]["content"] == [
        {"type": "text", "text": "look"},
        {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": png},
        },
        {"type": "document", "source": {"type": "url", "url": "https://e/a.pdf"}},
    ]


@pytest.mark.parametrize(
    ("part", "source"),
    [
        (Part.image(b"x", "image/jpg"), ("base64", "image/jpeg", "eA==")),
        (Part.image_url("data:image/png;base64,eA=="), ("base64", "image/png", "eA==")),
        (Part.document(b"x", "application/pdf; q=1"), ("base64", "application/pdf", "eA==")),
        (Part.document(b"caf\xc3\xa9", "text/markdown"), ("text", "text/plain", "café")),
        (Part.document(b"\xff", "application/json"), ("text", "text/plain", "\ufffd")),
        (Part.document_url("data:,a%20b"), ("text", "text/plain", "a b")),
    ],
)
def test_media_of_every_kind_the_api_takes(part: Part, source: tuple[str, str, str]) -> None:
    block = wire([UserMessage(parts=(part,))])[0]["content"][0]
    assert block["type"] == part.kind
    assert tuple(block["source"].values()) == source


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (Part.audio(b"x", "audio/wav"), "audio part cannot be sent"),
        (Part.video_url("https://e/v"), "video part cannot be sent"),
        (Part.image(b"x", "image/bmp"), "image of type 'image/bmp'"),
        (Part.document(b"x", "application/zip"), "document of type 'application/zip'"),
        (Part("image"), "neither a URL nor data"),
        (Part.image_url("data:image/png;base64,é"), "data URL that cannot be read"),
        (Part.image_url("data:x"), "data URL that cannot be read"),
        (Part.image_url("ftp://e/x.png"), "URL that is no http"),
        (Part.document_url("https:///x.pdf"), "URL that is no http"),
        (Part("hologram", url="https://e"), "hologram part cannot be sent"),
    ],
)
def test_what_cannot_be_carried_is_refused_before_it_is_sent(part: Part, why: str) -> None:
    fine = Part.image_url("https://e/x.png")
    with pytest.raises(UnsupportedContentError, match=rf"messages\[1\]\.parts\[1\]: .*{why}"):
        encode([UserMessage("q"), UserMessage("", parts=(fine, part))])


def test_results_open_the_next_turn_of_the_user() -> None:
    png = Part.image(b"x", "image/png")
    history = [
        *ASK,
        asks(call("c1"), call("c2"), call("c3"), content="Wait."),
        ToolMessage("r2", tool_call_id="c2"),
        ToolMessage("r1", tool_call_id="c1", parts=(png,)),
        ToolMessage(" ", tool_call_id="c3"),
        UserMessage("next"),
    ]
    sent = wire(history)
    assert shape(sent) == [
        "user:text",
        "assistant:text,tool_use,tool_use,tool_use",
        "user:tool_result,tool_result,tool_result,text",
    ]
    assert [block.get("content") for block in sent[2]["content"][:3]] == [
        "r2",
        [{"type": "text", "text": "r1"}, wire([UserMessage(parts=(png,))])[0]["content"][0]],
        None,
    ]


def test_a_failure_is_flagged_and_always_says_something() -> None:
    failed = [ToolMessage(text, tool_call_id="c1", failed=True) for text in ("no", "")]
    blocks = [wire([*ASK, asks(call()), result])[2]["content"][0] for result in failed]
    assert blocks == [
        {"type": "tool_result", "tool_use_id": "c1", "content": text, "is_error": True}
        for text in ("no", FAILED)
    ]


def test_media_of_a_failure_follow_the_results() -> None:
    parts = (Part.image_url("https://e/x.png"),)
    results = [
        ToolMessage("no", tool_call_id="c1", tool_name="f", parts=parts, failed=True),
        ToolMessage("r", tool_call_id="c2"),
    ]
    sent = wire([*ASK, asks(call("c1"), call("c2")), *results])
    assert shape(sent)[2] == "user:tool_result,tool_result,text,image"
    assert sent[2]["content"][2]["text"] == "Attached to the result of f (c1):"


def test_media_that_a_model_made_follow_its_turn_as_the_users() -> None:
    made = AssistantMessage("here", parts=(Part.image(b"x", "image/png"),))
    assert shape(wire([*ASK, made, UserMessage("thanks")])) == [
        "user:text",
        "assistant:text",
        "user:text,image,text",
    ]
    spoken = AssistantMessage("said", parts=(Part.audio(b"x", "audio/wav"),))
    assert shape(wire([*ASK, spoken])) == ["user:text", "assistant:text", "user:text"]


def test_arguments_are_objects_on_the_wire() -> None:
    texts = ['{"b":1.50, "a":[]}', "", '{"cut', "[1]", '{"s":"\\ud800"}', '{"n":1e999}']
    calls = [call(f"c{n}", text) for n, text in enumerate(texts)]
    data = encode([*ASK, asks(*calls)])
    inputs = [block["input"] for block in json.loads(data)["messages"][1]["content"]]
    assert b'{"b":1.50, "a":[]}' in data
    assert inputs == [
        {"b": 1.5, "a": []},
        {},
        {"truncated_args": '{"cut'},
        {"truncated_args": "[1]"},
        {"s": "\ufffd"},
        {"n": 1.7976931348623157e308},
    ]


def test_neighbors_of_one_role_are_one_turn() -> None:
    history = [*ASK, UserMessage("b"), AssistantMessage("c"), AssistantMessage("d")]
    assert shape(wire(history)) == ["user:text,text", "assistant:text,text", "user:text"]


def test_blank_texts_are_never_sent() -> None:
    history = [UserMessage(" \n"), AssistantMessage("\t"), UserMessage("b"), AssistantMessage("c")]
    sent = wire(history)
    assert [block["text"] for block in sent[0]["content"]] == [SAID_NOTHING, "b"]
    assert not check("anthropic", {"messages": sent})


@pytest.mark.parametrize("history", [[], [SystemMessage("s")], [AssistantMessage(" ")]])
def test_a_request_without_anything_to_say_still_has_a_turn(history: list[Message]) -> None:
    assert wire(history) == [{"role": "user", "content": [{"type": "text", "text": OPENING}]}]


def test_a_history_that_begins_with_the_assistant_is_opened() -> None:
    assert shape(wire([AssistantMessage("a"), UserMessage("b")])) == [
        "user:text",
        "assistant:text",
        "user:text",
    ]


def test_a_history_that_ends_with_the_assistant_is_gone_on_with() -> None:
    answer = AssistantMessage("a \n")
    sent = wire([*ASK, answer])
    assert [m["content"][0]["text"] for m in sent] == ["hi", "a", GO_ON]
    assert wire([*ASK, answer, UserMessage(" b ")])[1]["content"][0]["text"] == "a \n"


def test_ids_that_the_api_refuses_are_mapped_on_call_and_result() -> None:
    ids = ["functions.f:0", "x" * 65, "", "c1", "c1"]
    history: list[Message] = [*ASK, asks(*(call(name) for name in ids))]
    history += [ToolMessage(f"r{n}", tool_call_id=name) for n, name in enumerate(ids)]
    sent = wire(history)
    asked = [block["id"] for block in sent[1]["content"]]
    assert asked[3] == "c1"
    assert len(set(asked)) == 5
    assert not check("anthropic", {"messages": sent})
    told = {block["tool_use_id"]: block["content"] for block in sent[2]["content"]}
    assert [told[name] for name in asked] == ["r0", "r1", "r2", "r3", "r4"]


# --- thinking


def thought(text: str = "hm", **members: Any) -> Thinking:
    return Thinking(text, **{"signature": "sig", "provider": "anthropic", **members})


def test_signed_thinking_goes_back_in_front_whether_its_text_is_shown_or_not() -> None:
    thinking = (
        thought(),
        thought(""),
        thought("", signature="", redacted="sealed"),
        thought(signature=""),
        thought(provider="deepseek-messages"),
    )
    turn = asks(call(), content="so", thinking=thinking)
    assert wire([*ASK, turn])[1]["content"][:4] == [
        {"type": "thinking", "thinking": "hm", "signature": "sig"},
        {"type": "thinking", "thinking": "", "signature": "sig"},
        {"type": "redacted_thinking", "data": "sealed"},
        {"type": "text", "text": "so"},
    ]


def test_a_server_without_signatures_gets_its_thinking_back() -> None:
    turn = asks(call(), thinking=(thought(signature="", provider="deepseek-messages"),))
    blocks = wire([*ASK, turn], dialect="deepseek")[1]["content"]
    assert blocks[0] == {"type": "thinking", "thinking": "hm"}


def test_thinking_that_led_to_nothing_is_left_out() -> None:
    alone = AssistantMessage(thinking=(thought(),))
    assert shape(wire([*ASK, alone, UserMessage("b")])) == ["user:text,text"]
    assert shape(wire([*ASK, alone, AssistantMessage("a")], thinking={"type": "adaptive"})) == [
        "user:text",
        "assistant:thinking,text",
        "user:text",
    ]


def test_a_paused_turn_holds_no_thinking_once_it_is_off() -> None:
    paused = answered([{"type": "thinking", "thinking": "t", "signature": "s"}, *SEARCH])
    history = [*ASK, paused]
    kept = "assistant:thinking,server_tool_use,web_search_tool_result,text"
    for mode in (None, {"type": "adaptive"}, BUDGET):
        assert shape(wire(history, thinking=mode)) == ["user:text", kept]
    off = wire(history, thinking={"type": "disabled"})
    assert shape(off)[1] == kept.replace("thinking,", "")
    assert shape(wire([*history, UserMessage("b")], thinking={"type": "disabled"}))[1] == kept


def test_a_turn_of_another_provider_is_gone_on_with_without_thinking() -> None:
    foreign = [*ASK, asks(call()), ToolMessage("r", tool_call_id="c1")]
    own = [*ASK, asks(call(), thinking=(thought(),)), ToolMessage("r", tool_call_id="c1")]
    assert body_of(foreign, thinking=BUDGET)["thinking"] == {"type": "disabled"}
    assert body_of(own, thinking=BUDGET)["thinking"] == BUDGET
    assert body_of([*foreign, UserMessage("b")], thinking=BUDGET)["thinking"] == {
        "type": "disabled"
    }
    ended = [*foreign, AssistantMessage("a"), UserMessage("b")]
    assert body_of(ended, thinking=BUDGET)["thinking"] == BUDGET
    extra = Settings(extra_body={"thinking": BUDGET})
    assert body_of(foreign, settings=extra)["thinking"] == {"type": "disabled"}
    adaptive = {"type": "adaptive", "display": "summarized"}
    assert body_of(foreign, thinking=adaptive)["thinking"] == adaptive


def test_a_budget_stands_beside_room_for_the_answer() -> None:
    assert body_of(ASK, thinking=BUDGET)["max_tokens"] == 16_384 + 2048
    assert body_of(ASK, thinking=BUDGET, settings=Settings(max_tokens=9000))["max_tokens"] == 9000


def test_a_forced_tool_is_refused_where_the_model_thinks_with_a_budget() -> None:
    options: dict[str, Any] = {"tools": [WEATHER], "tool_choice": ToolChoice("required")}
    with pytest.raises(UnsupportedContentError, match="tool choice 'required'"):
        encode(ASK, thinking=BUDGET, **options)
    assert body_of(ASK, thinking={"type": "adaptive"}, **options)["tool_choice"]


# --- what the provider sent


INTERLEAVED = [
    {"type": "thinking", "thinking": "a", "signature": "s1"},
    {"type": "tool_use", "id": "c1", "name": "f", "input": {"n": 1.50}},
    {"type": "thinking", "thinking": "", "signature": "s2"},
    {"type": "text", "text": "x", "citations": [{"type": "char_location", "cited_text": "y"}]},
    {"type": "tool_use", "id": "c2", "name": "f", "input": {}},
]
SEARCH = [
    {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [{"encrypted": "e"}]},
    {"type": "text", "text": "found"},
]


def test_interleaved_blocks_go_back_in_place_and_to_the_byte() -> None:
    sent = encode([*ASK, answered(INTERLEAVED)])
    assert json.dumps(INTERLEAVED)[1:-1].replace("}, {", "},{").encode() in sent


def test_an_edited_turn_goes_back_without_the_blocks_it_was() -> None:
    turn = structs.replace(answered(INTERLEAVED), content="other")
    assert shape(wire([*ASK, turn]))[1] == "assistant:text,tool_use,tool_use"


def test_blocks_go_to_nobody_else() -> None:
    sent = wire([*ASK, answered(INTERLEAVED)], dialect="ollama")
    assert shape(sent)[1] == "assistant:text,tool_use,tool_use"


def test_a_call_whose_id_is_mapped_leaves_its_neighbors_alone() -> None:
    turn = answered(INTERLEAVED)
    results = [ToolMessage("r", tool_call_id=name) for name in ("c1", "c2")]
    sent = wire([*ASK, turn, *results, turn])
    assert shape(sent)[3] == shape(sent)[1]
    ids = [block["id"] for m in sent for block in m["content"] if block["type"] == "tool_use"]
    assert len(set(ids)) == 4
    assert not check("anthropic", {"messages": sent})


def test_what_a_server_side_tool_did_goes_back_with_its_result() -> None:
    sent = wire([*ASK, answered(SEARCH), UserMessage("b")])
    assert sent[1]["content"] == SEARCH


def test_a_turn_that_was_paused_goes_on_as_it_is() -> None:
    paused = answered(SEARCH[:1])
    assert wire([*ASK, paused])[1]["content"] == SEARCH[:1]
    assert wire([*ASK, paused, answered(SEARCH[1:]), UserMessage("b")])[1]["content"] == SEARCH


def test_half_of_what_a_server_side_tool_did_does_not_go_back() -> None:
    assert shape(wire([*ASK, answered(SEARCH[:1]), UserMessage("b")])) == ["user:text,text"]
    assert shape(wire([*ASK, answered(SEARCH[1:]), UserMessage("b")]))[1] == "assistant:text"


def test_a_server_side_tool_may_wait_for_results_of_calls() -> None:
    both = [SEARCH[0], {"type": "tool_use", "id": "c1", "name": "f", "input": {}}]
    history = [*ASK, answered(both), ToolMessage("r", tool_call_id="c1")]
    assert shape(wire(history))[1] == "assistant:server_tool_use,tool_use"
    later = [*history, answered(SEARCH[1:]), UserMessage("b")]
    assert shape(wire(later))[3] == "assistant:web_search_tool_result,text"
    given_up = [*history, AssistantMessage("no"), UserMessage("b")]
    assert shape(wire(given_up))[1] == "assistant:tool_use"


def test_a_call_that_a_program_made_says_so_only_beside_the_program() -> None:
    caller = {"type": "code_execution_20260120", "tool_id": "srv_1"}
    use = {"type": "server_tool_use", "id": "srv_1", "name": "code_execution", "input": {}}
    made = {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}, "caller": caller}
    history = [*ASK, answered([use, made]), ToolMessage("r", tool_call_id="c1")]
    assert wire(history)[1]["content"] == [use, made]
    orphan = [*ASK, answered([made]), ToolMessage("r", tool_call_id="c1")]
    assert wire(orphan)[1]["content"] == [{k: v for k, v in made.items() if k != "caller"}]


def test_unknown_blocks_go_back_as_they_came() -> None:
    odd = [{"type": "compaction", "content": "so far", "signature": "s"}, {"type": "new", "x": []}]
    assert wire([*ASK, answered(odd), UserMessage("b")])[1]["content"] == odd


# --- counting


def test_a_count_asks_for_the_prompt_alone() -> None:
    search = {"type": "web_search_20250305", "name": "web_search"}
    history = [SystemMessage("s"), *ASK]
    body = json.loads(
        encode_count(
            Request(history, [WEATHER]),
            model="m",
            dialect=dialect_named("anthropic"),
            options=Options({"type": "adaptive"}, "5m", (search,)),
        )
    )
    assert body == {
        "model": "m",
        "thinking": {"type": "adaptive"},
        "tools": body_of(ASK, tools=[WEATHER])["tools"],
        "system": [{"type": "text", "text": "s"}],
        "messages": wire(ASK),
    }
