"""Bounding with a low-water mark: the cut stays where it is for many turns."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from golem import Agent, AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from golem.history import trim_history
from golem.testing import ScriptedModel
from tests.history.bounding import CALL, PLAIN, RESULT, USER, Counter, budget, length
from tests.history.checks import same


def conversation(turns: int) -> list[Message]:
    """Exchanges of different lengths, with tools in some."""
    history: list[Message] = []
    for n in range(turns):
        history.append(UserMessage(f"question {n}" + "." * (n % 7)))
        if n % 3 == 1:
            history.append(AssistantMessage(tool_calls=(ToolCall.of(f"c{n}", "f", "{}"),)))
            history.append(ToolMessage(f"result {n}", tool_call_id=f"c{n}", tool_name="f"))
        history.append(AssistantMessage(f"answer {n}"))
    return history


class Bound:
    """A bound and what it counts, with the limit and the mark in that."""

    def __init__(self, name: str, limit: int, low: int | None) -> None:
        self.counter = Counter() if name == "trim" else Counter(length)
        scale = 1 if name == "trim" else 10
        self.limit, self.low = limit * scale, None if low is None else low * scale
        self.step = 1 if self.low is None else self.limit + 1 - self.low
        self._trim = name == "trim"

    def __call__(self, history: list[Message]) -> list[Message]:
        if self._trim:
            return trim_history(self.limit, low_water=self.low)(history)
        return budget(history, self.limit, Counter(length), low_water=self.low)

    def size(self, history: list[Message]) -> int:
        return sum(map(self.counter.cost, history))


LIMITS = [(20, 10), (20, 1), (20, 19), (9, 4), (30, 15)]
bounded = pytest.mark.parametrize("name", ["trim", "budget"])
limited = pytest.mark.parametrize(("limit", "low"), LIMITS)


def ends(turns: int) -> list[int]:
    """Where the runs of a conversation end: what is supplied to the next one."""
    return [len(conversation(turn)) for turn in range(1, turns + 1)]


@bounded
@limited
def test_a_full_transcript_has_its_beginning_moved_once_per_step(
    name: str, limit: int, low: int
) -> None:
    """Passed whole to every run: the cut lies at the first place that opens behind a step."""
    bound, full = Bound(name, limit, low), conversation(100)
    beginnings: list[int] = []
    for end in ends(100):
        history = full[:end]
        kept = bound(history)
        assert same(history[end - len(kept) :], kept)
        assert bound.size(kept) <= bound.limit
        steps = -(-max(bound.size(history) - bound.limit, 0) // bound.step)
        places = [p for p in range(end) if bound.size(full[:p]) >= steps * bound.step]
        wanted = places[0] if not steps else next(p for p in places if _opens(full[p]))
        assert wanted == end - len(kept)
        beginnings.append(end - len(kept))
    moved = sum(one != other for one, other in itertools.pairwise(beginnings))
    assert moved <= -(-(bound.size(full) - bound.limit) // bound.step)
    assert beginnings == sorted(beginnings)


def _opens(message: Message) -> bool:
    asks = isinstance(message, AssistantMessage) and message.tool_calls
    return not asks and not isinstance(message, ToolMessage)


@bounded
@limited
def test_a_chained_transcript_keeps_its_beginning_until_it_passes_the_limit(
    name: str, limit: int, low: int
) -> None:
    """Handed on as it was cut: each cut makes room down to the mark, but for what it came late."""
    bound, full = Bound(name, limit, low), conversation(100)
    history: list[Message] = []
    for start, end in itertools.pairwise([0, *ends(100)]):
        history = [*history, *full[start:end]]
        passed_by = bound.size(history) - bound.limit
        kept = bound(history)
        assert same(history[len(history) - len(kept) :], kept)
        if passed_by <= 0:
            assert same(history, kept)
        else:
            assert bound.low is not None
            left = passed_by % bound.step or bound.step
            assert bound.size(kept) <= bound.low - 1 + left <= bound.limit
        history = kept


@bounded
@pytest.mark.parametrize("chained", [True, False])
def test_prompt_caches_hold_for_many_turns(name: str, chained: bool) -> None:
    """The figure that low-water marks are for: how often what is sent begins otherwise."""
    full = conversation(100)

    def moved(bound: Bound) -> int:
        history: list[Message] = []
        first: list[Message] = []
        for start, end in itertools.pairwise([0, *ends(100)]):
            history = [*history, *full[start:end]] if chained else full[:end]
            kept = bound(history)
            first.append(kept[0])
            history = kept
        return sum(one is not other for one, other in itertools.pairwise(first))

    assert moved(Bound(name, 20, 10)) <= moved(Bound(name, 20, None)) / 3


async def test_a_run_with_instructions_counts_its_system_message_in_the_chain() -> None:
    """The cut need not fall where it would in the transcript that was stored without it."""
    model = ScriptedModel([f"answer {number}" for number in range(30)])
    agent: Agent[Any] = Agent(
        model, instructions="be brief", history_processor=trim_history(8, low_water=4)
    )
    history: list[Message] = []
    begins: list[str] = []
    for number in range(30):
        result = await agent.run(f"question {number}", history=history)
        history = result.messages
        begins.append(history[1].content)
        assert len(history) <= 8 + 3
    moved = sum(one != other for one, other in itertools.pairwise(begins))
    assert moved <= 30 * 2 / (8 - 4)


def test_the_same_history_is_cut_alike_whatever_came_before() -> None:
    """Stateless: the cut depends on the history alone."""
    full = conversation(60)
    for name in ("trim", "budget"):
        bound = Bound(name, 20, 10)
        for end in ends(60):
            assert same(bound(full[:end]), Bound(name, 20, 10)(full[:end]))


def test_the_first_cut_leaves_the_low_water_mark_and_stays() -> None:
    for size in range(11, 25):
        history: list[Message] = [UserMessage(str(n)) for n in range(size)]
        kept = history[7 if size < 18 else 14 :]
        assert same(kept, trim_history(10, low_water=4)(history))
        assert same(kept, budget(history, 10, low_water=4))


@pytest.mark.parametrize("cost", [1, 7, 10, 333])
def test_a_budget_is_cut_down_to_its_low_water_mark(cost: int) -> None:
    for size in range(11, 17):
        history: list[Message] = [UserMessage(str(n)) for n in range(size)]
        counter = Counter(lambda message: cost)
        assert same(history[7:], budget(history, 10 * cost, counter, low_water=4 * cost))


def test_a_low_water_mark_at_the_limit_is_none() -> None:
    for size in range(30):
        history: list[Message] = [UserMessage(str(n)) for n in range(size)]
        assert trim_history(10)(history) == trim_history(10, low_water=10)(history)
        assert budget(history, 10) == budget(history, 10, low_water=10)


def test_a_step_behind_which_nothing_opens_takes_the_last_place_before_it() -> None:
    """A run that ends in a batch of results would fail with the mark, and not without it."""
    history: list[Message] = [USER, PLAIN, UserMessage("q"), CALL, RESULT]
    assert same(history[2:], trim_history(4, low_water=1)(history))
    assert same(history[1:], budget(history, 4, low_water=1))


def test_a_step_past_everything_that_opens_is_not_taken() -> None:
    cost = dict(zip("abcdef", (6, 1, 1, 2, 2, 3), strict=True))
    history: list[Message] = [
        UserMessage("a"),
        AssistantMessage("b", tool_calls=CALL.tool_calls),
        ToolMessage("c", tool_call_id="c"),
        UserMessage("d"),
        AssistantMessage("e", tool_calls=CALL.tool_calls),
        ToolMessage("f", tool_call_id="c"),
    ]
    counter = Counter(lambda message: cost[message.content])
    assert same(history[3:], budget(history, 10, counter, low_water=1))
