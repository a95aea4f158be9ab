"""An agent behind HTTP: a small ASGI app that any server runs and any framework mounts.

Here are its routes and what each answers; who may ask stands in ``guard``, what may be posted in
``requests``, how runs are carried out in ``runs``. Routes (below where the app is mounted)::

    POST /runs                        begin a run, read it as server-sent events
    GET  /runs/{id}                   what is known of it: state, what waits for an answer, report
    GET  /runs/{id}/events?after=     its events from the start, or behind an id (Last-Event-ID)
    GET  /runs/{id}/messages          the transcript of a run that has ended, as text to hand back
    POST /runs/{id}/stop              end it
    POST /runs/{id}/resume            answer the calls of a paused run, read what becomes of it
"""

from __future__ import annotations

import logging
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Mapping,
)
from contextlib import aclosing, asynccontextmanager
from functools import partial
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple, get_args

import anyio
import anyio.lowlevel
import anyio.to_thread
import msgspec

from golem.codec import dump_history
from golem.deferral import NOTHING_PENDING
from golem.errors import ReplayError
from golem.history.seal import Keys, checked_keys
from golem.messages import Message, SystemMessage
from golem.web.disclosure import Describe, guarded
from golem.web.frames import AnyEvent, EncoderFactory, Frame, Place, place_of, quoted
from golem.web.golem_events import golem_events
from golem.web.guard import Authenticate, Guard
from golem.web.http import (
    Disconnected,
    Receive,
    Refusal,
    Scope,
    Send,
    answer,
    check_json_type,
    encoded,
    header,
    not_found,
    path_of,
    query_of,
    read_body,
)
from golem.web.replay import MemoryReplay, Replay, RunRecord
from golem.web.requests import (
    Admitted,
    Intake,
    Reader,
    Unsafe,
    answers_body,
    clean,
    golem_body,
    stop_body,
)
from golem.web.runs import AgentFor, MayAnswer, OnEnd, Paused, Runs, Served, owner_approves
from golem.web.sse import HEADERS, sse

OnDisconnect = Literal["cancel", "detach"]
"""What becomes of a run when who began it has gone: it is cancelled, or goes on for the record."""

DEFAULT_POLICIES: Final[Mapping[str, Any]] = {"strip_identity": True, "block_private_hosts": True}
"""What `sanitize_history` is told where the app is not told otherwise."""

_LARGE: Final = 65_536
"""Bytes from which on a body is read in a thread, so that others are not kept waiting."""

_log = logging.getLogger("golem")


class Dialect(NamedTuple):
    """A protocol of clients: how they post a conversation, how they read a run."""

    read: Reader
    encode: EncoderFactory
    system_is_usual: bool = False


def app(
    agent_for: AgentFor,
    *,
    authenticate: Authenticate | None = None,
    replay: Replay | None = None,
    on_disconnect: OnDisconnect = "cancel",
    seal_key: Keys | None = None,
    unsafe: Unsafe = "refuse",
    policies: Mapping[str, Any] | None = None,
    max_bytes: int = 4 * 1024 * 1024,
    max_messages: int = 1000,
    max_running: int = 1000,
    body_timeout: float = 10.0,
    send_timeout: float = 60.0,
    shutdown_timeout: float = 10.0,
    ping: float | None = 15.0,
    may_answer: MayAnswer = owner_approves,
    on_end: OnEnd | None = None,
    describe: Describe = guarded,
    allowed_origins: Collection[str] = (),
) -> App:
    """An ASGI application that serves agents as event streams.

    Args:
        agent_for: Gives the agent for an identity, its tools scoped to it, or the agent and options
            for the run (``deps``, ``tools``, ``limits``, ``journal`` …). Sync or async.
        authenticate: Gives the identity by the ASGI scope, as text, or None (401). Called before
            anything else. Without it only clients on this machine are answered, as ``"local"``.
        replay: The record of runs; a `MemoryReplay` where none is given.
        on_disconnect: ``cancel`` a run when who began it has gone, or ``detach``: it goes on, at
            its own speed, and is read from the record. Detaching is not stopping.
        seal_key: One key or several (rotation). Transcripts go out sealed for their identity, and a
            posted history is refused unless every message of it verifies.
        unsafe: What becomes of a posted system message or a forbidden address: the request is
            refused (422), or it is dropped and reported.
        policies: Keywords of `sanitize_history`, in place of `DEFAULT_POLICIES`.
        max_bytes: Bytes of a body.
        max_messages: Messages of a posted conversation.
        max_running: Runs that go on at once; beyond it a 503.
        body_timeout: Seconds in which a body has to arrive.
        send_timeout: Seconds for which a reader may take nothing; then it counts as gone.
        shutdown_timeout: Seconds that runs have to end in when the server shuts down; then they
            are cancelled.
        ping: Seconds of silence after which a comment goes out; None: never.
        may_answer: Whether an identity may answer a call of its own paused run. By default it may
            approve, and not bring results from elsewhere.
        on_end: Called with the identity and the terminal event of every run, to store what it
            added; sync or async, with seconds to do it.
        describe: Words for errors, for clients; see `golem.web.guarded`.
        allowed_origins: Origins whose pages may ask where no `authenticate` is set.

    Raises ValueError or TypeError for an option out of range.
    """
    keys = () if seal_key is None else tuple(checked_keys(seal_key))
    if on_disconnect not in get_args(OnDisconnect):
        raise ValueError(f"on_disconnect must be one of {get_args(OnDisconnect)}")
    if unsafe not in get_args(Unsafe):
        raise ValueError(f"unsafe must be one of {get_args(Unsafe)}")
    chosen = DEFAULT_POLICIES if policies is None else policies
    return App(
        runs=Runs(
            MemoryReplay() if replay is None else replay,
            agent_for,
            keys=keys,
            on_end=on_end,
            may_answer=may_answer,
            max_running=max_running,
        ),
        guard=Guard(authenticate, allowed_origins),
        intake=Intake(max_messages, chosen, unsafe, keys),
        dialects=dialects(describe),
        detaches=on_disconnect == "detach",
        max_bytes=max_bytes,
        body_timeout=body_timeout,
        send_timeout=send_timeout,
        shutdown_timeout=shutdown_timeout,
        ping=ping,
    )


