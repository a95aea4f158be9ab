"""Every pass over histories under its name, and a few messages to put before them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from typing import Any

import pytest

from golem import (
    AssistantMessage,
    HistoryError,
    Message,
    Repairer,
    ToolCall,
    ToolMessage,
    UserMessage,
    arepair,
    dump_history,
    normalize_history,
    repair,
)
from golem.history import (
    EstimatedTokens,
    budget_history,
    drop_turn,
    edit_user,
    fork_at,
    merge,
    rewind_to,
    sanitize_history,
    seal,
    trim_history,
    turns,
    verify,
)
from golem.history.repair import pairing
from tests.history.checks import now

KEY = b"k" * 16

Pass = Callable[[Iterable[Message]], object]


def _arepair(history: Iterable[Message]) -> list[Message]:
    async def given() -> AsyncIterator[Message]:
        for message in history:
            yield message

    async def collect() -> list[Message]:
        return [message async for message in arepair(given())]

    return now(collect())


def _feed(history: Iterable[Message]) -> list[Message]:
    repairer = Repairer()
    settled = [message for given in history for message in repairer.feed(given)]
    return settled + repairer.close()


PASSES: dict[str, Pass] = {
    "normalize": normalize_history,
    "repair": lambda history: list(repair(history)),
    "arepair": _arepair,
    "feed": _feed,
    "pairing": pairing,
    "sanitize": sanitize_history,
    "sanitize strictly": lambda history: sanitize_history(
        history,
        allowed_hosts=["a.example"],
        block_private_hosts=True,
        max_bytes=10**9,
        strip_identity=True,
        strip_thinking=True,
    ),
    "trim": lambda history: trim_history(1)(history),
    "trim nothing": lambda history: trim_history(10**9)(history),
    "budget": lambda history: now(budget_history(EstimatedTokens(), 10)(history)),
    "turns": lambda history: list(turns(history)),
    "fork": lambda history: fork_at(history, 1),
    "rewind": lambda history: rewind_to(history, 0),
    "rewind to run": lambda history: rewind_to(history, "r"),
    "edit": lambda history: edit_user(history, 0, "x"),
    "drop turn": lambda history: drop_turn(history, 1),
    "merge": lambda history: merge([UserMessage("x")], history),
    "seal": lambda history: seal(history, KEY),
    "verify": lambda history: verify(history, KEY),
    "dump": dump_history,
}

every_pass = pytest.mark.parametrize("function", PASSES.values(), ids=PASSES)

USER = UserMessage("u", run_id="r")
CALL = AssistantMessage(tool_calls=(ToolCall.of("c", "f", "{}"),))
RESULT = ToolMessage("r", tool_call_id="c", tool_name="f")


def error_of(function: Pass, history: Iterable[Message]) -> HistoryError | None:
    """What a pass says against a history, if anything."""
    try:
        function(history)
    except HistoryError as error:
        return error
    return None


async def collected(messages: AsyncIterator[Message]) -> list[Message]:
    """All of them."""
    return [message async for message in messages]


DIRECTLY: dict[Pass, Any] = {
    _arepair: lambda given: now(collected(arepair(given))),
    _feed: lambda given: list(repair(given)),
}
"""For the helpers of this file that read a history themselves: what they stand for."""
