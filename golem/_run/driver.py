"""Carries out what the machine decides and turns it into events. One driver for every form.

`Run.events`, one async generator, is the whole run: ``Agent.run`` reads it to the end,
``RunStream`` hands it to the caller. Nothing is running while an event is out: no task group and
no cancel scope is open across a yield, so that the caller's own cancellation, or leaving, means
what it means for any generator. What a run *is* decided by ``machine``; nothing here decides.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any, Final, TypeVar, cast

import anyio
import anyio.lowlevel

from golem import events as ev
from golem._run.commands import (
    CallModel,
    Crashed,
    Outcome,
    Rejected,
    Returned,
    RunTools,
    describe,
)
from golem._run.machine import Machine, RunFailure
from golem._run.plan import Observer, Plan
from golem._run.prepare import donated_conversation, prepare_history, start_machine
from golem.context import RunContext
from golem.errors import ProtocolError, RunError
from golem.ids import new_id
from golem.messages import AssistantMessage, Message, ToolCall, ToolMessage
from golem.model import Delta, Request, Response, TextDelta, ThinkingDelta
from golem.result import Partial, Result
from golem.usage import Usage

E = TypeVar("E", bound=ev.Event)
T = TypeVar("T")

CLEANUP_SECONDS: Final = 5.0
"""How long the end of a cancelled run may take, shielded from the cancellation."""

_log = logging.getLogger("golem")


class Run:
    """One run in progress. `events` may be iterated once."""

    def __init__(self, plan: Plan, *, streaming: bool) -> None:
        self.run_id = plan.run_id or new_id()
        self._plan = plan
        self._new_conversation = new_id()
        # Until the history is prepared, what was supplied names the conversation.
        self.conversation_id = self._conversation(plan.history)
        self.outcome: ev.Terminal | None = None
        self._streaming = streaming
        self._machine: Machine | None = None
        self._reply: tuple[Response, AssistantMessage] | None = None
        self._seq = 0

    @property
    def result(self) -> Result[Any] | None:
        """The result, once the run has finished."""
        return self.outcome.result if isinstance(self.outcome, ev.RunFinished) else None

    @property
    def partial(self) -> Partial | None:
        """The evidence so far, at any moment; None while there is none."""
        return None if self._machine is None else self._machine.partial

    async def events(self) -> AsyncGenerator[ev.Event, None]:
        """The run: every event as it happens, exactly one terminal event, last.

        After ``run_failed`` or ``run_stopped`` it raises the RunError. Cancelled or closed before,
        it gives the terminal event to the observers and to `outcome` only and lets the
        backend's exception pass untouched.
        """
        error: RunError | None = None
        try:
            async with aclosing(self._steps()) as steps:
                async for event in steps:
                    await self._observe(event)
                    yield event
            terminal: ev.Terminal = self._finished()
        except RunFailure as failure:
            terminal, error = self._failed(failure)
        except GeneratorExit:
            await self._settle(self._stopped("the consumer left the stream"))
            raise
        except BaseException as cancellation:
            _attach(cancellation, self.partial)
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                await self._settle(self._stopped("the run was cancelled"))
            raise
        try:
            await self._settle(terminal)
        except BaseException as cancellation:
            _attach(cancellation, self.partial)
            raise
        yield terminal
        if error is not None:
            raise error from error.__cause__

    async def _steps(self) -> AsyncGenerator[ev.Event, None]:
        """Every event but the terminal one. Raises RunFailure for what ends the run early."""
        machine, started = await self._start()
        yield started
        for message in machine.new_messages:
            yield self._event(ev.MessageAdded, message)
        while (command := machine.next()) is not None:
            if isinstance(command, CallModel):
                steps = self._call_model(machine, command)
            else:
                steps = self._run_tools(machine, command)
            async with aclosing(steps):
                async for event in steps:
                    yield event

    async def _start(self) -> tuple[Machine, ev.RunStarted]:
        plan = self._plan
        prepared = await prepare_history(plan)
        self.conversation_id = self._conversation(prepared.messages)
        context = self._context(prepared.messages)
        self._machine = machine = await start_machine(plan, prepared, context)
        started = self._event(
            ev.RunStarted,
            len(plan.history),
            len(prepared.messages),
            len(machine.messages),
            prepared.repair,
        )
        return machine, started

    async def _call_model(
        self, machine: Machine, command: CallModel
    ) -> AsyncGenerator[ev.Event, None]:
        turn, attempt = command.turn, 1
        yield self._event(ev.ModelStarted, turn, attempt)
        plan = self._plan
        request = Request(command.messages, plan.toolbox.specs, settings=plan.settings)
        machine.request_sent()
        failure: Exception | None = None
        try:
            if self._streaming:
                async with aclosing(self._stream_model(machine, request)) as deltas:
                    async for event in deltas:
                        yield event
            else:
                self._take(machine, await plan.model.generate(request))
        except Exception as error:  # noqa: BLE001 - any error of a model ends its turn alike
            failure = error
        if failure is not None:
            # A client that made the caller's cancellation an error of its own does not undo it.
            await anyio.lowlevel.checkpoint_if_cancelled()
            yield self._event(ev.ModelFinished, turn, attempt, error=describe(failure))
            raise RunFailure("model", describe(failure)) from failure
        reply, self._reply = self._reply, None
        assert reply is not None  # noqa: S101 - both ways above set it or raise
        response, message = reply
        yield self._event(ev.ModelFinished, turn, attempt, response.usage, response.finish_reason)
        yield self._event(ev.MessageAdded, message)

    async def _stream_model(
        self, machine: Machine, request: Request
    ) -> AsyncGenerator[ev.Event, None]:
        """The deltas of one request as events; takes the response that ends them."""
        async with aclosing(_closable(self._plan.model.stream(request))) as answer:
            async for item in answer:
                if self._reply is not None:
                    raise ProtocolError("the model went on after its response")
                if isinstance(item, Response):
                    self._take(machine, item)
                    continue
                machine.fragment(item)
                yield self._delta(item)
        if self._reply is None:
            raise ProtocolError("the model ended its stream without a response")

    def _take(self, machine: Machine, answer: object) -> None:
        """The model's turn is complete from here on, whatever becomes of its connection."""
        response = _checked(answer)
        self._reply = response, machine.model_replied(response)

    async def _run_tools(
        self, machine: Machine, command: RunTools
    ) -> AsyncGenerator[ev.Event, None]:
        turn = command.turn
        batch = machine.tools_started()
        for call in command.calls:
            yield self._event(ev.ToolStarted, turn, call.id, call.name, call.args)
            outcome = await self._run_tool(machine, call)
            result = machine.tool_finished(call, outcome)
            yield self._tool_finished(turn, call, outcome, result)
            if batch.decided:
                break
        for message in machine.tools_replied():
            yield self._event(ev.MessageAdded, message)
        if batch.stopped_by is not None:
            call, canceled = batch.stopped_by
            yield self._event(ev.RunCanceled, turn, call.id, call.name, canceled.reason)

    async def _run_tool(self, machine: Machine, call: ToolCall) -> Outcome:
        toolbox = self._plan.toolbox
        ready = toolbox.prepare(call)
        if isinstance(ready, (Rejected, Crashed)):
            return ready
        context = self._context(machine.messages, machine, call)
        machine.tool_started()
        outcome = await toolbox.run(call, ready, context)
        if isinstance(outcome, Crashed):
            await anyio.lowlevel.checkpoint_if_cancelled()  # as for a model that failed
        return outcome

    # Events

    def _event(self, kind: type[E], *values: Any, **named: Any) -> E:
        """The next event of the run: stamped, and counted."""
        event = kind(self.run_id, self.conversation_id, self._seq, *values, **named)
        self._seq += 1
        return event

    def _delta(self, delta: Delta) -> ev.Event:
        if isinstance(delta, TextDelta):
            return self._event(ev.TextDelta, delta.text)
        if isinstance(delta, ThinkingDelta):
            return self._event(ev.ThinkingDelta, delta.text)
        return self._event(ev.ToolCallDelta, delta.index, delta.id, delta.name, delta.args)

    def _tool_finished(
        self, turn: int, call: ToolCall, outcome: Outcome, result: ToolMessage | None
    ) -> ev.ToolFinished:
        error = "" if isinstance(outcome, Returned) else outcome.describe()
        if result is None:
            result = ToolMessage()
        return self._event(
            ev.ToolFinished,
            turn,
            call.id,
            call.name,
            call.args,
            result.content,
            result.parts,
            result.failed,
            error,
        )

    async def _observe(self, event: ev.Event) -> None:
        """Show the event to everyone who watches; what they raise is theirs.

        Where one is cancelled, the others still get the event: none of them misses one.
        """
        observers = iter(self._plan.observers)
        try:
            for observer in observers:
                await self._show(observer, event)
        except GeneratorExit:  # thrown away with its event loop: nothing can be awaited any more
            raise
        except BaseException:
            for observer in observers:
                with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                    await self._show(observer, event)
            raise

    async def _show(self, observer: Observer, event: ev.Event) -> None:
        try:
            done = observer(event)
            if inspect.isawaitable(done):
                await done
        except Exception:  # noqa: BLE001 - an observer must never fail the run
            _log.exception("an observer of run %s failed at event %d", self.run_id, event.seq)

    # Endings

    async def left(self) -> None:
        """Settle a run whose events were closed; one that had not begun never saw that."""
        if self.outcome is None:
            await self._settle(self._stopped("the consumer left the stream"))

    async def _settle(self, terminal: ev.Terminal) -> None:
        self.outcome = terminal
        await self._observe(terminal)

    def _finished(self) -> ev.RunFinished:
        assert self._machine is not None  # noqa: S101 - the machine said that it is done
        return self._event(ev.RunFinished, self._machine.result)

    def _stopped(self, reason: str) -> ev.RunStopped:
        return self._event(ev.RunStopped, reason, self.partial)

    def _failed(self, failure: RunFailure) -> tuple[ev.Terminal, RunError]:
        error = RunError(
            failure.reason,
            stage=failure.stage,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            partial=self.partial,
        )
        error.__cause__ = failure.__cause__
        if failure.stage == "canceled":
            return self._stopped(failure.reason), error
        return self._event(ev.RunFailed, failure.stage, failure.reason, error.partial), error

    def _conversation(self, messages: Sequence[Message]) -> str:
        """The given id, else that of the most recent identified message, else a new one."""
        given = self._plan.conversation_id or donated_conversation(messages)
        return given or self._new_conversation

    def _context(
        self,
        messages: Sequence[Message],
        machine: Machine | None = None,
        call: ToolCall | None = None,
    ) -> RunContext[Any]:
        """The run as instructions (no machine yet) and tools see it."""
        return RunContext(
            deps=self._plan.deps,
            run_id=self.run_id,
            conversation_id=self.conversation_id,
            messages=tuple(messages),
            usage=machine.usage if machine else Usage(),
            call_id=call.id if call else "",
            tool_name=call.name if call else "",
            attempt=machine.rejections(call.name) + 1 if machine and call else 1,
        )


