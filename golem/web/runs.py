"""The runs of an app: begun, resumed, followed, stopped, for the identity that they belong to.

How a run that has begun is carried to its end stands in ``carrying``. Who asks for it, and in which
protocol, is not known here.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from http import HTTPStatus
from typing import Any, Final, NamedTuple, cast

import anyio
import msgspec

from golem._run.resume import check_answers
from golem.agent import Agent
from golem.closing import CLEANUP_SECONDS
from golem.codec import load_history
from golem.deferral import DeferredResults, Pending, PendingCall
from golem.errors import HistoryError, ReplayFullError, UnknownRunError
from golem.events import (
    Event,
    RunStopped,
    UnknownEvent,
    decode_event,
    encode_event,
)
from golem.ids import new_id
from golem.messages import Message, UserMessage
from golem.options import RunOptions
from golem.web.carrying import Carrier, OnEnd, Paused, Served
from golem.web.http import Refusal, not_found
from golem.web.replay import Replay, RunRecord
from golem.web.requests import (
    Admitted,
    Answers,
    Intake,
    IntakeReport,
    StopOrder,
    bad_history,
    clean,
)

Serving = Agent[Any, Any] | tuple[Agent[Any, Any], RunOptions[Any]]
AgentFor = Callable[[str], Awaitable[Serving] | Serving]
"""Gives the agent that serves an identity, its tools scoped to it; with options of the run beside
it (``deps``, ``tools``, ``limits``, ``journal`` …) where there are any."""

MayAnswer = Callable[[str, PendingCall], Awaitable[bool] | bool]
"""Whether that identity may answer that call of a run of its own."""

_log = logging.getLogger("golem")

_WAIT_SECONDS: Final = 5.0
"""How long a request to stop a run waits to tell how it ended."""


def owner_approves(identity: str, call: PendingCall) -> bool:
    """Who began a run may approve its calls; a result from elsewhere is not theirs to bring."""
    del identity
    return call.kind == "approval"


class Stopped(NamedTuple):
    """What became of a request to stop a run: its terminal event's kind, if it has ended."""

    ended: bool
    outcome: str = ""


class _ToRun(NamedTuple):
    """What a run is to be given."""

    identity: str
    conversation_id: str
    history: list[Message]
    prompt: UserMessage | None


