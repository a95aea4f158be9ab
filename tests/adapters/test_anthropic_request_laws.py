"""Laws of the Messages request encoder, over histories as hostile as they can be stored."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec import Raw, structs

from golem.codec import dump_message, load_message
from golem.history import repair
from golem.messages import (
    AssistantMessage,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem_adapters.anthropic.dialect import DIALECTS
from tests.adapters.encoding import check
from tests.adapters.messaging import answered, body_of, encode, wire
from tests.adapters.requesting import check_beginnings, check_sent_or_refused, edited
from tests.strategies import ARGS, HISTORIES, ODD_TEXT

LONG = "toolu_" + "a" * 90
IDS = st.sampled_from(
    ["", "", "a", "a", "b", "toolu_1", LONG + "1", LONG + "2", "f.g:0", "é", "a\n"]
)
NAMES = st.sampled_from(["", "f", "get weather", "a.b", "x" * 80, "\ud800", "f\n", "naïve"])
MEDIA = st.lists(
    st.sampled_from(
        [
            Part.image(b"x", "image/png"),
            Part.image_url("https://e/x.png"),
            Part.document(b"x", "application/pdf"),
            Part.document(b"x", "text/plain"),
        ]
    ),
    max_size=2,
).map(tuple)
PROVIDERS = st.sampled_from(["anthropic", "anthropic", "openai-responses", ""])
THOUGHTS = st.lists(
    st.builds(
        Thinking,
        text=ODD_TEXT,
        signature=st.sampled_from(["", "sig", "\ud800"]),
        provider=PROVIDERS,
    )
    | st.builds(Thinking, redacted=st.just("sealed"), provider=PROVIDERS),
    max_size=2,
).map(tuple)
CALLS = st.lists(st.builds(ToolCall.of, IDS, NAMES, ARGS, ODD_TEXT), max_size=3).map(tuple)
MODES = st.sampled_from(
    [None, {"type": "adaptive"}, {"type": "disabled"}, {"type": "enabled", "budget_tokens": 1024}]
)


# --- what the provider itself may have answered


SERVER_IDS = st.sampled_from(["srv_1", "srv_2", "srv_3"])
INPUTS = st.sampled_from([{}, {"a": 1}, {"a": "\ud800"}, {"b": [1.50, None]}])
BLOCKS = st.one_of(
    st.fixed_dictionaries(
        {"type": st.just("text"), "text": ODD_TEXT},
        optional={"citations": st.sampled_from([None, [{"type": "x", "cited_text": "y"}]])},
    ),
    st.fixed_dictionaries(
        {
            "type": st.just("thinking"),
            "thinking": ODD_TEXT,
            "signature": st.sampled_from(["sig", "sig2", ""]),
        }
    ),
    st.fixed_dictionaries({"type": st.just("redacted_thinking"), "data": st.just("sealed")}),
    st.fixed_dictionaries(
        {"type": st.just("tool_use"), "id": IDS, "name": NAMES, "input": INPUTS},
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
        {
            "type": st.just("web_search_tool_result"),
            "tool_use_id": SERVER_IDS,
            "content": st.just([]),
        }
    ),
    st.just({"type": "container_upload", "file_id": "file_1"}),
)
OWN = st.lists(BLOCKS, max_size=5).map(answered)


MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, ODD_TEXT),
    st.builds(UserMessage, ODD_TEXT, parts=MEDIA),
    st.builds(AssistantMessage, ODD_TEXT, tool_calls=CALLS, thinking=THOUGHTS, parts=MEDIA),
    OWN,
    OWN.map(edited),
    st.builds(
        ToolMessage, ODD_TEXT, tool_call_id=IDS, tool_name=NAMES, parts=MEDIA, failed=st.booleans()
    ),
    st.builds(ToolMessage, ODD_TEXT, tool_call_id=IDS),
)
HOSTILE = st.lists(MESSAGES, max_size=8)


def refusals(body: dict[str, Any]) -> list[str]:
    """What Anthropic would refuse, beside the rules that came with the field reports."""
    found = check("anthropic", body)
    uses: set[str] = set()
    results: set[str] = set()
    messages = body["messages"]
    for place, message in enumerate(messages):
        content = message["content"]
        last = place == len(messages) - 1
        if message["role"] == "assistant":
            if content[-1]["type"] in ("thinking", "redacted_thinking"):
                found.append("ends with thinking")
            if last and content[-1].get("text", "x")[-1].isspace():
                found.append("ends with blanks")
        for block in content:
            kind = block["type"]
            if kind == "server_tool_use":
                found += ["server use repeated"] if block["id"] in uses else []
                uses.add(block["id"])
            if kind == "web_search_tool_result":
                found += ["server result repeated"] if block["tool_use_id"] in results else []
                results.add(block["tool_use_id"])
            if kind == "tool_use" and block.get("caller", {}).get("tool_id", "") not in {"", *uses}:
                found.append("source tool not found")
            if kind == "thinking" and not block["signature"]:
                found.append("thinking without signature")
            if kind == "tool_result" and block.get("is_error"):
                text = isinstance(block.get("content"), str) and block["content"].strip()
                found += [] if text else ["a failure without words, or with media"]
            if kind == "tool_result" and block.get("content", "x") in ("", []):
                found.append("an empty result")
        goes_on = last or (
            place == len(messages) - 2 and messages[-1]["content"][0]["type"] == "tool_result"
        )
        if not goes_on or message["role"] != "assistant":
            loose = {b["id"] for b in content if b["type"] == "server_tool_use"}
            rest = [b for later in messages[place:] for b in later["content"]]
            answers = {b.get("tool_use_id") for b in rest if b["type"] == "web_search_tool_result"}
            found += ["a server use without result"] if loose - answers else []
        elif body.get("thinking", {}).get("type") == "enabled":
            first = content[0]["type"] in ("thinking", "redacted_thinking")
            found += [] if first else ["expected thinking"]
        if last and message["role"] == "assistant":
            off = body.get("thinking", {"type": ""})["type"] == "disabled"
            kinds = {block["type"] for block in content}
            paused = kinds & {"server_tool_use", "web_search_tool_result"}
            found += [] if paused else ["ends with the assistant"]
            found += ["thinking while it is off"] if off and "thinking" in kinds else []
    if body["messages"][0]["role"] != "user":
        found.append("begins with the assistant")
    return found


@given(HOSTILE, MODES)
def test_any_repaired_history_makes_a_request_the_provider_takes(
    history: list[Message], mode: dict[str, Any] | None
) -> None:
    assert not refusals(body_of(history, thinking=mode))


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
@given(history=HOSTILE)
def test_every_dialect_keeps_the_rules_of_the_wire(dialect: str, history: list[Message]) -> None:
    found = set(refusals(body_of(history, dialect=dialect)))
    known = DIALECTS[dialect].unsigned_thinking
    assert not found - ({"thinking without signature"} if known else set())


@given(HISTORIES)
def test_any_stored_history_is_sent_or_refused_by_name(history: list[Message]) -> None:
    check_sent_or_refused(lambda told: refusals(body_of(told)), history)


@given(HOSTILE)
def test_a_history_that_was_not_repaired_is_answered_too(history: list[Message]) -> None:
    assert "pairing" not in check("anthropic", body_of(history, repaired=False))


@given(HOSTILE)
def test_a_longer_conversation_begins_with_the_same_bytes(history: list[Message]) -> None:
    told = [m for m in history if not isinstance(m, SystemMessage) or m.content.strip()]
    repaired = [UserMessage("q"), *repair(loose_free(told))]
    check_beginnings(encode, repaired, b"]}]}", asking=True)


def loose_free(history: list[Message]) -> list[Message]:
    """`history` without server-side uses, which have to go once nobody answers them."""
    return [
        structs.replace(m, native=None)
        if isinstance(m, AssistantMessage) and m.native and b"srv_" in b"".join(m.native.items)
        else m
        for m in history
    ]


@given(HOSTILE)
def test_instructions_and_marks_stand_before_the_messages(history: list[Message]) -> None:
    body = body_of(history, cache="5m")
    assert list(body)[-1] == "messages"
    assert "cache_control" not in json.dumps(body["messages"])


@given(HOSTILE)
def test_equal_requests_are_equal_bytes(history: list[Message]) -> None:
    assert encode(history) == encode(history)


@given(HOSTILE)
def test_call_and_result_have_the_same_id_and_every_id_is_used_once(history: list[Message]) -> None:
    sent = [block for message in wire(history) for block in message["content"]]
    asked = [block["id"] for block in sent if block["type"] == "tool_use"]
    answers = [block["tool_use_id"] for block in sent if block["type"] == "tool_result"]
    assert len(set(asked)) == len(asked)
    assert sorted(asked) == sorted(answers)
    assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in asked)


@given(HOSTILE)
def test_every_text_is_sent(history: list[Message]) -> None:
    body = body_of(history)
    sent = json.dumps([body.get("system", []), body["messages"]])
    for message in repair(history):
        if isinstance(message, AssistantMessage):
            continue  # its text may stand in several blocks, and end the request
        clean = message.content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert not clean.strip() or json.dumps(clean)[1:-1] in sent


@given(HOSTILE)
def test_every_answer_is_sent(history: list[Message]) -> None:
    sent = [block for message in wire(history) for block in message["content"]]
    told = "".join(block.get("text", "") for block in sent).split()
    for message in repair(history):
        if isinstance(message, AssistantMessage):
            clean = message.content.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
            assert "".join(clean.split()) in "".join(told)


@given(OWN)
def test_what_the_provider_answered_can_be_stored(message: AssistantMessage) -> None:
    assert message == load_message(dump_message(message))


@given(st.lists(BLOCKS, max_size=5))
def test_an_answer_goes_back_block_by_block(content: list[dict[str, Any]]) -> None:
    ids = [block["id"] for block in content if block["type"] == "tool_use"]
    assume(len(set(ids)) == len(ids))  # a repeated one is told apart, by an id of golem's own
    paused = wire([UserMessage("q"), answered(content)], thinking={"type": "adaptive"})
    sent = paused[1]["content"] if len(paused) > 1 else []
    kinds = [block["type"] for block in content]
    order = iter(kinds)
    assert all(block["type"] in order for block in sent if block["type"] != "tool_result")


@given(OWN, st.sampled_from(["deepseek", "ollama"]))
def test_blocks_and_signed_thinking_never_go_to_another_server(
    message: AssistantMessage, dialect: str
) -> None:
    sent = [block for m in wire([message], dialect=dialect) for block in m["content"]]
    assert {block["type"] for block in sent} <= {"text", "tool_use", "tool_result"}


def test_native_blocks_that_are_no_blocks_are_left_alone() -> None:
    raws = (Raw(b"1"), Raw(b'{"type":"text"'), Raw(b"[" * 2000), Raw(b'"' + b"x"), Raw(b"{}"))
    for raw in raws:
        message = AssistantMessage("a", native=Native("anthropic", (raw,)))
        assert wire([UserMessage("q"), message])[1]["content"] == [{"type": "text", "text": "a"}]