def dialects(describe: Describe) -> dict[str, Dialect]:
    """The protocols an app speaks, by the name that ``?format=`` has for them."""

    def golem() -> Any:
        return golem_events(describe=describe)

    return {"golem": Dialect(golem_body, golem)}


class App:
    """See `app`."""

    def __init__(
        self,
        *,
        runs: Runs,
        guard: Guard,
        intake: Intake,
        dialects: Mapping[str, Dialect],
        detaches: bool,
        max_bytes: int,
        body_timeout: float,
        send_timeout: float,
        shutdown_timeout: float,
        ping: float | None,
    ) -> None:
        self._runs = runs
        self._guard = guard
        self._intake = intake
        self._dialects = dialects
        self._detaches = detaches
        self._max_bytes = max_bytes
        self._body_timeout = body_timeout
        self._send_timeout = send_timeout
        self._shutdown_timeout = shutdown_timeout
        self._ping = ping

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """ASGI 3."""
        if scope["type"] == "http":
            await self._http(Exchange(scope, receive, send))
        elif scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
        else:
            raise ValueError(f"no ASGI scope of type {scope['type']!r} is served")

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[App, None]:
        """The app while it is mounted in another, whose lifespan this belongs into.

        At the block's end the runs are ended as at a server's shutdown.
        """
        try:
            yield self
        finally:
            with anyio.CancelScope(shield=True):
                await self._runs.shutdown(self._shutdown_timeout)

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        await receive()
        async with self.running():
            await send({"type": "lifespan.startup.complete"})
            await receive()
        await send({"type": "lifespan.shutdown.complete"})

    async def _http(self, http: Exchange) -> None:
        try:
            identity = await self._guard.identify(http.scope)
            await self._route(http, identity)
        except Refusal as refusal:
            await http.answer(refusal.status, refusal.body(), refusal.headers)
        except (Disconnected, OSError):
            pass  # nobody is there to be answered
        except Exception:
            _log.exception("a request failed")
            if http.answered:
                raise
            failure = Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the server failed")
            await http.answer(failure.status, failure.body(), {})

    async def _route(self, http: Exchange, identity: str) -> None:
        path = path_of(http.scope).split("/")[1:]
        methods: dict[str, Callable[[], Awaitable[None]]]
        match path:
            case ["runs"]:
                methods = {"POST": lambda: self._begin(http, identity, "golem")}
            case ["runs", run_id]:
                methods = {"GET": lambda: self._show(http, identity, run_id)}
            case ["runs", run_id, "events"]:
                methods = {"GET": lambda: self._events(http, identity, run_id)}
            case ["runs", run_id, "messages"]:
                methods = {"GET": lambda: self._messages(http, identity, run_id)}
            case ["runs", run_id, "stop"]:
                methods = {"POST": lambda: self._stop(http, identity, run_id)}
            case ["runs", run_id, "resume"]:
                methods = {"POST": lambda: self._resume(http, identity, run_id)}
            case _:
                raise not_found()
        method = str(http.scope["method"])
        if method not in methods:
            allow = {"allow": ", ".join([*methods, "OPTIONS"])}
            if method == "OPTIONS":
                await http.answer(HTTPStatus.NO_CONTENT, b"", allow)
                return
            raise Refusal(
                HTTPStatus.METHOD_NOT_ALLOWED,
                "method_not_allowed",
                f"allowed are: {allow['allow']}",
                headers=allow,
            )
        await methods[method]()

    # Routes

    async def _begin(self, http: Exchange, identity: str, protocol: str) -> None:
        dialect = self._dialects[protocol]
        body = await self._body(http)

        def admit() -> Admitted:
            posted = dialect.read(body, self._intake.max_messages)
            usual = dialect.system_is_usual
            return self._intake.admit(posted, identity, system_is_usual=usual)

        admitted = await _off_the_loop(admit, len(body))
        served = await self._runs.begin(identity, admitted)
        await self._carry_out(http, served, dialect)

    async def _resume(self, http: Exchange, identity: str, run_id: str) -> None:
        dialect = self._dialect(http)
        await self._runs.owned(run_id, identity)  # before the body is read
        answers = answers_body(await self._body(http))
        served = await self._runs.resume(run_id, identity, answers, self._intake)
        await self._carry_out(http, served, dialect)

    async def _stop(self, http: Exchange, identity: str, run_id: str) -> None:
        await self._runs.owned(run_id, identity)
        order = stop_body(await self._body(http))
        stopped = await self._runs.stop(run_id, identity, order)
        status = HTTPStatus.OK if stopped.ended else HTTPStatus.ACCEPTED
        await http.answer(status, {"ended": stopped.ended, "outcome": stopped.outcome or None})

    async def _show(self, http: Exchange, identity: str, run_id: str) -> None:
        record = await self._runs.owned(run_id, identity)
        waits = NOTHING_PENDING
        if record.paused:
            waits = msgspec.json.decode(record.paused, type=Paused).pending
        shown = {
            "runId": record.run_id,
            "conversationId": record.conversation_id,
            "state": record.state,
            "last": record.last,
            "pending": waits,
            "resumedBy": record.resumed_by or None,
            "intake": msgspec.Raw(record.report or b"null"),
        }
        await http.answer(HTTPStatus.OK, shown)

    async def _messages(self, http: Exchange, identity: str, run_id: str) -> None:
        record = await self._runs.owned(run_id, identity)
        ended = await self._runs.terminal(record)
        if ended is None:
            raise Refusal(HTTPStatus.CONFLICT, "running", "the run goes on")
        evidence: Any = getattr(ended, "result", None) or getattr(ended, "partial", None)
        found: list[Message] = getattr(evidence, "resume_messages", None) or getattr(
            evidence, "messages", []
        )
        shown = [message for message in found if not isinstance(message, SystemMessage)]
        await http.answer(HTTPStatus.OK, dump_history(shown))

    async def _events(self, http: Exchange, identity: str, run_id: str) -> None:
        dialect = self._dialect(http)
        record = await self._runs.owned(run_id, identity)
        after = _after(http, record)
        place = None if after is None else place_of(after)
        if place is not None and self._is_all(record, place):
            await http.answer(HTTPStatus.NO_CONTENT, b"")
            return
        # Golem's own events are read one by one; other protocols are told from the start.
        start = -1 if place is None or not self._is_golem(dialect) else place.seq
        if start + 1 < record.first:
            raise Refusal(
                HTTPStatus.GONE,
                "dropped",
                f"events before {record.first} are no longer kept",
                detail={"first": record.first},
            )
        events = self._runs.recorded(run_id, start)
        await self._send_events(http, events, record, dialect, after=after)

    def _is_golem(self, dialect: Dialect) -> bool:
        return dialect is self._dialects["golem"]

    @staticmethod
    def _is_all(record: RunRecord, place: Place) -> bool:
        """Whether a reader there has all there is, and all there will be."""
        if place.seq > record.last and not record.over:
            raise Refusal(HTTPStatus.BAD_REQUEST, "invalid_after", "the run has no such event yet")
        return record.over and place.seq >= record.last and place.sub is None

    # Carrying out

    async def _carry_out(self, http: Exchange, served: Served, dialect: Dialect) -> None:
        """The run as it happens: at the reader's pace, or detached, from the record."""
        if self._detaches:
            self._runs.detach(served)
            record = await self._runs.owned(served.run_id, served.identity)
            events = self._runs.recorded(served.run_id)
            await self._send_events(http, events, record, dialect)
            return
        async with self._runs.carried(served) as events:
            record = await self._runs.owned(served.run_id, served.identity)

            gone = partial(self._runs.let_go, served)
            await self._send_events(http, events, record, dialect, gone=gone)

    async def _send_events(
        self,
        http: Exchange,
        events: AsyncGenerator[Any, None],
        record: RunRecord,
        dialect: Dialect,
        *,
        after: str | None = None,
        gone: Callable[[], Awaitable[None]] = anyio.lowlevel.checkpoint,
    ) -> None:
        async with aclosing(events):
            stream = sse(events, encode=dialect.encode, ping=self._ping, after=after)
            fields = {
                **HEADERS,
                **dialect.encode().headers,
                "golem-run-id": quoted(record.run_id),
                "golem-conversation-id": quoted(record.conversation_id),
                "x-content-type-options": "nosniff",
            }
            hello = b""
            if after is None and self._is_golem(dialect):
                hello = Frame(record.report, event="intake").encode()
            async with aclosing(stream):  # type: ignore[type-var]
                await http.stream(fields, hello, stream, send_timeout=self._send_timeout, gone=gone)

    # What a request says

    async def _body(self, http: Exchange) -> bytes:
        check_json_type(http.scope)
        return await read_body(
            http.scope, http.receive, max_bytes=self._max_bytes, seconds=self._body_timeout
        )

    def _dialect(self, http: Exchange) -> Dialect:
        name = query_of(http.scope).get("format", "golem")
        try:
            return self._dialects[name]
        except KeyError:
            raise Refusal(
                HTTPStatus.BAD_REQUEST,
                "unknown_format",
                f"no format {clean(name)!r}; known are: {', '.join(self._dialects)}",
            ) from None


