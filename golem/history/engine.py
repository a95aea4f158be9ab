"""The rules of repair: which result answers which call, and what becomes of the rest.

The engine is push: `Engine.take` takes one message and gives back those that nothing later can
change any more. It remembers the window from the oldest call that is still open, no more. The
rules are the contract's §2.1; each stands where it is applied. The public forms, and what they
need not trouble the engine with, are in ``golem.history.repair``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from operator import length_hint
from typing import Any, Final

from golem.faults import fault_of
from golem.history.report import Change, ChangeKind, HistoryRepair
from golem.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    not_a_message,
)
from golem.rawjson import clean_text

NO_RESULT: Final = (
    "Tool call was interrupted before execution; no result was produced. "
    "Call the tool again if you need its result."
)
"""The text of a synthesized result. Fixed for ever: it is part of prompts that are cached."""

PLAIN: Final = (UserMessage, AssistantMessage, SystemMessage)


class Engine:
    """Repair of one history, a message at a time; with `reporting` off nothing is noted.

    `open` has the turns whose calls wait for a result, by id; `pairs` is filled where somebody puts
    a table there.
    """

    def __init__(self, *, reporting: bool = True) -> None:
        self._reporting = reporting
        self.open: dict[str, _Turn] = {}
        self.pairs: dict[int, list[int]] | None = None
        self._window: deque[list[Message] | _Turn] = deque()
        self._batch: _Turn | None = None  # the turn whose results may stand here
        self._taken = 0
        self._given = 0
        self._changes: list[Change] = []

    @property
    def report(self) -> HistoryRepair:
        """What was changed in the messages returned so far, and which results were dropped."""
        return HistoryRepair.of(self._changes)

    def take(self, message: Message) -> list[Message]:
        """Take the next message; the messages that are settled now.

        Raises HistoryError when it is no message or malformed; nothing was taken then.
        """
        if type(message) is ToolMessage:
            return self._answer(message)
        if type(message) is AssistantMessage and message.tool_calls:
            return self._ask(message)
        if type(message) not in PLAIN:
            raise not_a_message(message, self._taken)
        return self.take_whole([message])

    def close(self) -> list[Message]:
        """The rest of the history: what is unanswered now stays unanswered."""
        self.open.clear()
        for item in self._window:
            if type(item) is _Turn:
                item.waiting = 0
        return self._settle()

    def take_all(self, messages: list[Message]) -> list[Message]:
        """Take all of these, in a list that is the engine's now; the messages settled by then."""
        settled: list[Message] = []
        ahead = iter(messages)
        start, end = 0, len(messages)
        while doubt := _pass_sound(ahead, self.open):
            doubtful, behind = doubt
            reached = end - length_hint(ahead)
            sound = reached - (1 if behind is None else 2)  # `behind` may be the same object again
            while messages[sound] is not doubtful:
                sound -= 1
            if sound > start:
                settled += self.take_whole(messages[start:sound])
            for message in messages[sound:reached]:
                settled += self.take(message)
            start = reached
        rest = self.take_whole(messages[start:] if start else messages)
        return settled + rest if settled else rest

    def take_whole(self, messages: list[Message]) -> list[Message]:
        """Take what needs no repair: messages that ask for nothing, and turns with their results.

        The results stand in call order, and none of the ids is open. The list is the engine's now,
        unless it comes back.
        """
        self._taken += len(messages)
        self._batch = None
        window = self._window
        if window:
            if type(window[-1]) is list:
                window[-1] += messages
            else:
                window.append(messages)
            return []
        self._given += len(messages)
        return messages

    def _ask(self, message: AssistantMessage) -> list[Message]:
        """Rule 1: an assistant message opens its calls that have an id."""
        if not _are_calls(message.tool_calls):
            self._require_sound(message)
        turn = _Turn(message, self._taken)
        opened, unanswered = self.open, turn.unanswered
        for call in message.tool_calls:
            call_id = call.id
            if not call_id:
                turn.blank += 1
                continue
            if earlier := opened.get(call_id):  # rule 4: reused, so it ends unanswered there
                earlier.waiting -= 1
            opened[call_id] = turn
            turn.waiting += 1
            unanswered[call_id] = unanswered.get(call_id, 0) + 1
        self._taken += 1
        self._batch = turn
        self._window.append(turn)
        return self._settle()

    def _answer(self, message: ToolMessage) -> list[Message]:
        """Rules 1, 3, 5 and 6: what becomes of a result."""
        call_id: Any = message.tool_call_id
        tool_name: Any = message.tool_name
        if not (isinstance(call_id, str) and isinstance(tool_name, str)):
            self._require_sound(message)
        turn = self.open.get(call_id) if call_id else self._batch
        index, self._taken = self._taken, self._taken + 1
        if turn is None or not turn.takes(call_id):
            # Rules 1, 3 and 6: answered before, asked nowhere before, or unpairable.
            self._note("dropped", call_id, tool_name, index)
            return []
        if self.pairs is not None:
            self.pairs.setdefault(turn.index, []).append(index)
        if call_id and call_id not in turn.unanswered:
            del self.open[call_id]
            turn.waiting -= 1
        if turn.settled:  # only an id-less result can still come to a settled turn
            self._given += 1
            return [message]
        if turn is not self._batch:
            turn.moved.append((len(turn.results), index))
        turn.results.append(message)
        return [] if turn.waiting else self._settle()

    def _require_sound(self, message: Message) -> None:
        """Raise HistoryError where the next message is malformed, before any of it counts."""
        if fault := fault_of(message, self._taken):
            raise fault

    def _settle(self) -> list[Message]:
        """Give out the window up to the first turn that still waits for a result."""
        settled: list[Message] = []
        window = self._window
        while window:
            item = window[0]
            if not isinstance(item, _Turn):
                settled += item
            elif item.waiting:
                break
            else:
                self._write(item, settled)
            window.popleft()
        self._given += len(settled)
        return settled

    def _write(self, turn: _Turn, settled: list[Message]) -> None:
        """Write a turn out: the asking message, synthesized results, then the real ones."""
        place = self._given + len(settled)
        turn.settled = True
        settled.append(turn.message)
        for call in turn.message.tool_calls:
            if type(call.raw) is str:  # truncated
                self._note("truncated", call.id, call.name, turn.index, place)
        for call in turn.without_result():  # rule 2
            place = self._given + len(settled)
            settled.append(no_result(call))
            self._note("synthesized", call.id, call.name, turn.index, place)
        place = self._given + len(settled)
        for offset, index in turn.moved:  # rule 5
            result = turn.results[offset]
            self._note("moved", result.tool_call_id, result.tool_name, index, place + offset)
        settled += turn.results

    def _note(
        self, kind: ChangeKind, call_id: str, tool: str, given: int, returned: int | None = None
    ) -> None:
        if self._reporting:
            if not (call_id.isascii() and tool.isascii()):
                call_id, tool = clean_text(call_id), clean_text(tool)
            self._changes.append(Change(kind, call_id, tool, given, returned))


