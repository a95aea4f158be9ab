"""The calls of a run's open turn: what is to run, its batch, and where its results go. Pure.

How the outcomes of a batch are judged stands in ``batches``; what they mean for the run is the
machine's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from golem._run.batches import Batch, Rejections
from golem._run.resume import Resumption
from golem._run.transcript import Transcript
from golem.messages import ToolCall, ToolMessage


class Calls:
    """The calls that wait to be run, and the batch that runs them.

    `resuming`: they are those of a pending turn that somebody has approved.
    """

    def __init__(self, transcript: Transcript, resumption: Resumption | None) -> None:
        self.to_run: Sequence[ToolCall] = ()
        self.resuming = resumption is not None
        self.batches = 0
        self.closed: tuple[int, ...] = ()
        self._transcript = transcript
        self._batch: Batch | None = None
        self._beside: list[ToolMessage] = []
        self._rejections: Rejections = Counter()
        if resumption is not None:
            self.to_run = tuple(resumption.calls[place] for place in resumption.approved)
            if not self.to_run:
                self.record({})

    def start(self) -> Batch:
        """The batch of the calls that wait, to be filled."""
        if self._batch is not None:
            raise TypeError("the batch has been started")
        self._batch = Batch(self.to_run, self._rejections)
        return self._batch

    @property
    def running(self) -> Batch:
        """The batch that is running. Raises TypeError where none is."""
        if self._batch is None:
            raise TypeError("no batch is running")
        return self._batch

    def rejections(self, tool_name: str) -> int:
        """How often this run has had calls of that tool rejected."""
        if not self._rejections:
            return 0
        return self._rejections[tool_name, True] + self._rejections[tool_name, False]

    def finish(self) -> Batch:
        """The batch, which is over. Its results join the transcript.

        A failed batch contributes none and ends the transcript at its asking turn; a stopped one
        has every call closed (contract §4.4). Raises TypeError where it is not over.
        """
        batch = self.running
        if not batch.complete:
            raise TypeError("the batch is not over")
        self.batches += 1
        if batch.stopped_by is not None:
            self._close(batch)
        elif batch.failure is None:
            self.record(batch.results)
        return batch

    def stop(self) -> None:
        """Nothing more runs: what has finished is recorded, every open call is closed."""
        if self.to_run:
            batch = self._batch or Batch(self.to_run, self._rejections)
            batch.settle()
            self._close(batch)

    def record(self, results: Mapping[int, ToolMessage]) -> dict[int, int]:
        """Results of the batch that is over, by place, join the transcript in their turn.

        Where in the transcript each of them stands.
        """
        join = self._transcript.complete_turn if self.resuming else self._transcript.add_results
        self.resuming = False
        self._batch = None
        self.to_run = ()
        return join(results)

    def _close(self, batch: Batch) -> None:
        """End a batch early: every call without a result that counts is closed."""
        beside = batch.beside
        stands = self.record(batch.close())
        self._beside = [self._transcript.stamp(result) for result in beside.values()]
        self.closed = tuple(stands[place] for place in beside)

    @property
    def unrecorded(self) -> list[ToolMessage]:
        """Results that exist beside the transcript: of a batch that is not over, or failed."""
        made = self._batch.evidence if self._batch is not None else []
        answers = self._transcript.answers() if self.resuming else []
        return [*answers, *map(self._transcript.stamp, made), *self._beside]
