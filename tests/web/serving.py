"""The app behind real servers on the loopback, and a client that sees every byte."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

import anyio
import hypercorn.asyncio
import hypercorn.config
import hypercorn.trio
import sniffio
import uvicorn
from anyio.abc import SocketStream

from golem.web.asgi import App

SERVERS = [("asyncio", "uvicorn"), ("asyncio", "hypercorn"), ("trio", "hypercorn")]
"""Which servers run on which backend."""


class _Uvicorn(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def served(app: Any, name: str) -> AsyncIterator[int]:
    """The app behind that server on the current backend, on a port of the loopback."""
    backend = sniffio.current_async_library()
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen(1000)
        listener.setblocking(False)
        port = listener.getsockname()[1]
        async with anyio.create_task_group() as tasks:
            if name == "uvicorn":
                config = uvicorn.Config(
                    app, log_level="critical", timeout_graceful_shutdown=1, lifespan="on"
                )
                uvicorn_server = _Uvicorn(config)
                tasks.start_soon(uvicorn_server.serve, [listener])
                await until(lambda: uvicorn_server.started)
                yield port
                uvicorn_server.should_exit = True
            else:
                serve = getattr(hypercorn, backend).serve
                settings = hypercorn.config.Config()
                settings.bind = [f"fd://{listener.detach()}"]
                settings.loglevel = "CRITICAL"
                settings.graceful_timeout = 1.0
                settings.backlog = 1000
                settings.keep_alive_timeout = 600.0  # a crowd is slow to say what it wants
                over = anyio.Event()
                tasks.start_soon(lambda: serve(app, settings, shutdown_trigger=over.wait))
                await _answers(port)
                yield port
                over.set()


async def _answers(port: int) -> None:
    """Until the server has begun to serve: a request is answered."""
    async with await anyio.connect_tcp("127.0.0.1", port) as stream:
        await stream.send(b"OPTIONS /runs HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
        await stream.receive()


@dataclass
class Answer:
    """A response whose body is read as it comes."""

    stream: SocketStream
    status: int
    headers: dict[str, str]
    rest: bytes
    body: bytes = b""
    text: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    async def chunk(self) -> bytes:
        """The next piece of a chunked body; nothing at its end."""
        while b"\r\n" not in self.rest:
            self.rest += await self.stream.receive()
        size, _, self.rest = self.rest.partition(b"\r\n")
        length = int(size, 16)
        while len(self.rest) < length + 2:
            self.rest += await self.stream.receive()
        piece, self.rest = self.rest[:length], self.rest[length + 2 :]
        return piece

    async def read(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            while piece := await self.chunk():
                self.body += piece
        else:
            length = int(self.headers.get("content-length", 0))
            while len(self.rest) < length:
                self.rest += await self.stream.receive()
            self.body, self.rest = self.rest[:length], self.rest[length:]
        return self.body

    def events(self) -> Self:
        """The server-sent events, from where the last reading stopped."""
        return self

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sent:
        while True:
            while b"\n\n" not in self.text:
                piece = await self.chunk()
                if not piece:
                    raise StopAsyncIteration
                self.text += piece
            block, _, self.text = self.text.partition(b"\n\n")
            sent = Sent()
            for line in block.decode().split("\n"):
                name, _, value = line.partition(": ")
                if name in ("data", "id", "event"):
                    setattr(sent, name, getattr(sent, name) + value)
            if sent.data:
                return sent


@dataclass
class Sent:
    """One server-sent event."""

    data: str = ""
    id: str = ""
    event: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.data)


@dataclass
class Client:
    """Requests to one port, each over a connection of its own."""

    port: int
    headers: dict[str, str] = field(default_factory=dict)

    @contextlib.asynccontextmanager
    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncIterator[Answer]:
        """The answer, its body not read yet; leaving the block closes the connection."""
        fields = {"host": f"localhost:{self.port}", **self.headers}
        data = b""
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            fields |= {"content-type": "application/json", "content-length": str(len(data))}
        fields |= dict(headers or {})
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields.items())
        async with await anyio.connect_tcp("127.0.0.1", self.port) as stream:
            await stream.send(head.encode("latin-1") + b"\r\n" + data)
            received = b""
            while b"\r\n\r\n" not in received:
                received += await stream.receive()
            top, _, rest = received.partition(b"\r\n\r\n")
            lines = top.decode("latin-1").split("\r\n")
            found = dict(line.lower().split(": ", 1) for line in lines[1:])
            yield Answer(stream, int(lines[0].split()[1]), found, rest)

    async def get(self, path: str, headers: Mapping[str, str] | None = None) -> Answer:
        """The whole answer to a GET."""
        async with self.ask("GET", path, headers=headers) as answer:
            await answer.read()
            return answer

    async def post(self, path: str, body: Any, headers: Mapping[str, str] | None = None) -> Answer:
        """The whole answer to a POST."""
        async with self.ask("POST", path, body, headers) as answer:
            await answer.read()
            return answer

    async def run(self, body: Any, path: str = "/runs") -> list[Sent]:
        """Every event of a run."""
        async with self.ask("POST", path, body) as answer:
            if answer.status != 200:
                raise AssertionError((answer.status, await answer.read()))
            return [sent async for sent in answer.events()]


def number(sent: Sent) -> int:
    """The `seq` in an event's id."""
    return int(sent.id.rpartition(":")[2])


Check = Callable[[], bool]


async def until(check: Check) -> None:
    """Until that holds; a test that waits for what never comes hangs, and shows where."""
    while not check():  # noqa: ASYNC110 - what it waits for has no event
        await anyio.sleep(0.005)


Serve = Callable[[Any], contextlib.AbstractAsyncContextManager[Client]]
"""How the fixture `serve` serves an app with the server of the test."""


def going_on(app: App) -> int:
    """How many runs the app carries out."""
    return len(app._runs._going_on) + len(app._runs._tasks)


async def read_until(answer: Answer, kind: str) -> list[Sent]:
    """The events up to the first of that kind."""
    found: list[Sent] = []
    async for sent in answer.events():
        found.append(sent)
        if sent.json.get("kind") == kind:
            break
    return found


def run_of(sent: list[Sent]) -> str:
    """The id of the run that these are events of."""
    run_id: str = next(s.json["runId"] for s in sent if s.id)
    return run_id
