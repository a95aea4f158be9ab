"""What a run leaves behind: its result, or the evidence of one that did not reach its answer.

Values only; the run's machine makes them.
"""

from __future__ import annotations

from typing import Annotated, Generic, TypeVar

from msgspec import Meta, Struct, field

from golem.deferral import NOTHING_PENDING, Pending
from golem.history.report import NOTHING_REPAIRED, HistoryRepair
from golem.messages import Message, ToolMessage
from golem.model import FinishReason
from golem.usage import Usage

OutputT = TypeVar("OutputT")


class Result(Struct, Generic[OutputT], frozen=True, rename="camel"):
    """A run that reached its answer, or paused for one of its calls (contract §4.1, §4.6).

    A paused run has something in `pending` and no output (None).

    `messages` is the canonical transcript, ready to be the next run's ``history=``: the
    instructions first (as a system message without identity, if there are any), the repaired
    history, what the run added. `new_messages` is what the run added alone, prompt included, for
    storage that appends.
    """

    output: OutputT
    messages: list[Message]
    new_messages: list[Message]
    run_id: str
    conversation_id: str
    usage: Annotated[Usage, Meta(description="of all model calls of the run")] = Usage()
    requests: Annotated[int, Meta(description="model requests sent, failed ones included")] = 0
    tool_calls: Annotated[int, Meta(description="tool executions begun")] = 0
    finish_reason: FinishReason | None = None
    cost: Annotated[float | None, Meta(description="by the agent's `price`; null without")] = None
    pending: Annotated[Pending, Meta(description="what a paused run waits for")] = NOTHING_PENDING
    repair: Annotated[HistoryRepair, Meta(description="what the history needed")] = NOTHING_REPAIRED


class Partial(Struct, frozen=True, rename="camel"):
    """The evidence of a run that did not reach its answer (contract §4.4).

    `messages` runs through the last completed model turn and is resume-ready:
    ``agent.run("continue", history=partial.messages)`` always works. `text` and `thinking` are
    what a dying stream had said beyond it. `batch_results` are results of a batch that did not
    complete; `resume_messages` has them in place, for callers whose side effects must not repeat.
    Where a stop has closed the batch, `closed` says which closing stands for each of them.
    """

    messages: list[Message]
    new_messages: list[Message]
    run_id: str
    conversation_id: str
    usage: Usage = Usage()
    requests: int = 0
    tool_calls: int = 0
    finish_reason: FinishReason | None = None
    text: str = ""
    thinking: str = ""
    batch_results: list[ToolMessage] = field(default_factory=list[ToolMessage])
    cost: float | None = None
    abandoned: Annotated[
        tuple[str, ...], Meta(description="calls whose worker thread may still be running")
    ] = ()
    closed: Annotated[
        tuple[int, ...],
        Meta(description="where in `messages` the closing of each of `batch_results` stands"),
    ] = ()

    @property
    def resume_messages(self) -> list[Message]:
        """`messages` with the results that the unfinished batch had already produced.

        Of a batch that failed they follow it; of one that a stop has closed each stands in the
        place of its call's closing, so that nothing is left to repair.
        """
        if not self.closed:
            return [*self.messages, *self.batch_results]
        whole: list[Message] = list(self.messages)
        for place, result in zip(self.closed, self.batch_results, strict=True):
            whole[place] = result
        return whole