def is_sound(messages: Iterable[Message]) -> bool:
    """Whether repair would find nothing in `messages`, none of which is malformed."""
    return _pass_sound(iter(messages), ()) is None


def _pass_sound(ahead: Iterator[Any], opened: Container[str]) -> tuple[object, object] | None:
    """Read on while nothing needs repair; None at the end.

    Otherwise the message from which on something may, and, where that is a turn, the last message
    that was read behind it; None where there was no more.

    A turn whose results stand right behind it in call order is sound whatever surrounds it, as
    long as none of its ids is open. What is malformed, or only as good as text, is doubtful.
    """
    # At this pace it pays to look up once what is asked for again and again.
    user, assistant, tool, system = UserMessage, AssistantMessage, ToolMessage, SystemMessage
    kind, text, some_open = type, str, bool(opened)
    for message in ahead:
        role = kind(message)  # pyright: ignore[reportUnknownVariableType]
        if role is assistant:
            calls: tuple[ToolCall, ...] = message.tool_calls
            if not calls:
                continue
            if kind(calls) is not tuple:
                return message, None
            for call in calls:
                result: Any = next(ahead, None)
                call_id = call.id
                if (
                    kind(result) is not tool
                    or result.tool_call_id != call_id
                    or kind(call_id) is not text
                    or kind(call.raw) is text
                    or kind(call.name) is not text
                    or kind(result.tool_name) is not text
                    or (some_open and call_id in opened)
                ):
                    return message, result
        elif role is not user and role is not system:
            return message, None
    return None


def _are_calls(calls: Any) -> bool:
    """Whether calls are of the types that pairing relies on; the other members it never reads."""
    items: Sequence[Any] = calls
    if not isinstance(calls, (tuple, list)):
        return False
    for call in items:  # spelled out: a generator costs more than all it would look at
        if not (
            isinstance(call, ToolCall)
            and isinstance(call.id, str)  # pyright: ignore[reportUnnecessaryIsInstance]
            and isinstance(call.name, str)  # pyright: ignore[reportUnnecessaryIsInstance]
        ):
            return False
    return True


class _Turn:
    """An assistant message that asked for tools, and what became of its calls."""

    __slots__ = (
        "blank",
        "index",
        "message",
        "moved",
        "results",
        "settled",
        "unanswered",
        "waiting",
    )

    def __init__(self, message: AssistantMessage, index: int) -> None:
        self.message = message
        self.index = index
        self.results: list[ToolMessage] = []
        self.moved: list[tuple[int, int]] = []  # place in `results`, index in the given history
        self.unanswered: dict[str, int] = {}  # how many calls of that id have no result
        self.waiting = 0  # ids whose result may still come
        self.blank = 0  # id-less calls that no id-less result has passed for
        self.settled = False

    def takes(self, call_id: str) -> bool:
        """Whether a result of `call_id` belongs here; if so, count it."""
        if not call_id:  # rule 6: at most as many as there are id-less calls
            self.blank -= 1
            return self.blank >= 0
        left = self.unanswered[call_id] - 1
        if left:
            self.unanswered[call_id] = left
        else:
            del self.unanswered[call_id]
        return True

    def without_result(self) -> list[ToolCall]:
        """The calls that got no result, in call order; of one id repeated, the last ones."""
        if not self.unanswered:
            return []
        calls, left = self.message.tool_calls, dict(self.unanswered)
        if len(left) == len(calls):
            return list(calls)
        found: list[ToolCall] = []
        for call in reversed(calls):
            if left.get(call.id):
                left[call.id] -= 1
                found.append(call)
        return found[::-1]


def no_result(call: ToolCall) -> ToolMessage:
    """The neutral result of a call that has none: no failure, no identity, no time (rule 2)."""
    return ToolMessage(NO_RESULT, tool_call_id=call.id, tool_name=call.name)
