"""One turn of the model: attempts, fragments, timeouts; every attempt has its events."""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

import anyio

from golem import events as ev
from golem._run.answers import checked
from golem._run.cancellation import told
from golem._run.commands import CallModel, RunFailure, describe, error_type
from golem._run.herald import Herald
from golem._run.journal import Journal
from golem._run.machine import Machine
from golem._run.plan import Plan
from golem._run.prepare import processed_by
from golem._run.waiting import GRACE_SECONDS, StopNow, Waiting
from golem.batching import batches_of
from golem.closing import closable
from golem.errors import ProtocolError
from golem.history.bounds import TokenCounter
from golem.history.repair import normalize_history
from golem.limits import UsageLimitError
from golem.model import Delta, Request, Response
from golem.rawjson import clean_text

if TYPE_CHECKING:
    from golem._run.retry import Attempts

_log = logging.getLogger("golem")


class ModelTurn:
    """Carries out one `CallModel`."""

    def __init__(
        self,
        plan: Plan,
        machine: Machine,
        herald: Herald,
        waiting: Waiting,
        journal: Journal,
        command: CallModel,
        *,
        streaming: bool,
    ) -> None:
        self._plan = plan
        self._machine = machine
        self._herald = herald
        self._waiting = waiting
        self._journal = journal
        self._command = command
        self._streaming = streaming
        self._heard = False
        self._response: Response | None = None

    async def events(self) -> AsyncGenerator[ev.Event, None]:
        """Send the request until it is answered or may not be sent again.

        Raises RunFailure: ``history`` for a request processor, ``model`` or ``usage`` for the rest.
        """
        plan = self._plan
        self._waiting.turn_begins()
        request = await self._request()
        attempts: Attempts | None = None
        attempt, begun = 0, time.monotonic()
        while True:
            attempt += 1
            failure: Exception | None = None
            ending: RunFailure | StopNow | None = None
            self._check()
            yield self._herald.event(ev.ModelStarted, self._command.turn, attempt, self._name())
            try:
                self._waiting.check()  # what is not sent does not count
                self._machine.request_sent()
                if self._streaming:
                    async with aclosing(self._streamed(request)) as answer:
                        async for event in answer:
                            yield event
                else:
                    generated = plan.model.generate(request)
                    await self._take(await self._waiting.on(generated, turn=True))
            except RunFailure as error:  # of the journal: the attempt itself has succeeded
                ending = error
            except StopNow as stop:
                if self._response is None:
                    raise
                ending = stop  # behind an answer that is complete
            except Exception as error:  # noqa: BLE001 - any error of a model ends the attempt
                failure = error
            yield self._finished(attempt, failure)
            if ending is not None:
                raise ending
            if failure is None:
                return
            attempts = attempts or self._attempts(begun)
            await self._pause_after(failure, attempts)

    def _attempts(self, begun: float) -> Attempts | None:
        """What the policy will make of failures, if there is one."""
        from golem._run.retry import DEFAULT_RETRY, Attempts  # dear to load: tenacity

        policy = self._plan.retry
        if policy is None:
            return None
        return Attempts(DEFAULT_RETRY if policy == "default" else policy, begun)

    def _name(self) -> str:
        """The model's name, if it has one and can say it."""
        try:
            return clean_text(str(getattr(self._plan.model, "model", "")))
        except Exception:  # noqa: BLE001 - a name is for show
            return ""

    def _check(self) -> None:
        """Raise RunFailure where a timeout has passed, StopNow where the run was stopped."""
        try:
            self._waiting.check()
        except TimeoutError as error:
            raise RunFailure("model", describe(error), error) from error

    def _finished(self, attempt: int, failure: Exception | None) -> ev.ModelFinished:
        turn, response = self._command.turn, self._response
        said = "" if failure is None else describe(failure)
        kind = error_type(failure)
        if response is None:
            return self._herald.event(ev.ModelFinished, turn, attempt, error=said, error_type=kind)
        return self._herald.event(
            ev.ModelFinished,
            turn,
            attempt,
            response.usage,
            response.finish_reason,
            said,
            kind,
            response.details,
        )

    async def _pause_after(self, failure: Exception, attempts: Attempts | None) -> None:
        """Wait for the next attempt, or end the run: nothing is repeated that was given out.

        Raises RunFailure: ``usage`` where one more request is one too many, else ``model``.
        """
        if attempts is None or self._heard or self._response is not None:
            raise RunFailure("model", describe(failure), failure)
        try:
            delay = await self._waiting.on(told(attempts.delay_after, failure), turn=True)
            if delay is None:
                raise failure
            self._machine.check_request()
            await self._waiting.on(anyio.sleep(delay), turn=True)
        except RunFailure:
            raise
        except Exception as error:  # golem's own timeout, or the code of a policy
            if error is not failure:
                error.__context__ = failure
            raise RunFailure("model", describe(error), error) from error

    async def _streamed(self, request: Request) -> AsyncGenerator[ev.Event, None]:
        waiting_for = "first_token"
        async with aclosing(closable(batches_of(self._plan.model, request))) as answer:
            while (
                self._response is None
                and (item := await self._next(answer, waiting_for)) is not None
            ):
                waiting_for = "between_tokens"
                if isinstance(item, Response):
                    await self._take(item)
                    continue
                if not item:
                    continue
                self._heard = True
                for delta in item:  # all of it has come, so all of it is evidence
                    self._machine.fragment(delta)
                self._herald.hear(item)
                while (event := self._herald.next_heard()) is not None:
                    yield event
            if self._response is None:
                raise ProtocolError("the model ended its stream without a response")
            await self._to_the_end(answer)

    async def _to_the_end(self, answer: AsyncIterator[Sequence[Delta] | Response]) -> None:
        """Let a stream end behind its response, so that its connection is free for the next turn.

        The turn is complete: what goes wrong here is logged, and nobody waits for it; a stop or
        the total ends the run without it.
        """
        try:
            with anyio.move_on_after(GRACE_SECONDS):
                await self._waiting.on(anext(answer))
                raise ProtocolError("the model went on after its response")
        except StopAsyncIteration:
            pass
        except ProtocolError:
            raise
        except TimeoutError:
            _log.warning("a model's stream was not at its end behind its response")
        except Exception:  # noqa: BLE001 - whatever a connection raises that is not needed any more
            _log.exception("a model's stream failed behind its response")

    async def _next(
        self, answer: AsyncIterator[Sequence[Delta] | Response], waiting_for: str
    ) -> Sequence[Delta] | Response | None:
        try:
            return await self._waiting.on(anext(answer), turn=True, fragment=waiting_for)
        except StopAsyncIteration:
            return None

    async def _take(self, answer: object) -> None:
        """The model's turn is complete from here on, whatever becomes of its connection."""
        self._response = response = checked(answer)
        self._machine.model_replied(response)
        if self._journal.kept:
            await self._journal.catch_up(self._machine)

    async def _request(self) -> Request:
        """The request as it goes out: processed, repaired, counted."""
        plan = self._plan
        messages = self._command.messages
        if plan.request_processor is not None:
            try:
                processing = told(processed_by, plan.request_processor, messages)
                processed = await self._waiting.on(processing, turn=True)
                messages, _ = normalize_history(processed)
            except Exception as error:
                raise RunFailure("history", describe(error), error) from error
            if not messages:
                raise RunFailure("history", "the request processor left nothing to send")
        request = Request(
            messages,
            tools=plan.specs,
            output_schema=plan.output_schema,
            settings=plan.settings,
        )
        if plan.counter is not None and plan.limits.per_request_input_tokens is not None:
            await self._check_size(request, plan.counter, plan.limits.per_request_input_tokens)
        return request

    async def _check_size(self, request: Request, counter: TokenCounter, limit: int) -> None:
        try:
            counted = told(counter.count_tokens, request.messages, request.tools)
            tokens = await self._waiting.on(counted, turn=True)
            crosses = tokens > limit
        except Exception as error:
            reason = f"token count failed before request: {describe(error)}"
            raise RunFailure("model", reason, error) from error
        if crosses:
            crossed = UsageLimitError("per-request input token", limit, tokens, ahead=True)
            raise RunFailure("usage", str(crossed), crossed)
