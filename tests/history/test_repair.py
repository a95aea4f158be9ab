"""Repair, rule by rule (contract §2.1 and §2.2): one small history for each."""

from __future__ import annotations

import gc
import itertools
import sys
from collections.abc import AsyncIterator, Callable, Iterator

import msgspec
import pytest
from anyio.lowlevel import checkpoint

from golem import (
    AssistantMessage,
    Change,
    HistoryError,
    HistoryRepair,
    Message,
    Repairer,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    arepair,
    dump_history,
    load_history,
    normalize_history,
    repair,
)

FIXED_TEXT = (
    "Tool call was interrupted before execution; no result was produced. "
    "Call the tool again if you need its result."
)
USER = UserMessage("go on")


def ask(*ids: str, args: str = "{}") -> AssistantMessage:
    return AssistantMessage(tool_calls=tuple(ToolCall.of(each, "look", args) for each in ids))


def result(id: str, text: str = "real") -> ToolMessage:
    return ToolMessage(text, tool_call_id=id, tool_name="look")


def shape(history: list[Message]) -> str:
    """A history in one line: calls, results (`*`: synthesized) and the rest by initial."""
    words: list[str] = []
    for message in history:
        match message:
            case AssistantMessage():
                words.append(f"[{' '.join(call.id or '-' for call in message.tool_calls)}]")
            case ToolMessage():
                made = "*" if message.content == FIXED_TEXT else ""
                words.append((message.tool_call_id or "-") + made)
            case _:
                words.append(type(message).__name__[0])
    return " ".join(words)


RULES: dict[str, tuple[list[Message], str]] = {
    "rule 1: the first result wins": (
        [ask("a"), result("a"), result("a", "again"), result("a", "again")],
        "[a] a",
    ),
    "rule 1: a result right behind its call stays whatever the order": (
        [ask("a", "b"), result("b"), result("a")],
        "[a b] b a",
    ),
    "rule 2: fillers come first, in call order": (
        [ask("a", "b", "c"), result("b")],
        "[a b c] a* c* b",
    ),
    "rule 2: an interrupted turn is closed where it stands": ([ask("a"), USER], "[a] a* U"),
    "rule 3: an orphan is dropped": ([USER, result("x"), USER], "U U"),
    "rule 3: a result before its call is dropped": (
        [result("a", "early"), ask("a"), result("a")],
        "[a] a",
    ),
    "rule 4: a reused id opens a new call": (
        [ask("a"), result("a"), ask("a"), result("a")],
        "[a] a [a] a",
    ),
    "rule 4: the earlier call of a reused id ends unanswered": (
        [ask("a"), USER, ask("a"), result("a"), result("a", "again")],
        "[a] a* U [a] a",
    ),
    "rule 4: only the reused id ends, its sibling stays open": (
        [ask("a", "b"), ask("a"), result("b"), result("a")],
        "[a b] a* b [a] a",
    ),
    "rule 4: an id twice in one message takes two results": (
        [ask("a", "a"), result("a", "1"), result("a", "2"), result("a", "3")],
        "[a a] a a",
    ),
    "rule 4: of an id twice in one message one can be missing": (
        [ask("a", "a"), result("a")],
        "[a a] a* a",
    ),
    "rule 5: a late result moves up behind those already there": (
        [ask("a", "b"), result("a"), USER, SystemMessage("s"), result("b"), USER],
        "[a b] a b U S U",
    ),
    "rule 5: late results of several turns find their own": (
        [ask("a"), ask("b"), ask("c"), result("c"), result("a"), result("b")],
        "[a] a [b] b [c] c",
    ),
    "rule 6: a call without id passes": ([ask(""), USER], "[-] U"),
    "rule 6: its result passes too": ([ask("", "a"), result("a"), result("")], "[- a] a -"),
    "rule 6: at most as many as there are such calls": (
        [ask("", ""), result(""), result(""), result("")],
        "[- -] - -",
    ),
    "rule 6: not behind another message": ([ask(""), USER, result("")], "[-] U"),
    "rule 6: not without such a call": ([ask("a"), result("a"), result("")], "[a] a"),
    "rule 6: a dropped result does not end the batch": (
        [ask(""), result("x"), result("")],
        "[-] -",
    ),
    "rule 6: a result moved away does not end the batch": (
        [ask("a"), ask(""), result("a"), result("")],
        "[a] a [-] -",
    ),
}


@pytest.mark.parametrize(("history", "expected"), RULES.values(), ids=RULES)
def test_each_rule(history: list[Message], expected: str) -> None:
    assert expected == shape(normalize_history(history)[0])


@pytest.mark.parametrize(("history", "expected"), RULES.values(), ids=RULES)
def test_each_rule_leaves_a_fixed_point(history: list[Message], expected: str) -> None:
    messages = normalize_history(history)[0]
    again, report = normalize_history(messages)
    assert expected == shape(again)
    assert report == HistoryRepair()


