"""Bounding: history processors that keep the newest part of a conversation (contract §2.4).

Both cut only where a request can open, and both are stateless: the cut depends on the history
alone. With a low-water mark they cut in steps, so that the cut stays where it is for many turns of
a growing conversation and providers' prompt caches hold.
"""

from __future__ import annotations

import operator
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, Final, Protocol

from golem.errors import HistoryError
from golem.faults import checked
from golem.history.limits import at_least
from golem.messages import AssistantMessage, Message, ToolMessage, UserMessage


class TokenCounter(Protocol):
    """Counts tokens as one provider's tokenizer does; the port of `budget_history`.

    `tools` are the tool specs of a request; their tokens count too where they are given.
    """

    async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
        """How many tokens a request with these messages has."""
        ...


def trim_history(
    max_messages: int, *, low_water: int | None = None
) -> Callable[[Iterable[Message]], list[Message]]:
    """A history processor that keeps the newest `max_messages` messages.

    A history that is not longer is returned as it is. Else the cut advances past anything that
    cannot open a request: a tool result, an assistant turn with tool calls. System messages count
    like any other.

    With `low_water` the cut is made in steps, so that what is sent begins alike for many turns: at
    the first place that can open a request from a multiple of ``max_messages + 1 - low_water`` on,
    counted from the front; of these the smallest that brings the history within its limit. A
    history that is passed whole every time has its cut moved once per step. One that is handed on
    as it was cut is cut when it passes the limit again: at most `low_water` and as many messages
    as the limit is passed by, less one, are left then. Where nothing opens from there on, the last
    place before it that can is taken.

    The processor raises HistoryError, naming the length, when nothing would be left.

    Raises:
        ValueError: `max_messages` no integer or below 1, `low_water` not between 1 and that.
    """
    _check_limits("max_messages", max_messages, low_water)
    step = 1 if low_water is None else max_messages + 1 - low_water

    def trim(history: Iterable[Message]) -> list[Message]:
        messages = checked(history)
        excess = len(messages) - max_messages
        if excess <= 0:
            return messages
        cut = -(-excess // step) * step
        openings = list(_openings(messages, excess))
        if not openings:
            raise _nothing_left(len(messages))
        return messages[next((place for place in openings if place >= cut), openings[-1]) :]

    return trim


def budget_history(
    counter: TokenCounter, max_tokens: int, *, low_water: int | None = None
) -> Callable[[Iterable[Message]], Awaitable[list[Message]]]:
    """A history processor that keeps the newest suffix of at most `max_tokens` tokens.

    A history that fits is returned as it is; the cut obeys the rule of `trim_history`. The
    counter is asked O(log n) times.

    With `low_water` the cut is made in steps, as that of `trim_history` is, here of
    ``max_tokens + 1 - low_water`` tokens: at the first place that can open a request and has a
    multiple of that before it. Messages are not divided, so that a cut may leave fewer. Where the
    counter does not add up (what a step leaves is over the limit), the rule without it applies.

    The processor raises HistoryError when the newest turn that can open a request is alone too
    large (naming what it needs), when nothing can, or when the counter fails (chained).

    Raises:
        ValueError: No counter, `max_tokens` no integer or below 1, `low_water` not between 1 and
            that.
    """
    if counter is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise ValueError("budget_history needs a counter")
    _check_limits("max_tokens", max_tokens, low_water)

    async def budget(history: Iterable[Message]) -> list[Message]:
        messages = checked(history)
        if not messages:  # providers' counters refuse an empty request
            return messages
        total = await _count(counter, messages, 0, len(messages))
        if total <= max_tokens:
            return messages
        openings = list(_openings(messages, 1))
        if not openings:
            raise _nothing_left(len(messages))
        if low_water is not None:
            step = max_tokens + 1 - low_water
            due = -(-(total - max_tokens) // step) * step
            stepped = await _first_after(counter, messages, openings, due)
            left = messages[stepped:]
            if left and await _count(counter, left, 0, len(left)) <= max_tokens:
                return left
        return messages[await _first_fitting(counter, messages, openings, max_tokens) :]

    return budget


def _openings(messages: Sequence[Message], start: int) -> Iterator[int]:
    """The places from `start` on at which a request can open.

    A run replaces system messages, so one opens only where something else is sent behind it.
    """
    sent = (i for i in reversed(range(len(messages))) if isinstance(messages[i], _SENT))
    last = next(sent, -1)
    for index in range(start, last + 1):
        message = messages[index]
        if isinstance(message, ToolMessage):
            continue
        if not (isinstance(message, AssistantMessage) and message.tool_calls):
            yield index


async def _first_fitting(
    counter: TokenCounter, messages: list[Message], openings: list[int], limit: int
) -> int:
    """The first opening whose suffix fits, by bisection: a later suffix is never larger."""
    needed = await _count(counter, messages, openings[-1], len(messages))
    if needed > limit:
        reason = f"the newest openable turn alone needs {needed} tokens, over budget {limit}"
        raise HistoryError(reason)
    low, high = 0, len(openings) - 1  # the suffix of `high` is known to fit
    while low < high:
        middle = (low + high) // 2
        if await _count(counter, messages, openings[middle], len(messages)) <= limit:
            high = middle
        else:
            low = middle + 1
    return openings[high]


async def _first_after(
    counter: TokenCounter, messages: list[Message], openings: list[int], tokens: int
) -> int:
    """The first opening with at least `tokens` before it: the same while the history grows.

    The end where there is none.
    """
    low, high = 0, len(openings)
    while low < high:
        middle = (low + high) // 2
        if await _count(counter, messages, 0, openings[middle]) >= tokens:
            high = middle
        else:
            low = middle + 1
    return openings[low] if low < len(openings) else len(messages)


async def _count(counter: TokenCounter, messages: Sequence[Message], start: int, end: int) -> int:
    """What the counter says of `messages[start:end]`."""
    try:
        counted = await counter.count_tokens(messages[start:end])
        count = operator.index(counted)
        if isinstance(counted, bool) or count < 0:
            raise ValueError(f"{type(counter).__name__} counts {counted!r:.40} tokens")
    except Exception as error:
        reason = f"counting tokens failed: {error} (messages {start} to {end - 1})"
        raise HistoryError(reason) from error
    return count


_SENT: Final = (UserMessage, AssistantMessage)


def _check_limits(name: str, limit: int, low_water: int | None) -> None:
    at_least(name, limit, 1)
    if low_water is not None:
        at_least("low_water", low_water, low_water)
        if not 1 <= low_water <= limit:
            raise ValueError(f"low_water must be between 1 and {limit}, got {low_water}")


def _nothing_left(length: int) -> HistoryError:
    return HistoryError(f"nothing in a history of {length} messages can open a request")
