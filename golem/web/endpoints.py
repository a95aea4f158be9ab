"""What each route of the app answers. Who asks is known by then; a refusal is raised, not sent."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing
from functools import partial
from http import HTTPStatus
from typing import Any, Final, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from golem.codec import dump_history
from golem.deferral import NOTHING_PENDING, Pending
from golem.events import RunFailed, RunFinished, RunPaused
from golem.messages import Message, SystemMessage
from golem.web.carrying import Paused, Served
from golem.web.chat_chunks import chat_completion
from golem.web.dialects import ChatDialect, Dialect
from golem.web.disclosure import Describe
from golem.web.exchange import Exchange
from golem.web.frames import AnyEvent, EncoderFactory, Frame, Place, place_of, quoted
from golem.web.http import (
    Refusal,
    check_json_type,
    header,
    query_of,
    read_body,
)
from golem.web.replay import RunRecord
from golem.web.requests import (
    Answers,
    Intake,
    IntakeReport,
    answers_body,
    clean,
    stop_body,
)
from golem.web.runs import Runs
from golem.web.sse import HEADERS, sse

T = TypeVar("T")

Endpoint = Callable[[Exchange, str], Awaitable[None]]
"""Answers a request of an identity."""

_LARGE: Final = 65_536
"""Bytes from which on a body is read in a thread, so that others are not kept waiting."""


class Endpoints:
    """The app's routes. Methods give what answers, or are it."""

    def __init__(
        self,
        runs: Runs,
        intake: Intake,
        dialects: Mapping[str, Dialect],
        *,
        detaches: bool,
        describe: Describe,
        max_bytes: int,
        body_timeout: float,
        send_timeout: float,
        ping: float | None,
    ) -> None:
        self._runs = runs
        self._intake = intake
        self._dialects = dialects
        self._detaches = detaches
        self._describe = describe
        self._max_bytes = max_bytes
        self._body_timeout = body_timeout
        self._send_timeout = send_timeout
        self._ping = ping
        self._threads = anyio.CapacityLimiter(4)  # never behind tools that block theirs

    # Beginning

    def begin(self, name: str) -> Endpoint:
        """Begin a run, or answer a paused one as the protocol does, and stream it."""
        dialect = self._dialects[name]

        async def answer(http: Exchange, identity: str) -> None:
            body = await self._body(http)
            served, encode = await http.unless_left(partial(self._begun, dialect, body, identity))
            await self._carry_out(http, served, dialect, encode)

        return answer

    def resume(self, run_id: str) -> Endpoint:
        """Answer the calls of a paused run, and stream the run that goes on."""

        async def answer(http: Exchange, identity: str) -> None:
            dialect = self._dialect(http)
            await self._runs.owned(run_id, identity)  # before the body is read
            answers = answers_body(await self._body(http))
            encode = dialect.encoder()
            served = await http.unless_left(
                partial(self._runs.resume, run_id, identity, answers, self._intake)
            )
            await self._carry_out(http, served, dialect, encode)

        return answer

    async def complete(self, http: Exchange, identity: str) -> None:
        """A chat completion, streamed or whole as the request says."""
        dialect = self._dialects["chat"]
        assert isinstance(dialect, ChatDialect)  # noqa: S101 - that is its name
        body = await self._body(http)
        request = dialect.request(body)
        served, encode = await http.unless_left(partial(self._begun, dialect, body, identity))
        if request.stream:
            await self._carry_out(http, served, dialect, encode)
            return
        ended: AnyEvent | None = None
        async with self._runs.carried(served) as events:

            async def read_to_end() -> None:
                nonlocal ended
                async for event in events:
                    ended = event

            await http.unless_gone(read_to_end, partial(self._runs.let_go, served))
        if not isinstance(ended, (RunFinished, RunPaused)):
            told = self._describe(ended) if isinstance(ended, RunFailed) else "the run was stopped"
            # OpenAI's clients ask again after a 500, and would have every tool run once more.
            never_again = {"x-should-retry": "false"}
            status = HTTPStatus.INTERNAL_SERVER_ERROR
            raise Refusal(status, "run_failed", told, headers=never_again)
        created = int(dialect.clock())
        whole = chat_completion(ended.result, model=request.model, created=created)
        await http.answer(HTTPStatus.OK, whole)

    async def models(self, http: Exchange, identity: str) -> None:
        """What clients of Chat Completions let somebody choose from: one agent, by any name."""
        del identity
        dialect = self._dialects["chat"]
        assert isinstance(dialect, ChatDialect)  # noqa: S101 - that is its name
        created = int(dialect.clock())
        agent = {"id": "golem", "object": "model", "created": created, "owned_by": "golem"}
        await http.answer(HTTPStatus.OK, {"object": "list", "data": [agent]})

    async def _begun(
        self, dialect: Dialect, body: bytes, identity: str
    ) -> tuple[Served, EncoderFactory]:
        """The run that a body begins, new or in answer to a paused one, and how it is told.

        Nothing may fail once it has begun: who gets it carries it out.
        """
        posted = await self._off_the_loop(
            lambda: dialect.read(body, self._intake.max_messages), len(body)
        )
        waiting = await self._runs.waiting(posted.conversation_id, identity)
        if waiting is not None:
            deferred = dialect.answers(body, pending_of(waiting))
            if deferred.approvals or deferred.external:
                encode = dialect.encoder(body, resumes=True)
                answers = Answers(deferred, None, "error")
                run_id = waiting.run_id
                return await self._runs.resume(run_id, identity, answers, self._intake), encode
        elif dialect.is_answer(body):
            await self._runs.check_unanswered(posted.conversation_id, identity)
        usual = dialect.system_is_usual
        admitted = await self._off_the_loop(
            lambda: self._intake.admit(posted, identity, system_is_usual=usual), len(body)
        )
        encode = dialect.encoder(body)
        return await self._runs.begin(identity, admitted), encode

    async def _off_the_loop(self, work: Callable[[], T], size: int) -> T:
        if size < _LARGE:
            return work()
        return await anyio.to_thread.run_sync(work, limiter=self._threads)

    # What is known of a run

    def show(self, run_id: str) -> Endpoint:
        """State, what waits for an answer, and what the boundary reported."""

        async def answer(http: Exchange, identity: str) -> None:
            record = await self._runs.owned(run_id, identity)
            shown = {
                "runId": record.run_id,
                "conversationId": record.conversation_id,
                "state": record.state,
                "last": record.last,
                "pending": pending_of(record),
                "resumedBy": record.resumed_by or None,
                "intake": msgspec.Raw(record.report or b"null"),
            }
            await http.answer(HTTPStatus.OK, shown)

        return answer

    def messages(self, run_id: str) -> Endpoint:
        """The transcript of a run that has ended: a history to post again, without instructions."""

        async def answer(http: Exchange, identity: str) -> None:
            record = await self._runs.owned(run_id, identity)
            ended = await self._runs.terminal(record)
            if ended is None:
                raise Refusal(HTTPStatus.CONFLICT, "running", "the run goes on")
            transcript = _transcript(ended)
            if transcript is None:  # an empty one would be taken for the conversation
                message = "the run has left no transcript; its events are all there is"
                raise Refusal(HTTPStatus.CONFLICT, "no_transcript", message)
            shown = [m for m in transcript if not isinstance(m, SystemMessage)]
            await http.answer(HTTPStatus.OK, dump_history(shown))

        return answer

    def stop(self, run_id: str) -> Endpoint:
        """End a run."""

        async def answer(http: Exchange, identity: str) -> None:
            await self._runs.owned(run_id, identity)
            order = stop_body(await self._body(http))
            stopped = await self._runs.stop(run_id, identity, order)
            status = HTTPStatus.OK if stopped.ended else HTTPStatus.ACCEPTED
            await http.answer(status, {"ended": stopped.ended, "outcome": stopped.outcome or None})

        return answer

    def events(self, run_id: str) -> Endpoint:
        """The events of a run from the record, those to come included; 204 where there is none."""

        async def answer(http: Exchange, identity: str) -> None:
            dialect = self._dialect(http)
            record = await self._runs.owned(run_id, identity)
            after = _after(http, record)
            place = None if after is None else place_of(after)
            if place is not None and _is_all(record, place):
                await http.answer(HTTPStatus.NO_CONTENT, b"")
                return
            start = -1 if place is None or not dialect.stateless else place.seq
            await self._replay(http, record, dialect, start, after)

        return answer

    def going_on(self, conversation_id: str) -> Endpoint:
        """The run of that chat which goes on, from its start; 204 where none does."""

        async def answer(http: Exchange, identity: str) -> None:
            record = await self._runs.replay.latest(conversation_id)
            if record is None or record.owner != identity or record.over:
                await http.answer(HTTPStatus.NO_CONTENT, b"")
                return
            await self._replay(http, record, self._dialects["ui"], -1, None)

        return answer

    # Streaming

    async def _replay(
        self, http: Exchange, record: RunRecord, dialect: Dialect, start: int, after: str | None
    ) -> None:
        if start + 1 < record.first:
            raise Refusal(
                HTTPStatus.GONE,
                "dropped",
                f"events before {record.first} are no longer kept",
                detail={"first": record.first},
            )
        events = self._runs.recorded(record.run_id, start)
        await self._send_events(http, events, record, dialect, dialect.encoder(), after=after)

    async def _carry_out(
        self, http: Exchange, served: Served, dialect: Dialect, encode: EncoderFactory
    ) -> None:
        """The run as it happens: at the reader's pace, or detached, from the record."""
        if self._detaches:
            self._runs.detach(served)
            record = await self._runs.owned(served.run_id, served.identity)
            events = self._runs.recorded(served.run_id)
            await self._send_events(http, events, record, dialect, encode)
            return
        async with self._runs.carried(served) as happening:
            record = await self._runs.owned(served.run_id, served.identity)
            gone = partial(self._runs.let_go, served)
            await self._send_events(http, happening, record, dialect, encode, gone=gone)

    async def _send_events(
        self,
        http: Exchange,
        events: AsyncGenerator[Any, None],
        record: RunRecord,
        dialect: Dialect,
        encode: EncoderFactory,
        *,
        after: str | None = None,
        gone: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
    ) -> None:
        fields = {
            **HEADERS,
            **encode().headers,
            "golem-run-id": quoted(record.run_id),
            "golem-conversation-id": quoted(record.conversation_id),
            "golem-intake": "changed" if _changed(record) else "clean",
            "x-content-type-options": "nosniff",
        }
        hello = b""
        if after is None and dialect.name == "golem":
            hello = Frame(record.report or b"{}", event="intake").encode()
        async with aclosing(events):
            stream = sse(events, encode=encode, ping=self._ping, after=after)
            async with aclosing(stream):
                await http.stream(fields, hello, stream, send_timeout=self._send_timeout, gone=gone)

    # What a request says

    async def _body(self, http: Exchange) -> bytes:
        check_json_type(http.scope)
        return await read_body(
            http.scope, http.receive, max_bytes=self._max_bytes, seconds=self._body_timeout
        )

    def _dialect(self, http: Exchange) -> Dialect:
        name = query_of(http.scope).get("format", "golem")
        replayable = [known for known in self._dialects if known != "chat"]
        if name not in replayable:
            raise Refusal(
                HTTPStatus.BAD_REQUEST,
                "unknown_format",
                f"no format {clean(name)!r}; known are: {', '.join(replayable)}",
            )
        return self._dialects[name]