def test_a_filler_is_neutral_and_carries_no_identity() -> None:
    """No failure flag, no ids of a run, no time: a repeated resume sends the same bytes."""
    asking = msgspec.structs.replace(ask("a"), run_id="r", conversation_id="c", seal="s")
    expected = ToolMessage(FIXED_TEXT, tool_call_id="a", tool_name="look")
    assert [asking, expected] == list(repair([asking]))


def test_the_report_names_what_changed_and_where() -> None:
    history = [
        result("lost"),
        ask("a", "b", args="{"),
        USER,
        result("b"),
        ask(""),
    ]
    messages, report = normalize_history(history)
    assert shape(messages) == "[a b] a* b U [-]"
    assert report == HistoryRepair(
        synthesized=("a",),
        dropped=("lost",),
        moved=("b",),
        truncated=("a", "b"),
        changes=(
            Change("dropped", "lost", "look", 0, None),
            Change("truncated", "a", "look", 1, 0),
            Change("truncated", "b", "look", 1, 0),
            Change("synthesized", "a", "look", 1, 1),
            Change("moved", "b", "look", 3, 2),
        ),
    )


def test_an_empty_report_is_falsy_and_a_finding_makes_it_true() -> None:
    assert not normalize_history([USER])[1]
    assert normalize_history([ask("a", args="{"), result("a")])[1]
    assert normalize_history([ask("", args="{")])[1]


def test_an_id_less_truncated_call_is_named_in_changes_only() -> None:
    report = normalize_history([ask("", args="{")])[1]
    assert report.truncated == ()
    assert (Change("truncated", "", "look", 0, 0),) == report.changes


def test_a_dropped_id_less_result_is_named_by_its_empty_id() -> None:
    assert normalize_history([result("")])[1].dropped == ("",)


def test_a_report_over_lone_surrogates_is_json_too() -> None:
    """As it would be of the same history once that was stored."""
    odd = "a\ud800"
    history: list[Message] = [result(odd), ask(odd, args="{"), USER, result(odd), result(odd)]
    for each in (
        normalize_history(history)[1],
        normalize_history(load_history(dump_history(history)))[1],
    ):
        assert each == msgspec.json.decode(msgspec.json.encode(each), type=HistoryRepair)
        assert each.truncated == each.moved == ("a\ufffd",)
        assert each.dropped == ("a\ufffd", "a\ufffd")


def test_a_report_is_camel_case_json_and_reads_back() -> None:
    report = normalize_history([ask("a"), USER, result("x")])[1]
    data = msgspec.json.encode(report)
    assert msgspec.json.decode(data, type=HistoryRepair) == report
    assert {"kind", "callId", "toolName", "inputIndex", "outputIndex"} == set(
        msgspec.json.decode(data)["changes"][0]
    )


def test_places_count_results_without_an_id_too() -> None:
    """Such a result comes to a turn that was given out before it."""
    history = [ask(""), result(""), ask("a"), USER, ask("b"), USER, result("b")]
    messages, report = normalize_history(history)
    assert [(c.kind, c.call_id, c.input_index, c.output_index) for c in report.changes] == [
        ("synthesized", "a", 2, 3),
        ("moved", "b", 6, 6),
    ]
    assert messages[6] is history[6]


@pytest.mark.parametrize("args", ["", "  ", "{", "null", "5", "[]", '"{}"', '{"a":NaN}'])
def test_arguments_that_are_no_object_are_named_and_kept(args: str) -> None:
    asking = ask("a", args=args)
    messages, report = normalize_history([asking, result("a")])
    assert messages[0] is asking
    assert report.truncated == ("a",)


@pytest.mark.parametrize("bad", [None, "text", {"role": "user"}, object(), [USER]])
def test_something_else_than_a_message_is_an_error_that_says_where(bad: object) -> None:
    history: list[Message] = [USER, ask("a"), result("a"), bad]  # type: ignore[list-item]
    for run in (normalize_history, lambda h: list(repair(iter(h)))):
        with pytest.raises(HistoryError, match=r"history\[3\]: not a message") as caught:
            run(history)
        assert caught.value.index == 3


def test_feeding_something_else_than_a_message_takes_nothing() -> None:
    repairer = Repairer()
    repairer.feed(ask("a"))
    with pytest.raises(HistoryError):
        repairer.feed("text")  # type: ignore[arg-type]
    assert repairer.feed(result("a")) != []
    assert not repairer.report


def test_an_empty_history_stays_empty() -> None:
    assert ([], HistoryRepair()) == normalize_history([])
    assert Repairer().close() == []


def test_the_input_may_be_any_iterable() -> None:
    history = [ask("a"), result("a"), USER]
    for form in (list, tuple, iter, lambda h: (m for m in h), lambda h: dict.fromkeys(h).keys()):
        assert history == list(repair(form(history)))
        assert history == normalize_history(form(history))[0]


def test_a_generator_is_read_no_further_than_needed() -> None:
    """A result is given out before the message behind it is asked for."""
    read: list[int] = []

    def source() -> Iterator[Message]:
        for index, message in enumerate([USER, ask("a"), result("a"), USER]):
            read.append(index)
            yield message

    given = repair(source())
    assert read == []
    progress = []
    for _ in given:
        progress.append(len(read))
    assert progress == [1, 3, 3, 4]


