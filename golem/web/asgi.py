"""An agent behind HTTP: a small ASGI app that any server runs and any framework mounts.

Here are its routes; what each answers stands in ``endpoints``, who may ask in ``guard``, what may
be posted in ``requests`` and ``dialects``, how runs are carried out in ``runs`` and ``carrying``.
Routes, below where the app is mounted::

    POST /runs                        begin a run, read it as server-sent events
    GET  /runs/{id}                   what is known of it: state, what waits for an answer, report
    GET  /runs/{id}/events?after=     its events from the start, or behind an id (Last-Event-ID)
    GET  /runs/{id}/messages          the transcript of a run that has ended, as text to hand back
    POST /runs/{id}/stop              end it
    POST /runs/{id}/resume            answer the calls of a paused run, read what becomes of it

    POST /ui                          the same conversation as the Vercel AI SDK posts and reads it
    GET  /ui/{chat}/stream            the run of that chat which goes on; 204 where none does
    POST /agui                        as AG-UI has it
    POST /v1/chat/completions         as OpenAI's clients have it, streamed or not
    GET  /v1/models                   the one that they may ask for
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, Final, Literal, get_args

import anyio

from golem.history.sanitize import sanitize_history
from golem.history.seal import Keys, checked_keys
from golem.limits import check_number
from golem.web.carrying import OnEnd
from golem.web.dialects import dialects
from golem.web.disclosure import Describe, guarded
from golem.web.endpoints import Endpoints
from golem.web.exchange import Exchange
from golem.web.guard import Authenticate, Guard
from golem.web.http import Disconnected, Receive, Refusal, Scope, Send, header, not_found, path_of
from golem.web.replay import MemoryReplay, Replay
from golem.web.requests import Intake, Unsafe
from golem.web.runs import AgentFor, MayAnswer, Runs, owner_approves

__all__ = ["DEFAULT_POLICIES", "App", "app", "header"]

OnDisconnect = Literal["cancel", "detach"]
"""What becomes of a run when who began it has gone: it is cancelled, or goes on for the record."""

DEFAULT_POLICIES: Final[Mapping[str, Any]] = {"strip_identity": True, "block_private_hosts": True}
"""What `sanitize_history` is told where the app is not told otherwise."""

_log = logging.getLogger("golem")


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
        body_timeout: Seconds in which a body has to arrive, and in which an async `authenticate`
            has to answer (503).
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
    _require_callables(
        agent_for=agent_for,
        authenticate=authenticate,
        may_answer=may_answer,
        on_end=on_end,
        describe=describe,
    )
    if replay is not None and not isinstance(replay, Replay):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"replay must be a Replay, not {type(replay).__name__}")
    for name, choice, choices in (
        ("on_disconnect", on_disconnect, get_args(OnDisconnect)),
        ("unsafe", unsafe, get_args(Unsafe)),
    ):
        if choice not in choices:
            raise ValueError(f"{name} must be one of {choices}, got {choice!r}")
    for name, seconds in (
        ("body_timeout", body_timeout),
        ("send_timeout", send_timeout),
        ("shutdown_timeout", shutdown_timeout),
    ):
        check_number(name, seconds, positive=True)
    if ping is not None:
        check_number("ping", ping, positive=True)
    for name, bound, least in (
        ("max_bytes", max_bytes, 1),
        ("max_messages", max_messages, 1),
        ("max_running", max_running, 0),
    ):
        if bound < least:
            raise ValueError(f"{name} must be at least {least}, got {bound!r}")
    chosen = DEFAULT_POLICIES if policies is None else policies
    sanitize_history((), **chosen)  # raises for what is no policy, before anybody asks
    keys = () if seal_key is None else tuple(checked_keys(seal_key))
    runs = Runs(
        MemoryReplay() if replay is None else replay,
        agent_for,
        keys=keys,
        on_end=on_end,
        may_answer=may_answer,
        max_running=max_running,
    )
    endpoints = Endpoints(
        runs,
        Intake(max_messages, chosen, unsafe, keys),
        dialects(describe, time.time),
        detaches=on_disconnect == "detach",
        describe=describe,
        max_bytes=max_bytes,
        body_timeout=body_timeout,
        send_timeout=send_timeout,
        ping=ping,
    )
    guard = Guard(authenticate, allowed_origins)
    return App(guard, endpoints, runs, body_timeout, shutdown_timeout)


def _require_callables(**given: object) -> None:
    for name, function in given.items():
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function, not {type(function).__name__}")


class App:
    """See `app`."""

    def __init__(
        self,
        guard: Guard,
        endpoints: Endpoints,
        runs: Runs,
        identity_timeout: float,
        shutdown_timeout: float,
    ) -> None:
        self._guard = guard
        self._endpoints = endpoints
        self._runs = runs
        self._identity_timeout = identity_timeout
        self._shutdown_timeout = shutdown_timeout

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
        """The app while it is mounted in another, into whose lifespan this belongs.

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
            identity = await self._identity(http.scope)
            await self._route(http, identity)
        except Refusal as refusal:
            await http.answer(refusal.status, refusal.body(), refusal.headers)
        except Disconnected:
            pass  # nobody is there to be answered
        except Exception:
            _log.exception("a request failed")
            if http.answered:
                raise
            failure = Refusal(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "the server failed")
            await http.answer(failure.status, failure.body(), {})

    async def _identity(self, scope: Scope) -> str:
        with anyio.move_on_after(self._identity_timeout):
            return await self._guard.identify(scope)
        _log.error("authenticate took more than %g s", self._identity_timeout)
        raise Refusal(
            HTTPStatus.SERVICE_UNAVAILABLE,
            "authenticate_timeout",
            "it could not be found out in time who you are",
            headers={"retry-after": "1"},
        )

    async def _route(self, http: Exchange, identity: str) -> None:
        method, answer = self._endpoint(path_of(http.scope).split("/")[1:])
        if http.scope["method"] == method:
            await answer(http, identity)
            return
        allow = {"allow": f"{method}, OPTIONS"}
        if http.scope["method"] == "OPTIONS":
            await http.answer(HTTPStatus.NO_CONTENT, b"", allow)
            return
        raise Refusal(
            HTTPStatus.METHOD_NOT_ALLOWED,
            "method_not_allowed",
            f"allowed are: {allow['allow']}",
            headers=allow,
        )

    def _endpoint(self, path: list[str]) -> tuple[str, Callable[[Exchange, str], Awaitable[None]]]:
        """The method a path takes, and what answers it. Raises Refusal for a path there is not."""
        ends = self._endpoints
        match path:
            case ["runs"]:
                return "POST", ends.begin("golem")
            case ["runs", run_id]:
                return "GET", ends.show(run_id)
            case ["runs", run_id, "events"]:
                return "GET", ends.events(run_id)
            case ["runs", run_id, "messages"]:
                return "GET", ends.messages(run_id)
            case ["runs", run_id, "stop"]:
                return "POST", ends.stop(run_id)
            case ["runs", run_id, "resume"]:
                return "POST", ends.resume(run_id)
            case ["ui"]:
                return "POST", ends.begin("ui")
            case ["ui", chat, "stream"]:
                return "GET", ends.going_on(chat)
            case ["agui"]:
                return "POST", ends.begin("agui")
            case ["chat", "completions"] | ["v1", "chat", "completions"]:
                return "POST", ends.complete
            case ["models"] | ["v1", "models"]:
                return "GET", ends.models
            case _:
                raise not_found()
