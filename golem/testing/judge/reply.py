"""An HTTP answer as it will go over the wire, piece by piece, and the answers of the judges.

A `Reply` is a value, and so is a misbehaviour (`golem.testing.judge.misbehave`): a function from
one reply to a worse one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from http import HTTPStatus
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

JSON_TYPE = "application/json"


class Reply(Struct, frozen=True, kw_only=True):
    """What the server sends: a head, then the body's pieces, one packet each.

    `length` is what ``content-length`` says; None: the body is sent in chunks. `delay` is waited
    before the head, `pause` before each piece of the body, in seconds. `then` says what becomes
    of the connection: it is kept, closed, cut before the body's end is told, or left to hang.
    """

    status: int = 200
    headers: tuple[tuple[str, str], ...] = ()
    pieces: Iterable[bytes] = ()
    length: int | None = None
    delay: float = 0.0
    pause: float = 0.0
    slow_head: bool = False
    """Whether the head is sent a byte at a time, `pause` seconds apart."""

    then: Literal["keep", "close", "cut", "hang"] = "keep"

    def head(self) -> bytes:
        """The status line and the headers."""
        lines = [f"HTTP/1.1 {self.status} {_phrase(self.status)}"]
        lines += [f"{name}: {value}" for name, value in self.headers]
        if self.length is None:
            lines.append("transfer-encoding: chunked")
        else:
            lines.append(f"content-length: {self.length}")
        return "\r\n".join([*lines, "\r\n"]).encode("latin-1")

    def with_header(self, name: str, value: str) -> Reply:
        """The reply with a header in place of one of the same name."""
        kept = tuple(pair for pair in self.headers if pair[0].lower() != name.lower())
        return replace(self, headers=(*kept, (name, value)))

    def body(self) -> bytes:
        """The whole body. Never returns for one without end."""
        return b"".join(self.pieces)


def plain(body: bytes, *, status: int = 200, kind: str = JSON_TYPE) -> Reply:
    """A body in one piece, of known length."""
    headers = (("content-type", kind),)
    return Reply(status=status, headers=headers, pieces=(body,), length=len(body))


def json_reply(value: object, *, status: int = 200) -> Reply:
    """A JSON body, spelled as the providers do."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return plain(text.encode("utf-8", "replace"), status=status)


def streamed(events: Iterable[bytes], kind: str) -> Reply:
    """A stream of this content type, one packet for each event."""
    headers = (("content-type", kind), ("cache-control", "no-cache"))
    return Reply(headers=headers, pieces=events)


def event(value: object, name: str = "") -> bytes:
    """One server-sent event that holds JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {text}\n\n".encode("utf-8", "replace")


def _phrase(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Unknown"