async def test_an_asynchronous_history_is_repaired_as_it_arrives() -> None:
    arrived: list[int] = []

    async def source() -> AsyncIterator[Message]:
        for index, message in enumerate([ask("a"), USER, result("a"), result("x"), ask("b")]):
            await checkpoint()
            arrived.append(index)
            yield message

    messages: list[Message] = []
    progress: list[int] = []
    async for message in arepair(source()):
        messages.append(message)
        progress.append(len(arrived))
    assert shape(messages) == "[a] a U [b] b*"
    assert progress == [3, 3, 3, 5, 5]


def held_by(repairer: Repairer) -> int:
    """How many messages can be reached from the engine."""
    found: dict[int, object] = {}
    pending: list[object] = [vars(repairer)]
    while pending:
        thing = pending.pop()
        if id(thing) not in found and not isinstance(thing, type):
            found[id(thing)] = thing
            pending += gc.get_referents(thing)
    return sum(isinstance(thing, Message) for thing in found.values())


def test_a_stream_without_a_report_keeps_none() -> None:
    """`repair` over a generator has nobody to read a report, so changes cost no memory."""
    orphans = [ToolMessage("x", tool_call_id=str(n), tool_name="t") for n in range(50)]
    quiet = Repairer(reporting=False)
    assert [quiet.feed(message) for message in orphans] == [[]] * 50
    assert not quiet.report
    telling = Repairer()
    assert [telling.feed(message) for message in orphans] == [[]] * 50
    assert telling.report.dropped == tuple(map(str, range(50)))


def test_the_engine_remembers_the_window_from_the_oldest_open_call_and_no_more() -> None:
    repairer = Repairer()
    for index in range(100):
        for message in (UserMessage(f"{index}"), ask(f"{index}"), result(f"{index}")):
            repairer.feed(message)
    settled = held_by(repairer)
    assert settled <= 2  # the last batch, to which an id-less result could belong
    repairer.feed(ask("open"))
    for index in range(100):
        repairer.feed(UserMessage(f"{index}"))
    assert 101 <= held_by(repairer) <= 103
    repairer.feed(result("open"))
    assert held_by(repairer) <= settled


# Linear: the work per message does not grow with the history


def steps(work: Callable[[], object]) -> int:
    """How many calls, of Python and of C functions, `work` makes."""
    count = 0

    def profile(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


def _sound(n: int) -> list[Message]:
    return [m for i in range(n) for m in (USER, ask(f"{i}"), result(f"{i}"))]


def _all_open(n: int) -> list[Message]:
    return [ask(f"{i}") for i in range(n)]


def _all_late(n: int) -> list[Message]:
    return [*_all_open(n), *(result(f"{i}") for i in reversed(range(n)))]


def _first_never_answered(n: int) -> list[Message]:
    return [ask("never"), *_sound(n)]


def _one_id(n: int) -> list[Message]:
    return [m for _ in range(n) for m in (ask("a"), USER)]


def _one_turn(n: int) -> list[Message]:
    return [ask(*(f"{i}" for i in range(n))), *(result(f"{i}") for i in reversed(range(n)))]


def _one_id_in_one_turn(n: int) -> list[Message]:
    return [ask(*["a"] * n), *[result("a")] * n]


def _orphans(n: int) -> list[Message]:
    return [result("x") for _ in range(n)]


@pytest.mark.parametrize(
    "make",
    [
        *(_sound, _all_open, _all_late, _first_never_answered),
        *(_one_id, _one_turn, _one_id_in_one_turn, _orphans),
    ],
)
@pytest.mark.parametrize("form", [normalize_history, lambda h: list(repair(iter(h)))])
def test_repair_is_linear(
    make: Callable[[int], list[Message]], form: Callable[[list[Message]], object]
) -> None:
    small, large = make(200), make(2_000)
    assert steps(lambda: form(large)) < 12 * steps(lambda: form(small))


# Message by message


def test_a_turn_is_given_out_with_its_last_result_and_everything_else_at_once() -> None:
    history = [USER, ask("a", "b"), result("a"), result("b"), USER, ask("c"), USER, result("c")]
    repairer = Repairer()
    assert [len(repairer.feed(message)) for message in history] == [1, 0, 0, 3, 1, 0, 0, 3]
    assert repairer.close() == []


def test_what_stands_behind_an_open_call_waits_for_it() -> None:
    history = [ask("a"), USER, ask("b"), result("b"), USER]
    repairer = Repairer()
    assert [len(repairer.feed(message)) for message in history] == [0, 0, 0, 0, 0]
    assert len(repairer.feed(result("a"))) == 6


def test_every_short_history_comes_out_alike_as_a_whole_and_message_by_message() -> None:
    letters = [USER, ask("a"), ask("a", "b"), ask(""), result("a"), result("b"), result("")]
    for length in range(6):
        for letter in itertools.product(letters, repeat=length):
            expected, report = normalize_history(letter)
            repairer = Repairer()
            settled = [message for given in letter for message in repairer.feed(given)]
            settled += repairer.close()
            assert (expected, report) == (settled, repairer.report), shape(list(letter))
