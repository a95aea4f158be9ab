"""Bounding: what is cut, where a cut may fall, what it costs, and that it stays where it is."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import anyio.lowlevel
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Message,
    RunError,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    normalize_history,
)
from golem.history import TokenCounter, budget_history, trim_history
from golem.testing import ScriptedModel
from golem.testing.strategies import ANY_HISTORY
from tests import cases
from tests.cases import Case
from tests.history.checks import complaint, now, same, sendable

USER, PLAIN, SYSTEM = UserMessage("u"), AssistantMessage("a"), SystemMessage("s")
CALL = AssistantMessage(tool_calls=(ToolCall.of("c", "f", "{}"),))
RESULT = ToolMessage("r", tool_call_id="c", tool_name="f")


class Counter:
    """Counts what `cost` says of each message, remembers how often it was asked."""

    def __init__(self, cost: Callable[[Message], int] = lambda message: 1, base: int = 0) -> None:
        self.cost = cost
        self.base = base
        self.calls = 0

    async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
        self.calls += 1
        assert messages, "providers refuse to count nothing"
        return self.base + sum(map(self.cost, messages))


class Answers:
    """A counter that gives or raises the same whatever it is asked."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer  # type: ignore[no-any-return]


def length(message: Message) -> int:
    return len(message.content.encode())


def budget(
    history: Iterable[Message], limit: int, counter: TokenCounter | None = None, **options: Any
) -> list[Message]:
    """What `budget_history` makes of a history, one token a message if not told otherwise."""
    counter = Counter() if counter is None else counter
    processed = budget_history(counter, limit, **options)(history)
    assert inspect.iscoroutine(processed)
    return now(processed)


# The executable cases


@pytest.mark.parametrize("case", cases.vectors("trim"), ids=cases.name_of)
def test_trim_vector(case: Case) -> None:
    """The Go sibling keeps the same messages."""
    history = cases.messages(case["input"]["messages"])
    assert list(case["options"]) == ["maxMessages"]
    if "error" in case["expected"]:
        with pytest.raises(ValueError):  # noqa: PT011
            trim_history(case["options"]["maxMessages"])(history)
        return
    kept = trim_history(case["options"]["maxMessages"])(history)
    assert cases.messages(case["expected"]["messages"]) == kept
    assert same(history[len(history) - len(kept) :], kept)


def _counter(described: Case | None) -> Any:
    match described:
        case None:
            return None
        case {"type": "perMessage", "tokens": tokens}:
            return Counter(lambda message: int(tokens))
        case {"type": "contentChars"}:
            return Counter(length)
        case {"type": "error", "message": text}:
            return Answers(RuntimeError(text))
    raise AssertionError(described)


@pytest.mark.parametrize("case", cases.vectors("budget"), ids=cases.name_of)
def test_budget_vector(case: Case) -> None:
    history = cases.messages(case["input"]["messages"])
    counter, limit = _counter(case["options"]["counter"]), case["options"]["maxTokens"]
    if "error" in case["expected"]:
        with pytest.raises(ValueError):  # noqa: PT011
            now(budget_history(counter, limit)(history))  # type: ignore[arg-type]
        return
    kept = budget(history, limit, counter)
    assert cases.messages(case["expected"]["messages"]) == kept


@pytest.mark.parametrize("case", cases.field_reports("trim"), ids=cases.name_of)
def test_trim_field_report(case: Case) -> None:
    history = cases.messages(case["messages"])
    limit = case["args"]["maxMessages"]
    assert {"shape", "noOrphans", "noDangling", "maxLen", "endsWith", "error"} > set(case["expect"])
    kept = trim_history(limit)(history)
    for name, wanted in case["expect"].items():
        match name:
            case "shape":
                assert wanted == [_turn(message) for message in kept]
            case "maxLen":
                assert len(kept) <= wanted
            case "endsWith":
                assert wanted == kept[-1].content
            case _:
                assert wanted == (complaint(kept) == "")


