"""Counters that count what they are told to, and messages for them to count."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from golem import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from golem.history import TokenCounter, budget_history
from tests.history.checks import now

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
    """A cost: the bytes of what a message says."""
    return len(message.content.encode())


def budget(
    history: Iterable[Message], limit: int, counter: TokenCounter | None = None, **options: Any
) -> list[Message]:
    """What `budget_history` makes of a history, one token a message if not told otherwise."""
    counter = Counter() if counter is None else counter
    processed = budget_history(counter, limit, **options)(history)
    assert inspect.iscoroutine(processed)
    return now(processed)
