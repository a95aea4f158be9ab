"""As much of HTTP/1.1 as a judge needs, by hand: requests in, replies out, over a byte stream.

Written out because a server library would not misbehave on demand: here every byte, pause and
end of a connection is ours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import anyio
from anyio.abc import SocketStream
from msgspec import Struct
from msgspec.structs import replace

from golem.testing.judge.reply import Reply

MAX_HEAD: Final = 64 * 1024
MAX_BODY: Final = 256 * 1024 * 1024
"""Most bytes of a request: images inline are tens of megabytes."""


class HTTPRequest(Struct, frozen=True):
    """A request as it came; header names in lower case."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


class RequestReader:
    """Reads the requests of one connection, one after the other."""

    def __init__(self, stream: SocketStream) -> None:
        self._stream = stream
        self._rest = b""

    async def head(self) -> HTTPRequest | None:
        """The next request without its body; None where the client closed the connection.

        To be followed by `whole`. Raises ValueError for what is no HTTP, or too much of it.
        """
        while b"\r\n\r\n" not in self._rest:
            if len(self._rest) > MAX_HEAD or not await self._more():
                return None
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        line, *fields = head.decode("latin-1").split("\r\n")
        method, target, _ = line.split(" ", 2)
        headers: dict[str, str] = {}
        for field in fields:
            name, _, value = field.partition(":")
            headers[name.strip().lower()] = value.strip()
        return HTTPRequest(method, target, headers)

    async def whole(self, head: HTTPRequest) -> HTTPRequest:
        """The request with its body. Raises ValueError, or anyio's EndOfStream when it is cut."""
        if "chunked" in head.headers.get("transfer-encoding", ""):
            return replace(head, body=await self._chunks())
        return replace(head, body=await self._take(_size(head.headers.get("content-length", "0"))))

    async def some(self, length: int) -> None:
        """Read about `length` bytes more, unless the client closes the connection."""
        while len(self._rest) < length and await self._more():
            pass

    async def closed(self) -> None:
        """Return when the client has closed the connection."""
        while await self._more():
            self._rest = b""  # nobody reads it

    async def _more(self) -> bool:
        try:
            self._rest += await self._stream.receive()
        except (anyio.EndOfStream, anyio.BrokenResourceError):
            return False
        return True

    async def _take(self, length: int) -> bytes:
        if length > MAX_BODY:
            raise ValueError("the request is too large")
        pieces = [self._rest]
        size = len(self._rest)
        while size < length:
            piece = await self._stream.receive()
            pieces.append(piece)
            size += len(piece)
        data = b"".join(pieces)
        self._rest = data[length:]
        return data[:length]

    async def _chunks(self) -> bytes:
        pieces: list[bytes] = []
        left = MAX_BODY
        while size := _size((await self._line()).partition(b";")[0].decode("latin-1"), 16):
            left -= size
            if left < 0:
                raise ValueError("the request is too large")
            pieces.append(await self._take(size))
            await self._line()
        while await self._line():
            pass  # a trailer
        return b"".join(pieces)

    async def _line(self) -> bytes:
        while b"\r\n" not in self._rest:
            if len(self._rest) > MAX_HEAD or not await self._more():
                raise ValueError("the request ended in the middle")
        line, _, self._rest = self._rest.partition(b"\r\n")
        return line


def _size(text: str, base: int = 10) -> int:
    """The number of bytes that `text` says, which is digits and nothing else."""
    if not text.strip().isalnum():
        raise ValueError("that is no number of bytes")
    return int(text, base)


async def send_reply(stream: SocketStream, reply: Reply) -> None:
    """Send `reply`, as slowly and as badly as it says."""
    await anyio.sleep(reply.delay)
    head = reply.head()
    if reply.slow_head:
        for place in range(len(head)):
            await stream.send(head[place : place + 1])
            await anyio.sleep(reply.pause)
    else:
        await stream.send(head)
    chunked = reply.length is None
    for piece in reply.pieces:
        if reply.pause:
            await anyio.sleep(reply.pause)
        if piece:
            await stream.send(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
    if chunked and reply.then in ("keep", "close"):
        await stream.send(b"0\r\n\r\n")
