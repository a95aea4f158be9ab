"""The run as a machine: it decides what comes next and keeps the evidence. It never awaits.

Ask `next()` for a command, carry it out, reply; until it says None, or raises `RunFailure`. What
a run has produced is readable at any moment, after any failure or cancellation: `partial`. Ids
are given, there is no clock and no I/O here (contract §4.2, §4.4).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from msgspec.structs import replace

from golem._run.batches import Batch
from golem._run.commands import CallModel, Command, Outcome, RunTools, describe
from golem.errors import Stage, ToolCanceled
from golem.history.report import HistoryRepair
from golem.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from golem.model import Delta, FinishReason, Response, TextDelta, ThinkingDelta
from golem.result import Partial, Result
from golem.usage import Usage

C = TypeVar("C", CallModel, RunTools)
M = TypeVar("M", UserMessage, AssistantMessage, ToolMessage)


class RunFailure(Exception):
    """The run cannot go on: at which stage, and why (``__cause__``: the error behind it)."""

    def __init__(self, stage: Stage, reason: str) -> None:
        self.stage: Stage = stage
        self.reason = reason
        super().__init__(reason)


class Machine:
    """One run, from its repaired history to its answer.

    `head` is what the run starts from: the instructions, if any, and the repaired history without
    system messages. `prompt` is the message the run begins with, unstamped.
    """

    def __init__(
        self,
        *,
        head: Sequence[Message],
        prompt: UserMessage | None,
        run_id: str,
        conversation_id: str,
        repair: HistoryRepair,
        max_turns: int,
    ) -> None:
        self.run_id = run_id
        self.conversation_id = conversation_id
        self.usage = Usage()
        self.requests = 0
        self.tool_calls = 0
        self.finish_reason: FinishReason | None = None
        self._head = list(head)
        self._added: list[Message] = [] if prompt is None else [self._stamp(prompt)]
        self._repair = repair
        self._max_turns = max_turns
        self._turn = 0
        self._completed_turns = 0
        self._command: Command | None = None
        self._answer: AssistantMessage | None = None
        self._end: RunFailure | None = None
        self._to_run: tuple[ToolCall, ...] = ()
        self._batch: Batch | None = None
        self._rejections: Counter[tuple[str, bool]] = Counter()
        self._heard = False
        self._text: list[str] = []
        self._thinking: list[str] = []

    @property
    def messages(self) -> list[Message]:
        """The transcript: what the run started from and what it has added."""
        return self._head + self._added

    @property
    def new_messages(self) -> list[Message]:
        """What the run has added, the prompt first."""
        return list(self._added)

    def next(self) -> Command | None:
        """The command to carry out now; None when the run has its answer.

        Raises RunFailure when the run may not go on.
        """
        if self._command is None and self._answer is None:
            self._command = self._decide()
        return self._command

    def _decide(self) -> Command:
        if self._end is not None:
            raise self._end
        if self._to_run:
            return RunTools(self._turn - 1, self._to_run)
        if self._turn >= self._max_turns:
            raise RunFailure("loop", f"model turn limit exceeded after {self._turn} turns")
        return CallModel(self._turn, self.messages)

    # The model

    def request_sent(self) -> None:
        """A request of the current `CallModel` goes out."""
        self._at(CallModel)
        self.requests += 1
        self._forget_fragments()

    def fragment(self, delta: Delta) -> None:
        """A piece of the answer has come; it is evidence should the stream die."""
        self._heard = True
        if isinstance(delta, TextDelta):
            self._text.append(delta.text)
        elif isinstance(delta, ThinkingDelta):
            self._thinking.append(delta.text)

    def model_replied(self, response: Response) -> AssistantMessage:
        """The model's turn is complete; the message as it joins the transcript."""
        self._at(CallModel)
        message = self._stamp(response.message)
        self._command = None
        self._added.append(message)
        self._turn += 1
        self._completed_turns += 1
        self.usage += response.usage
        self.finish_reason = response.finish_reason
        self._forget_fragments()
        self._to_run = message.tool_calls
        if not message.tool_calls:
            self._answer = message
        return message

    # The tools

    def tools_started(self) -> Batch:
        """The batch of the current `RunTools`, to be filled through this machine."""
        command = self._at(RunTools)
        if self._batch is not None:
            raise TypeError("the batch has been started")
        self._batch = Batch(command.calls, self._rejections)
        return self._batch

    def tool_started(self) -> None:
        """A tool is entered."""
        self._running()
        self.tool_calls += 1

    def tool_finished(self, call: ToolCall, outcome: Outcome) -> ToolMessage | None:
        """The outcome of the next call of the batch; its result, if it is one."""
        return self._running().record(call, outcome)

    def rejections(self, tool_name: str) -> int:
        """How often this run has had calls of that tool rejected."""
        return self._rejections[tool_name, True] + self._rejections[tool_name, False]

    def tools_replied(self) -> list[ToolMessage]:
        """The batch is over: its results as they join the transcript.

        A failed batch contributes none and ends the transcript at its asking turn; a stopped one
        has every call closed (contract §4.4). `next()` raises what ends the run.
        """
        batch = self._running()
        if not batch.complete:
            raise TypeError("the batch is not over")
        self._command = None
        if batch.failure is not None:
            call, error = batch.failure
            reason = f"tool {call.name!r} (call {call.id!r}): {describe(error)}"
            self._end = RunFailure("tool", reason)
            self._end.__cause__ = error
            return []
        closings: list[ToolMessage] = []
        if batch.stopped_by is not None:
            call, canceled = batch.stopped_by
            reason = f"tool {call.name!r} (call {call.id!r}) canceled the run: {canceled.reason}"
            self._end = RunFailure("canceled", reason)
            self._end.__cause__ = ToolCanceled(canceled.reason)
            closings = batch.close()
        results = [self._stamp(result) for result in (*batch.results, *closings)]
        self._added += results
        self._batch = None
        self._to_run = ()
        return results

    # What is left of it

    @property
    def result(self) -> Result[str]:
        """The result of a run that has its answer."""
        if self._answer is None:
            raise TypeError("the run has no answer yet")
        return Result(
            output=self._answer.content,
            messages=self.messages,
            new_messages=self.new_messages,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            usage=self.usage,
            requests=self.requests,
            tool_calls=self.tool_calls,
            finish_reason=self.finish_reason,
            repair=self._repair,
        )

    @property
    def partial(self) -> Partial | None:
        """The evidence so far; None when there is none beyond what the caller knows already."""
        text, thinking = "".join(self._text), "".join(self._thinking)
        if not (self._heard or self.usage or self._completed_turns or self.tool_calls):
            return None
        return Partial(
            messages=self.messages,
            new_messages=self.new_messages,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            usage=self.usage,
            requests=self.requests,
            tool_calls=self.tool_calls,
            finish_reason=self.finish_reason,
            text=text,
            thinking=thinking,
            batch_results=[self._stamp(r) for r in self._batch.results] if self._batch else [],
        )

    def _stamp(self, message: M) -> M:
        return replace(message, run_id=self.run_id, conversation_id=self.conversation_id)

    def _forget_fragments(self) -> None:
        self._heard = False
        self._text.clear()
        self._thinking.clear()

    def _at(self, kind: type[C]) -> C:
        """The command being carried out; it must be of that kind."""
        if not isinstance(self._command, kind):
            raise TypeError(f"unexpected reply: the run is at {self._command!r}")
        return self._command

    def _running(self) -> Batch:
        self._at(RunTools)
        if self._batch is None:
            raise TypeError("no batch is running")
        return self._batch
