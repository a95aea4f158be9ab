"""Resuming a paused run: which calls are pending, and what their answers make of them. Pure.

Pending are the unanswered calls of the last turn that has calls (contract §4.6).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from msgspec.structs import replace

from golem.deferral import Approval, DeferredResults, denial
from golem.errors import HistoryError
from golem.history.edit import Turn, turns
from golem.history.repair import no_result
from golem.messages import AssistantMessage, Message, Part, ToolCall, ToolMessage
from golem.rawjson import clean_text
from golem.tools import ToolResult

Unresolved = Literal["error", "interrupt"]


@dataclass(frozen=True, slots=True)
class Resumption:
    """The pending turn of a history and its answers.

    `asking` is the turn's message. `calls` have an entry in `results` each, in call order: a
    result that was there already, one that an answer gave (unstamped), or None where the call
    has been approved and has yet to run. `answered` are the places of the second kind.
    """

    asking: AssistantMessage
    calls: Sequence[ToolCall]
    results: Sequence[ToolMessage | None]
    answered: frozenset[int]

    @property
    def approved(self) -> list[int]:
        """The places of the calls that run now."""
        return [place for place, result in enumerate(self.results) if result is None]


def pending_calls(history: Sequence[Message]) -> list[ToolCall]:
    """The calls of a history that wait for an answer, in call order."""
    turn = _last_asking(history)
    if turn is None:
        return []
    return [call for call, result in _pairs(turn) if result is None and call.id]


def check_answers(
    history: Sequence[Message], answers: DeferredResults, unresolved: Unresolved
) -> None:
    """Raise HistoryError unless each pending call is answered once and nothing else is."""
    pending = {call.id: call for call in pending_calls(history)}
    if not pending:
        raise HistoryError("no pending tool call to resolve")
    for call_id in answers.approvals:
        if call_id in answers.external:
            reason = f"tool call {call_id!r} is resolved as both an approval and an external result"
            raise HistoryError(reason)
    given = [*answers.approvals, *answers.external]
    for call_id in given:
        if call_id not in pending:
            raise HistoryError(f"tool call {call_id!r} is not pending")
    for call_id, answer in answers.external.items():
        for part in answer.parts if isinstance(answer, ToolResult) else ():
            try:
                part.validate()
            except (AttributeError, ValueError) as error:
                raise HistoryError(f"external result of {call_id!r}: {error}") from error
    for call_id, call in pending.items():
        if unresolved == "error" and call_id not in given:
            raise HistoryError(f"pending tool call {call_id!r} ({call.name}) has no resolution")


def resume(
    history: Sequence[Message], answers: DeferredResults, unresolved: Unresolved
) -> tuple[list[Message], Resumption]:
    """The history with its pending turn complete, and what stands in that turn.

    The results stand directly behind the asking message, in call order; a neutral one holds the
    place of each that has yet to be made. Raises HistoryError as `check_answers` does.
    """
    check_answers(history, answers, unresolved)
    turn = _last_asking(history)
    assert turn is not None  # noqa: S101 - something is pending
    # A call without an id can neither be answered nor be pending: it stays as it is.
    pairs = [(call, result) for call, result in _pairs(turn) if call.id or result is not None]
    results = [result or _answer(call, answers) for call, result in pairs]
    resumption = Resumption(
        turn.message,
        tuple(call for call, _ in pairs),
        tuple(results),
        frozenset(n for n, (_, had) in enumerate(pairs) if had is None and results[n] is not None),
    )
    complete = [
        result or no_result(call) for call, result in zip(resumption.calls, results, strict=True)
    ]
    gone = set(turn.result_indexes)
    whole: list[Message] = []
    for place, message in enumerate(history):
        if place not in gone:
            whole.append(message)
        if place == turn.index:
            whole += complete
    return whole, resumption


def _last_asking(history: Sequence[Message]) -> Turn | None:
    last = None
    for turn in turns(history):
        if turn.message.tool_calls:
            last = turn
    return last


def _pairs(turn: Turn) -> list[tuple[ToolCall, ToolMessage | None]]:
    """Each call with its result; of an id that repeats, in order."""
    left = list(turn.results)
    pairs: list[tuple[ToolCall, ToolMessage | None]] = []
    for call in turn.message.tool_calls:
        found = next((result for result in left if result.tool_call_id == call.id), None)
        if found is not None:
            left.remove(found)
        pairs.append((call, found))
    return pairs


def _answer(call: ToolCall, answers: DeferredResults) -> ToolMessage | None:
    """The result an answer gives at once; None: the call has been approved."""
    if call.id in answers.external:
        given = answers.external[call.id]
        text, parts = (given.text, given.parts) if isinstance(given, ToolResult) else (given, ())
        return _message(call, clean_text(text), tuple(parts))
    if call.id not in answers.approvals:
        return no_result(call)
    said = answers.approvals[call.id]
    approval = said if isinstance(said, Approval) else Approval(said)
    if approval.approved:
        return None
    return _message(call, denial(clean_text(approval.reason)))


def _message(call: ToolCall, text: str, parts: tuple[Part, ...] = ()) -> ToolMessage:
    return replace(no_result(call), content=text, parts=parts)
