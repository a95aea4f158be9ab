"""Whatever is done to a sealed history shows: altered, moved, removed, repeated, inserted."""

from __future__ import annotations

import itertools
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import fields, replace

from golem import (
    AssistantMessage,
    HistoryError,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    UnknownMembers,
    UserMessage,
    dump_history,
    load_history,
)
from golem.history import seal, verify
from tests.history.sealing import FULL, KEY, PLACES, sealed

# Altered

MESSAGES_AND_MEMBERS = [
    (place, info.name)
    for place, message in enumerate(FULL)
    for info in fields(type(message))
    if info.name != "seal"
]

OTHER_VALUES: dict[str, Any] = {
    "content": "other",
    "parts": (Part.image_url("https://evil.example/"),),
    "tool_calls": (ToolCall.of("c9", "rm", "{}"),),
    "thinking": (Thinking("other"),),
    "native": Native("q", (msgspec.Raw(b"{}"),)),
    "tool_call_id": "c9",
    "tool_name": "other",
    "run_id": "r9",
    "conversation_id": "k9",
    "unknown": UnknownMembers({"more": b"1"}),
}


@pytest.mark.parametrize(("place", "member"), MESSAGES_AND_MEMBERS)
def test_every_member_is_covered(place: int, member: str) -> None:
    history = sealed()
    given = getattr(history[place], member)
    value = (not given) if isinstance(given, bool) else OTHER_VALUES[member]
    history[place] = replace(history[place], **{member: value})
    report = verify(history, KEY)
    assert (place,) == report.altered
    assert tuple(i for i in range(len(FULL)) if i != place) == report.verified
    assert report


NESTED: list[tuple[int, str, Any]] = [
    (0, "parts", (replace(FULL[0].parts[0], data=b"\x02"),)),
    (0, "parts", (replace(FULL[0].parts[0], media_type="image/jpeg"),)),
    (0, "parts", (replace(FULL[0].parts[0], unknown=UnknownMembers({"x": b"1"})),)),
    (1, "tool_calls", FULL[1].tool_calls[::-1]),
    (1, "tool_calls", (FULL[1].tool_calls[0], ToolCall.of("c2", "g", '{"y'))),
    (1, "tool_calls", (ToolCall.of("c1", "f", '{"a":2.50,"b":1}'), FULL[1].tool_calls[1])),
    (1, "tool_calls", (ToolCall.of("c1", "f", '{"b":1,"a":2.5}'), FULL[1].tool_calls[1])),
    (1, "tool_calls", (replace(FULL[1].tool_calls[0], signature="z"), FULL[1].tool_calls[1])),
    (1, "thinking", (replace(FULL[1].thinking[0], signature="forged"),)),
    (1, "thinking", (replace(FULL[1].thinking[0], provider="q"),)),
    (1, "native", Native("p", (msgspec.Raw(b'{"x":[1,0]}'),))),
    (4, "unknown", UnknownMembers({"newer": b'{"a":[2,1]}'})),
    (4, "unknown", UnknownMembers({"newer": b'{"a":[1,2]}', "x": b"null"})),
    (4, "unknown", UnknownMembers()),
]


@pytest.mark.parametrize(("place", "member", "value"), NESTED)
def test_what_is_nested_is_covered(place: int, member: str, value: object) -> None:
    history = sealed()
    history[place] = replace(history[place], **{member: value})
    assert (place,) == verify(history, KEY).altered


def test_the_role_is_covered() -> None:
    """A user's words do not become the model's, nor instructions."""
    history = sealed()
    text, code = history[5].content, history[5].seal
    for message in (AssistantMessage(text, seal=code), SystemMessage(text, seal=code)):
        assert verify([*history[:5], message], KEY).altered == (5,)


@given(st.integers(0, len(FULL) - 1), st.integers(0, 400), st.integers(0, 255))
def test_no_byte_of_the_stored_history_changes_unnoticed(place: int, at: int, byte: int) -> None:
    """Any single byte: the document breaks, or means the same, or the report tells."""
    history = sealed()
    stored = bytearray(dump_history(history))
    stored[(place * 400 + at) % len(stored)] = byte
    try:
        read = load_history(bytes(stored))
    except HistoryError:
        return
    assert read == history or verify(read, KEY)


# Moved, removed, repeated, inserted


@pytest.mark.parametrize(("one", "other"), list(itertools.combinations(PLACES, 2)))
def test_every_swap_of_two_messages_is_noticed(one: int, other: int) -> None:
    history = sealed()
    history[one], history[other] = history[other], history[one]
    report = verify(history, KEY)
    assert report.reordered
    assert report.added == report.altered == ()


@pytest.mark.parametrize("order", list(itertools.permutations(range(4)))[1:])
def test_every_other_order_is_noticed(order: tuple[int, ...]) -> None:
    history = sealed(FULL[:4])
    report = verify([history[place] for place in order], KEY)
    assert report.reordered
    assert report


@pytest.mark.parametrize(("start", "end"), list(itertools.combinations(range(len(FULL) + 1), 2)))
def test_every_gap_in_the_middle_is_noticed_where_it_is(start: int, end: int) -> None:
    history = sealed()
    report = verify([*history[:start], *history[end:]], KEY)
    left = len(FULL) - (end - start)
    if start and end < len(FULL):
        assert (start,) == report.removed_before
        assert tuple(i for i in range(left) if i != start) == report.verified
    else:
        assert not report
        assert tuple(range(left)) == report.verified
        assert (start == 0 and end < len(FULL)) == report.trimmed


