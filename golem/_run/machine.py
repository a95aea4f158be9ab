"""The run as a machine: it decides what comes next and keeps the evidence. It never awaits.

Ask `next()` for a command, carry it out, reply; until it says None, or raises `RunFailure`. What
a run has produced is readable at any moment, after any failure or cancellation: `partial`. Ids
are given, there is no clock and no I/O here (contract §4.2, §4.4).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

from msgspec.structs import replace

from golem._run.batches import Batch
from golem._run.calls import Calls
from golem._run.commands import (
    CallModel,
    Command,
    DecodeOutput,
    Outcome,
    RunFailure,
    RunTools,
    describe,
)
from golem._run.fragments import Fragments
from golem._run.ledger import Ledger
from golem._run.resume import Resumption
from golem._run.rules import CUT_SHORT, PAUSE_TURN, Rules, SayWhen, StopWhen, sooner
from golem._run.steering import Steering
from golem._run.transcript import Added, Transcript
from golem.deferral import NOTHING_PENDING, Pending
from golem.errors import ToolCanceled
from golem.history.repair import no_result
from golem.history.report import NOTHING_REPAIRED, HistoryRepair
from golem.limits import NO_LIMITS, UsageLimitError
from golem.messages import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage
from golem.model import Delta, FinishReason, Response
from golem.output import ARRIVED
from golem.result import Partial, Result
from golem.usage import Usage

C = TypeVar("C", CallModel, RunTools, DecodeOutput)


class Machine:
    """One run, from its repaired history to its answer.

    `head` is what the run starts from: the instructions, if any, and the repaired history without
    system messages. `prompt` is the message the run begins with, unstamped. `resumption` is the
    pending turn to complete first; its results stand in `head` behind its asking message.
    """

    def __init__(
        self,
        *,
        head: Sequence[Message],
        prompt: UserMessage | None,
        run_id: str,
        conversation_id: str,
        repair: HistoryRepair = NOTHING_REPAIRED,
        rules: Rules | None = None,
        ledger: Ledger | None = None,
        resumption: Resumption | None = None,
    ) -> None:
        self.run_id = run_id
        self.conversation_id = conversation_id
        self.ledger = ledger or Ledger(NO_LIMITS, None)
        self.finish_reason: FinishReason | None = None
        self.abandoned: list[str] = []
        self._rules = rules or Rules()
        self._repair = repair
        self._transcript = Transcript(head, run_id, conversation_id, resumption)
        self._turn = 0
        self._completed_turns = 0
        self._rounds = 0
        self._command: Command | None = None
        self._end: RunFailure | None = None
        self._answer: AssistantMessage | None = None
        self._accepted = False
        self._value: Any = None
        self._pending = NOTHING_PENDING
        self._calls = Calls(self._transcript, resumption)
        self._steering = Steering()
        self._stop: StopWhen | None = None
        self._fragments = Fragments()
        if prompt is not None:
            self._transcript.add([prompt])

    # What the driver asks

    @property
    def messages(self) -> list[Message]:
        """The transcript: what the run started from and what it has added."""
        return self._transcript.messages

    @property
    def new_messages(self) -> list[Message]:
        """What the run has added: answers to pending calls, the prompt, everything after it."""
        return self._transcript.new_messages

    def next(self) -> Command | None:
        """The command to carry out now; None when the run has its answer, or has paused.

        Raises RunFailure when the run may not go on.
        """
        if self._command is None and not self.finished:
            if self._accepted:  # it would be finished, but for what was said since
                self._value, self._accepted = None, False
                self._say_what_waits()
            self._command = self._decide()
        return self._command

    @property
    def finished(self) -> bool:
        """Whether the run has come to its end: with an answer that stands, or paused."""
        answered = self._accepted and not self._may_go_on
        return (answered or bool(self._pending)) and self._end is None

    @property
    def untold(self) -> deque[Added]:
        """The messages that have joined the transcript, for the driver to take out."""
        return self._transcript.untold

    @property
    def unwritten(self) -> deque[Message]:
        """The messages that have joined, for the journal to take out."""
        return self._transcript.unwritten

    def enqueue(self, message: UserMessage, when: SayWhen) -> None:
        """Have a user message join at the next legal place, or when the run would be over."""
        self._steering.enqueue(message, when)

    @property
    def unsaid(self) -> list[UserMessage]:
        """What was to be said and has not joined."""
        return self._steering.unsaid

    def request_stop(self, when: StopWhen) -> None:
        """End the run at the next place that `when` allows; of several stops the soonest."""
        self._stop = sooner(self._stop, when)

    def _decide(self) -> Command | None:
        if self._end is not None:
            raise self._end
        if self._stop == "now":
            raise self.stop_now()
        if self._answer is not None:
            return self._decode(self._answer)
        if self._stop == "after_model" and self._completed_turns:
            raise self.stop_now()
        calls = self._calls
        if calls.to_run:
            self._check_limits()
            return RunTools(max(self._turn - 1, 0), calls.to_run, calls.resuming)
        if self._stop is not None and (self._completed_turns or calls.batches):
            raise self.stop_now()
        self._check_limits()  # a sub-agent may have crossed one
        if self._turn >= self._rules.max_turns:
            raise RunFailure("loop", f"model turn limit exceeded after {self._turn} turns")
        if self._steering.waits:
            self._transcript.add(self._steering.take("next_turn"))
        return CallModel(self._turn, self.messages)

    def _decode(self, answer: AssistantMessage) -> Command | None:
        if not self._rules.output.is_text:
            return DecodeOutput(answer, self._output_call_of(answer))
        self._accept(answer.content)  # words are the output as they are
        return None if self._accepted else self._decide()

    # The model

    def request_sent(self) -> None:
        """A request of the current `CallModel` goes out."""
        self._at(CallModel)
        self.ledger.requests += 1
        self._fragments = Fragments()

    def check_request(self) -> None:
        """Raise RunFailure (``usage``) where one more request would cross the limit of them."""
        crossed = self.ledger.crossed(about_to_send=1)
        if crossed is not None:
            raise RunFailure("usage", str(crossed), crossed)

    def fragment(self, delta: Delta) -> None:
        """A piece of the answer has come; it is evidence should the stream die."""
        self._fragments.add(delta)

    def model_replied(self, response: Response) -> None:
        """The model's turn is complete and joins the transcript."""
        self._at(CallModel)
        self._command = None
        self._turn += 1
        self._completed_turns += 1
        self.finish_reason = response.finish_reason
        (message,) = self._transcript.add([response.message])
        self._fragments = Fragments()
        if message.tool_calls:
            self._calls.to_run = message.tool_calls
            if self._output_call_of(message) is not None:
                self._answer = message
        elif response.details.finish_reason != PAUSE_TURN:
            self._answer = message
        try:
            self.ledger.add_response(response.usage)
            self._check_limits()
        except RunFailure as failure:
            self._end = failure
        except Exception as error:  # noqa: BLE001 - whatever is wrong in the application's prices
            self._end = RunFailure("usage", f"price: {describe(error)}", error)

    # The tools

    def tools_started(self) -> Batch:
        """The batch of the current `RunTools`, to be filled through this machine."""
        self._at(RunTools)
        return self._calls.start()

    def tools_checked(self, runnable: int) -> None:
        """So many calls of the batch can run; nothing has.

        Raises RunFailure (``usage``) where so many may not.
        """
        self._running()
        self._check_limits(about_to_run=runnable)

    def tool_started(self) -> None:
        """A tool is entered."""
        self._running()
        self.ledger.tool_calls += 1

    def tool_deferred(self) -> None:
        """The tool that was entered only said that its call must wait: it did not execute."""
        self.ledger.tool_calls -= 1

    def charge(
        self,
        usage: Usage,
        *,
        requests: int,
        tool_calls: int,
        cost: float | None,
        abandoned: Sequence[str] = (),
    ) -> None:
        """All that a sub-agent's run has consumed, and the calls whose threads it left behind."""
        self.ledger.add_run(usage, requests=requests, tool_calls=tool_calls, cost=cost)
        self.abandoned += abandoned

    def tool_finished(self, place: int, outcome: Outcome) -> None:
        """The outcome of the call at `place` of the batch."""
        self._running().record(place, outcome)

    def rejections(self, tool_name: str) -> int:
        """How often this run has had calls of that tool rejected."""
        return self._calls.rejections(tool_name)

    def tools_replied(self) -> None:
        """The batch is over: its results join the transcript.

        A failed batch contributes none and ends the transcript at its asking turn; a stopped one
        has every call closed; one with deferred calls pauses the run (contract §4.4, §4.6).
        """
        self._at(RunTools)
        batch = self._calls.finish()
        self._command = None
        if batch.failure is not None:
            call, error = batch.failure
            reason = f"tool {call.name!r} (call {call.id!r}): {describe(error)}"
            self._end = RunFailure("tool", reason, error)
        elif batch.stopped_by is not None:
            call, canceled = batch.stopped_by
            reason = f"tool {call.name!r} (call {call.id!r}) canceled the run: {canceled.reason}"
            self._end = RunFailure("canceled", reason, ToolCanceled(canceled.reason))
        else:
            self._pending = batch.pending

    # The output

    def output_accepted(self, value: Any) -> None:
        """The answer is the run's output, unless somebody has more to say."""
        self._at(DecodeOutput)
        self._command = None
        self._accept(value)

    def _accept(self, value: Any) -> None:
        answer, self._answer = self._answer, None
        if answer is not None and self._calls.to_run:
            self._close_output(answer, ARRIVED)
        # The end of an answer is a legal place too: what came during it is not lost.
        if self._may_go_on:
            self._say_what_waits()
        else:
            self._value, self._accepted = value, True

    @property
    def _may_go_on(self) -> bool:
        """Whether somebody has more to say, and the model a turn left to answer it."""
        waits = self._steering.waits
        return waits and self._turn < self._rules.max_turns and self._stop is None

    def _say_what_waits(self) -> None:
        self._transcript.add([*self._steering.take("next_turn"), *self._steering.take("idle")])

    def output_rejected(self, reason: str, error: BaseException | None = None) -> int | None:
        """The answer has to be corrected; which round that is, None when none is left.

        The rejected answer stays, what was wrong with it is told to the model, and turns are
        counted anew (contract §4.7).
        """
        self._at(DecodeOutput)
        self._command = None
        if self._rounds >= self._rules.output_retries:
            tried = f"output failed validation after {self._rounds + 1} attempts: "
            self._end = RunFailure("decode", f"{tried if self._rounds else ''}{reason}", error)
            return None
        answer, self._answer = self._answer, None
        self._rounds += 1
        self._turn = 0
        call = self._output_call_of(answer) if answer is not None else None
        if answer is None or call is None:
            text = f"Your previous response was rejected: {reason}. Correct it and respond again."
            self._transcript.add([UserMessage(text)])
        else:
            self._close_output(
                answer,
                f"Your result was rejected: {reason}. "
                f"Correct the arguments and call {call.name} again.",
            )
        return self._rounds

    def output_failed(self, error: Exception) -> None:
        """The decoder broke: nothing to correct."""
        self._at(DecodeOutput)
        self._command = None
        self._end = RunFailure("decode", describe(error), error)

    def cut_short(self) -> str:
        """Why the answer cannot be decoded as if it were whole; empty when it can."""
        if not self._rules.output.structured or self.finish_reason is None:
            return ""
        return CUT_SHORT.get(self.finish_reason, "")

    def _output_call_of(self, message: AssistantMessage) -> ToolCall | None:
        if not self._rules.output_tools:
            return None
        is_output = self._rules.output.is_output_call
        return next((call for call in message.tool_calls if is_output(call)), None)

    def _close_output(self, answer: AssistantMessage, text: str) -> None:
        """Close the calls of an answering turn: `text` for the output call, the rest neutrally."""
        output = self._output_call_of(answer)
        self._transcript.add(
            replace(no_result(call), content=text) if call is output else no_result(call)
            for call in answer.tool_calls
        )
        self._calls.to_run = ()

    # Endings

    def stop_now(self) -> RunFailure:
        """The run ends here: what has finished is recorded, every open call is closed."""
        self._calls.stop()
        self._command = None
        self._end = RunFailure("canceled", "the run was stopped")
        return self._end

    def _check_limits(self, about_to_run: int = 0) -> None:
        crossed: UsageLimitError | None = self.ledger.crossed(about_to_run=about_to_run)
        if crossed is not None:
            raise RunFailure("usage", str(crossed), crossed)

    def stamped(self, result: ToolMessage) -> ToolMessage:
        """A result of the batch as it will join the transcript."""
        return self._transcript.stamp(result)

    # What is left of it

    @property
    def result(self) -> Result[Any]:
        """The result of a run that has its answer, or has paused."""
        if not (self._accepted or self._pending):
            raise TypeError("the run has no answer yet")
        return Result(
            output=self._value,
            messages=self.messages,
            new_messages=self.new_messages,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            usage=self.ledger.usage,
            requests=self.ledger.requests,
            tool_calls=self.ledger.tool_calls,
            finish_reason=self.finish_reason,
            cost=self.ledger.cost,
            pending=self._pending,
            repair=self._repair,
        )

    @property
    def partial(self) -> Partial | None:
        """The evidence so far; None when there is none beyond what the caller knows already."""
        ledger = self.ledger
        begun = self._fragments or self._completed_turns or self._transcript.resolved
        if not (begun or self._steering.joined or ledger.usage or ledger.tool_calls):
            return None
        return Partial(
            messages=self.messages,
            new_messages=self.new_messages,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            usage=ledger.usage,
            requests=ledger.requests,
            tool_calls=ledger.tool_calls,
            finish_reason=self.finish_reason,
            cost=ledger.cost,
            text=self._fragments.text,
            thinking=self._fragments.thinking,
            batch_results=self.unrecorded,
            closed=self._calls.closed,
            abandoned=tuple(self.abandoned),
        )

    @property
    def pending(self) -> Pending:
        """What a paused run waits for."""
        return self._pending

    @property
    def unrecorded(self) -> list[ToolMessage]:
        """Results that exist beside the transcript: of a batch that is not over, or failed."""
        return self._calls.unrecorded

    @property
    def streamed(self) -> Fragments:
        """What the answer on its way has said."""
        return self._fragments

    def _at(self, kind: type[C]) -> C:
        """The command being carried out; it must be of that kind."""
        if not isinstance(self._command, kind):
            raise TypeError(f"unexpected reply: the run is at {self._command!r}")
        return self._command

    def _running(self) -> Batch:
        self._at(RunTools)
        return self._calls.running
