"""One batch of tool calls: groups that run together, their events, the journal of their results.

A group runs to its end inside one coroutine, between two events: no task outlives it.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncGenerator, Sequence
from typing import Any

import anyio

from golem import events as ev
from golem._run.cancellation import cancel_requests, cancelled_by_scope, pass_cancellation
from golem._run.commands import (
    Crashed,
    Deferred,
    Outcome,
    Rejected,
    Returned,
    RunFailure,
    RunTools,
    describe,
    error_type,
)
from golem._run.herald import Herald
from golem._run.journal import Journal
from golem._run.machine import Machine
from golem._run.plan import Plan
from golem._run.toolbox import Ready
from golem._run.waiting import Waiting
from golem.carrying import calling, current_task
from golem.context import RunContext
from golem.messages import ToolCall, ToolMessage


class ToolBatch:
    """Carries out one `RunTools`."""

    def __init__(
        self,
        plan: Plan,
        machine: Machine,
        herald: Herald,
        waiting: Waiting,
        journal: Journal,
        command: RunTools,
    ) -> None:
        self._plan = plan
        self._machine = machine
        self._herald = herald
        self._waiting = waiting
        self._journal = journal
        self._command = command
        self._batch = machine.tools_started()

    async def events(self) -> AsyncGenerator[ev.Event, None]:
        """Check the whole batch, then run it group by group, in call order.

        Raises RunFailure (``tool``) where golem's own timeout strikes, (``history``) where the
        journal fails.
        """
        batch, turn = self._batch, self._command.turn
        ready = [self._prepare(call) for call in batch.calls]
        doomed = batch.doomed(ready)
        groups = batch.groups(self._together) if doomed is None else [[doomed]]
        if doomed is None:
            self._machine.tools_checked(sum(isinstance(outcome, Ready) for outcome in ready))
        for group in groups:
            for place in group:
                self._waiting.heed_stop()  # what will not run is not said to begin
                call = batch.calls[place]
                yield self._herald.event(ev.ToolStarted, turn, call.id, call.name, call.args)
            await self._run(group, ready)
            for place in group:
                yield self._finished(place)
            if batch.decided:
                break
        self._machine.tools_replied()
        if self._journal.kept:
            await self._journal.catch_up(self._machine)
        while self._machine.untold:
            yield self._herald.added(self._machine.untold)
        if batch.stopped_by is not None:
            call, canceled = batch.stopped_by
            yield self._herald.event(ev.RunCanceled, turn, call.id, call.name, canceled.reason)

    def _prepare(self, call: ToolCall) -> Ready | Outcome:
        return self._plan.toolbox.prepare(call, approved=self._command.approved)

    def _together(self, call: ToolCall) -> bool:
        return self._plan.parallel and not self._plan.toolbox.is_sequential(call)

    async def _run(self, group: Sequence[int], ready: Sequence[Ready | Outcome]) -> None:
        try:
            if len(group) == 1:
                await self._waiting.on(self._run_call(group[0], ready[group[0]]))
            else:
                await self._waiting.on(self._run_together(group, ready))
        except TimeoutError as error:
            raise RunFailure("tool", describe(error), error) from error
        self._batch.settle()
        if not self._journal.kept:
            return
        for place in group:  # a rejection is a result only now that it is known to be allowed
            if isinstance(self._batch.outcome(place), Rejected) and not self._batch.decided:
                await self._journal.write_result(self._machine, self._batch.result(place))

    async def _run_together(self, group: Sequence[int], ready: Sequence[Ready | Outcome]) -> None:
        failures: list[RunFailure] = []
        fatal: list[BaseException] = []

        async def run(place: int) -> None:
            try:  # a failing journal must not cancel the siblings: they finish
                await self._run_call(place, ready[place])
            except RunFailure as failure:
                failures.append(failure)
            except BaseException as error:
                if cancelled_by_scope():
                    raise
                # One that a task group would lose (a tool's own CancelledError) or wrap.
                fatal.append(error)
                tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            for place in group:
                tasks.start_soon(run, place)
        if found := [*fatal, *failures]:
            raise found[0]

    async def _run_call(self, place: int, ready: Ready | Outcome) -> None:
        call = self._batch.calls[place]
        before = cancel_requests()
        outcome = ready if not isinstance(ready, Ready) else await self._execute(call, ready)
        if isinstance(outcome, Deferred) and not call.id:
            outcome = Crashed(
                ValueError("a call without an id cannot wait: nothing could answer it")
            )
        self._machine.tool_finished(place, outcome)
        if self._journal.kept and not isinstance(outcome, Rejected):
            await self._journal.write_result(self._machine, self._batch.result(place))
        if not isinstance(outcome, Returned):
            await pass_cancellation(before)  # which the tool may have made an outcome of

    async def _execute(self, call: ToolCall, ready: Ready) -> Outcome:
        machine = self._machine
        context: RunContext[Any] = RunContext(
            deps=self._plan.deps,
            run_id=machine.run_id,
            conversation_id=machine.conversation_id,
            messages=tuple(machine.messages),
            usage=machine.ledger.usage,
            call_id=call.id,
            tool_name=call.name,
            attempt=machine.rejections(call.name) + 1,
            approved=self._command.approved,
            charge=machine.charge,
        )
        machine.tool_started()
        outside = calling.get()
        calling.set(weakref.ref(current_task()))
        try:
            outcome = await ready.run(context, self._waiting.timeouts.tool)
        except BaseException:
            if ready.in_thread:
                machine.abandoned.append(call.id)
            raise
        finally:
            calling.set(outside)
        if isinstance(outcome, Deferred):
            machine.tool_deferred()
        elif isinstance(outcome, Crashed) and outcome.abandoned:
            machine.abandoned.append(call.id)
        return outcome

    def _finished(self, place: int) -> ev.Event:
        call, outcome = self._batch.calls[place], self._batch.outcome(place)
        about = (self._command.turn, call.id, call.name, call.args)
        if isinstance(outcome, Deferred):
            return self._herald.event(ev.ToolDeferred, *about, outcome.kind, outcome.reason)
        result = self._batch.result(place) or ToolMessage()
        if self._batch.failure is not None and self._batch.failure[0] is call:
            result = ToolMessage()
        error = outcome.describe() if outcome is not None else ""
        kind = error_type(outcome.error) if isinstance(outcome, Crashed) else ""
        return self._herald.event(
            ev.ToolFinished, *about, result.content, result.parts, result.failed, error, kind
        )