def _turn(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return f"tool:{message.tool_call_id}"
    role = str(message.__struct_config__.tag)
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return f"{role}({','.join(call.id for call in calls)})" if calls else role


# Where a cut may fall


@pytest.mark.parametrize(
    ("history", "limit", "kept"),
    [
        ([], 1, 0),
        ([RESULT, CALL], 2, 2),
        ([USER, RESULT, PLAIN], 2, 1),
        ([USER, CALL, RESULT, PLAIN], 3, 1),
        ([USER, CALL, RESULT, USER], 2, 1),
        ([USER, PLAIN, USER], 2, 2),
        ([USER, CALL, RESULT, SYSTEM, USER], 3, 2),
        ([USER, SYSTEM, CALL, RESULT], 3, 3),
        ([USER, PLAIN, SYSTEM, RESULT, USER], 3, 3),
    ],
)
def test_the_newest_that_can_open_a_request_are_kept(
    history: list[Message], limit: int, kept: int
) -> None:
    """A history that is not longer is returned as it is, whatever it opens with."""
    expected = history[len(history) - kept :]
    assert same(expected, trim_history(limit)(history))
    assert same(expected, trim_history(limit)(iter(history)))
    assert same(expected, budget(history, limit))
    assert same(expected, budget(iter(history), limit))


@pytest.mark.parametrize(
    "history",
    [
        [USER, RESULT],
        [USER, CALL, RESULT],
        [RESULT] * 5,
        [USER, PLAIN, SYSTEM],
        [USER, CALL, SYSTEM, RESULT],
        [SYSTEM] * 3,
    ],
)
def test_a_cut_that_leaves_nothing_to_open_with_names_the_length(history: list[Message]) -> None:
    """System messages are none: a run replaces them by its instructions."""
    limit = 2 if len(history) > 2 else 1
    limit = 1 if history[-1] is SYSTEM else limit
    expected = f"nothing in a history of {len(history)} messages can open a request"
    for low_water in (None, 1):
        with pytest.raises(HistoryError, match=expected) as caught:
            trim_history(limit, low_water=low_water)(history)
        assert caught.value.index is None


def test_a_budget_in_which_nothing_opens_says_so() -> None:
    with pytest.raises(HistoryError, match="nothing in a history of 3 messages can open a request"):
        budget([CALL, RESULT, SYSTEM], 2)


def test_the_newest_turn_alone_too_large_names_what_it_needs() -> None:
    history = [UserMessage("x" * 7), CALL, RESULT, UserMessage("y" * 50), PLAIN]
    with pytest.raises(HistoryError, match="needs 51 tokens, over budget 50"):
        budget(history[:-1], 50, Counter(lambda message: length(message) + 1))
    kept = budget(history, 50, Counter(length))
    assert same(history[-1:], kept)


def test_what_is_exactly_at_the_limit_fits() -> None:
    assert trim_history(2)([USER, PLAIN]) == [USER, PLAIN]
    assert budget([USER, PLAIN], 2) == [USER, PLAIN]
    assert budget([USER, PLAIN], 1) == [PLAIN]


def test_nothing_passes_without_being_counted() -> None:
    assert budget([], 1, Counter(base=100)) == []


@given(ANY_HISTORY, st.integers(1, 8), st.integers(0, 8))
def test_what_is_kept_is_the_longest_suffix_that_opens(
    history: list[Message], limit: int, low: int
) -> None:
    """Never over the limit, for trim and budget alike, with a low-water mark or without."""
    low_water = low if 1 <= low <= limit else None
    longest = _longest(history, limit)
    for cut in (
        lambda: trim_history(limit, low_water=low_water)(history),
        lambda: budget(history, limit, low_water=low_water),
    ):
        if longest is None:
            with pytest.raises(HistoryError):
                cut()
            continue
        kept = cut()
        assert same(history[len(history) - len(kept) :], kept)
        assert len(kept) <= limit
        if low_water is None:
            assert longest == len(kept)
        if len(history) > limit:
            assert sendable(normalize_history(kept)[0])
            assert not isinstance(kept[0], ToolMessage)
            assert not (isinstance(kept[0], AssistantMessage) and kept[0].tool_calls)


def _longest(history: list[Message], limit: int) -> int | None:
    """The same by looking at every suffix."""
    if len(history) <= limit:
        return len(history)
    for start in range(len(history) - limit, len(history)):
        first, rest = history[start], history[start:]
        answers = isinstance(first, ToolMessage)
        asks = isinstance(first, AssistantMessage) and first.tool_calls
        sent = any(isinstance(message, (UserMessage, AssistantMessage)) for message in rest)
        if sent and not answers and not asks:
            return len(rest)
    return None


# What it costs


@pytest.mark.parametrize("low_water", [None, 1, 50])
@pytest.mark.parametrize("size", [10, 1000, 10_000])
def test_the_counter_is_asked_logarithmically_often(size: int, low_water: int | None) -> None:
    history: list[Message] = [UserMessage(str(n)) for n in range(size)]
    for limit in (1, size // 3, size - 1):
        counter = Counter()
        mark = low_water if low_water and low_water <= limit else None
        budget(history, limit, counter, low_water=mark)
        assert counter.calls <= 2 * (size.bit_length() + 2)


def test_a_history_that_fits_is_counted_once() -> None:
    counter = Counter()
    budget([USER] * 1000, 1000, counter)
    assert counter.calls == 1


# Low water: the cut stays where it is


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


# Errors


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


# Inside a run, on both backends


async def sync_processor(history: list[Message]) -> list[Message]:
    await anyio.lowlevel.checkpoint()
    return trim_history(2)(history)


async def streaming(history: list[Message]) -> AsyncIterator[Message]:
    for message in trim_history(2)(history):
        await anyio.lowlevel.checkpoint()
        yield message


def lazy(history: list[Message]) -> Iterator[Message]:
    yield from trim_history(2)(history)


class Slow(Counter):
    """A counter that asks a server."""

    async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
        await anyio.lowlevel.checkpoint()
        return await super().count_tokens(messages, tools)


@pytest.mark.parametrize(
    "processor",
    [trim_history(2), budget_history(Slow(), 2), sync_processor, streaming, lazy],
    ids=["trim", "budget", "coroutine", "asynchronous iterator", "iterator"],
)
async def test_a_run_sends_what_the_processor_leaves_and_the_prompt(processor: Any) -> None:
    model = ScriptedModel(["ok"])
    history = [USER, CALL, RESULT, PLAIN, UserMessage("last")]
    agent: Agent[Any] = Agent(model, instructions="be brief", history_processor=processor)
    result = await agent.run("prompt", history=history)
    sent = [message.content for message in model.requests[0].messages]
    assert sent == ["be brief", "a", "last", "prompt"]
    assert [m.content for m in result.messages] == ["be brief", "a", "last", "prompt", "ok"]
    assert len(history) == 5


@pytest.mark.parametrize(
    "processor",
    [trim_history(1), budget_history(Slow(), 1), budget_history(Answers(OSError("down")), 1)],
    ids=["trim", "budget", "failing counter"],
)
async def test_a_processor_that_fails_ends_the_run_before_any_model_call(processor: Any) -> None:
    model = ScriptedModel(["never"])
    agent: Agent[Any] = Agent(model, history_processor=processor)
    with pytest.raises(RunError) as caught:
        await agent.run("prompt", history=[USER, CALL, RESULT])
    assert (caught.value.stage, model.requests) == ("history", [])
    assert isinstance(caught.value.__cause__, HistoryError)
    assert caught.value.partial is None


@pytest.mark.parametrize("prompted", [True, False])
async def test_a_long_conversation_stays_within_its_bound(prompted: bool) -> None:
    """Chained through `result.messages`, with the processor in every run."""
    history: list[Message] = []
    for number in range(12):
        model = ScriptedModel([f"answer {number}"])
        agent: Agent[Any] = Agent(model, history_processor=trim_history(6, low_water=3))
        if not prompted:
            history = [*history, UserMessage(f"question {number}")]
        result = await agent.run(f"question {number}" if prompted else None, history=history)
        history = result.messages
        assert len(model.requests[0].messages) <= 7
        assert complaint(history) == ""


def test_a_counter_that_says_yes_is_named() -> None:
    with pytest.raises(HistoryError, match="failed: Answers counts True tokens"):
        budget([USER], 5, Answers(True))
