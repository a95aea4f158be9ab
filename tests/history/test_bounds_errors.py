"""Bounding refuses limits that are none, and names a counter that fails."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem import HistoryError, Message, UserMessage
from golem.history import budget_history, trim_history
from tests.history.bounding import RESULT, USER, Answers, Counter, budget
from tests.history.checks import now


@pytest.mark.parametrize("limit", [2.5, 2.0, float("nan"), float("inf"), True, "5", None, [3]])
def test_a_limit_that_is_no_integer_is_refused_at_construction(limit: Any) -> None:
    with pytest.raises(ValueError, match=r"^max_messages must be an integer, got "):
        trim_history(limit)
    with pytest.raises(ValueError, match=r"^max_tokens must be an integer, got "):
        budget_history(Counter(), limit)
    if limit is not None:
        with pytest.raises(ValueError, match=r"^low_water must be an integer, got "):
            trim_history(5, low_water=limit)
        with pytest.raises(ValueError, match=r"^low_water must be an integer, got "):
            budget_history(Counter(), 5, low_water=limit)


@pytest.mark.parametrize("limit", [0, -1, -100])
def test_a_limit_below_one_is_refused_at_construction(limit: int) -> None:
    with pytest.raises(ValueError, match=f"^max_messages must be at least 1, got {limit}"):
        trim_history(limit)
    with pytest.raises(ValueError, match=f"^max_tokens must be at least 1, got {limit}"):
        budget_history(Counter(), limit)


@pytest.mark.parametrize("low_water", [0, -1, 6])
def test_a_low_water_mark_outside_the_limits_is_refused(low_water: int) -> None:
    expected = f"low_water must be between 1 and 5, got {low_water}"
    with pytest.raises(ValueError, match=expected):
        trim_history(5, low_water=low_water)
    with pytest.raises(ValueError, match=expected):
        budget_history(Counter(), 5, low_water=low_water)


def test_no_counter_is_refused_at_construction() -> None:
    with pytest.raises(ValueError, match="needs a counter"):
        budget_history(None, 5)  # type: ignore[arg-type]


def test_a_failing_counter_says_over_which_messages_it_failed() -> None:
    class Picky(Counter):
        async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
            if len(messages) == 1:
                raise OSError("too little to count")
            return await super().count_tokens(messages)

    with pytest.raises(HistoryError, match=r"failed: too little to count \(messages 9 to 9\)$"):
        budget([USER] * 10, 5, Picky())


def test_a_failing_counter_is_named_and_chained() -> None:
    cause = RuntimeError("count endpoint down")
    with pytest.raises(HistoryError, match="counting tokens failed: count endpoint down") as caught:
        budget([USER], 5, Answers(cause))
    assert cause is caught.value.__cause__


@pytest.mark.parametrize(
    "answer", [None, "5", 1.5, float("nan"), float("inf"), [], -1, -(10**9), True, False]
)
def test_a_counter_that_gives_no_count_is_an_error(answer: object) -> None:
    with pytest.raises(HistoryError, match="counting tokens failed: "):
        budget([USER], 5, Answers(answer))


def test_a_counter_may_find_nothing_to_count() -> None:
    assert budget([USER], 5, Answers(0)) == [USER]


def test_a_counter_that_fails_later_is_an_error_too() -> None:
    class Tiring(Counter):
        async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
            if await super().count_tokens(messages) and self.calls > 2:
                raise OSError("tired")
            return len(messages)

    with pytest.raises(HistoryError, match="tired"):
        budget([USER] * 100, 5, Tiring())


def test_a_counter_that_is_not_asynchronous_is_an_error() -> None:
    class Sync:
        def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
            return 1

    with pytest.raises(HistoryError, match="counting tokens failed"):
        budget([USER], 5, Sync())  # type: ignore[arg-type]


@pytest.mark.parametrize("signal", [KeyboardInterrupt(), GeneratorExit()], ids=repr)
def test_what_is_no_failure_of_the_counter_passes_through(signal: BaseException) -> None:
    """Cancellation above all."""
    with pytest.raises(type(signal)):
        budget([USER], 5, Answers(signal))


@given(st.lists(st.integers(0, 9), min_size=1, max_size=12), st.integers(1, 20), st.booleans())
def test_no_counter_however_odd_gets_more_than_the_limit_sent(
    answers: list[int], limit: int, low: bool
) -> None:
    """Counts that do not grow with the messages still bound what is returned."""

    class Odd:
        async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
            return answers[len(messages) % len(answers)] * 3

    history: list[Message] = [UserMessage(str(n)) for n in range(15)]
    try:
        kept = budget(history, limit, Odd(), low_water=1 if low else None)
    except HistoryError:
        return
    assert now(Odd().count_tokens(kept)) <= limit


def test_something_that_is_no_message_is_named() -> None:
    odd: Any = [USER, "hello", RESULT]
    for process in (trim_history(9), lambda history: budget(history, 9)):
        with pytest.raises(HistoryError, match=r"^history\[1\]: not a message but str$"):
            process(odd)


def test_a_counter_that_says_yes_is_named() -> None:
    with pytest.raises(HistoryError, match="failed: Answers counts True tokens"):
        budget([USER], 5, Answers(True))
