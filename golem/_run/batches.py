"""One batch of tool calls: which results it has, and what decides it. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from golem._run.commands import Canceled, Crashed, Failed, Outcome, Rejected, Returned
from golem.errors import ModelRetry
from golem.history.repair import no_result
from golem.messages import ToolCall, ToolMessage


class Batch:
    """The calls of one turn and what has become of them so far.

    Outcomes are recorded in call order. The first that cannot stand as a result decides the
    batch: `failure` (the run fails) or `stopped_by` (a tool stopped the run).
    """

    def __init__(self, calls: Sequence[ToolCall], rejections: Counter[tuple[str, bool]]) -> None:
        self.calls = calls
        self.results: list[ToolMessage] = []
        self.failure: tuple[ToolCall, Exception] | None = None
        self.stopped_by: tuple[ToolCall, Canceled] | None = None
        self._rejections = rejections
        self._recorded = 0
        self._answered: set[int] = set()

    @property
    def complete(self) -> bool:
        """Whether nothing more is to be recorded."""
        return self.decided or self._recorded == len(self.calls)

    @property
    def decided(self) -> bool:
        """Whether nothing further of this batch may start."""
        return self.failure is not None or self.stopped_by is not None

    def record(self, call: ToolCall, outcome: Outcome) -> ToolMessage | None:
        """Take the outcome of the next call; its result, unless the outcome decides the batch.

        Raises TypeError for any other call: outcomes out of order would pair with wrong calls.
        """
        if self.complete or call is not self.calls[self._recorded]:
            raise TypeError(f"call {call.id!r} is not the one whose outcome is due")
        position, self._recorded = self._recorded, self._recorded + 1
        if isinstance(outcome, Canceled):
            self.stopped_by = call, outcome
            return None
        if isinstance(outcome, Crashed):
            self.failure = call, outcome.error
            return None
        if isinstance(outcome, Rejected) and not self._may_correct(call, outcome):
            self.failure = call, ModelRetry(outcome.reason)
            return None
        result = _result(call, outcome)
        self._answered.add(position)
        self.results.append(result)
        return result

    def close(self) -> list[ToolMessage]:
        """Results for the calls that have none, in call order: the run stops here."""
        return [
            no_result(call)
            for position, call in enumerate(self.calls)
            if position not in self._answered
        ]

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