def partial_from(error: BaseException) -> Partial | None:
    """The evidence of the run that `error` ended, wherever it hangs; None where there is none.

    Searches the exception, its cause and context, and the members of groups: an external
    cancellation is the backend's own exception and carries the evidence along (contract §4.4).
    Where a cancel scope swallowed the exception, use ``stream.partial``.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, RunError):
            return found.partial
        attached = found.__dict__.get(_EVIDENCE)
        if isinstance(attached, Partial):
            return attached
        waiting += [found.__context__, found.__cause__]
        if isinstance(found, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", found).exceptions
    return None


_EVIDENCE: Final = "_golem_partial"


def _attach(error: BaseException, partial: Partial | None) -> None:
    error.__dict__[_EVIDENCE] = partial
    if isinstance(error, BaseExceptionGroup):
        # A scope that takes its own cancellation out of a group makes a new group of the rest.
        for member in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            _attach(member, partial)


def _checked(answer: object) -> Response:
    """A model's answer, if it is one that every later run can send again."""
    message: object = answer.message if isinstance(answer, Response) else None
    if not isinstance(answer, Response) or not isinstance(message, AssistantMessage):
        raise ProtocolError("the model's answer is no Response with an AssistantMessage")
    for part in message.parts:
        try:
            part.validate()
        except ValueError as error:
            raise ProtocolError(f"the model's answer: {error}") from error
    return answer


async def _closable(items: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    """Any async iterator as one that is closed with this, where it can be.

    What goes wrong in closing is logged: it must neither take the place of a cancellation nor
    fail a turn that is complete.
    """
    try:
        async for item in items:
            yield item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                try:
                    await close()
                except Exception:  # noqa: BLE001 - whatever a foreign connection raises
                    _log.exception("the stream of a model could not be closed")
