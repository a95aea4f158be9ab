"""Branches of one conversation come together with their beginning once, and each whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from golem import (
    Agent,
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    dump_history,
    load_history,
    normalize_history,
)
from golem.history import fork_at, merge, seal, trim_history, verify
from golem.history.repair import NO_RESULT
from golem.testing import ScriptedModel
from golem.testing.strategies import ANY_HISTORY
from tests.history.checks import complaint, same, work

KEY = b"k" * 16


def asking(*ids: str, text: str = "") -> AssistantMessage:
    return AssistantMessage(text, tool_calls=tuple(ToolCall.of(i, "f", "{}") for i in ids))


def result(call_id: str, text: str = "r") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id, tool_name="f")


def filler(call_id: str) -> ToolMessage:
    return result(call_id, NO_RESULT)


TRUNK: list[Message] = [UserMessage("q", run_id="r1"), asking("a"), result("a")]
LEFT: list[Message] = [AssistantMessage("left", run_id="r1"), UserMessage("go on", run_id="r2")]
RIGHT: list[Message] = [AssistantMessage("right")]


def test_branches_share_their_beginning_once() -> None:
    assert [*TRUNK, *LEFT, *RIGHT] == merge([*TRUNK, *LEFT], iter([*TRUNK, *RIGHT]))
    assert [*TRUNK, *RIGHT, *LEFT] == merge([*TRUNK, *RIGHT], TRUNK, [*TRUNK, *LEFT])
    assert [*LEFT, *TRUNK] == merge(LEFT, TRUNK)
    assert [*TRUNK, *LEFT] == merge(TRUNK, [*TRUNK, *LEFT])
    assert merge(TRUNK) == TRUNK


def test_a_merge_of_nothing_is_empty_and_never_an_error() -> None:
    assert merge() == []
    assert merge([], iter([])) == []
    assert merge(TRUNK, []) == TRUNK
    assert merge([], TRUNK) == TRUNK
    assert [SystemMessage("s")] == merge([], [SystemMessage("s")], [SystemMessage("t")])


# What does not tell branches apart


def test_instructions_do_not_tell_branches_apart() -> None:
    """Each run puts its own in front; of the common beginning there is one."""
    old, new = SystemMessage("of monday"), SystemMessage("of tuesday")
    branches = [old, *TRUNK, *LEFT], [new, *TRUNK, *RIGHT], [*TRUNK[:1], new, *TRUNK[1:]]
    assert [old, *TRUNK, *LEFT, *RIGHT] == merge(*branches)
    assert [new, *TRUNK, *RIGHT, *LEFT] == merge(branches[1], branches[0])
    assert [*TRUNK, *LEFT] == merge(TRUNK, branches[0])
    assert branches[0] == merge(branches[0], TRUNK)
    assert [old, *LEFT, *RIGHT] == merge([old, *LEFT], [new, *RIGHT])


def test_system_messages_beyond_the_common_beginning_stay() -> None:
    note = SystemMessage("a note")
    left, right = [*TRUNK, *LEFT, note], [*TRUNK, *RIGHT, note, UserMessage("x")]
    assert [*left, *right[3:]] == merge(left, right)


async def test_runs_with_changing_instructions_merge_into_what_was_said() -> None:
    agent = Agent(ScriptedModel([str(n) for n in range(4)]), instructions=lambda c: c.run_id)
    first = await agent.run("one")
    second = await agent.run("two", history=first.messages)
    third = await agent.run("three", history=first.messages)
    merged = merge(second.messages, third.messages)
    assert [*second.messages, *third.new_messages] == merged


def test_seals_do_not_tell_branches_apart_and_stay() -> None:
    sealed = seal([*TRUNK, *LEFT], KEY)
    assert same(sealed, merge(sealed, [*TRUNK, *LEFT]))
    assert same(sealed, merge([*TRUNK, *LEFT], sealed))
    assert same([*sealed, *RIGHT], merge(sealed, [*TRUNK, *RIGHT]))
    anew = seal([*TRUNK, *RIGHT], b"another key, as long")
    assert same([*sealed, anew[-1]], merge(sealed, anew))
    assert verify(merge([*TRUNK, *RIGHT], sealed), KEY).added == (3,)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_branch_cut_off_at_its_front_begins_where_its_first_message_stands(count: int) -> None:
    full = [SystemMessage("s"), *TRUNK, *LEFT, AssistantMessage("fine")]
    cut = [*trim_history(count)(full), UserMessage("new", run_id="r3")]
    assert len(cut) == 1 + count
    merged = [*full, cut[-1]]
    if count > 1:
        assert same(merged, merge(full, cut))
        assert same(merged, merge(cut, full))
        assert merge(seal(cut, KEY), full) == merge(full, seal(cut, KEY))
    else:
        # "fine" carries no run id: it may be another message that says the same.
        assert [*full, *cut] == merge(full, cut)


def test_branches_cut_off_at_different_places_find_one_beginning() -> None:
    users = [UserMessage(str(n), run_id=str(n)) for n in range(6)]
    ends = [UserMessage(f"end {n}") for n in range(3)]
    branches = [[*users[3:], ends[0]], [*users, ends[1]], [*users[1:], ends[2]]]
    assert same([*users, *ends], merge(*branches))


def test_a_turn_that_a_branch_ends_in_is_common() -> None:
    """However the cut fell, and wherever repair has closed its calls meanwhile."""
    whole = [UserMessage("q"), asking("a", "b"), result("a"), result("b"), AssistantMessage("x")]
    for end in range(len(whole) + 1):
        for cut in (whole[:end], normalize_history(whole[:end])[0], seal(whole[:end], KEY)):
            assert whole == [replace(m, seal="") for m in merge(whole, cut)]
            assert whole == [replace(m, seal="") for m in merge(cut, whole)]
    halves = [*whole[:3]], [*whole[:2], whole[3]]
    assert whole[:4] == merge(*halves)
    blank: list[Message] = [UserMessage("q"), asking(""), result("")]
    assert blank == merge(blank[:2], blank) == merge(blank, blank[:2])


def test_calls_that_no_branch_answers_stay_unanswered() -> None:
    history: list[Message] = [UserMessage("q"), asking("a", "b")]
    one, other = [*history, result("b")], [*history, filler("a"), filler("b"), UserMessage("x")]
    assert [*history, filler("a"), result("b"), UserMessage("x")] == merge(one, other)
    assert [*history, filler("a"), result("b"), UserMessage("x")] == merge(other, one)


# What does


def test_a_turn_that_branches_answer_differently_is_not_shared() -> None:
    trunk: list[Message] = [UserMessage("q")]
    left = [*trunk, asking("a", "b"), result("a"), result("b", "left")]
    right = [*trunk, asking("a", "b"), result("a"), result("b", "right")]
    assert [*left, *right[1:]] == merge(left, right)


@pytest.mark.parametrize(
    "other",
    [
        UserMessage("q", run_id="r1", parts=(Part.image_url("https://e.example/"),)),
        UserMessage("q", run_id="r2"),
        UserMessage("Q", run_id="r1"),
        AssistantMessage("q", run_id="r1"),
    ],
)
def test_everything_else_of_a_message_tells_branches_apart(other: Message) -> None:
    assert [TRUNK[0], other] == merge(TRUNK[:1], [other])


def test_a_closing_of_a_run_is_a_result_of_its_own() -> None:
    """A stopped run says so with the same words, and with its ids."""
    closing = replace(filler("a"), run_id="r1")
    stopped, answered = [*TRUNK[:2], closing], TRUNK
    assert [*stopped, *answered[1:]] == merge(stopped, answered)


def test_no_branch_answers_the_calls_of_another() -> None:
    left: list[Message] = [UserMessage("q"), asking("a")]
    right: list[Message] = [UserMessage("p"), result("a"), UserMessage("x")]
    assert [*left, filler("a"), right[0], right[2]] == merge(left, right)


# Laws


def said(history: Sequence[Message]) -> list[Message]:
    """Without what is not anybody's word: instructions, and what repair has filled in."""
    return [
        message
        for message in history
        if not isinstance(message, SystemMessage) and message.content != NO_RESULT
    ]


