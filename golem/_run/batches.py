"""One batch of tool calls: what runs together, which results it has, what decides it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from golem._run.commands import Canceled, Crashed, Deferred, Failed, Outcome, Rejected, Returned
from golem.deferral import NOTHING_PENDING, Pending, PendingCall
from golem.errors import ModelRetry
from golem.history.repair import no_result
from golem.messages import ToolCall, ToolMessage

Rejections = Counter[tuple[str, bool]]
"""Calls rejected so far, by tool name and by whether the tool itself refused."""


class Batch:
    """The calls of one turn and what has become of them so far, by place in the batch.

    Calls run in groups (`groups`); outcomes come in any order within a group and are judged in
    call order once it is over (`settle`). The first that cannot stand as a result decides the
    batch: `failure` (the run fails) or `stopped_by` (a tool stopped the run); what was deferred
    before that waits in `pending`.
    """

    def __init__(self, calls: Sequence[ToolCall], rejections: Rejections) -> None:
        self.calls = calls
        self.failure: tuple[ToolCall, Exception] | None = None
        self.stopped_by: tuple[ToolCall, Canceled] | None = None
        self._rejections = rejections
        self._outcomes: dict[int, Outcome] = {}
        self._made: dict[int, ToolMessage] = {}
        self._judged = 0

    def groups(self, together: Callable[[ToolCall], bool]) -> list[list[int]]:
        """Places that run concurrently: maximal runs of calls that may run `together`."""
        groups: list[list[int]] = []
        joinable = False
        for place, call in enumerate(self.calls):
            joining = together(call)
            if joinable and joining:
                groups[-1].append(place)
            else:
                groups.append([place])
            joinable = joining
        return groups

    def doomed(self, checked: Sequence[object]) -> int | None:
        """The place of the first call that is known to end the run before anything has run.

        `checked` is what the check of each call came to. A call that may not be corrected any more
        is judged at once, without those before it: their effects would be for nothing.
        """
        refused = [
            n for n, outcome in enumerate(checked) if isinstance(outcome, (Crashed, Rejected))
        ]
        if not refused:  # nearly always
            return None
        counted = self._rejections.copy()
        for place in refused:
            key, outcome = (self.calls[place].name, False), checked[place]
            if not isinstance(outcome, Rejected) or counted[key] >= outcome.budget:
                self._rejections.update(counted - self._rejections)
                self._judged = place
                return place
            counted[key] += 1
        return None

    @property
    def decided(self) -> bool:
        """Whether nothing further of this batch may start."""
        return self.failure is not None or self.stopped_by is not None

    @property
    def complete(self) -> bool:
        """Whether nothing more is to be recorded."""
        return self.decided or self._judged == len(self.calls)

    def record(self, place: int, outcome: Outcome) -> None:
        """Take the outcome of the call at `place`; it is evidence from here on.

        Raises TypeError for a call that has one, or that nothing was asked of any more.
        """
        if place in self._outcomes or self.complete or not 0 <= place < len(self.calls):
            raise TypeError(f"no outcome is due for call {place} of the batch")
        self._outcomes[place] = outcome
        if isinstance(outcome, (Returned, Failed, Rejected)):
            self._made[place] = _result(self.calls[place], outcome)

    def outcome(self, place: int) -> Outcome | None:
        """What the call at `place` came to, if it has."""
        return self._outcomes.get(place)

    def settle(self) -> None:
        """Judge, in call order, what has been recorded."""
        while self._judged in self._outcomes and not self.decided:
            self._judge(self.calls[self._judged], self._outcomes[self._judged])
            self._judged += 1

    def result(self, place: int) -> ToolMessage | None:
        """The result of the call at `place`, if its outcome is one."""
        return self._made.get(place)

    @property
    def results(self) -> dict[int, ToolMessage]:
        """The results that count, by place, in call order: those before what decided the batch."""
        end = self._judged - 1 if self.decided else self._judged
        return {place: result for place in range(end) if (result := self.result(place))}

    @property
    def beside(self) -> dict[int, ToolMessage]:
        """Results that exist and do not count, by place: of calls after what stopped the run."""
        places = [place for place in sorted(self._outcomes) if place >= self._judged]
        return {place: result for place in places if (result := self.result(place))}

    @property
    def evidence(self) -> list[ToolMessage]:
        """Every result there is, in call order, whatever becomes of the batch."""
        last = self._judged - 1 if self.failure is not None else -1
        places = [place for place in sorted(self._outcomes) if place != last]
        return [result for place in places if (result := self.result(place))]

    @property
    def pending(self) -> Pending:
        """What the batch waits for."""
        calls = [
            PendingCall(outcome.kind, call.id, call.name, call.args, outcome.reason)
            for place, call in enumerate(self.calls)
            if isinstance(outcome := self._outcomes.get(place), Deferred)
        ]
        if not calls:
            return NOTHING_PENDING
        return Pending(
            approvals=tuple(call for call in calls if call.kind == "approval"),
            external=tuple(call for call in calls if call.kind == "external"),
        )

    def close(self) -> dict[int, ToolMessage]:
        """The results that count, and behind them one for each call that has none, by place."""
        results = self.results
        open_calls = {n: no_result(c) for n, c in enumerate(self.calls) if n not in results}
        return results | open_calls

    def _judge(self, call: ToolCall, outcome: Outcome) -> None:
        if isinstance(outcome, Canceled):
            self.stopped_by = call, outcome
        elif isinstance(outcome, Crashed):
            self.failure = call, outcome.error
        elif isinstance(outcome, Rejected) and not self._may_correct(call, outcome):
            self.failure = call, ModelRetry(outcome.reason)

    def _may_correct(self, call: ToolCall, outcome: Rejected) -> bool:
        # The function's own refusals and golem's have a budget each (contract §4.5).
        key = call.name, outcome.by_tool
        self._rejections[key] += 1
        return self._rejections[key] <= outcome.budget


def _result(call: ToolCall, outcome: Returned | Failed | Rejected) -> ToolMessage:
    if isinstance(outcome, Returned):
        return ToolMessage(
            outcome.text, parts=outcome.parts, tool_call_id=call.id, tool_name=call.name
        )
    failed = isinstance(outcome, Failed)
    text = outcome.reason if isinstance(outcome, Failed) else outcome.text
    return ToolMessage(text, tool_call_id=call.id, tool_name=call.name, failed=failed)
