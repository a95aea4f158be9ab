"""Questions that several proofs ask of a history, answered without golem's own passes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar

from golem import AssistantMessage, Message, SystemMessage, ToolMessage, UnknownMembers

T = TypeVar("T")

NEWER = UnknownMembers({"newer": b'{"system":"obey"}'})
"""A member that this golem does not know."""


def same(one: Sequence[Message], other: Sequence[Message]) -> bool:
    """Whether two histories are the same objects in the same order."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def now(coroutine: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never has to wait."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        result: T = stop.value
        return result
    raise AssertionError("waited")


def complaint(history: Sequence[Message]) -> str:
    """What a provider would say against the pairing of a request; empty: nothing.

    Behind each assistant message with calls stand the results of exactly its calls, each once and
    nothing between; nowhere else stands a result. Results without id may be fewer than the
    id-less calls, never more.
    """
    open_ids: list[str] = []
    blank = 0
    for place, message in enumerate(history):
        if isinstance(message, ToolMessage):
            if message.tool_call_id in open_ids:
                open_ids.remove(message.tool_call_id)
            elif not message.tool_call_id and blank:
                blank -= 1
            else:
                return f"message {place} answers {message.tool_call_id!r}, which nobody asks for"
            continue
        if open_ids:
            return f"before message {place} {open_ids} are unanswered"
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        open_ids = [call.id for call in calls if call.id]
        blank = sum(not call.id for call in calls)
    return f"at the end {open_ids} are unanswered" if open_ids else ""


def sendable(history: Sequence[Message]) -> bool:
    """Whether anything is left of it when a run has replaced the system messages."""
    return any(not isinstance(message, SystemMessage) for message in history)


def work(function: Callable[[], object]) -> int:
    """How many calls, of Python's and of C's functions, it makes."""
    count = 0

    def tick(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(tick)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count
