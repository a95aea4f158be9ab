"""The laws of sanitizing: a second pass, determinism, nothing unsafe left, all of it reported."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from golem import (
    AssistantMessage,
    HistoryRepair,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolMessage,
    UserMessage,
    normalize_history,
)
from golem.history import sanitize_history
from golem.testing.strategies import ANY_HISTORY
from tests.history.checks import NEWER, complaint, same
from tests.strategies import HISTORIES

HOSTILE = st.one_of(
    st.sampled_from(
        [
            *("file:///etc/passwd", "FILE:/x", "javascript:alert(1)", "data:,x", "gs://b", "//h/x"),
            *(" https://x/", "https://x/\n", "https:x", "https://x@127.1/", "http://[::1]/", "x"),
            *("https://ok.example/a", "HTTP://ok.example", "http:\\\\localhost", "http://\u2460"),
        ]
    ),
    st.text(max_size=12),
    st.text(max_size=12).map(lambda text: "http://" + text),
    st.text(st.sampled_from("htpsfile:/@.%[]\\ \t\x00\u3002\uff0f0127x"), max_size=20),
)

PARTS = st.lists(
    st.builds(
        Part, st.sampled_from(["image", "odd"]), url=HOSTILE, data=st.sampled_from([b"", b"x"])
    ),
    min_size=1,
    max_size=3,
).map(tuple)


@st.composite
def hostile(draw: st.DrawFn) -> list[Message]:
    """Broken pairing and, on some messages, everything else a client may smuggle in."""
    history = draw(ANY_HISTORY)
    for place, message in enumerate(history):
        if isinstance(message, SystemMessage) or draw(st.booleans()):
            continue
        extra: dict[str, Any] = {"parts": draw(PARTS)}
        if draw(st.booleans()):
            extra |= {"unknown": NEWER, "run_id": "r", "content": ""}
        if isinstance(message, AssistantMessage) and draw(st.booleans()):
            extra |= {"native": Native("p", ()), "thinking": (Thinking("t", unknown=NEWER),)}
        history[place] = replace(message, **extra)
    return history


POLICIES: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {},
    optional={
        "allowed_hosts": st.just(["ok.example"]),
        "block_private_hosts": st.booleans(),
        "strip_identity": st.booleans(),
        "strip_thinking": st.booleans(),
    },
)


@given(hostile() | HISTORIES, POLICIES)
def test_a_second_pass_changes_nothing_and_reports_no_change(
    history: list[Message], policy: dict[str, Any]
) -> None:
    messages, first = sanitize_history(history, **policy)
    again, second = sanitize_history(messages, **policy)
    assert same(messages, again)
    assert first.repair.truncated == second.repair.truncated
    assert {"truncated"} >= {change.kind for change in second.repair.changes}
    counted = replace(second, repair=HistoryRepair())
    assert not counted


@given(hostile() | HISTORIES, POLICIES)
def test_sanitizing_is_deterministic_and_leaves_its_input_alone(
    history: list[Message], policy: dict[str, Any]
) -> None:
    before = [*history]
    first = sanitize_history(history, **policy)
    assert same(before, history)
    assert first == sanitize_history(iter(history), **policy)


@given(hostile() | HISTORIES)
def test_nothing_unsafe_is_left(history: list[Message]) -> None:
    messages, _ = sanitize_history(history)
    assert complaint(messages) == ""
    for message in messages:
        assert not isinstance(message, SystemMessage)
        assert not message.unknown
        items: list[Any] = [*message.parts]
        if isinstance(message, AssistantMessage):
            assert message.native is None
            items += [*message.tool_calls, *message.thinking]
        assert not any(item.unknown for item in items)
        assert message.content or message.parts or not isinstance(message, UserMessage)
        for part in message.parts:
            assert not part.url or part.url[:6].lower().startswith(("http:", "https:"))


@given(hostile(), POLICIES)
def test_every_part_is_kept_or_reported(history: list[Message], policy: dict[str, Any]) -> None:
    """Results that repair drops take theirs along."""
    messages, report = sanitize_history(history, **policy)
    parts = [
        (index, part)
        for index, message in enumerate(history)
        if not isinstance(message, SystemMessage)
        for part in message.parts
    ]
    gone = {change.input_index for change in report.repair.changes if change.kind == "dropped"}
    refused = [unsafe for unsafe in report.unsafe_parts if unsafe.message_index not in gone]
    given_parts = [part for index, part in parts if index not in gone]
    kept = [part for m in messages if not isinstance(m, SystemMessage) for part in m.parts]
    assert len(given_parts) == len(kept) + len(refused)
    assert all(parts[0] is not None for parts in parts)
    assert all(
        any(part.kind == u.kind for i, part in parts if i == u.message_index) for u in refused
    )


@given(hostile())
def test_indexes_count_in_the_history_as_given(history: list[Message]) -> None:
    messages, report = sanitize_history(history)
    for place in report.emptied:
        assert isinstance(history[place], UserMessage)
    for change in report.repair.changes:
        source = history[change.input_index]
        if change.kind in ("dropped", "moved"):
            assert isinstance(source, ToolMessage)
            assert change.call_id == source.tool_call_id
        else:
            assert isinstance(source, AssistantMessage)
            assert change.call_id in {call.id for call in source.tool_calls}
        if change.output_index is not None:
            result = messages[change.output_index]
            if isinstance(result, ToolMessage):
                assert change.call_id == result.tool_call_id
            else:
                assert change.call_id in {call.id for call in result.tool_calls}  # type: ignore[union-attr]


@given(ANY_HISTORY)
def test_where_there_is_nothing_else_sanitizing_is_repair(history: list[Message]) -> None:
    history = [message for message in history if not isinstance(message, SystemMessage)]
    messages, report = sanitize_history(history)
    expected, repair = normalize_history(history)
    assert same([m for m in messages if m in history], [m for m in expected if m in history])
    assert expected == messages
    assert repair == report.repair
    assert bool(repair) == bool(report)
