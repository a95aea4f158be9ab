"""A TCP server on the loopback that answers with scripted bytes: what a real socket does."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field

import anyio
from anyio.abc import SocketAttribute, SocketStream


@dataclass
class Connection:
    """One accepted connection; a script reads requests from it and sends bytes."""

    stream: SocketStream
    server: Server
    _rest: bytes = b""

    async def request(self) -> bytes:
        """The next request, head and body."""
        data = self._rest
        while b"\r\n\r\n" not in data:
            data += await self.stream.receive()
        head, _, body = data.partition(b"\r\n\r\n")
        fields = (line.partition(b":") for line in head.lower().split(b"\r\n"))
        length = next((int(value) for name, _, value in fields if name == b"content-length"), 0)
        while len(body) < length:
            body += await self.stream.receive()
        self._rest = body[length:]
        request = head + b"\r\n\r\n" + body[:length]
        self.server.requests.append(request)
        return request

    async def send(self, *pieces: bytes) -> None:
        """Send bytes, one packet each."""
        for piece in pieces:
            await self.stream.send(piece)

    async def begin_stream(self) -> None:
        """Send the head of a chunked event stream."""
        await self.send(
            b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
            b"transfer-encoding: chunked\r\nx-request-id: req-1\r\n\r\n"
        )

    async def chunk(self, data: bytes) -> None:
        """Send one chunk of a chunked body; an empty one ends it."""
        await self.send(b"%x\r\n%s\r\n" % (len(data), data))

    async def until_closed(self) -> None:
        """Return when the client has closed the connection."""
        with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
            while True:
                await self.stream.receive()
        self.server.closed.set()


Script = Callable[[Connection], Awaitable[None]]


@dataclass
class Server:
    """What was asked of the server, and where it is."""

    port: int = 0
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    closed: anyio.Event = field(default_factory=anyio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@contextlib.asynccontextmanager
async def serving(script: Script, *, port: int = 0) -> AsyncIterator[Server]:
    """A server that runs `script` on every connection."""
    server = Server()

    async def handle(stream: SocketStream) -> None:
        server.connections += 1
        async with stream:
            with contextlib.suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                await script(Connection(stream, server))

    async with (
        await anyio.create_tcp_listener(
            local_host="127.0.0.1", local_port=port, reuse_port=True
        ) as listener,
        anyio.create_task_group() as tasks,
    ):
        server.port = listener.extra(SocketAttribute.local_port)
        tasks.start_soon(listener.serve, handle)
        try:
            yield server
        finally:
            tasks.cancel_scope.cancel()


def response(
    body: bytes, *, status: str = "200 OK", kind: str = "application/json", headers: str = ""
) -> bytes:
    """A plain HTTP response."""
    head = f"HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n{headers}"
    return head.encode() + b"\r\n" + body


def answering(*answers: bytes) -> Script:
    """A script that answers the requests of a connection one after the other."""

    async def script(connection: Connection) -> None:
        for answer in answers:
            await connection.request()
            await connection.send(answer)
        await connection.until_closed()

    return script
