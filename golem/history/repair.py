"""Repair of call/result pairing, in its whole, streaming and async forms.

Providers refuse a conversation in which a tool call has no result or a result no call. What golem
does about it is in ``golem.history.engine``, what it does to a history *beside* pairing (stripping,
cutting, editing) in the other modules of this package.
"""

from __future__ import annotations

from collections.abc import AsyncIterable, AsyncIterator, Container, Iterable, Iterator, Sequence
from typing import Any

from golem.faults import messages_arriving_in, messages_in, named_faults
from golem.history.engine import NO_RESULT as NO_RESULT
from golem.history.engine import PLAIN, Engine
from golem.history.engine import no_result as no_result
from golem.history.report import HistoryRepair
from golem.messages import (
    AssistantMessage,
    Message,
    ToolCall,
    ToolMessage,
)


def normalize_history(history: Iterable[Message]) -> tuple[list[Message], HistoryRepair]:
    """`history` with its call/result pairing repaired, and the report of every change.

    Unchanged messages are the same objects. Deterministic and idempotent: a second pass changes
    nothing and reports only `truncated` again. Linear in the number of messages.

    Raises HistoryError for something in `history` that is no message, or malformed.
    """
    messages, engine = _repair_whole(history)
    return messages, engine.report


def repair(history: Iterable[Message]) -> Iterator[Message]:
    """The messages of `history` with their pairing repaired, as `normalize_history` has them.

    Any other iterable than a list or tuple is read as the result is, with no more in memory than
    the window from the oldest open call: a call that is never answered holds it to the end.
    """
    if isinstance(history, (list, tuple)):
        return iter(_repair_whole(history)[0])
    return _repair_stream(messages_in(history))


async def arepair(history: AsyncIterable[Message]) -> AsyncIterator[Message]:
    """`repair` for a history that arrives asynchronously."""
    repairer = Repairer(reporting=False)
    async for message in messages_arriving_in(history):
        for settled in repairer.feed(message):
            yield settled
    for settled in repairer.close():
        yield settled


def pairing(history: Iterable[Message]) -> dict[int, list[int]]:
    """Which results answer which turn: the asking message's place to its results' places.

    Both count in the history as given; a result that repair drops is nowhere.
    """
    engine = Engine()
    pairs = engine.pairs = dict[int, list[int]]()
    for message in messages_in(history):
        engine.take(message)
    return pairs


class Repairer:
    """Repair as messages come: feed it a history message by message, then close it.

    `feed` returns the messages that are settled by then, in order; `close` returns the rest;
    `report` says what has changed in them. One repairer serves one history: fed several
    conversations one after the other it would pair calls of one with results of the next.

    A repairer that was closed may be fed on, as a conversation grows: what it gave out is settled
    for good, and only what is new is looked at. The result is that of repairing what it gave out
    and the new messages together.

    The report grows with every change. With `reporting` off nothing is kept but the window.
    """

    def __init__(self, *, reporting: bool = True) -> None:
        self._engine = Engine(reporting=reporting)
        # A turn that is sound so far, the results that it waits for, and how many have come.
        self._turn: list[Message] = []
        self._due: Sequence[ToolCall] = ()

    @property
    def report(self) -> HistoryRepair:
        """What was changed in the messages returned so far, and which results were dropped."""
        return self._engine.report

    def feed(self, message: Message) -> list[Message]:
        """Take the next message; the messages that are settled now.

        Raises HistoryError when it is no message or malformed; nothing was taken then.
        """
        engine = self._engine
        if self._turn:
            if type(message) is ToolMessage and _answers(message, self._due[len(self._turn) - 1]):
                return self._complete(message)
            self._take_turn()
        if type(message) is AssistantMessage and (calls := message.tool_calls):
            if _are_sound(calls, engine.open):
                self._turn, self._due = [message], calls
                return []
        elif type(message) in PLAIN:
            return engine.take_whole([message])
        return engine.take(message)

    def close(self) -> list[Message]:
        """The rest of the history: what is unanswered now stays unanswered."""
        self._take_turn()
        return self._engine.close()

    def _complete(self, result: ToolMessage) -> list[Message]:
        turn = self._turn
        turn.append(result)
        if len(turn) <= len(self._due):
            return []
        self._turn = []
        return self._engine.take_whole(turn)

    def _take_turn(self) -> None:
        """Something else has come than the turn waits for: nothing of it is settled yet."""
        turn, self._turn = self._turn, []
        for message in turn:
            self._engine.take(message)


def _are_sound(calls: Any, opened: Container[str]) -> bool:
    """Whether these calls need no repair if their results come next, in order."""
    items: tuple[Any, ...] = calls
    if type(calls) is not tuple:
        return False
    for call in items:
        if type(call) is not ToolCall or type(call.raw) is str or not call.id:
            return False
        if not (type(call.id) is type(call.name) is str) or call.id in opened:
            return False
    return True


def _answers(result: ToolMessage, call: ToolCall) -> bool:
    return result.tool_call_id == call.id and (
        type(result.tool_call_id) is type(result.tool_name) is str
    )


def _repair_stream(history: Iterable[Message]) -> Iterator[Message]:
    repairer = Repairer(reporting=False)
    for message in history:
        yield from repairer.feed(message)
    yield from repairer.close()


def _repair_whole(history: Iterable[Message]) -> tuple[list[Message], Engine]:
    """Repair a history at hand: the engine sees only what stands near something wrong."""
    messages = list(messages_in(history))
    engine = Engine()
    with named_faults(messages):
        settled = engine.take_all(messages)
        settled += engine.close()
    return settled, engine