def pending_of(record: RunRecord) -> Pending:
    """What a run waits for, by the server's own record."""
    if not record.paused:
        return NOTHING_PENDING
    return msgspec.json.decode(record.paused, type=Paused).pending


def _changed(record: RunRecord) -> bool:
    return msgspec.json.decode(record.report or b"{}", type=IntakeReport).changed


def _transcript(ended: AnyEvent) -> list[Message] | None:
    """The conversation at a run's end; None where the run could not say: its process has died."""
    if isinstance(ended, (RunFinished, RunPaused)):
        return ended.result.messages
    partial = getattr(ended, "partial", None)
    return None if partial is None else partial.resume_messages


def _is_all(record: RunRecord, place: Place) -> bool:
    """Whether a reader there has all there is, and all there will be. Raises Refusal."""
    if place.seq > record.last and not record.over:
        raise Refusal(HTTPStatus.BAD_REQUEST, "invalid_after", "the run has no such event yet")
    return record.over and place.seq >= record.last and place.sub is None


def _after(http: Exchange, record: RunRecord) -> str | None:
    """The id behind which a reader goes on: of the query, else of the header; a bare number too.

    Raises Refusal for what is no id of this run.
    """
    given = query_of(http.scope).get("after") or header(http.scope, "last-event-id")
    if not given:
        return None
    name = quoted(record.run_id)
    text = f"{name}:{given}" if given.isascii() and given.isdigit() else given
    try:
        place = place_of(text)
    except ValueError:
        place = Place("", 0)
    if place.run != name:
        raise Refusal(
            HTTPStatus.BAD_REQUEST, "invalid_after", "that is no id of an event of this run"
        )
    return text
