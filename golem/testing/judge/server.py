"""The judge itself: a loopback server that holds what it is sent to the rules of a `Wire`.

Every request is judged and kept. One that breaks a rule is answered as the provider answers it,
everything else with what the judge was told to say, and as badly as it was told to behave.
Works on asyncio and trio; it listens on 127.0.0.1 only and leaves nothing behind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.stapled import MultiListener
from msgspec import Struct

from golem.testing.judge.findings import JSON, UNREADABLE, Violation, is_object
from golem.testing.judge.http import HTTPRequest, RequestReader, send_reply
from golem.testing.judge.misbehave import Misbehavior, Scene
from golem.testing.judge.reply import Reply, json_reply, streamed
from golem.testing.judge.wire import Said, Wire, minted, response_of

DEFAULT_KEY: Final = "sk-judge-0123456789abcdefghij"

Answers = Sequence[Said] | Callable[[JSON], Said]
"""What to answer: one item for each request, or a function of the request's decoded body."""


class Asked(Struct, frozen=True):
    """One request that the judge got. `json` is None where the body was no JSON."""

    path: str
    headers: dict[str, str]
    body: bytes
    json: JSON | None
    violations: tuple[Violation, ...] = ()


class Judge:
    """A loopback server over a `Wire`; use it with ``async with``.

    `requests` holds what was asked, `violations` every rule that was broken so far,
    `connections` counts them and `open_connections` those that are still open. `elsewhere` holds
    what arrived at the other host that `golem.testing.judge.misbehave.redirects` points to.

    Args:
        wire: the API to judge by.
        answers: what to answer, one item for each request that is in order, or a function of the
            request's body; beyond them what `wire` says a helpful model would.
        misbehave: what to do wrong; one for every request, or a sequence, one for each request,
            None among them: behave.
        key: the key that requests must carry; empty: none is asked for.
    """

    def __init__(
        self,
        wire: Wire,
        answers: Answers = (),
        misbehave: Misbehavior | Sequence[Misbehavior | None] | None = None,
        *,
        key: str = DEFAULT_KEY,
    ) -> None:
        self.wire = wire
        self.key = key
        self.requests: list[Asked] = []
        self.elsewhere: list[HTTPRequest] = []
        self.connections = 0
        self.open_connections = 0
        self._answers = answers
        self._misbehave = misbehave
        self._answered = 0
        self._made_with: dict[str, str] = {}
        self._stack = AsyncExitStack()
        self._origin = self._other_origin = ""
        self._idle = anyio.Event()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.requests)} requests)"

    @property
    def base_url(self) -> str:
        """Where an adapter finds it: up to and without the wire's path."""
        if not self._origin:
            raise RuntimeError("the judge is not running: use it with `async with`")
        return self._origin + "/v1"

    @property
    def violations(self) -> list[Violation]:
        """Every rule that any request broke, in order."""
        return [violation for asked in self.requests for violation in asked.violations]

    async def until_closed(self, within: float = 5.0) -> None:
        """Return when no connection is open any more; TimeoutError when that takes too long."""
        with anyio.fail_after(within):
            while self.open_connections:
                await self._idle.wait()

    # --- its life

    async def __aenter__(self) -> Self:
        tasks = anyio.create_task_group()
        listeners = [await self._listener(), await self._listener()]
        self._origin, self._other_origin = (
            f"http://{host}:{_port(listener)}"
            for host, listener in zip(("127.0.0.1", "localhost"), listeners, strict=True)
        )
        await self._stack.enter_async_context(tasks)
        self._stack.callback(tasks.cancel_scope.cancel)
        tasks.start_soon(listeners[0].serve, self._serve)
        tasks.start_soon(listeners[1].serve, self._serve_elsewhere)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        # Not told of the error: a task group would wrap it, and a test wants its own.
        await self._stack.aclose()

    async def _listener(self) -> MultiListener[SocketStream]:
        listener = await anyio.create_tcp_listener(local_host="127.0.0.1")
        return await self._stack.enter_async_context(listener)

    async def _serve(self, stream: SocketStream) -> None:
        self.connections += 1
        self.open_connections += 1
        reader = RequestReader(stream)
        try:
            async with stream:
                while (request := await reader.next()) is not None:
                    reply = self._reply(request)
                    await send_reply(stream, reply)
                    if reply.then == "hang":
                        await reader.closed()
                    if reply.then != "keep":
                        break
        except (anyio.EndOfStream, anyio.BrokenResourceError, ValueError):
            pass  # the client went away; what it does is its own affair
        finally:
            self.open_connections -= 1
            self._idle.set()
            self._idle = anyio.Event()

    async def _serve_elsewhere(self, stream: SocketStream) -> None:
        async with stream:
            request = await RequestReader(stream).next()
            if request is not None:
                self.elsewhere.append(request)
                await send_reply(stream, json_reply({"error": {"message": "not here"}}, status=404))

    # --- a request

    def _reply(self, request: HTTPRequest) -> Reply:
        turn = len(self.requests)
        reply = self._judged(request)
        action = self._action(turn)
        if action is None:
            return reply
        elsewhere = self._other_origin + request.target
        return action(reply, Scene(self.wire, elsewhere, self.key))

    def _action(self, turn: int) -> Misbehavior | None:
        if self._misbehave is None or callable(self._misbehave):
            return self._misbehave
        return self._misbehave[turn] if turn < len(self._misbehave) else None

    def _judged(self, request: HTTPRequest) -> Reply:
        """The answer to `request`, from somebody who does nothing wrong."""
        path = request.target.partition("?")[0]
        body = _decoded(request.body)
        refusal = self._refusal(request, path, body)
        found: list[Violation] = []
        if refusal is None:
            found = self.wire.judge(body, self._made_with)
        kept = body if is_object(body) else None
        headers = dict(request.headers)
        self.requests.append(Asked(path, headers, request.body, kept, tuple(found)))
        if refusal is not None:
            return refusal
        if found or not is_object(body):
            return json_reply(found[0].body, status=found[0].status)
        reply = self._answer(body)
        return reply.with_header("x-request-id", f"req_{minted(body, 'request', 32)}")

    def _refusal(self, request: HTTPRequest, path: str, body: Any) -> Reply | None:
        """What keeps a request from being looked at: the wrong address or key, no JSON."""
        failure = self.wire.failure
        if not path.endswith(self.wire.path) or request.method != "POST":
            text = f"Invalid URL ({request.method} {path})"
            return json_reply(failure(text, "invalid_request_error", None), status=404)
        if self.key and (sent := self._key_of(request)) != self.key:
            return json_reply(self.wire.refused_key(sent), status=401)
        if body is _NO_JSON:
            return json_reply(failure(UNREADABLE, "invalid_request_error", None), status=400)
        return None

    def _key_of(self, request: HTTPRequest) -> str:
        sent = request.headers.get(self.wire.key_header, "")
        return sent.removeprefix("Bearer ") if self.wire.key_header == "authorization" else sent

    def _answer(self, body: JSON) -> Reply:
        said = response_of(self._said(body))
        self._made_with.update(self.wire.links(self.wire.answer(body, said)))
        if self.wire.streams(body):
            return streamed(self.wire.events(body, said))
        return json_reply(self.wire.answer(body, said))

    def _said(self, body: JSON) -> Said:
        if callable(self._answers):
            return self._answers(body)
        self._answered += 1
        if self._answered <= len(self._answers):
            return self._answers[self._answered - 1]
        return self.wire.default(body)


def _port(listener: MultiListener[SocketStream]) -> int:
    return listener.extra(SocketAttribute.local_port)  # noqa: S610  (no database here)


_NO_JSON: Final = object()


def _decoded(body: bytes) -> Any:
    """What a strict server reads: UTF-8, and no NaN."""
    try:
        return json.loads(body.decode(), parse_constant=_refused)
    except (ValueError, RecursionError):
        return _NO_JSON


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
