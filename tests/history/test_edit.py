"""Edits keep turns whole, and what they return can be run at once."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Message,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
    new_id,
    normalize_history,
)
from golem.codec import encode_json
from golem.history import Turn, drop_turn, edit_user, fork_at, rewind_to, turns
from golem.history.repair import NO_RESULT
from golem.testing import ScriptedModel
from golem.testing.strategies import ANY_HISTORY
from tests.history import model
from tests.history.checks import complaint, same, sendable

IMAGE = Part.image_url("https://a.example/")


def asking(*ids: str, text: str = "") -> AssistantMessage:
    return AssistantMessage(text, tool_calls=tuple(ToolCall.of(i, "f", "{}") for i in ids))


def result(call_id: str, text: str = "r") -> ToolMessage:
    return ToolMessage(text, tool_call_id=call_id, tool_name="f")


def filler(call_id: str) -> ToolMessage:
    return result(call_id, NO_RESULT)


LATE: list[Message] = [
    SystemMessage("s"),
    UserMessage("q1", run_id="r1"),
    asking("a", "b"),
    UserMessage("q2", run_id="r2", conversation_id="k"),
    result("a"),
    AssistantMessage("answer", run_id="r2"),
    asking("c"),
    result("c"),
    result("lost"),
    result("b", "late"),
]
"""A turn that is answered behind the next question, and once more at the very end."""


# The contract a second time: what belongs to each message that is not a result


def groups(history: list[Message]) -> dict[int, list[Message]]:
    """Each message with the results it gets when the whole history is repaired, by place."""
    found: dict[int, list[Message]] = {}
    for place, message in enumerate(history):
        if not isinstance(message, ToolMessage):
            calls = model.calls_of(message)
            missing = model.unanswered(history, place) if calls else []
            fillers = [ToolMessage(NO_RESULT, tool_call_id=c.id, tool_name=c.name) for c in missing]
            places = model.answers(history, place) if calls else []
            found[place] = [message, *fillers, *(history[answer] for answer in places)]
    return found


def owner(history: list[Message], place: int) -> int | None:
    """The turn that message `place` begins or belongs to."""
    if isinstance(history[place], AssistantMessage):
        return place
    owners = [
        turn
        for turn in range(place)
        if model.calls_of(history[turn]) and place in model.answers(history, turn)
    ]
    return owners[0] if owners else None


def expected(history: list[Message], keep: Callable[[int], bool]) -> list[Message]:
    """The groups that stay, in order."""
    return list(chain.from_iterable(g for place, g in groups(history).items() if keep(place)))


def outcome(edit: Callable[[], list[Message]]) -> list[Message] | None:
    """What an edit returns; None where it refuses."""
    try:
        return edit()
    except HistoryError:
        return None


def or_nothing(messages: list[Message]) -> list[Message] | None:
    return messages if sendable(messages) else None


# Turns


def test_the_turns_of_a_damaged_history() -> None:
    assert [
        Turn(2, asking("a", "b"), (result("a"), result("b", "late")), (4, 9)),
        Turn(5, AssistantMessage("answer", run_id="r2")),
        Turn(6, asking("c"), (result("c"),), (7,)),
    ] == list(turns(iter(LATE)))
    assert list(turns([])) == []


@given(ANY_HISTORY)
def test_turns_pair_as_repair_does(history: list[Message]) -> None:
    wanted = [
        (place, tuple(model.answers(history, place)) if model.calls_of(message) else ())
        for place, message in enumerate(history)
        if isinstance(message, AssistantMessage)
    ]
    found = list(turns(history))
    assert wanted == [(turn.index, turn.result_indexes) for turn in found]
    for turn in found:
        assert turn.message is history[turn.index]
        assert same([history[place] for place in turn.result_indexes], turn.results)


# Forks and rewinds


@given(ANY_HISTORY, st.integers(0, 12))
def test_a_fork_keeps_what_begins_before_it_with_all_its_results(
    history: list[Message], index: int
) -> None:
    assume(index <= len(history))
    before = [*history]
    wanted = or_nothing(expected(history, lambda place: place < index))
    assert wanted == outcome(lambda: fork_at(iter(history), index))
    assert same(before, history)


@given(ANY_HISTORY, st.integers(0, 12))
def test_a_rewind_keeps_the_message_it_names(history: list[Message], index: int) -> None:
    assume(index < len(history))
    wanted = or_nothing(expected(history, lambda place: place <= index))
    assert wanted == outcome(lambda: rewind_to(iter(history), index))


@given(ANY_HISTORY, st.data())
def test_a_rewind_to_a_run_keeps_its_last_message(
    history: list[Message], data: st.DataObject
) -> None:
    runs = data.draw(st.lists(st.sampled_from(["", "r1", "r2"]), min_size=len(history)))
    history = [replace(message, run_id=run) for message, run in zip(history, runs, strict=False)]
    places = [place for place, message in enumerate(history) if message.run_id == "r1"]
    wanted = or_nothing(expected(history, lambda place: place <= places[-1])) if places else None
    assert wanted == outcome(lambda: rewind_to(history, "r1"))


def test_a_late_result_comes_along_with_its_turn() -> None:
    forked = fork_at(LATE, 3)
    assert [*LATE[:3], LATE[4], LATE[9]] == forked
    assert same([*LATE[:3], LATE[4], LATE[9]], forked)
    assert [*LATE[:3], LATE[4], LATE[9], LATE[3]] == rewind_to(LATE, 3)
    assert forked == rewind_to(LATE, "r1") + [LATE[2], LATE[4], LATE[9]][:3]
    assert len(rewind_to(LATE, "r2")) - 1 == 6


def test_an_open_call_is_closed_at_the_fork() -> None:
    history: list[Message] = [UserMessage("q"), asking("a", "b"), result("b"), UserMessage("x")]
    assert [history[0], history[1], filler("a"), history[2]] == fork_at(history, 3)
    assert [history[0], history[1], filler("a"), history[2]] == fork_at(history, 2)


def test_a_result_whose_turn_is_gone_answers_no_other() -> None:
    """The id is reused: what answered the second turn must not answer the first."""
    history: list[Message] = [asking("a"), UserMessage("x"), asking("a"), result("a", "second")]
    assert [history[0], filler("a")] == fork_at(history, 1)
    assert [history[0], filler("a"), history[1]] == drop_turn(history, 2)
    lost: list[Message] = [result("a", "lost"), UserMessage("q"), asking("a"), UserMessage("x")]
    assert [lost[1], lost[2], filler("a")] == fork_at(lost, 3)


def test_a_result_that_answered_nothing_finds_no_turn_in_what_is_left() -> None:
    """Both turns ask with one id; the second is answered twice and goes."""
    history: list[Message] = [asking("a"), asking("a"), result("a"), result("a", "again")]
    assert [asking("a"), filler("a")] == drop_turn(history, 1)


@pytest.mark.parametrize("index", [-1, 4, 100])
def test_a_place_that_is_not_there_is_refused(index: int) -> None:
    history: list[Message] = [UserMessage("q"), asking("a"), result("a")]
    for edit in (fork_at, rewind_to, drop_turn):
        with pytest.raises(HistoryError, match=r"there is no message -?\d+ in a history of 3"):
            edit(history, index)
    with pytest.raises(HistoryError, match="there is no message"):
        edit_user(history, index, "x")


def test_the_whole_history_can_be_forked_and_nothing_cannot() -> None:
    history: list[Message] = [UserMessage("q"), asking("a"), result("a")]
    assert same(history, fork_at(history, 3))
    assert same(history, rewind_to(history, 2))
    for edit in (lambda: fork_at(history, 0), lambda: fork_at([SystemMessage("s"), *history], 1)):
        with pytest.raises(HistoryError, match="nothing is left of the history"):
            edit()


@pytest.mark.parametrize("run", ["", "r9", "x" * 10_000])
def test_a_run_that_is_not_there_is_refused_in_few_words(run: str) -> None:
    with pytest.raises(HistoryError, match="no message of run") as caught:
        rewind_to(LATE, run)
    assert len(str(caught.value)) < 150


# Correcting a question


@given(ANY_HISTORY, st.integers(0, 12))
def test_an_edited_question_comes_last(history: list[Message], index: int) -> None:
    assume(index < len(history))
    if isinstance(history[index], UserMessage):
        wanted = [*expected(history, lambda place: place < index), UserMessage("new")]
        assert wanted == edit_user(iter(history), index, "new")
    else:
        with pytest.raises(HistoryError, match=rf"^history\[{index}\]: not a user message$"):
            edit_user(history, index, "new")


def test_an_edited_question_loses_what_vouched_for_the_old_one() -> None:
    old = UserMessage(
        "old",
        parts=(IMAGE,),
        run_id="r",
        conversation_id="k",
        seal="a.b",
        unknown=UnknownMembers({"x": b"1"}),
    )
    assert [UserMessage("new", parts=(IMAGE,), conversation_id="k")] == edit_user([old], 0, "new")
    assert [UserMessage("new", conversation_id="k")] == edit_user([old], 0, "new", parts=[])
    other = Part.image(b"1", "image/png")
    wanted = UserMessage("", parts=(other,), conversation_id="k")
    assert [wanted] == edit_user([old], 0, "", parts=[other])


def test_an_edited_question_carries_no_lone_surrogate() -> None:
    assert [UserMessage("a\ufffdb\U0001f600")] == edit_user(
        [UserMessage("x")], 0, "a\ud800b\ud83d\ude00"
    )


def test_a_question_behind_nothing_but_lost_results_can_be_edited() -> None:
    assert [UserMessage("new")] == edit_user([result("lost"), UserMessage("old")], 1, "new")


# Dropping a turn


@given(ANY_HISTORY, st.integers(0, 12))
def test_a_dropped_turn_takes_its_results_along(history: list[Message], index: int) -> None:
    assume(index < len(history))
    turn = owner(history, index)
    wanted = or_nothing(expected(history, lambda place: place != turn))
    found = outcome(lambda: drop_turn(iter(history), index))
    assert (None if turn is None else wanted) == found


def test_any_message_of_a_turn_names_it() -> None:
    rest: list[Message] = [*LATE[:2], *LATE[3:4], *LATE[5:8]]
    for index in (2, 4, 9):
        assert rest == drop_turn(LATE, index)


@pytest.mark.parametrize("index", [0, 1, 3, 8])
def test_what_belongs_to_no_turn_cannot_be_dropped_as_one(index: int) -> None:
    with pytest.raises(HistoryError, match=rf"^history\[{index}\]: belongs to no turn$") as caught:
        drop_turn(LATE, index)
    assert index == caught.value.index


def test_the_only_turn_cannot_be_dropped() -> None:
    with pytest.raises(HistoryError, match="nothing is left of the history"):
        drop_turn([SystemMessage("s"), asking("a"), result("a")], 2)


# Arguments that make no sense

Indexed = Callable[[list[Message], Any], object]
INDEXED: dict[str, Indexed] = {
    "fork_at": fork_at,
    "rewind_to": rewind_to,
    "edit_user": lambda history, index: edit_user(history, index, "x"),
    "drop_turn": drop_turn,
}


@pytest.mark.parametrize("name", INDEXED)
@pytest.mark.parametrize("index", [None, 1.0, True, b"1", [1]], ids=repr)
def test_an_index_that_is_no_integer_is_named(name: str, index: Any) -> None:
    argument = "target" if name == "rewind_to" else "index"
    with pytest.raises(TypeError, match=f"^{argument} must be an integer, not"):
        INDEXED[name](LATE, index)


@pytest.mark.parametrize("name", INDEXED)
def test_a_negative_place_is_named_as_it_was_given(name: str) -> None:
    with pytest.raises(HistoryError, match="there is no message -1 in a history of 10"):
        INDEXED[name](LATE, -1)


@pytest.mark.parametrize("content", [5, None, b"x", ["x"]], ids=repr)
def test_a_question_is_text(content: Any) -> None:
    with pytest.raises(TypeError, match="content must be str, not"):
        edit_user(LATE, 1, content)


def test_media_of_an_edited_question_are_such_as_a_run_sends() -> None:
    wrong: list[Any] = [IMAGE, "x"]
    with pytest.raises(TypeError, match=r"parts\[1\] must be a Part, not str"):
        edit_user(LATE, 1, "x", parts=wrong)
    with pytest.raises(ValueError, match=r"parts\[1\]: unsupported part kind 'tape'"):
        edit_user(LATE, 1, "x", parts=[IMAGE, Part("tape", url="https://e.example/")])


def test_a_turn_is_json_as_the_contract_spells_it() -> None:
    """Lone surrogates and unknown members of its messages included."""
    asked = AssistantMessage(
        "\ud800", tool_calls=asking("a").tool_calls, unknown=UnknownMembers({"newer": b"1.0"})
    )
    [turn] = turns([asked, result("a")])
    assert encode_json(turn) == (
        b'{"index":0,"message":{"role":"assistant","content":"\xef\xbf\xbd",'
        b'"toolCalls":[{"id":"a","name":"f","args":{}}],"newer":1.0},'
        b'"results":[{"role":"tool","content":"r","toolCallId":"a","toolName":"f"}],'
        b'"resultIndexes":[1]}'
    )


# What is returned can be run


@given(ANY_HISTORY, st.integers(0, 12), st.sampled_from([fork_at, rewind_to, drop_turn]))
def test_what_an_edit_returns_is_repaired(
    history: list[Message], index: int, edit: Callable[[Any, Any], list[Message]]
) -> None:
    edited = outcome(lambda: edit(history, index))
    if edited is not None:
        assert complaint(edited) == ""
        assert same(edited, normalize_history(edited)[0])
        assert sendable(edited)


@pytest.mark.parametrize("prompt", [None, "go on"])
async def test_a_fork_runs_as_another_conversation(prompt: str | None) -> None:
    """The first conversation's messages keep their stamps."""
    agent: Agent[Any] = Agent(ScriptedModel(["one", "two", "three"]))
    first = await agent.run("q")
    second = await agent.run("q2", history=first.messages)
    fork = await agent.run(
        prompt, history=rewind_to(second.messages, first.run_id), conversation_id=new_id()
    )
    assert first.messages == fork.messages[:2]
    assert first.conversation_id == second.conversation_id != fork.conversation_id
    assert {fork.conversation_id} == {m.conversation_id for m in fork.new_messages}


