"""A Chat Completions server in a process of its own, as cheap as Python makes it.

The path says how it answers: ``/plain/v1/…`` at once and whole, ``/late/100/v1/…`` after as many
milliseconds, ``/tool/v1/…`` with a call of the tool ``look`` until a result is there, and streamed
``/burst/2000/v1/…`` in as many chunks at once, ``/paced/40/25/v1/…`` with so many milliseconds
between the chunks. Nothing that is asked is judged: `golem.testing.judge` is for that.

    python benchmarks/chat_server.py        prints its port, ends with its standard input
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: %b\r\n"
USAGE = {"prompt_tokens": 10, "completion_tokens": 10, "total_tokens": 20}
PIECES = ("one ", "word ", "after ", "another ")  # the same again and again is an error to some


@contextlib.contextmanager
def running() -> Iterator[str]:
    """The address of a server that runs until the block ends."""
    with subprocess.Popen(
        [sys.executable, str(Path(__file__))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        process.stdin.close()


def _whole(message: dict[str, object], finish: str) -> bytes:
    choice = {"index": 0, "message": message, "finish_reason": finish}
    answer = {"id": "c", "object": "chat.completion", "created": 1, "model": "m"}
    body = json.dumps(answer | {"choices": [choice], "usage": USAGE}).encode()
    head = HEAD % b"application/json" + b"content-length: %d\r\n\r\n" % len(body)
    return head + body


_TEXT = _whole({"role": "assistant", "content": "Done."}, "stop")
_FUNCTION = {"name": "look", "arguments": '{"n": 1}'}
_CALL = _whole(
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": "call_1", "type": "function", "function": _FUNCTION}],
    },
    "tool_calls",
)


def _event(delta: dict[str, object], finish: str | None = None) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return b"data: %b\n\n" % json.dumps(chunk | {"choices": [choice]}).encode()


_STREAM = HEAD % b"text/event-stream" + b"transfer-encoding: chunked\r\n\r\n"
_FIRST = _event({"role": "assistant", "content": ""})
_LAST = _event({}, "stop") + b"data: [DONE]\n\n"


def _framed(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


_PIECES = [_framed(_event({"content": piece})) for piece in PIECES]


def _pieces(count: int) -> Iterator[bytes]:
    return itertools.islice(itertools.cycle(_PIECES), count)


class _Connection(asyncio.Protocol):
    """One client's connection: requests one after the other."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._received = b""
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank:
            return
        length = 0
        for line in head.split(b"\r\n"):
            if line.lower().startswith(b"content-length:"):
                length = int(line.partition(b":")[2])
        if len(body) < length:
            return
        self._received = body[length:]
        task = asyncio.get_running_loop().create_task(self._answer(head, body[:length]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, head: bytes, body: bytes) -> None:
        _, kind, *rest = head.split(b" ", 2)[1].decode().split("/")
        match kind:
            case "burst":
                pieces = b"".join(_pieces(int(rest[0])))
                self.transport.write(_STREAM + _framed(_FIRST) + pieces + _framed(_LAST))
                self.transport.write(b"0\r\n\r\n")
            case "paced":
                await self._paced(int(rest[0]), int(rest[1]) / 1e3)
            case "late":
                await asyncio.sleep(int(rest[0]) / 1e3)
                self.transport.write(_TEXT)
            case "tool":
                answered = any(m["role"] == "tool" for m in json.loads(body)["messages"])
                self.transport.write(_TEXT if answered else _CALL)
            case _:
                self.transport.write(_TEXT)

    async def _paced(self, chunks: int, pause: float) -> None:
        self.transport.write(_STREAM + _framed(_FIRST))
        for piece in _pieces(chunks):
            await asyncio.sleep(pause)
            self.transport.write(piece)
        self.transport.write(_framed(_LAST) + b"0\r\n\r\n")


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(_Connection, "127.0.0.1", 0, backlog=2048)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()

    def wait() -> None:
        sys.stdin.read()
        loop.call_soon_threadsafe(ended.set)

    threading.Thread(target=wait, daemon=True).start()
    await ended.wait()
    server.close()


if __name__ == "__main__":
    asyncio.run(_serve())
