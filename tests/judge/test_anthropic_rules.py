"""Every rule about Messages requests: a body that keeps it, and one that does not."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.testing.judge import AnthropicProvider, judge_anthropic
from golem.testing.judge.answers import response_of
from golem.testing.judge.anthropic import COUNT_PATH, PATH
from golem.testing.judge.anthropic_turns import thoughts_of

JSON = dict[str, Any]
USER: JSON = {"role": "user", "content": "hi"}
SAID: JSON = {"role": "assistant", "content": "yes"}
TEXT: JSON = {"type": "text", "text": "hi"}
THOUGHT: JSON = {"type": "thinking", "thinking": "hm", "signature": "EqRa"}
SEALED: JSON = {"type": "redacted_thinking", "data": "EvgF"}
PNG: JSON = {"type": "base64", "media_type": "image/png", "data": "aGk="}
PDF: JSON = {"type": "base64", "media_type": "application/pdf", "data": "aGk="}
CACHED: JSON = {"type": "ephemeral"}
CLOSED: JSON = {"type": "object", "properties": {}, "additionalProperties": False}
BUDGET: JSON = {"type": "enabled", "budget_tokens": 1024}
OFF: JSON = {"type": "disabled"}


def use(id: Any = "a", name: Any = "f", args: Any = None, **more: Any) -> JSON:
    return {
        "type": "tool_use",
        "id": id,
        "name": name,
        "input": {} if args is None else args,
        **more,
    }


def result(id: Any = "a", content: Any = "ok", **more: Any) -> JSON:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def search(id: str = "srvtoolu_1") -> JSON:
    return {"type": "server_tool_use", "id": id, "name": "web_search", "input": {}}


def found(id: str = "srvtoolu_1") -> JSON:
    return {"type": "web_search_tool_result", "tool_use_id": id, "content": []}


def says(*blocks: JSON) -> JSON:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Any) -> JSON:
    return {"role": "user", "content": list(blocks)}


def system(*blocks: JSON) -> JSON:
    return {"role": "system", "content": list(blocks or [TEXT])}


def tool(name: Any = "f", **more: Any) -> JSON:
    return {"name": name, "input_schema": {"type": "object"}, **more}


def body(*messages: Any, **more: Any) -> JSON:
    whole = {"model": "m", "max_tokens": 2048, "messages": list(messages or [USER]), **more}
    return {name: value for name, value in whole.items() if value != "leave out"}


def image(**source: Any) -> JSON:
    return {"type": "image", "source": source}


def document(**source: Any) -> JSON:
    return {"type": "document", "source": source}


def schema(**members: Any) -> JSON:
    return {"format": {"type": "json_schema", "schema": {**CLOSED, **members}}}


def pair(*, budget: Any = None, first: Any = (), **more: Any) -> JSON:
    thinking = {"thinking": budget} if budget else {}
    return body(USER, says(*first, use()), user(result()), **thinking, **more)


ACCEPTED = [
    body(),
    body(max_tokens=0),
    body(system="be brief"),
    body(system=[TEXT, {**TEXT, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]),
    body(user(TEXT), SAID, USER),
    body(SAID, USER),
    body(USER, USER, SAID, SAID, USER),
    body(user(TEXT, image(**PNG), image(type="url", url="https://example.com/a.png"))),
    body(user(image(type="file", file_id="file_1"))),
    body(user(document(**PDF), document(type="text", media_type="text/plain", data="x"))),
    body(user(document(type="url", url="https://example.com/a.pdf"), TEXT)),
    pair(),
    body(USER, says(use("a"), use("b")), user(result("b"), result("a"), TEXT)),
    body(USER, says(use("a")), says(use("b")), user(result("a")), user(result("b"))),
    body(USER, says(use("x" * 90, "n" * 128)), user(result("x" * 90))),
    body(USER, says(use()), user({"type": "tool_result", "tool_use_id": "a"})),
    body(USER, says(use()), user(result(content=[TEXT, image(**PNG), document(**PDF)]))),
    body(USER, says(use()), user(result(content="bad", is_error=True))),
    body(USER, says(use()), user(result(content=[TEXT], is_error=True))),
    body(USER, says(THOUGHT, SEALED, TEXT, use()), user(result()), thinking=BUDGET),
    body(USER, says(THOUGHT, TEXT), USER),
    body(USER, says({**THOUGHT, "thinking": ""}, TEXT), USER),
    body(USER, says(TEXT, use()), user(result()), SAID, USER, thinking=BUDGET),
    body(USER, says(search(), found(), TEXT), USER),
    body(USER, says(search())),
    body(USER, says(THOUGHT, search(), found()), thinking={"type": "adaptive"}),
    body(USER, says(search(), use(caller={"type": "x", "tool_id": "srvtoolu_1"})), user(result())),
    body(USER, says({"type": "what_came_later", "a": 1}, TEXT), USER),
    body(tools=[tool(), tool("g" * 128, description="", strict=False)]),
    body(tools=[tool(strict=True, input_schema=CLOSED)]),
    body(tools=[{"type": "web_search_20250305", "name": "web_search"}, tool()]),
    body(tools=[tool()], tool_choice={"type": "tool", "name": "f"}),
    body(tools=[tool()], tool_choice={"type": "any", "disable_parallel_tool_use": True}),
    body(tools=[tool()], tool_choice={"type": "none"}),
    body(temperature=0.5, top_p=1, top_k=3),
    body(output_config={"effort": "high", **schema()}),
    body(output_config=schema(properties={"a": {"type": "array", "items": {}, "minItems": 1}})),
    body(cache_control={"type": "ephemeral", "ttl": "5m"}),
    body(USER, system(), model="claude-opus-4-8"),
    body(USER, system(), SAID, USER, model="claude-fable-5"),
    body(USER, says(TEXT), model="claude-sonnet-4-5"),
    body(thinking=BUDGET, model="claude-opus-4-6"),
]


@pytest.mark.parametrize("request_body", ACCEPTED)
def test_what_keeps_the_rules_is_taken(request_body: JSON) -> None:
    assert judge_anthropic(request_body) == []


NEWEST = "claude-fable-5"
REFUSED: list[tuple[str, Any]] = [
    ("member_type at the body", []),
    ("required_member at model", body(model="leave out")),
    ("required_member at max_tokens", body(max_tokens="leave out")),
    ("required_member at messages", body(messages="leave out")),
    ("sampling at max_tokens", body(max_tokens=-1)),
    ("member_type at max_tokens", body(max_tokens="5")),
    ("member_type at stream", body(stream="yes")),
    ("member_type at stop_sequences", body(stop_sequences="x")),
    ("unknown_member at seed", body(seed=1)),
    ("valid_utf8 at the body", body(user({**TEXT, "text": "\ud800"}))),
    ("number at the body", body(USER, says(use(args={"a": float("inf")})), user(result()))),
    ("sampling at temperature", body(temperature=1.5)),
    ("sampling at temperature", body(temperature=0.5, model=NEWEST)),
    ("member_type at top_p", body(top_p="1")),
    ("empty_messages at messages", body(messages=[])),
    ("member_type at messages", body(messages={})),
    ("member_type at messages.0", body("hi")),
    ("role at messages.0.role", body({"role": "tool", "content": "x"})),
    ("role at messages.1.role", body(USER, system())),
    ("role_order at messages.0", body(system(), USER, model=NEWEST)),
    ("role_order at messages.1", body(USER, system(), USER, model=NEWEST)),
    ("unknown_member at messages.0.name", body({**USER, "name": "x"})),
    ("required_member at messages.0.content", body({"role": "user"})),
    ("member_type at messages.0.content", body({"role": "user", "content": 1})),
    ("empty_message at messages.0", body(user())),
    ("empty_message at messages.0", body({"role": "user", "content": ""})),
    ("blank_text at messages.0.content", body({"role": "user", "content": " \n"})),
    ("blank_text at messages.0.content.0.text", body(user({"type": "text", "text": ""}))),
    ("blank_text at system.0.text", body(system=[{"type": "text", "text": " "}])),
    ("block_type at system.0.type", body(system=[image(**PNG)])),
    ("block_type at messages.0.content.0", body(user({"text": "x"}))),
    ("block_type at messages.0.content.0", body(user({"type": "audio"}))),
    ("block_type at messages.0.content.0", body(user(THOUGHT, TEXT))),
    ("block_type at messages.0.content.0", body(user(use()))),
    ("block_type at messages.1.content.0", body(USER, says(image(**PNG)), USER)),
    ("unknown_member at messages.0.content.0.text.name", body(user({**TEXT, "name": "x"}))),
    # calls and results
    ("call_id at messages.1.content.0.tool_use.id", pair(first=[use("a.b")])),
    ("name at messages.1.content.0.tool_use.name", pair(first=[use("b", "a.b")])),
    ("name at messages.1.content.0.tool_use.name", pair(first=[use("b", "x" * 129)])),
    ("arguments at messages.1.content.0.tool_use.input", pair(first=[use("b", args="{}")])),
    ("repeated_id at messages.1.content.1", pair(first=[use()])),
    ("unanswered_call at messages.1", body(USER, says(use()), USER)),
    ("unanswered_call at messages.1", body(USER, says(use()))),
    ("unanswered_call at messages.1", body(USER, says(use("a"), use("b")), user(result()))),
    ("unanswered_call at messages.1", body(USER, says(use()), user(TEXT, result()))),
    ("unanswered_call at messages.1", body(USER, says(use()), USER, SAID, user(result()))),
    ("orphan_result at messages.0.content.0", body(user(result()))),
    ("orphan_result at messages.4.content.0", body(*pair()["messages"], SAID, user(result()))),
    ("repeated_result at messages.2.content.1", body(USER, says(use()), user(result(), result()))),
    ("repeated_id at messages.3.content.0", body(*pair()["messages"], says(use()), user(result()))),
    (
        "empty_content at messages.2.content.0.tool_result.content",
        body(USER, says(use()), user(result(content=[]))),
    ),
    (
        "blank_text at messages.2.content.0.tool_result.content.0.text",
        body(USER, says(use()), user(result(content=[{**TEXT, "text": " "}]))),
    ),
    (
        "failed_result at messages.2.content.0.tool_result",
        body(USER, says(use()), user(result(content=[image(**PNG)], is_error=True))),
    ),
    (
        "failed_result at messages.2.content.0.tool_result",
        body(USER, says(use()), user(result(content="", is_error=True))),
    ),
    # server-side tools
    ("call_id at messages.1.content.0.server_tool_use.id", body(USER, says(search("a b"), TEXT))),
    ("unanswered_use at messages.1.content.0", body(USER, says(search(), TEXT), USER)),
    ("orphan_result at messages.1.content.0", body(USER, says(found(), TEXT), USER)),
    ("orphan_result at messages.1.content.0", body(USER, says(found(), search(), TEXT))),
    (
        "caller at messages.1.content.0.tool_use.caller",
        body(USER, says(use(caller={"type": "x", "tool_id": "srvtoolu_1"})), user(result())),
    ),
    # the end
    ("prefill at messages.1", body(USER, SAID)),
    (
        "trailing_blank at messages.1.content",
        body(USER, {"role": "assistant", "content": "so "}, model="claude-sonnet-4-5"),
    ),
    # thinking
    ("thinking at thinking.type", body(thinking={"type": "on"})),
    ("thinking at thinking.type", body(thinking=BUDGET, model="claude-opus-4-7")),
    ("thinking at thinking.enabled.budget_tokens", body(thinking={**BUDGET, "budget_tokens": 9})),
    ("thinking at thinking.enabled.budget_tokens", body(thinking=BUDGET, max_tokens=1024)),
    ("first_thinking at messages.1.content.0.type", pair(budget=BUDGET)),
    ("last_thinking at messages.1", body(USER, says(TEXT, THOUGHT), USER)),
    ("thinking_off at messages.1.content.0", body(USER, says(THOUGHT, search()), thinking=OFF)),
    (
        "required_member at messages.1.content.0.thinking.signature",
        body(USER, says({"type": "thinking", "thinking": "hm"}, TEXT), USER),
    ),
    ("signature at messages.1.content.0", body(USER, says({**THOUGHT, "signature": ""}, TEXT))),
    ("signature at messages.1.content.0", body(USER, says({**SEALED, "data": ""}, TEXT))),
    (
        "unknown_member at messages.1.content.0.thinking.cache_control",
        body(USER, says({**THOUGHT, "cache_control": CACHED}, TEXT), USER),
    ),
    # media
    (
        "media_type at messages.0.content.0.image.source.base64.media_type",
        body(user(image(**{**PNG, "media_type": "image/bmp"}))),
    ),
    (
        "media_data at messages.0.content.0.image.source.base64.data",
        body(user(image(**{**PNG, "data": "no base64"}))),
    ),
    (
        "media_link at messages.0.content.0.image.source.url.url",
        body(user(image(type="url", url="file:///etc/passwd"))),
    ),
    (
        "media_type at messages.0.content.0.document.source.base64.media_type",
        body(user(document(**{**PDF, "media_type": "text/csv"}))),
    ),
    (
        "media_data at messages.0.content.0.document.source.text.data",
        body(user(document(type="text", media_type="text/plain", data=""))),
    ),
    ("source_type at messages.0.content.0.image.source.type", body(user(image()))),
    # tools
    ("name at tools.0.custom.name", body(tools=[tool("get weather")])),
    ("name at tools.0.custom.name", body(tools=[tool("")])),
    ("repeated_name at tools", body(tools=[tool(), tool()])),
    ("required_member at tools.0.custom.input_schema", body(tools=[{"name": "f"}])),
    (
        "required_member at tools.0.custom.input_schema.type",
        body(tools=[tool(input_schema={})]),
    ),
    ("schema at tools.0.custom.input_schema.type", body(tools=[tool(input_schema={"type": "x"})])),
    ("schema at tools.0.custom.input_schema", body(tools=[tool(strict=True)])),
    ("unknown_member at tools.0.custom.parameters", body(tools=[tool(parameters={})])),
    ("tool_type at tools.0", body(tools=[{"type": "function", "name": "f"}])),
    ("tool_choice at tool_choice", body(tool_choice={"type": "auto"})),
    ("tool_choice at tool_choice.type", body(tools=[tool()], tool_choice="auto")),
    ("tool_choice at tool_choice", body(tools=[tool()], tool_choice={"type": "tool", "name": "g"})),
    (
        "unknown_member at tool_choice.none.disable_parallel_tool_use",
        body(tools=[tool()], tool_choice={"type": "none", "disable_parallel_tool_use": True}),
    ),
    (
        "forced_thinking at tool_choice",
        body(tools=[tool()], tool_choice={"type": "any"}, thinking=BUDGET),
    ),
    (
        "forced_choice at tool_choice",
        body(tools=[tool()], tool_choice={"type": "any"}, model=NEWEST),
    ),
    # output and caches
    ("effort at output_config.effort", body(output_config={"effort": "some"})),
    ("format at output_config.format.type", body(output_config={"format": {"type": "json"}})),
    (
        "schema at output_config.format.schema",
        body(output_config=schema(additionalProperties=True)),
    ),
    (
        "schema at output_config.format.schema",
        body(output_config=schema(properties={"a": {"type": "string", "minLength": 1}})),
    ),
    ("cache_marks at the body", body(user(*[{**TEXT, "cache_control": CACHED}] * 5))),
    ("cache_mark at the body", body(user({**TEXT, "cache_control": {"type": "forever"}}))),
]


@pytest.mark.parametrize(("rule", "request_body"), REFUSED)
def test_what_breaks_a_rule_is_refused_where_it_does(rule: str, request_body: Any) -> None:
    broken = judge_anthropic(request_body)
    assert rule in [str(violation).partition(": ")[0] for violation in broken]


RECORDED: list[tuple[JSON, str]] = [
    (
        body(USER, says(use("toolu_1")), USER),
        "messages.1: `tool_use` ids were found without `tool_result` blocks immediately after:"
        " toolu_1. Each `tool_use` block must have a corresponding `tool_result` block in the next"
        " message.",
    ),
    (
        body(user(result("toolu_1"))),
        "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_1."
        " Each `tool_result` block must have a corresponding `tool_use` block in the previous"
        " message.",
    ),
    (
        body(USER, says(use("functions.f:0")), user(result("functions.f:0"))),
        "messages.1.content.0.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'",
    ),
    (body(user({**TEXT, "text": ""})), "messages: text content blocks must be non-empty"),
]


@pytest.mark.parametrize(("request_body", "text"), RECORDED)
def test_a_refusal_is_worded_as_the_provider_words_it(request_body: JSON, text: str) -> None:
    answer = judge_anthropic(request_body)[0].body
    assert answer["error"] == {"type": "invalid_request_error", "message": text}
    assert answer["type"] == "error"


# --- what takes more than a body


def test_sampling_is_gone_from_the_newer_version() -> None:
    assert judge_anthropic(body(temperature=1), version="2023-06-01") == []
    found = judge_anthropic(body(temperature=1), version="2026-10-21")
    assert [violation.place for violation in found] == ["temperature"]


def test_a_count_has_no_answer_and_no_tools_of_the_server() -> None:
    asked = body(tools=[tool()], max_tokens="leave out")
    assert judge_anthropic(asked, counts=True) == []
    server = {"type": "web_search_20250305", "name": "web_search"}
    found = judge_anthropic(body(tools=[server], stream=True, mcp_servers=[]), counts=True)
    places = [violation.place for violation in found]
    assert places == ["max_tokens", "stream", "mcp_servers", "tools.0"]


def thinks(*blocks: JSON, **options: Any) -> list[str]:
    """What is refused of a turn with thinking, whose answer thought `THOUGHT`, then `SEALED`."""
    made_with = thoughts_of([THOUGHT, SEALED, TEXT])
    found = judge_anthropic(body(USER, says(*blocks), USER), made_with=made_with, **options)
    return [violation.rule for violation in found]


def test_thinking_comes_back_as_it_was_and_only_its_own() -> None:
    assert thinks(THOUGHT, SEALED, TEXT, own_thinking=True) == []
    assert thinks(THOUGHT, TEXT) == []  # what a turn ended with was left out
    assert thinks({**THOUGHT, "thinking": "Hm!"}, TEXT) == ["signature", "modified_thinking"]
    assert thinks(SEALED, THOUGHT, TEXT) == ["modified_thinking"]
    stranger = {**THOUGHT, "signature": "c2ln"}
    assert thinks(stranger, TEXT) == []
    assert thinks(stranger, TEXT, own_thinking=True) == ["signature"]


# --- any JSON whatever

WORDS = st.sampled_from(
    [
        *("role", "content", "type", "text", "tool_use", "tool_result", "id", "name", "input"),
        *("tool_use_id", "thinking", "signature", "data", "source", "image", "base64", "url"),
        *("media_type", "cache_control", "user", "assistant", "system", "server_tool_use"),
        *("is_error", "caller", "tool_id", "input_schema", "schema", "properties", "items"),
        *("any", "auto", "enabled", "budget_tokens", "json_schema", "format", "object", "document"),
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
NAMES = ("messages", "system", "tools", "tool_choice", "thinking", "output_config", "max_tokens")
BODIES = st.one_of(
    ANY,
    st.fixed_dictionaries({"model": ANY}, optional=dict.fromkeys(NAMES, ANY)),
    st.lists(ANY, max_size=3).map(lambda blocks: body(user(*blocks))),
    st.lists(ANY, max_size=3).map(lambda blocks: body(USER, says(*blocks), USER)),
    st.lists(ANY, max_size=3).map(lambda messages: body(*messages)),
)


@given(BODIES, st.sampled_from([PATH, COUNT_PATH]))
def test_any_json_is_answered_and_never_a_crash(request_body: Any, path: str) -> None:
    provider = AnthropicProvider()
    found = provider.judge_request(path, {"anthropic-version": "2023-06-01"}, request_body, {})
    assert all(json.dumps(violation.body) for violation in found)
    if not found and provider.aside(path, request_body) is None:
        said = response_of(provider.default(request_body))
        assert provider.links(provider.answer(request_body, said)) == {}
        assert provider.events(request_body, said)