@given(st.lists(ANY_HISTORY, max_size=3), ANY_HISTORY)
def test_merging_keeps_every_branch_whole(tails: list[list[Message]], trunk: list[Message]) -> None:
    branches = [[*trunk, *tail] for tail in tails]
    merged = merge(*branches)
    assert complaint(merged) == ""
    assert same(merged, normalize_history(merged)[0])
    lengths = [len(said(normalize_history(branch)[0])) for branch in branches]
    assert max(lengths, default=0) <= len(said(merged)) <= sum(lengths)
    for branch in branches:
        # The results of one turn may come in another order, where branches complete each other.
        remaining = iter(message for message in merged if not isinstance(message, ToolMessage))
        wanted = [m for m in said(normalize_history(branch)[0]) if not isinstance(m, ToolMessage)]
        assert all(message in remaining for message in wanted)
        assert all(message in merged for message in said(normalize_history(branch)[0]))


@given(ANY_HISTORY)
def test_merging_a_history_with_itself_is_repair(history: list[Message]) -> None:
    wanted = normalize_history(history)[0]
    assert wanted == merge(history) == merge(history, history, history)


@given(ANY_HISTORY, st.integers(0, 20))
def test_merging_a_history_with_its_beginning_changes_nothing(
    history: list[Message], end: int
) -> None:
    """Wherever the cut falls: inside a batch too."""
    whole = normalize_history(history)[0]
    cut = whole[: end % (len(whole) + 1)]
    assert said(whole) == said(merge(whole, cut))
    assert said(whole) == said(merge(cut, whole))


