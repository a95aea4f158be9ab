"""Bounding: history processors that keep the newest part of a conversation (contract §2.4).

Both cut only where a request can open, and both are stateless: the cut depends on the history
alone. With a low-water mark they cut in steps, so that the cut stays where it is for many turns of
a growing conversation and providers' prompt caches hold.
"""

from __future__ import annotations

import math
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


class EstimatedTokens:
    """A counter without a tokenizer: an upper-end estimate, cheap and deterministic.

    UTF-8 bytes divided by `bytes_per_token` (3: English prose has 4 to 5, JSON and code 3, most
    other scripts more than 3), plus `per_message` for each message's framing and `per_part` for
    each piece of media, whatever its size. Use the provider's own counter where a bound is hard.
    """

    def __init__(
        self, *, bytes_per_token: float = 3.0, per_message: int = 4, per_part: int = 1000
    ) -> None:
        if not 0 < bytes_per_token < math.inf:
            raise ValueError(f"bytes_per_token must be positive, got {bytes_per_token}")
        self._bytes_per_token = bytes_per_token
        self._per_message = per_message
        self._per_part = per_part

    async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
        """The estimate; `tools` count by the length of their repr."""
        length = sum(map(_text_bytes, messages)) + sum(len(repr(tool)) for tool in tools)
        media = sum(len(getattr(message, "parts", ())) for message in messages)
        framing = self._per_message * len(messages) + self._per_part * media
        return framing + round(length / self._bytes_per_token)


def trim_history(
    max_messages: int, *, low_water: int | None = None
) -> Callable[[Iterable[Message]], list[Message]]:
    """A history processor that keeps the newest `max_messages` messages.

    A history that is not longer is returned as it is. Else the cut advances past anything that
    cannot open a request: a tool result, an assistant turn with tool calls. With `low_water` the
    first cut leaves that many, and no other is made until the limit is passed again; where
    nothing can open there, the last place before it that can is taken.

    The processor raises HistoryError, naming the length, when nothing would be left.

    Raises:
        ValueError: `max_messages` below 1, `low_water` not between 1 and `max_messages`.
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
    counter is asked O(log n) times. With `low_water` the first cut leaves about that many tokens
    (messages are not divided), and no other is made until the limit is passed again.

    The processor raises HistoryError when the newest turn that can open a request is alone too
    large (naming what it needs), when nothing can, or when the counter fails (chained).

    Raises:
        ValueError: No counter, `max_tokens` below 1, `low_water` not between 1 and `max_tokens`.
    """
    if counter is None:  # pyright: ignore[reportUnnecessaryComparison]
        raise ValueError("budget_history needs a counter")
    _check_limits("max_tokens", max_tokens, low_water)

    async def budget(history: Iterable[Message]) -> list[Message]:
        messages = checked(history)
        if not messages:  # providers' counters refuse an empty request
            return messages
        total = await _count(counter, messages)
        if total <= max_tokens:
            return messages
        openings = list(_openings(messages, 1))
        if not openings:
            raise _nothing_left(len(messages))
        if low_water is not None:
            step = max_tokens + 1 - low_water
            due = -(-(total - max_tokens) // step) * step
            stepped = await _first_after(counter, messages, openings, due)
            if stepped is not None and await _count(counter, messages[stepped:]) <= max_tokens:
                return messages[stepped:]
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
    needed = await _count(counter, messages[openings[-1] :])
    if needed > limit:
        reason = f"the newest openable turn alone needs {needed} tokens, over budget {limit}"
        raise HistoryError(reason)
    low, high = 0, len(openings) - 1  # the suffix of `high` is known to fit
    while low < high:
        middle = (low + high) // 2
        if await _count(counter, messages[openings[middle] :]) <= limit:
            high = middle
        else:
            low = middle + 1
    return openings[high]


async def _first_after(
    counter: TokenCounter, messages: list[Message], openings: list[int], tokens: int
) -> int | None:
    """The first opening with at least `tokens` before it: the same while the history grows."""
    low, high = 0, len(openings)
    while low < high:
        middle = (low + high) // 2
        if await _count(counter, messages[: openings[middle]]) >= tokens:
            high = middle
        else:
            low = middle + 1
    return openings[low] if low < len(openings) else None


async def _count(counter: TokenCounter, messages: Sequence[Message]) -> int:
    try:
        count = operator.index(await counter.count_tokens(messages))
    except Exception as error:
        raise HistoryError(f"counting tokens failed: {error}") from error
    if count < 0:
        raise HistoryError(f"counting tokens failed: {count} tokens")
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


def _text_bytes(message: Message) -> int:
    length = _size(message.content)
    if isinstance(message, AssistantMessage):
        length += sum(_size(call.name) + _size(call.args) for call in message.tool_calls)
        length += sum(_size(block.text) for block in message.thinking)
    return length


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))