class Exchange:
    """One request and its response."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self.scope = scope
        self.receive = receive
        self._send = send
        self.answered = False
        self._writing_since: float | None = None

    async def answer(
        self, status: int, value: object, fields: Mapping[str, str] | None = None
    ) -> None:
        """Answer with JSON."""
        self.answered = True
        await answer(self._send, status, value, fields)

    async def stream(
        self,
        fields: Mapping[str, str],
        hello: bytes,
        chunks: AsyncIterator[bytes],
        *,
        send_timeout: float,
        gone: Callable[[], Awaitable[None]],
    ) -> None:
        """Answer with these bytes as they come, until they end or the client has gone.

        Then `gone` is called, whatever the server may still be writing. Who takes nothing for
        `send_timeout` seconds counts as gone.
        """
        self.answered = True
        start = {"type": "http.response.start", "status": 200, "headers": encoded(fields)}
        async with anyio.create_task_group() as tasks:

            async def until(client_has_gone: Callable[[], Awaitable[None]]) -> None:
                await client_has_gone()
                tasks.cancel_scope.cancel()
                with anyio.CancelScope(shield=True):
                    await gone()

            tasks.start_soon(until, self._disconnected)
            tasks.start_soon(until, partial(self._stalled, send_timeout))
            try:
                await self._write(start)
                if hello:
                    await self._write(_chunk(hello))
                async for chunk in chunks:
                    await self._write(_chunk(chunk))
                await self._write({"type": "http.response.body", "body": b""})
            except OSError:
                pass  # the client has gone
            except ReplayError as error:  # who comes back for the rest is told
                _log.info("an event stream ended early: %s", error)
                await self._write({"type": "http.response.body", "body": b""})
            tasks.cancel_scope.cancel()

    async def _write(self, event: dict[str, Any]) -> None:
        self._writing_since = anyio.current_time()
        await self._send(event)
        self._writing_since = None

    async def _disconnected(self) -> None:
        while (await self.receive())["type"] != "http.disconnect":
            pass

    async def _stalled(self, seconds: float) -> None:
        """Until one write takes so long. No deadline on the write: a server may shield it."""
        while True:
            since = self._writing_since
            late_at = (anyio.current_time() if since is None else since) + seconds
            await anyio.sleep(late_at - anyio.current_time())
            if since is not None and self._writing_since == since:
                return


def _chunk(data: bytes) -> dict[str, Any]:
    return {"type": "http.response.body", "body": data, "more_body": True}


async def _off_the_loop(work: Callable[[], Admitted], size: int) -> Admitted:
    if size < _LARGE:
        return work()
    return await anyio.to_thread.run_sync(work)


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


__all__ = ["DEFAULT_POLICIES", "AnyEvent", "App", "app", "header"]
