"""Notes on a request: taken only when asked for, about the message that is being written."""

from __future__ import annotations

import pytest

from golem import Finding, HistoryCheck, UnsupportedContentError, UserMessage
from golem.wire.notes import bind, note, noting, placed, refuse, settle, taken

MESSAGES = [UserMessage("a"), UserMessage("b")]


def test_notes_are_about_the_message_that_was_given_out_last() -> None:
    def write() -> None:
        for _, message in placed(MESSAGES):
            note("dropped", "content", message.content, "because")

    assert taken(write) == HistoryCheck(
        (
            Finding("dropped", 0, "content", "a", "because"),
            Finding("dropped", 1, "content", "b", "because"),
        )
    )


def test_nothing_is_noted_and_refusals_raise_when_nobody_looks() -> None:
    note("dropped", "content", "a", "because")
    bind(object(), "content", "a", "because")
    settle(lambda: [][0])  # never called
    assert not noting()
    with pytest.raises(UnsupportedContentError, match=r"^messages\[3\]\.parts\[0\]: no films$"):
        refuse(3, "parts[0]", "film", "no films")


def test_what_is_refused_becomes_nothing_else_and_is_noted_once() -> None:
    def write() -> None:
        for index, _ in placed(MESSAGES[:1]):
            note("flattened", "parts[0]", "film", "stands elsewhere")
            refuse(index, "parts[0]", "film", "no films")
            refuse(index, "parts[0]", "film", "no films")
            note("flattened", "parts[1]", "image", "stands elsewhere")

    assert [(found.kind, found.member) for found in taken(write).findings] == [
        ("refused", "parts[0]"),
        ("flattened", "parts[1]"),
    ]


def test_a_bound_piece_is_dropped_unless_it_is_sent() -> None:
    """It is itself that counts, not what it is equal to."""
    kept, lost = {"a": 1}, {"a": 1}

    def write() -> None:
        for index, _ in placed(MESSAGES):
            bind((kept, lost)[index], "thinking[0]", "thinking", "stands alone")
        settle(lambda: [kept])

    assert [found.message_index for found in taken(write).findings] == [1]


def test_notes_end_with_the_writing_also_when_it_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        taken(lambda: 1 // 0)
    assert not noting()


def test_looking_while_looking_is_two_reports() -> None:
    def outer() -> None:
        note("dropped", "outer", "a", "b")
        inner = taken(lambda: note("dropped", "inner", "a", "b"))
        assert [found.member for found in inner.findings] == ["inner"]

    assert [found.member for found in taken(outer).findings] == ["outer"]