@given(ANY_HISTORY, st.integers(1, 20))
def test_merging_a_history_with_its_fork_changes_nothing(history: list[Message], end: int) -> None:
    whole = normalize_history(history)[0]
    if not said(whole[:1]):
        return
    assert whole == merge(whole, fork_at(whole, 1 + end % len(whole)))


def test_a_message_made_with_a_list_finds_its_place_too() -> None:
    """It has no hash, and is like none that has a tuple."""
    part = Part.image(bytearray(b"x"), "image/png")
    odd = UserMessage("odd", parts=[part], run_id="r1")  # type: ignore[arg-type]
    spread = UserMessage("spread", parts=(part,), run_id="r1")
    plain = UserMessage("spread", parts=(Part.image(b"x", "image/png"),), run_id="r1")
    for first in (odd, spread):
        trunk = [UserMessage("q", run_id="r1"), first, AssistantMessage("a")]
        assert [*trunk, *RIGHT] == merge(trunk, [first, AssistantMessage("a"), *RIGHT])
    assert [*trunk, *RIGHT] == merge(trunk, [plain, AssistantMessage("a"), *RIGHT])
    trunk[1] = plain
    assert [*trunk, *RIGHT] == merge(trunk, [spread, AssistantMessage("a"), *RIGHT])


def test_what_is_common_is_the_first_branchs_own_with_its_stored_closings() -> None:
    trunk: list[Message] = [UserMessage("q"), asking("a", "b"), filler("b"), result("a")]
    copies = load_history(dump_history(trunk))
    for first in (trunk, seal(trunk, KEY)):
        assert same(merge(first, copies), first)
        assert same(merge(first, first), first)
    sealed = seal(trunk, KEY)
    assert same(merge(trunk, sealed), sealed)


def test_a_beginning_without_an_identity_is_found_behind_a_branch_that_was_cut() -> None:
    whole = [UserMessage("q"), AssistantMessage("a", run_id="r1"), UserMessage("go", run_id="r2")]
    assert [*whole, *RIGHT] == merge([*whole[1:], *RIGHT], whole)
    assert [*whole, *RIGHT] == merge(whole, [*whole[1:], *RIGHT])


def test_sealed_messages_that_only_say_the_same_are_two() -> None:
    one, other = (
        seal([UserMessage("q", run_id=run), AssistantMessage("a", run_id=run)], KEY)
        for run in ("r1", "r2")
    )
    assert [*one, *other] == merge(one, other)


def alone(size: int) -> list[list[Message]]:
    """Branches of one message each that have nothing in common."""
    return [[UserMessage(str(number), run_id="r")] for number in range(size)]


def tails(size: int) -> list[list[Message]]:
    """A long branch, and many cut off at their front, each somewhere else."""
    trunk = [message for branch in alone(size) for message in branch]
    return [trunk, *([message] for message in trunk)]


def ends(size: int) -> list[list[Message]]:
    """A long branch, and many of its last message alone."""
    trunk = [message for branch in alone(size) for message in branch]
    return [trunk, *([trunk[-1]] for _ in trunk)]


@pytest.mark.parametrize("make", [alone, tails, ends])
def test_ten_times_as_many_branches_are_ten_times_the_work(
    make: Callable[[int], list[list[Message]]],
) -> None:
    compared = 0

    class Counted(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

    def effort(size: int) -> int:
        nonlocal compared
        branches = [
            [replace(message, content=Counted(message.content)) for message in branch]
            for branch in make(size)
        ]
        compared = 0
        calls = work(lambda: merge(*branches))
        return calls + compared

    effort(10)
    assert effort(1000) <= 11 * effort(100) + 1000
