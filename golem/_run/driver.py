"""Carries out what the machine decides. One driver for every form of a run.

`Run.events`, one async generator, is the whole run: ``Agent.run`` reads it to the end,
``RunStream`` hands it to the caller. Nothing is running while an event is out: no task group and
no cancel scope is open across a yield, so that the caller's own cancellation, or leaving, means
what it means for any generator. What comes next is decided by ``machine``; how a model turn and a
batch of tools are carried out stands in ``model_turn`` and ``tool_batch``.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from typing import Any

import anyio

from golem import events as ev
from golem._run.cancellation import told
from golem._run.commands import (
    CallModel,
    Command,
    DecodeOutput,
    RunFailure,
    RunTools,
    describe,
    error_type,
)
from golem._run.evidence import attach
from golem._run.herald import Herald
from golem._run.journal import Journal
from golem._run.machine import Machine
from golem._run.model_turn import ModelTurn
from golem._run.plan import Plan
from golem._run.prepare import (
    Prepared,
    donated_conversation,
    fixed_instructions,
    is_new,
    prepare_history,
    resolved_instructions,
    start_machine,
)
from golem._run.rules import SayWhen, StopWhen, sooner
from golem._run.tool_batch import ToolBatch
from golem._run.waiting import StopNow, Waiting
from golem.context import Charge, RunContext
from golem.errors import ModelRetry, RunError, Stage
from golem.history.report import NOTHING_REPAIRED
from golem.ids import new_id
from golem.messages import Message, UserMessage
from golem.output import partial_json
from golem.rawjson import clean_text
from golem.result import Partial, Result


class Run:
    """One run in progress. `events` may be iterated once."""

    def __init__(self, plan: Plan, *, streaming: bool) -> None:
        self._plan = plan
        self._new_conversation = new_id()
        self._streaming = streaming
        self._waiting = Waiting(plan.timeouts, stoppable=streaming)
        # Until the history is prepared, what was supplied names the conversation.
        self._herald = Herald(
            plan.run_id or new_id(),
            self._conversation(plan.history),
            plan.observers,
            self._waiting,
        )
        self.outcome: ev.Terminal | None = None
        self._journal = Journal(plan.journal, self._waiting)
        self._machine: Machine | None = None
        self._queued: list[tuple[UserMessage, SayWhen]] = []
        self._stop: StopWhen | None = None

    @property
    def run_id(self) -> str:
        """The id of this run."""
        return self._herald.run_id

    @property
    def conversation_id(self) -> str:
        """The id of the conversation; settled once the history is prepared."""
        return self._herald.conversation_id

    @property
    def result(self) -> Result[Any] | None:
        """The result, once the run has finished or paused."""
        ended = isinstance(self.outcome, (ev.RunFinished, ev.RunPaused))
        return self.outcome.result if ended else None  # type: ignore[union-attr]

    @property
    def partial(self) -> Partial | None:
        """The evidence so far, at any moment; None while there is none."""
        return None if self._machine is None else self._machine.partial

    @property
    def partial_output(self) -> Any:
        """What the answer on its way amounts to so far; never for acting on."""
        if self._machine is None:
            return None
        streamed = self._machine.streamed
        text = streamed.text
        if not self._plan.output.shapes:
            return text or None
        name = ""
        if self._plan.output_tools:
            is_output = self._plan.output.is_output_name
            named = {call.index: call.name for call in streamed.calls if is_output(call.name)}
            first = min(named, default=-1)
            name = named.get(first, "")
            text = "".join(call.args for call in streamed.calls if call.index == first)
        return self._plan.output.unwrapped(partial_json(text), name)

    @property
    def unsaid(self) -> list[UserMessage]:
        """What was to be said and has not joined the transcript."""
        if self._machine is None:
            return [message for message, _ in self._queued]
        return self._machine.unsaid

    def enqueue(self, message: UserMessage, when: SayWhen) -> None:
        """A user message for the next legal place, or for when the run would be over."""
        if self._machine is None:
            self._queued.append((message, when))
        else:
            self._machine.enqueue(message, when)

    def request_stop(self, when: StopWhen, deadline: float | None = None) -> None:
        """End the run at the next place that `when` allows; at once from `deadline` on.

        The deadline is on the backend's clock. The rest of the events tells what was closed.
        """
        self._stop = sooner(self._stop, when)
        if when == "now":
            self._waiting.interrupt()
        elif deadline is not None:
            self._waiting.interrupt(deadline)
        if self._machine is not None:
            self._machine.request_stop(when)

    def charge(self, charge: Charge | None) -> None:
        """Count what this run has consumed so far into that of its parent."""
        if charge is None or self._machine is None:
            return
        ledger = self._machine.ledger
        charge(
            ledger.usage,
            requests=ledger.requests,
            tool_calls=ledger.tool_calls,
            cost=ledger.cost,
            abandoned=self._machine.abandoned,
        )

    def cut_short(self) -> None:
        """The run is over; who still stores or shows its end has his grace."""
        self._waiting.interrupt()

    def at_hand(self) -> ev.Event | None:
        """The next event where it has been heard already: what `events` would give without a wait.

        Most of a long answer is told so, since a network brings many pieces of it at once. None
        where there is none, or where somebody else is to be shown it: then `events` has the next.
        """
        return self._herald.next_unobserved()

    async def events(self) -> AsyncGenerator[ev.Event, None]:
        """The run: every event as it happens, exactly one terminal event, last.

        After ``run_failed``, and after ``run_stopped`` by a tool, it raises the RunError.
        Cancelled or closed before, it gives the terminal event to the observers and to `outcome`
        only and lets the backend's exception pass untouched.
        """
        failure: RunFailure | None = None
        try:
            steps = self._steps()
            try:
                async for event in steps:
                    if self._plan.observers:
                        await self._herald.show(event)
                    yield event
            except RunFailure as ending:
                failure = ending
            except Exception as unforeseen:  # noqa: BLE001 - from where nothing should fail
                failure = RunFailure("loop", describe(unforeseen), unforeseen)
            finally:  # spelled out here and below: `aclosing` is dear where all else is cheap
                await steps.aclose()
            await self._waiting.remind()
        except GeneratorExit:
            await self.left()
            raise
        except BaseException as cancellation:
            attach(cancellation, self.partial)
            self._waiting.run_ends()
            with anyio.CancelScope(shield=True):  # each of those it waits for has its grace
                await self._settle(self._stopped("the run was cancelled"))
            raise
        terminal, error = (self._ended(), None) if failure is None else self._failed(failure)
        try:
            await self._settle(terminal)
            await self._waiting.remind()
        except BaseException as cancellation:
            attach(cancellation, self.partial)
            raise
        yield terminal
        if error is not None:
            raise error from error.__cause__

    async def _steps(self) -> AsyncGenerator[ev.Event, None]:
        """Every event but the terminal one. Raises RunFailure for what ends the run early."""
        self._waiting.run_begins()
        machine, started = await self._start()
        untold = machine.untold
        yield started
        failure: RunFailure | None = None
        while True:
            command: Command | None = None
            try:
                if failure is None:
                    command = machine.next()
            except RunFailure as ending:
                failure = ending
            # What there is to tell is told before the run ends by it, stored or not.
            try:
                if self._journal.kept:
                    await self._journal.catch_up(machine)
            except RunFailure as ending:
                failure = ending
            while untold:
                yield self._herald.added(untold)
            if failure is not None:
                raise failure
            if command is None:
                if machine.finished:
                    self._check_total(machine)
                    return
                continue  # somebody spoke up while the answer was being told
            steps = self._carry_out(machine, command)
            try:
                async for event in steps:
                    yield event
            except StopNow:
                machine.stop_now()
            except RunFailure as ending:
                failure = ending
            finally:
                await steps.aclose()

    def _carry_out(self, machine: Machine, command: Command) -> AsyncGenerator[ev.Event, None]:
        plan, herald, waiting = self._plan, self._herald, self._waiting
        if isinstance(command, RunTools):
            batch = ToolBatch(plan, machine, herald, waiting, self._journal, command)
            return batch.events()
        if isinstance(command, CallModel):
            turn = ModelTurn(
                plan,
                machine,
                herald,
                waiting,
                self._journal,
                command,
                streaming=self._streaming,
            )
            return turn.events()
        return self._decode(machine, command)

    async def _start(self) -> tuple[Machine, ev.RunStarted]:
        plan = self._plan
        try:
            if is_new(plan):
                prepared = Prepared([], NOTHING_REPAIRED)
            else:
                prepared = await self._waiting.on(prepare_history(plan))
            self._herald.conversation_id = self._conversation(prepared.messages)
            instructions = await self._instructions(prepared)
        except TimeoutError as error:
            raise RunFailure("history", describe(error), error) from error
        except StopNow:
            raise RunFailure("canceled", "the run was stopped") from None
        machine = start_machine(
            plan,
            prepared,
            instructions,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
        )
        for message, when in self._queued:
            machine.enqueue(message, when)
        if self._stop is not None:
            machine.request_stop(self._stop)
        self._machine = machine
        return machine, self._herald.event(
            ev.RunStarted,
            len(plan.history),
            len(prepared.messages),
            len(machine.messages),
            prepared.repair,
            plan.parent_run_id,
            plan.parent_call_id,
        )

    async def _instructions(self, prepared: Prepared) -> str:
        plan = self._plan
        fixed = fixed_instructions(plan)
        if fixed is not None:  # nothing to wait for, but what a wait would raise at once
            await self._waiting.remind()
            self._waiting.check()
            return fixed
        context: RunContext[Any] = RunContext(
            deps=plan.deps,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            messages=tuple(prepared.messages),
        )
        return await self._waiting.on(resolved_instructions(plan, context))

    def _check_total(self, machine: Machine) -> None:
        """The total is for the run to its last pull: it strikes where words are the answer too."""
        try:
            self._waiting.check_total()
        except TimeoutError as error:
            stage: Stage = "tool" if machine.pending else "decode"
            raise RunFailure(stage, describe(error), error) from error

    async def _decode(
        self, machine: Machine, command: DecodeOutput
    ) -> AsyncGenerator[ev.Event, None]:
        """Make the answer a value, or have it corrected."""
        output = self._plan.output
        try:
            if cut := machine.cut_short():
                raise ModelRetry(cut)
            if command.call is None:
                decoding = told(output.decode, command.answer.content)
            else:
                decoding = told(output.decode_call, command.call)
            value = await self._waiting.on(decoding)
        except ModelRetry as refusal:
            reason = clean_text(refusal.reason)
            round_ = machine.output_rejected(reason, refusal)
            if round_ is not None:
                yield self._herald.event(ev.OutputRejected, round_, reason)
        except Exception as error:  # noqa: BLE001 - whatever the decoder's author did not foresee
            machine.output_failed(error)
        else:
            machine.output_accepted(value)

    # Endings

    async def left(self) -> None:
        """Settle a run whose events were closed; one that had not begun never saw that."""
        if self.outcome is None:
            self._waiting.run_ends()
            await self._settle(self._stopped("the consumer left the stream"))

    async def _settle(self, terminal: ev.Terminal) -> ev.Terminal:
        self.outcome = terminal
        await self._journal.close(self._machine)
        await self._herald.show(terminal)
        return terminal

    def _ended(self) -> ev.Terminal:
        assert self._machine is not None  # noqa: S101 - the machine said that it is done
        result = self._machine.result
        if result.pending:
            return self._herald.event(ev.RunPaused, result)
        return self._herald.event(ev.RunFinished, result)

    def _stopped(self, reason: str) -> ev.RunStopped:
        return self._herald.event(ev.RunStopped, reason, self.partial)

    def _failed(self, failure: RunFailure) -> tuple[ev.Terminal, RunError | None]:
        error = RunError(
            failure.reason,
            stage=failure.stage,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            partial=self.partial,
        )
        error.__cause__ = failure.__cause__
        if failure.stage != "canceled":
            kind = error_type(failure.__cause__)
            event = self._herald.event(
                ev.RunFailed, failure.stage, failure.reason, error.partial, kind
            )
            return event, error
        # Whoever stops a stream knows that they did; a tool's stop is news.
        by_consumer = failure.__cause__ is None and self._streaming
        return self._stopped(failure.reason), None if by_consumer else error

    def _conversation(self, messages: Sequence[Message]) -> str:
        """The given id, else that of the most recent identified message, else a new one."""
        given = self._plan.conversation_id or donated_conversation(messages)
        return given or self._new_conversation
