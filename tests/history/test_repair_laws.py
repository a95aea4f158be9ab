"""The laws of repair, on histories in which everything goes wrong at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Coroutine, Iterator
from typing import Any, TypeVar

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from golem import (
    AssistantMessage,
    Change,
    HistoryRepair,
    Message,
    Repairer,
    ToolMessage,
    arepair,
    dump_history,
    load_history,
    normalize_history,
    repair,
)
from golem.history.repair import NO_RESULT
from golem.testing.strategies import ANY_HISTORY
from tests.history import model

T = TypeVar("T")


def same(one: list[Message], other: list[Message]) -> bool:
    """Whether two histories are the same objects in the same order."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def is_filler(message: Message) -> bool:
    return isinstance(message, ToolMessage) and message.content == NO_RESULT


def sorted_changes(changes: tuple[Change, ...] | list[Change]) -> list[Change]:
    return sorted(changes, key=lambda c: (c.input_index, c.kind, c.output_index or 0, c.call_id))


def now(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("waited")


@given(ANY_HISTORY, ANY_HISTORY)
def test_a_closed_repairer_is_fed_on_as_if_its_output_had_been_the_history(
    before: list[Message], after: list[Message]
) -> None:
    repairer = Repairer()
    first = [message for given in before for message in repairer.feed(given)] + repairer.close()
    dropped = len(repairer.report.dropped)
    rest = [message for given in after for message in repairer.feed(given)] + repairer.close()
    expected, report = normalize_history([*first, *after])
    assert expected == [*first, *rest]
    assert report.dropped == repairer.report.dropped[dropped:]


@given(ANY_HISTORY)
def test_the_engine_does_what_the_contract_says(history: list[Message]) -> None:
    expected, changes = model.repaired(history)
    messages, report = normalize_history(history)
    assert expected == messages
    assert sorted_changes(changes) == sorted_changes(report.changes)


@given(ANY_HISTORY)
def test_a_second_pass_changes_nothing_and_reports_only_truncated_again(
    history: list[Message],
) -> None:
    messages, first = normalize_history(history)
    again, second = normalize_history(messages)
    assert same(messages, again)
    assert HistoryRepair(truncated=first.truncated, changes=second.changes) == second
    assert {"truncated"} >= {change.kind for change in second.changes}


@given(ANY_HISTORY)
def test_repair_is_deterministic(history: list[Message]) -> None:
    first, second = normalize_history(history), normalize_history(history)
    assert first == second
    assert dump_history(first[0]) == dump_history(second[0])


@given(ANY_HISTORY)
def test_the_output_pairs_as_providers_demand(history: list[Message]) -> None:
    """Behind every asking turn stand exactly its results; nowhere else stands any."""
    messages = normalize_history(history)[0]
    place = 0
    while place < len(messages):
        asking = messages[place]
        assert not isinstance(asking, ToolMessage)
        place += 1
        batch: list[ToolMessage] = []
        while place < len(messages) and isinstance(result := messages[place], ToolMessage):
            batch.append(result)
            place += 1
        calls = model.calls_of(asking)
        assert sorted(call.id for call in calls if call.id) == sorted(
            result.tool_call_id for result in batch if result.tool_call_id
        )
        blank = [result for result in batch if not result.tool_call_id]
        assert len(blank) <= sum(not call.id for call in calls)
        fillers = [is_filler(result) for result in batch]
        assert fillers == sorted(fillers, reverse=True)  # fillers come first …
        asked = iter(call.id for call in calls)
        assert all(r.tool_call_id in asked for r in batch if is_filler(r))  # … in call order


@given(ANY_HISTORY)
def test_kept_messages_are_the_same_objects_in_order(history: list[Message]) -> None:
    messages, report = normalize_history(history)
    moved = {change.input_index for change in report.changes if change.kind == "moved"}
    dropped = {change.input_index for change in report.changes if change.kind == "dropped"}
    displaced = {id(history[index]) for index in moved}
    kept = [message for index, message in enumerate(history) if index not in moved | dropped]
    assert same(kept, [m for m in messages if not is_filler(m) and id(m) not in displaced])
    assert len(history) - len(dropped) == sum(not is_filler(m) for m in messages)
    assert all(isinstance(history[index], ToolMessage) for index in moved | dropped)


@given(ANY_HISTORY)
def test_the_result_kept_for_a_call_is_the_first_one_that_came_for_it(
    history: list[Message],
) -> None:
    messages = normalize_history(history)[0]
    place = {id(message): index for index, message in enumerate(history)}
    for turn, message in enumerate(history):
        for call_id in {call.id for call in model.calls_of(message) if call.id}:
            came = [
                index
                for index in range(turn + 1, len(history))
                if isinstance(result := history[index], ToolMessage)
                and result.tool_call_id == call_id
                and model.turn_before(history, index, call_id) == turn
            ]
            asked = sum(call.id == call_id for call in model.calls_of(message))
            kept = [place[id(m)] for m in messages if place.get(id(m)) in came]
            assert came[:asked] == kept


@given(ANY_HISTORY)
def test_every_form_of_the_pass_gives_the_same(history: list[Message]) -> None:
    whole, report = normalize_history(history)

    def one_by_one() -> Iterator[Message]:
        yield from history

    async def asynchronously() -> AsyncIterator[Message]:
        for message in history:
            yield message

    async def collect() -> list[Message]:
        return [message async for message in arepair(asynchronously())]

    repairer = Repairer()
    fed = [settled for message in history for settled in repairer.feed(message)]
    fed += repairer.close()
    forms = [repair(history), repair(tuple(history)), repair(one_by_one()), now(collect()), fed]
    for other in map(list, forms):
        assert whole == other
        assert same([m for m in whole if not is_filler(m)], [m for m in other if not is_filler(m)])
    assert report == repairer.report
    assert (whole, report) == normalize_history(one_by_one())


@given(ANY_HISTORY)
def test_everything_before_the_oldest_open_call_is_given_out_at_once(
    history: list[Message],
) -> None:
    repairer = Repairer()
    given: list[Message] = []
    for taken in range(1, len(history) + 1):
        given += repairer.feed(history[taken - 1])
        so_far = history[:taken]
        settled = model.repaired(so_far)[0]
        waiting = model.oldest_open(so_far)
        if waiting is not None:
            settled = settled[: next(i for i, m in enumerate(settled) if m is history[waiting])]
        assert settled == given


@given(ANY_HISTORY)
def test_the_report_so_far_speaks_of_what_was_given_out_and_dropped(
    history: list[Message],
) -> None:
    repairer = Repairer()
    given: list[Message] = []
    final = normalize_history(history)[1]
    for message in history:
        given += repairer.feed(message)
        for change in repairer.report.changes:
            assert change in final.changes
            assert change.output_index is None or change.output_index < len(given)


@given(ANY_HISTORY)
def test_the_report_points_at_what_it_names(history: list[Message]) -> None:
    messages, report = normalize_history(history)
    for change in report.changes:
        before = history[change.input_index]
        after = None if change.output_index is None else messages[change.output_index]
        match change.kind:
            case "dropped":
                assert isinstance(before, ToolMessage)
                assert (change.call_id, change.tool_name) == (before.tool_call_id, before.tool_name)
                assert after is None
                assert not any(before is message for message in messages)
            case "moved":
                assert isinstance(before, ToolMessage)
                assert (change.call_id, change.tool_name) == (before.tool_call_id, before.tool_name)
                assert before is after
            case "synthesized":
                assert (change.call_id, change.tool_name) in {
                    (call.id, call.name) for call in model.calls_of(before)
                }
                assert after == ToolMessage(
                    NO_RESULT, tool_call_id=change.call_id, tool_name=change.tool_name
                )
            case "truncated":
                assert before is after
                assert any(
                    (call.id, call.name, call.truncated) == (change.call_id, change.tool_name, True)
                    for call in model.calls_of(before)
                )


@given(ANY_HISTORY)
def test_the_tuples_of_the_report_are_its_changes_in_order(history: list[Message]) -> None:
    report = normalize_history(history)[1]
    places = [change.input_index for change in report.changes]
    assert sorted(places) == places
    for kind in ("synthesized", "dropped", "moved"):
        ids = tuple(change.call_id for change in report.changes if change.kind == kind)
        assert ids == getattr(report, kind)
    assert report.truncated == tuple(
        call.id for m in history for call in model.calls_of(m) if call.truncated and call.id
    )
    assert bool(report) == bool(report.changes)


@given(ANY_HISTORY)
def test_the_input_is_left_alone(history: list[Message]) -> None:
    kept, stored = list(history), dump_history(history)
    normalize_history(history)
    list(repair(iter(history)))
    assert same(kept, history)
    assert stored == dump_history(history)


@given(ANY_HISTORY.filter(bool).flatmap(lambda h: st.lists(st.sampled_from(h), max_size=12)))
def test_the_same_object_may_stand_in_several_places(history: list[Message]) -> None:
    copies = [replace(message) for message in history]
    assert normalize_history(history) == normalize_history(copies)


@given(ANY_HISTORY)
def test_storing_a_history_does_not_change_how_it_is_repaired(history: list[Message]) -> None:
    loaded = load_history(dump_history(history))
    assert normalize_history(history) == normalize_history(loaded)


@given(ANY_HISTORY, ANY_HISTORY)
def test_what_a_repaired_history_is_continued_with_decides_nothing_in_it(
    history: list[Message], more: list[Message]
) -> None:
    """The prefix stays as it is, so that prompt caches hold."""
    messages = normalize_history(history)[0]
    continued, report = normalize_history([*messages, *more])
    assert not any(
        change.input_index < len(messages)
        for change in report.changes
        if change.kind != "truncated"
    )
    assert same(messages, continued[: len(messages)])


@given(ANY_HISTORY)
def test_an_assistant_message_without_calls_asks_nothing(history: list[Message]) -> None:
    plain = [m for m in history if not isinstance(m, ToolMessage) and not model.calls_of(m)]
    assert all(not isinstance(m, AssistantMessage) or not m.tool_calls for m in plain)
    messages, report = normalize_history(plain)
    assert same(plain, messages)
    assert not report