@pytest.mark.parametrize(
    ("order", "trimmed"),
    [
        ([0, 3, 2], False),
        ([3, 0, 1], False),
        ([4, 2, 0], False),
        ([2, 3, 4], True),
        ([3, 2, 4], True),
        ([2, 4], True),
        ([4, 2], True),
    ],
)
def test_a_history_is_trimmed_only_where_its_beginning_is_gone(
    order: list[int], trimmed: bool
) -> None:
    history = seal([UserMessage(str(n)) for n in range(5)], KEY)
    assert trimmed == verify([history[place] for place in order], KEY).trimmed


def test_an_altered_beginning_is_not_gone() -> None:
    history = seal([UserMessage(str(n)) for n in range(5)], KEY)
    altered = replace(history[0], content="other")
    assert not verify([altered, *history[2:]], KEY).trimmed
    moved = replace(history[1], content="other")
    assert verify([moved, *history[2:]], KEY).trimmed


def test_the_head_is_the_last_message_that_verifies_in_its_place() -> None:
    history = seal([UserMessage(str(n)) for n in range(4)], KEY)
    first, second, third, fourth = history
    assert second.seal == verify([first, second, fourth, third], KEY).head
    assert first.seal == verify([first, fourth], KEY).head
    assert second.seal == verify([first, second, replace(third, content="x")], KEY).head
    assert first.seal == verify([first, *seal([SystemMessage("s")], KEY)], KEY).head


def test_system_messages_verify_anywhere_and_nowhere_are_missed() -> None:
    """A run replaces them; the guide says so."""
    one = seal([SystemMessage("one"), UserMessage("a"), UserMessage("b")], KEY)
    other = seal([SystemMessage("other"), UserMessage("c")], KEY)
    for history in (one[1:], [one[1], one[0], one[2]], [other[0], *one[1:]], [*one, other[0]]):
        assert not verify(history, KEY)


def test_a_history_cut_off_at_the_end_shows_in_its_head() -> None:
    """It verifies, as no list can prove that nothing came after it."""
    history = sealed()
    heads = [verify(history[:end], KEY).head for end in range(len(FULL) + 1)]
    assert ["", *(message.seal for message in history)] == heads


@pytest.mark.parametrize(("place", "to"), list(itertools.product(PLACES, range(len(FULL) + 1))))
def test_every_repetition_is_noticed(place: int, to: int) -> None:
    history = sealed()
    report = verify([*history[:to], history[place], *history[to:]], KEY)
    assert report
    assert report.reordered
    assert report.added == report.altered == ()


@pytest.mark.parametrize("to", range(len(FULL) + 1))
def test_every_insertion_is_noticed_and_nothing_else_is_accused(to: int) -> None:
    history = sealed()
    added = verify([*history[:to], UserMessage("approved"), *history[to:]], KEY)
    assert (to,) == added.added
    forged = UserMessage("approved", seal="first.AAAA")
    altered = verify([*history[:to], forged, *history[to:]], KEY)
    assert (to,) == altered.altered
    for report in (added, altered):
        others = sorted({*range(len(FULL) + 1)} - {to})
        if report is added or to == len(FULL):
            assert tuple(others) == report.verified


def test_a_message_replaced_by_a_forgery_is_the_only_one_accused() -> None:
    for place in PLACES:
        history = sealed()
        history[place] = UserMessage("forged", seal=history[place].seal)
        report = verify(history, KEY)
        assert (place,) == report.altered
        assert report.reordered + report.removed_before == ()


FORGERIES = [
    *("first", ".", "first.", ".x", "a.b.c", "first.AAAA", "aside.AAAA", "\x00", "first.\u00e9"),
    *("\u00e9.\u00fc", "first.\ud800", "\ud800.AAAA", "a" * 10_000, "." * 10_000, "AAAA."),
]


@pytest.mark.parametrize("text", FORGERIES, ids=ascii)
def test_no_text_passes_for_a_seal(text: str) -> None:
    """Nor does it stop the others from being judged."""
    history = sealed()
    for place in PLACES:
        forged = [*history]
        forged[place] = replace(forged[place], seal=text)
        assert (place,) == verify(forged, KEY).altered
    assert verify([UserMessage("x", seal=text)], KEY).altered == (0,)


@given(st.text(max_size=60), st.integers(0, 5))
def test_no_random_text_passes_for_a_seal(text: str, place: int) -> None:
    history = sealed()
    history[place] = replace(history[place], seal=text)
    report = verify(history, KEY)
    assert (place,) == (report.altered or report.added)


def test_messages_of_another_conversation_do_not_join_this_one() -> None:
    other = seal([UserMessage("other"), AssistantMessage("answer"), UserMessage("yes")], KEY)
    history = sealed()
    assert verify([*history, *other], KEY).reordered
    assert verify([*history, *other[1:]], KEY).removed_before
    assert verify([*other[:2], *history[3:]], KEY).removed_before


def test_two_branches_do_not_mix() -> None:
    trunk = sealed(FULL[:4])
    left = seal([*trunk, AssistantMessage("yes")], KEY)
    right = seal([*trunk, AssistantMessage("no"), UserMessage("go on")], KEY)
    assert not verify(left, KEY)
    assert not verify(right, KEY)
    assert verify([*left, right[4]], KEY).reordered
    assert verify([*left, right[5]], KEY).removed_before


@given(st.lists(st.integers(0, 5), max_size=8))
def test_only_a_part_in_order_and_without_gaps_verifies(places: list[int]) -> None:
    """Whatever a client makes of the messages it holds."""
    report = verify([sealed()[place] for place in places], KEY)
    first = places[0] if places else 0
    in_order = places == list(range(first, first + len(places)))
    assert in_order != bool(report)


def test_a_wholly_reordered_history_takes_linear_work() -> None:
    """Each message is compared with its neighbour, not with all others."""
    history = seal([UserMessage(str(n)) for n in range(20_000)], KEY)
    report = verify(history[::-1], KEY)
    assert len(report.reordered) == len(history)
