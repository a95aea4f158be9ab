"""Bounding: what is cut, where a cut may fall, what it costs, and what a run sends then."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
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
    ToolMessage,
    UserMessage,
    normalize_history,
)
from golem.history import budget_history, trim_history
from golem.testing import ScriptedModel
from golem.testing.strategies import ANY_HISTORY
from tests import cases
from tests.cases import Case
from tests.history.bounding import (
    CALL,
    PLAIN,
    RESULT,
    SYSTEM,
    USER,
    Answers,
    Counter,
    budget,
    length,
)
from tests.history.checks import complaint, now, same, sendable

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
