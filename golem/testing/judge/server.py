"""The judge itself: a loopback server that holds what it is sent to the rules of a `Provider`.

Every request is judged and kept. One that breaks a rule is answered as the provider answers it,
everything else with what the judge was told to say, and as badly as it was told to behave.
Works on asyncio and trio; it listens on 127.0.0.1 only and leaves nothing behind.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any, Final, Self

import anyio
from anyio.abc import SocketAttribute, SocketStream
from anyio.streams.stapled import MultiListener
from msgspec import Struct

from golem import rawjson
from golem.messages import AssistantMessage
from golem.model import Response
from golem.testing.judge.answers import minted, response_of
from golem.testing.judge.findings import JSON, Violation, is_object
from golem.testing.judge.http import HTTPRequest, RequestReader, send_reply
from golem.testing.judge.misbehave.scene import Inattention, Misbehavior, Scene
from golem.testing.judge.provider import Provider, Said
from golem.testing.judge.reply import Reply, plain, streamed

DEFAULT_KEY: Final = "sk-judge-0123456789abcdefghij"

_NO_REQUEST: Final = (anyio.EndOfStream, anyio.BrokenResourceError, ValueError)
"""What a connection ends with whose client went away, or speaks no HTTP: its own affair."""

Answers = Said | Sequence[Said] | Callable[[JSON], Said]
"""What to answer: always the same, one item for each request, or a function of the request's
decoded body."""


class Asked(Struct, frozen=True):
    """One request that the judge got whole. `json` is None where the body was no JSON object."""

    path: str
    headers: dict[str, str]
    body: bytes
    json: JSON | None
    violations: tuple[Violation, ...] = ()


class Judge:
    """A loopback server that plays a `Provider`; use it with ``async with``.

    `requests` holds what was asked, `violations` every rule that was broken so far,
    `connections` counts them and `open_connections` those that are still open, `dropped` the
    requests that it did not read to their end. `elsewhere` holds what arrived at the other host
    that `golem.testing.judge.misbehave.redirects` points to.

    Args:
        provider: the API to judge by.
        answers: what to answer: always the same, one item for each request that is in order (also
            where something is then done wrong with it), or a function of the request's body;
            beyond them what `provider` says a helpful model would.
        misbehave: what to do wrong; one for every request, or a sequence, one for each request,
            None among them: behave.
        key: the key that requests must carry; empty: none is asked for.
    """

    def __init__(
        self,
        provider: Provider,
        answers: Answers = (),
        misbehave: Misbehavior | Sequence[Misbehavior | None] | None = None,
        *,
        key: str = DEFAULT_KEY,
    ) -> None:
        self.provider = provider
        self.key = key
        self.requests: list[Asked] = []
        self.elsewhere: list[HTTPRequest] = []
        self.connections = 0
        self.open_connections = 0
        self.dropped = 0
        self._answers = answers
        self._actions = _one_each(misbehave)
        self._answered = 0
        self._made_with: dict[str, str] = {}
        self._stack = AsyncExitStack()
        self._origin = self._other_origin = ""
        self._idle = anyio.Event()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.requests)} requests)"

    @property
    def origin(self) -> str:
        """Where it listens: scheme, host and port."""
        if not self._origin:
            raise RuntimeError("the judge is not running: use it with `async with`")
        return self._origin

    @property
    def base_url(self) -> str:
        """Where an adapter finds it: up to and without the provider's path."""
        return self.origin + "/v1"

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
            with contextlib.suppress(*_NO_REQUEST):
                async with stream:
                    while (head := await reader.head()) is not None:
                        if not await self._exchange(stream, reader, head):
                            break
        finally:
            self.open_connections -= 1
            self._idle.set()
            self._idle = anyio.Event()

    async def _exchange(
        self, stream: SocketStream, reader: RequestReader, head: HTTPRequest
    ) -> bool:
        """One request and its answer; whether the connection is kept."""
        action = next(self._actions)
        if isinstance(action, Inattention):
            self.dropped += 1
            await reader.some(action.after)
            if action.hangs:
                await anyio.sleep_forever()
            return False
        request = await reader.whole(head)
        reply = self._reply(request)
        if action is not None:
            elsewhere = self._other_origin + request.target
            reply = action(reply, Scene(self.provider, elsewhere, self.key))
        await send_reply(stream, reply)
        if reply.then == "hang":
            await reader.closed()
        return reply.then == "keep"

    async def _serve_elsewhere(self, stream: SocketStream) -> None:
        reader = RequestReader(stream)
        with contextlib.suppress(*_NO_REQUEST):
            async with stream:
                head = await reader.head()
                if head is not None:
                    self.elsewhere.append(await reader.whole(head))
                    await send_reply(stream, plain(b"{}", status=404))

    # --- a request

    def _reply(self, request: HTTPRequest) -> Reply:
        """The answer to `request`, from somebody who does nothing wrong."""
        path = request.target.partition("?")[0]
        body = _decoded(request.body)
        found = self._violations(request, path, body)
        kept = body if is_object(body) else None
        headers = dict(request.headers)
        self.requests.append(Asked(path, headers, request.body, kept, tuple(found)))
        if found or kept is None:
            return self.provider.reply(found[0].body, found[0].status)
        name, value = self.provider.request_id_header, f"req_{minted(kept, 'request', 32)}"
        return self._answer(path, kept).with_header(name, value)

    def _violations(self, request: HTTPRequest, path: str, body: Any) -> list[Violation]:
        """What keeps a request from being looked at, else what is wrong with its body."""
        failure = self.provider.failure
        if not self.provider.serves(path) or request.method != "POST":
            text = f"Invalid URL ({request.method} {path})"
            return [Violation("address", "", text, failure(text, 404), 404)]
        if self.key and (sent := self.provider.key_of(request.headers)) != self.key:
            return [self.provider.refused_key(sent)]
        if body is _NO_JSON:
            text = self.provider.unreadable
            return [Violation("json", "", text, failure(text, 400))]
        return self.provider.judge_request(path, request.headers, body, self._made_with)

    def _answer(self, path: str, body: JSON) -> Reply:
        if (aside := self.provider.aside(path, body)) is not None:
            return self.provider.reply(aside)
        said = response_of(self._said(body))
        answer = self.provider.answer(body, said)
        self._made_with.update(self.provider.links(answer))
        if self.provider.streams(path, body):
            return streamed(self.provider.events(body, said), self.provider.stream_type)
        return self.provider.reply(answer)

    def _said(self, body: JSON) -> Said:
        if isinstance(self._answers, str | AssistantMessage | Response):
            return self._answers
        if callable(self._answers):
            return self._answers(body)
        self._answered += 1
        if self._answered <= len(self._answers):
            return self._answers[self._answered - 1]
        return self.provider.default(body)


def _one_each(
    misbehave: Misbehavior | Sequence[Misbehavior | None] | None,
) -> Iterator[Misbehavior | None]:
    """What to do wrong at each request: always the same, or these and nothing after them."""
    if misbehave is None or isinstance(misbehave, Inattention) or callable(misbehave):
        return itertools.repeat(misbehave)
    return itertools.chain(misbehave, itertools.repeat(None))


def _port(listener: MultiListener[SocketStream]) -> int:
    return listener.extra(SocketAttribute.local_port)  # noqa: S610  (no database here)


_NO_JSON: Final = object()
_DEEPEST: Final = 2 * rawjson.MAX_DEPTH
"""Deepest nesting of a body: arguments as deep as golem stores them, and the request around."""


def _decoded(body: bytes) -> Any:
    """What a strict server reads: UTF-8, no NaN, and nothing that is nested past every use."""
    try:
        value = json.loads(body.decode(), parse_constant=_refused)
    except (ValueError, RecursionError):
        return _NO_JSON
    deep = body.count(b"[") + body.count(b"{") > _DEEPEST and rawjson.depth(body) > _DEEPEST
    return _NO_JSON if deep else value


def _refused(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
