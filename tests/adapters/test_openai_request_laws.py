"""Laws of the request encoder, over histories as hostile as they can be stored."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem.history import repair
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
from golem_adapters.openai.dialect import DIALECTS
from tests.adapters.encoding import body_of, check, encode, wire
from tests.adapters.requesting import check_beginnings, check_sent_or_refused
from tests.strategies import ARGS, HISTORIES, ODD_TEXT

LONG = "call_" + "a" * 90
IDS = st.sampled_from(
    ["", "", "a", "a", "b", "call_1", LONG + "1", LONG + "2", "f.g:0", "é", "a\n"]
)
NAMES = st.sampled_from(["", "f", "get weather", "a.b", "x" * 80, "\ud800", "f\n", "naïve"])
MEDIA = st.lists(
    st.sampled_from(
        [
            Part.image(b"x", "image/png"),
            Part.image_url("https://e/x.png"),
            Part.audio(b"x", "audio/wav"),
        ]
    ),
    max_size=2,
).map(tuple)
THOUGHTS = st.lists(
    st.builds(Thinking, text=ODD_TEXT, provider=st.sampled_from(["openai", "mistral", "x"])),
    max_size=2,
).map(tuple)
CALLS = st.lists(st.builds(ToolCall.of, IDS, NAMES, ARGS, ODD_TEXT), max_size=3).map(tuple)

MESSAGES: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, ODD_TEXT),
    st.builds(UserMessage, ODD_TEXT, parts=MEDIA),
    st.builds(AssistantMessage, ODD_TEXT, tool_calls=CALLS, thinking=THOUGHTS, parts=MEDIA),
    st.builds(
        ToolMessage, ODD_TEXT, tool_call_id=IDS, tool_name=NAMES, parts=MEDIA, failed=st.booleans()
    ),
    st.builds(ToolMessage, ODD_TEXT, tool_call_id=IDS),
)
HOSTILE = st.lists(MESSAGES, max_size=8)
NAMES_OF_DIALECTS = sorted(DIALECTS)


def broken(history: list[Message], **options: Any) -> list[str]:
    # Which role comes first is the caller's business: this wire takes any.
    body = body_of(history, **options)
    return [name for name in check("openai-chat", body) if name != "starts_with_user"]


@given(HOSTILE)
def test_any_repaired_history_makes_a_request_the_provider_takes(history: list[Message]) -> None:
    assert not broken(history)


@pytest.mark.parametrize("dialect", NAMES_OF_DIALECTS)
@given(history=HOSTILE)
def test_every_dialect_keeps_the_rules_of_the_wire(dialect: str, history: list[Message]) -> None:
    names = broken(history, dialect=dialect)
    if dialect in ("moonshot", "kimi"):  # its own ids have dots and colons, and it wants them back
        names = [name for name in names if name != "id_pattern"]
    assert not names


@given(HISTORIES)
def test_any_stored_history_is_sent_or_refused_by_name(history: list[Message]) -> None:
    check_sent_or_refused(broken, history)


@given(HOSTILE)
def test_a_longer_conversation_begins_with_the_same_bytes(history: list[Message]) -> None:
    repaired = list(repair(history))
    check_beginnings(encode, repaired, b"]}", opened=True)


@given(HOSTILE)
def test_equal_requests_are_equal_bytes(history: list[Message]) -> None:
    assert encode(history) == encode(history)


@given(HOSTILE)
def test_call_and_result_have_the_same_id_and_every_id_is_used_once(history: list[Message]) -> None:
    asked, answered = [], []
    for message in wire(history):
        asked += [call["id"] for call in message.get("tool_calls", ())]
        answered += [message["tool_call_id"]] if message["role"] == "tool" else []
    assert len(set(asked)) == len(asked)
    assert sorted(asked) == sorted(answered)
    assert all(len(name) <= 40 for name in asked)


@given(HOSTILE)
def test_every_result_is_sent_with_its_text(history: list[Message]) -> None:
    stored = [m.content for m in repair(history) if isinstance(m, ToolMessage)]
    sent = json.dumps([m["content"] for m in wire(history) if m["role"] == "tool"])
    for text in stored:
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert json.dumps(clean)[1:-1] in sent