class Runs(Carrier):
    """The runs of an app."""

    def __init__(
        self,
        replay: Replay,
        agent_for: AgentFor,
        *,
        keys: Sequence[bytes],
        on_end: OnEnd | None,
        may_answer: MayAnswer,
        max_running: int,
    ) -> None:
        super().__init__(replay, keys, on_end)
        self._agent_for = agent_for
        self._may_answer = may_answer
        self._max_running = max_running
        self._closing = False

    # Beginning

    async def begin(self, identity: str, admitted: Admitted) -> Served:
        """Begin a run; nothing of it happens before it is `carried`, or `detach`ed.

        Raises Refusal where it cannot begin, or a conversation is somebody else's.
        """
        for conversation in admitted.claimed:
            latest = await self.replay.latest(conversation)
            if latest is not None and latest.owner != identity:
                raise not_found()
        conversation = admitted.conversation_id or new_id()
        run = _ToRun(identity, conversation, admitted.history, admitted.prompt)
        served = await self._made(run, {})
        await self._record_begin(served, conversation, admitted.report)
        return served

    async def resume(self, run_id: str, identity: str, answers: Answers, intake: Intake) -> Served:
        """Begin the run that continues a paused one, from the record's own history.

        Raises Refusal where the run is not that identity's, does not wait or not for that, or
        where somebody else has answered first.
        """
        record = await self.owned(run_id, identity)
        if record.state != "paused" or record.resumed_by:
            detail = {"state": record.state, "resumedBy": record.resumed_by}
            raise _conflict("not_paused", "the run waits for no answer", detail)
        paused = msgspec.json.decode(record.paused, type=Paused)
        history = load_history(bytes(paused.history))
        try:
            check_answers(history, answers.deferred, answers.unresolved)
        except HistoryError as error:
            raise bad_history(error) from error
        await self._check_answers(identity, paused.pending, answers.deferred, intake)
        prompt, report = answers.prompt, IntakeReport()
        if prompt is not None:
            prompt, report = intake.prompt(prompt)
        options: RunOptions[Any] = {"deferred": answers.deferred, "unresolved": answers.unresolved}
        run = _ToRun(identity, record.conversation_id, history, prompt)
        served = await self._made(run, options)
        await self._record_begin(served, record.conversation_id, report)
        try:
            # Shielded: a claim that is made and not known of would use the answers up.
            with anyio.CancelScope(shield=True):
                if not await self.replay.claim(run_id, served.run_id):
                    raise _conflict("not_paused", "another request has answered first", None)
        except BaseException:
            await self._call_off(served, record.conversation_id)
            raise
        return served

    async def _check_answers(
        self, identity: str, pending: Pending, answers: DeferredResults, intake: Intake
    ) -> None:
        calls = {call.call_id: call for call in (*pending.approvals, *pending.external)}
        for call_id in (*answers.approvals, *answers.external):
            call = calls.get(call_id)
            kind = "approval" if call_id in answers.approvals else "external"
            if call is None or call.kind != kind:
                message = f"call {clean(call_id)!r} does not wait for an answer of that kind"
                raise Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, "not_pending", message)
            allowed = self._may_answer(identity, call)
            if not (await allowed if inspect.isawaitable(allowed) else allowed):
                message = f"the answer to call {clean(call_id)!r} is not yours to give"
                raise Refusal(HTTPStatus.FORBIDDEN, "not_yours_to_answer", message)
        for result in answers.external.values():
            if not isinstance(result, str) and result.parts:
                intake.prompt(UserMessage("result", parts=tuple(result.parts)))

    async def _made(self, run: _ToRun, extra: RunOptions[Any]) -> Served:
        """The run as it will be; nothing has begun."""
        found = self._agent_for(run.identity)
        serving = await found if inspect.isawaitable(found) else found
        own: RunOptions[Any] = {}
        if isinstance(serving, Agent):
            agent = serving
        else:
            agent, own = serving
        served = Served(new_id(), run.identity)
        ours: RunOptions[Any] = {
            "history": run.history,
            "run_id": served.run_id,
            "conversation_id": run.conversation_id,
            "on_event": self.recorder(served, own.get("on_event")),
            "parts": run.prompt.parts if run.prompt is not None else (),
        }
        text = None if run.prompt is None else run.prompt.content
        served.stream = agent.stream(text, **cast("RunOptions[Any]", {**own, **extra, **ours}))
        return served

    async def _record_begin(self, served: Served, conversation: str, report: IntakeReport) -> None:
        if self._closing:
            raise _unavailable("shutting_down", "the server is shutting down")
        if len(self._going_on) >= self._max_running:
            raise _unavailable("busy", f"{self._max_running} runs go on already")
        self._going_on[served.run_id] = served
        try:
            await self.replay.begin(
                served.run_id,
                owner=served.identity,
                conversation_id=conversation,
                report=msgspec.json.encode(report),
            )
        except ReplayFullError as error:
            self._forget(served)
            raise _unavailable("busy", str(error)) from error
        except BaseException:
            await self._call_off(served, conversation)
            raise

    async def _call_off(self, served: Served, conversation: str) -> None:
        """End the record of a run that will not be carried out, if there is one."""
        ending = encode_event(RunStopped(served.run_id, conversation, 0, "the run did not begin"))
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            try:
                await self.replay.finish(served.run_id, 0, ending)
            except UnknownRunError:
                pass  # it has none
            except Exception:  # noqa: BLE001 - what went wrong before is raised
                _log.exception("run %s did not begin, and its record has no end", served.run_id)
        self._forget(served)

    # Following and stopping

    async def owned(self, run_id: str, identity: str) -> RunRecord:
        """The record of that identity's run. Raises Refusal: somebody else's is an unknown one."""
        record = await self.replay.record(run_id)
        if record is None or record.owner != identity:
            raise not_found()
        return record

    async def waiting(self, conversation_id: str, identity: str) -> RunRecord | None:
        """The last run of that conversation, where it waits for the identity's answers."""
        if not conversation_id:
            return None
        record = await self.replay.latest(conversation_id)
        if record is None or record.owner != identity:
            return None
        return record if record.state == "paused" and not record.resumed_by else None

    async def check_unanswered(self, conversation_id: str, identity: str) -> None:
        """Raise Refusal where that conversation's last run is known, and waits for no answer."""
        record = await self.replay.latest(conversation_id) if conversation_id else None
        if record is not None and record.owner == identity:
            detail = {"state": record.state}
            raise _conflict("not_paused", "another request has answered first", detail)

    async def recorded(
        self, run_id: str, after: int = -1
    ) -> AsyncGenerator[Event | UnknownEvent, None]:
        """The run's events as the record has them, those to come included."""
        async with aclosing(self.replay.read(run_id, after)) as kept:
            async for _, data in kept:
                yield decode_event(data)

    async def terminal(self, record: RunRecord) -> Event | UnknownEvent | None:
        """The event that ended a run; None while it goes on."""
        if not record.over:
            return None
        async with aclosing(self.recorded(record.run_id, record.last - 1)) as events:
            return await anext(events, None)

    async def stop(self, run_id: str, identity: str, order: StopOrder) -> Stopped:
        """Stop that identity's run; waits some seconds to tell how it ended. Raises Refusal."""
        record = await self.owned(run_id, identity)
        served = self._going_on.get(run_id)
        if served is not None:
            with anyio.move_on_after(_WAIT_SECONDS):
                await served.stream.stop(order.when, within=order.within)
                if served.stream.outcome is not None:
                    await served.ended.wait()
            outcome = served.stream.outcome
            return Stopped(outcome is not None, "" if outcome is None else outcome.kind)
        if not record.over:
            raise _conflict("elsewhere", "another process carries the run out", None)
        ended = await self.terminal(record)
        return Stopped(True, "" if ended is None else ended.kind)

    async def shutdown(self, within: float) -> None:
        """End all runs, their evidence kept: stopped in order, and after so many seconds cancelled.

        None begins from here on.
        """
        self._closing = True
        with anyio.move_on_after(within):
            async with anyio.create_task_group() as tasks:
                for served in list(self._going_on.values()):
                    tasks.start_soon(self._end, served)
        with anyio.move_on_after(CLEANUP_SECONDS):
            async with anyio.create_task_group() as tasks:
                for served in list(self._going_on.values()):
                    served.scope.cancel()
                    # A server may hold on to a write that nothing can cancel, and to who waits.
                    tasks.start_soon(self.let_go, served)

    @staticmethod
    async def _end(served: Served) -> None:
        await served.stream.stop("now")
        await served.settled.wait()


def _conflict(code: str, message: str, detail: object) -> Refusal:
    return Refusal(HTTPStatus.CONFLICT, code, message, detail=detail)


def _unavailable(code: str, message: str) -> Refusal:
    return Refusal(HTTPStatus.SERVICE_UNAVAILABLE, code, message, headers={"retry-after": "1"})