async def test_an_edited_question_is_answered_anew() -> None:
    model = ScriptedModel(["one", "two"])
    agent: Agent[Any] = Agent(model)
    first = await agent.run("waht?")
    edited = edit_user(first.messages, 0, "what?")
    second = await agent.run(None, history=edited)
    assert [message.content for message in model.requests[1].messages] == ["what?"]
    assert [message.content for message in second.messages] == ["what?", "two"]
    assert first.conversation_id == second.conversation_id


def test_a_run_that_is_not_there_is_named_as_far_as_a_log_takes_it() -> None:
    for name, said in (
        ("r" * 64, "r" * 64),
        ("r" * 65, "r" * 64 + "…"),
        ("r" * 66, "r" * 64 + "…"),
    ):
        with pytest.raises(HistoryError) as caught:
            rewind_to([UserMessage("u")], name)
        assert str(caught.value) == f"history: no message of run '{said}'"


def test_a_fork_before_everything_has_nothing_left_and_none_beyond_the_end_is_there() -> None:
    for history in ([], [UserMessage("u")]):
        with pytest.raises(HistoryError, match=r"^history: nothing is left of the history$"):
            fork_at(history, 0)
    with pytest.raises(HistoryError, match=r"^history: there is no message 1 in a history of 1$"):
        fork_at([UserMessage("u")], 2)
    with pytest.raises(HistoryError, match=r"^history: there is no message -1 in a history of 1$"):
        fork_at([UserMessage("u")], -1)
