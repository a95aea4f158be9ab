"""Whatever a history went through: repaired and encoded, the judge of Messages refuses it not.

The judge has a record of the facts of its own, so what is proved is that two readings of the
rules agree; nothing here is asked of a provider.
"""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from golem import AssistantMessage, Message, Part, UserMessage, repair
from golem.model import OutputSchema, Request, Settings, ToolChoice
from golem.testing.judge import AnthropicJudge, judge_anthropic
from golem.testing.judge.anthropic_turns import thoughts_of
from golem_adapters import Anthropic
from golem_adapters.anthropic.dialect import ANTHROPIC
from golem_adapters.anthropic.request import Options, encode_count
from tests.adapters.messaging import answered, encode
from tests.judge.aging import EDITS, SCHEMA, TOOLS, edited, go_on, lived, lives, unless_named
from tests.judge.anthropic_histories import Told, conversations, told
from tests.strategies import HISTORIES, ODD_TEXT, TEXT

SERVER_IDS = st.sampled_from(["srvtoolu_1", "srvtoolu_2", "srvtoolu_3"])
INPUTS = st.sampled_from([{}, {"a": 1}, {"a": "\ud800"}, {"b": [1.50, None]}])
CALL_IDS = st.sampled_from(["toolu_1", "toolu_1", "toolu_2", "toolu_3"])
BLOCK = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("text"), "text": ODD_TEXT},
        optional={"citations": st.sampled_from([None, [{"type": "x", "cited_text": "y"}]])},
    ),
    st.fixed_dictionaries({"type": st.just("thinking"), "thinking": TEXT}),
    st.just({"type": "redacted_thinking"}),
    st.fixed_dictionaries(
        {
            "type": st.just("tool_use"),
            "id": CALL_IDS,
            "name": st.sampled_from(["f", "get_weather_1"]),
            "input": INPUTS,
        },
        optional={
            "caller": st.just({"type": "direct"})
            | SERVER_IDS.map(lambda name: {"type": "code_execution_20260120", "tool_id": name})
        },
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("server_tool_use"),
            "id": SERVER_IDS,
            "name": st.just("web_search"),
            "input": INPUTS,
        }
    ),
    st.fixed_dictionaries(
        {"type": st.just("web_search_tool_result"), "tool_use_id": SERVER_IDS}
    ).map(lambda block: {**block, "content": []}),
    st.just({"type": "compaction", "content": "so far"}),
)


def signed(block: dict[str, Any], proof: str) -> dict[str, Any]:
    """A block, which where it is thinking nobody else has signed."""
    if block["type"] == "thinking":
        return {**block, "signature": proof}
    return {**block, "data": proof} if block["type"] == "redacted_thinking" else block


SEARCH = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {}}
USUAL = st.sampled_from(
    [
        [
            {"type": "thinking", "thinking": "hm"},
            SEARCH,
            {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []},
            {"type": "text", "text": "So it is."},
        ],
        [{"type": "thinking", "thinking": "hm"}, SEARCH],
        [
            {"type": "thinking", "thinking": "hm"},
            {"type": "text", "text": "Let me see. "},
            {"type": "redacted_thinking"},
            {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}},
            {"type": "tool_use", "id": "toolu_2", "name": "f", "input": {}},
        ],
    ]
)
"""Answers as they come, beside those that nobody ever saw."""

PIECES = conversations(st.lists(BLOCK, max_size=5) | USUAL)
MODES = st.sampled_from(
    [None, {"type": "adaptive"}, {"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}]
)


def history_of(pieces: list[Any]) -> Told:
    return told(pieces, signed, answered, thoughts_of)


def refused(messages: list[Message], made_with: Any, **options: Any) -> list[str]:
    body = json.loads(encode(messages, **options))
    return list(map(str, judge_anthropic(body, made_with=made_with, own_thinking=True)))


@given(PIECES, MODES)
@settings(max_examples=300)
def test_any_repaired_history_is_taken(pieces: list[Any], thinking: Any) -> None:
    messages, made_with = history_of(pieces)
    assert refused(messages, made_with, thinking=thinking) == []


@given(
    pieces=PIECES,
    thinking=MODES,
    stream=st.booleans(),
    choice=st.sampled_from([None, ToolChoice("auto"), ToolChoice("none")]),
    tools=st.sampled_from([(), TOOLS]),
    schema=st.sampled_from([None, OutputSchema("an answer", SCHEMA)]),
    cache=st.sampled_from([None, "5m", "1h"]),
    parallel=st.sampled_from([None, False]),
)
def test_any_request_around_it_is_taken(
    pieces: list[Any],
    thinking: Any,
    stream: bool,
    choice: ToolChoice | None,
    tools: Any,
    schema: OutputSchema | None,
    cache: Any,
    parallel: bool | None,
) -> None:
    messages, made_with = history_of(pieces)
    found = refused(
        messages,
        made_with,
        thinking=thinking,
        stream=stream,
        tools=tools,
        tool_choice=choice,
        output_schema=schema,
        cache=cache,
        settings=Settings(max_tokens=5000, temperature=0.5, parallel_tool_calls=parallel),
    )
    assert found == []


@given(PIECES, EDITS, MODES)
def test_an_edited_history_is_taken(pieces: list[Any], edits: Any, thinking: Any) -> None:
    messages, made_with = history_of(pieces)
    assert refused(edited(messages, edits), made_with, thinking=thinking) == []


@given(lives(PIECES), st.sampled_from([None, "adaptive", "disabled", 1024]))
@settings(max_examples=20)
def test_a_run_on_whatever_earlier_runs_left_is_taken(life: Any, thinking: Any) -> None:
    def model_at(judge: Any) -> Anthropic:
        return Anthropic("m", base_url=judge.base_url, api_key=judge.key, thinking=thinking)

    go_on(AnthropicJudge(), model_at, lived(life, lambda pieces: history_of(pieces).messages))


ADDRESSES = st.sampled_from(
    [
        *("https://e/x.png", "HTTP://e/x", "http://", "https:///x", "ftp://e/x", "file:///etc/x"),
        *("s3://bucket/key", "x", "//e/x", "data:image/png;base64,aGk=", "http://[e", " https://e"),
    ]
)
LINKED = st.builds(
    UserMessage,
    TEXT,
    parts=st.builds(Part, kind=st.sampled_from(["image", "document"]), url=ADDRESSES).map(
        lambda part: (part,)
    ),
)


@given(HISTORIES | st.lists(LINKED, max_size=2))
def test_any_stored_history_is_taken_or_refused_by_name(history: list[Message]) -> None:
    def refusals() -> list[str]:
        return list(map(str, judge_anthropic(json.loads(encode(history)))))

    assert unless_named(refusals) == []


@given(PIECES, MODES, st.sampled_from([(), TOOLS]))
def test_the_count_of_any_history_is_taken(pieces: list[Any], thinking: Any, tools: Any) -> None:
    messages, made_with = history_of(pieces)
    request = Request(list(repair(messages)), tools)
    server = {"type": "web_search_20250305", "name": "web_search"}
    options = Options(thinking, "5m", (server,))
    body = encode_count(request, model="m", dialect=ANTHROPIC, options=options)
    found = judge_anthropic(json.loads(body), counts=True, made_with=made_with, own_thinking=True)
    assert list(map(str, found)) == []


@given(MODES)
def test_a_conversation_of_nobody_is_taken(thinking: Any) -> None:
    for messages in ([], [AssistantMessage("")], [UserMessage("")]):
        assert refused(messages, {}, thinking=thinking) == []
