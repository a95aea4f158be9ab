"""Sanitizing on request: stricter policies, seals, parts that no run sends, limits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from msgspec import Raw

from golem import (
    AssistantMessage,
    HistoryError,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
    dump_history,
)
from golem.history import SanitizeReport, UnsafePart, sanitize_history, seal, verify
from tests.history.checks import NEWER, same
from tests.strategies import HISTORIES

KEY = b"k" * 16


# Opt-in policies


def test_a_host_policy_names_the_host_it_refused() -> None:
    parts = tuple(
        Part("image", url=url)
        for url in (
            *("http://LOCALHOST.:8080/", "http://u:p@127.1/", "https:x", "https://ok.example/"),
            "ftp://localhost/",
        )
    )
    messages, report = sanitize_history([UserMessage("u", parts=parts)], block_private_hosts=True)
    assert (
        UnsafePart(0, "image", "http", "localhost"),
        UnsafePart(0, "image", "http", "127.1"),
        UnsafePart(0, "image", "https"),
        UnsafePart(0, "image", "ftp"),
    ) == report.unsafe_parts
    assert [UserMessage("u", parts=parts[3:4])] == messages
    _, report = sanitize_history([UserMessage("u", parts=parts[3:])], allowed_hosts=["img.example"])
    assert (
        UnsafePart(0, "image", "https", "ok.example"),
        UnsafePart(0, "image", "ftp"),
    ) == report.unsafe_parts


def test_identity_is_stripped_on_request() -> None:
    history: list[Message] = [
        UserMessage("u", run_id="r"),
        AssistantMessage("a", conversation_id="c"),
        UserMessage("v"),
    ]
    messages, report = sanitize_history(history, strip_identity=True)
    assert [UserMessage("u"), AssistantMessage("a"), UserMessage("v")] == messages
    claims: dict[str, Any] = {"claimed_run_ids": ("r",), "claimed_conversation_ids": ("c",)}
    assert SanitizeReport(identity_dropped=2, **claims) == report
    assert messages[2] is history[2]


def test_thinking_is_stripped_on_request() -> None:
    blocks = (Thinking("t", signature="s", unknown=NEWER), Thinking(redacted="r"))
    history: list[Message] = [AssistantMessage("a", thinking=blocks), AssistantMessage("b")]
    messages, report = sanitize_history(history, strip_thinking=True)
    assert [AssistantMessage("a"), AssistantMessage("b")] == messages
    assert SanitizeReport(thinking_dropped=2, signed_thinking=1) == report
    assert messages[1] is history[1]


# Seals


def test_a_changed_message_loses_its_seal_and_the_others_verify() -> None:
    unsafe = (Part("image", url="file:///x"),)
    made = seal(
        [
            UserMessage("q", run_id="r"),
            AssistantMessage("native", native=Native("p")),
            UserMessage("unsafe", parts=unsafe),
            AssistantMessage("newer", unknown=NEWER),
            AssistantMessage("newer call", tool_calls=(ToolCall("c", "f", "{}", "", NEWER),)),
            ToolMessage("t", tool_call_id="c", tool_name="f"),
            AssistantMessage("newer thought", thinking=(Thinking("t", unknown=NEWER),)),
            AssistantMessage("end"),
        ],
        KEY,
    )
    messages, report = sanitize_history(made)
    assert [i for i, message in enumerate(messages) if message.seal] == [0, 5, 7]
    assert (report.seals_dropped, report.claimed_seals) == (5, 3)
    found = verify(messages, KEY)
    assert found.added == (1, 2, 3, 4, 6)
    assert found.altered == found.reordered == ()
    assert not verify(seal(messages, KEY), KEY)
    again, second = sanitize_history(messages)
    assert same(messages, again)
    assert (second.seals_dropped, second.claimed_seals) == (0, 3)
    assert not second


@pytest.mark.parametrize("policy", ["strip_identity", "strip_thinking"])
def test_what_a_policy_changes_loses_its_seal_too(policy: str) -> None:
    blocks = (Thinking("t"),)
    made = seal([UserMessage("q"), AssistantMessage("a", thinking=blocks, run_id="r")], KEY)
    messages, report = sanitize_history(made, **{policy: True})  # type: ignore[arg-type]
    assert (report.seals_dropped, report.claimed_seals) == (1, 1)
    assert not verify(seal(messages, KEY), KEY)


def test_a_seal_is_left_to_verify_or_stripped_on_request() -> None:
    """Sanitizing has no key: a made-up seal and a genuine one look alike."""
    claimed = UserMessage("hi", seal="x")
    messages, report = sanitize_history([claimed])
    assert same([claimed], messages)
    assert report.claimed_seals == 1
    assert not report
    messages, report = sanitize_history([claimed, UserMessage("u")], strip_seals=True)
    assert [UserMessage("hi"), UserMessage("u")] == messages
    assert SanitizeReport(seals_dropped=1) == report
    assert not verify(seal(messages, KEY), KEY)


# Parts that no run sends

INVALID = [
    Part("hologram", url="https://e.example/"),
    Part("", url="https://e.example/"),
    Part("image", url="https://e.example/", data=b"x", media_type="image/png"),
    Part("image", data=b"x"),
    Part("image"),
]


@pytest.mark.parametrize("part", INVALID, ids=repr)
def test_a_part_that_no_run_sends_is_named_and_goes_on_request(part: Part) -> None:
    good = Part.image_url("https://ok.example/")
    given = [AssistantMessage("a", parts=(good, part))]
    messages, report = sanitize_history(given)
    assert same(given, messages)
    assert not report
    [invalid] = report.invalid_parts
    with pytest.raises(ValueError, match=re.escape(invalid.reason)):
        part.validate()
    assert (0, part.kind) == (invalid.message_index, invalid.kind)
    messages, dropped = sanitize_history(given, drop_invalid_parts=True)
    assert [AssistantMessage("a", parts=(good,))] == messages
    assert SanitizeReport(invalid_parts=(invalid,), invalid_dropped=1) == dropped
    assert dropped


def test_a_user_message_of_invalid_parts_is_emptied_by_dropping_them() -> None:
    messages, report = sanitize_history(
        [UserMessage("", parts=(INVALID[0],))], drop_invalid_parts=True
    )
    assert messages == []
    assert report.emptied == (0,)


def test_an_unsafe_part_is_not_invalid_as_well() -> None:
    _, report = sanitize_history([UserMessage("u", parts=(Part("tape", url="file:///x"),))])
    assert report.invalid_parts == ()


# Limits


def test_more_messages_than_allowed_are_refused_before_the_rest_is_read() -> None:
    read: list[int] = []

    def endless() -> Iterator[Message]:
        while True:
            read.append(1)
            yield UserMessage("x")

    with pytest.raises(HistoryError, match=r"^history: more than 3 messages$"):
        sanitize_history(endless(), max_messages=3)
    assert len(read) == 4
    assert len(sanitize_history([UserMessage("x")] * 3, max_messages=3)[0]) == 3
    assert sanitize_history([], max_messages=0)[0] == []
    with pytest.raises(HistoryError):
        sanitize_history([UserMessage("x")], max_messages=0)


def test_a_history_of_too_many_bytes_is_read_no_further() -> None:
    read: list[int] = []

    def endless() -> Iterator[Message]:
        while True:
            read.append(1)
            yield UserMessage("x" * 100)

    with pytest.raises(HistoryError, match=r"bytes of JSON, more than 1000$"):
        sanitize_history(endless(), max_bytes=1000)
    assert len(read) == 8


@given(HISTORIES.filter(bool))
def test_the_bytes_counted_are_those_of_its_json(history: list[Message]) -> None:
    size = len(dump_history(history))
    sanitize_history(history, max_bytes=size)
    with pytest.raises(HistoryError):
        sanitize_history(history, max_bytes=size - 1)


@pytest.mark.parametrize("limit", [-1, 2.5, float("nan"), True, "5", [1]], ids=repr)
def test_a_limit_that_is_no_count_is_refused(limit: Any) -> None:
    for name in ("max_messages", "max_bytes"):
        with pytest.raises(ValueError, match=f"^{name} must be (an integer|at least 0), got"):
            sanitize_history([], **{name: limit})


def test_more_bytes_than_allowed_are_refused() -> None:
    history: list[Message] = [UserMessage("\u00e9" * 10), SystemMessage("s")]
    size = len(dump_history(history))
    assert [history[0]] == sanitize_history(history, max_bytes=size)[0]
    with pytest.raises(
        HistoryError, match=rf"^history: at least {size} bytes of JSON, more than {size - 1}$"
    ):
        sanitize_history(history, max_bytes=size - 1)


def test_a_kind_of_text_is_counted_and_what_cannot_be_stored_is_named_with_its_place() -> None:
    class Text(str):
        __slots__ = ()

    assert sanitize_history([UserMessage(Text("hello"))], max_bytes=100)[0]
    broken = AssistantMessage("a", native=Native("p", (Raw(b"{"),)))
    with pytest.raises(HistoryError, match=r"^history\[1\]\.native\.items\[0\]: not valid JSON$"):
        sanitize_history([UserMessage("u"), broken], max_bytes=100)
    assert sanitize_history([UserMessage("u"), broken])[1].native_dropped == 1


def test_a_host_that_is_none_is_not_repeated_at_length() -> None:
    with pytest.raises(ValueError, match=r"^not a host name: 'x{70,}") as caught:
        sanitize_history([], allowed_hosts=["x" * 10_000])
    assert len(str(caught.value)) < 120
