"""Bodies that are cut, compressed, endless, or not what they should be."""

from __future__ import annotations

import gzip
import itertools
import zlib
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from golem.testing.judge.misbehave.connections import first, pieces
from golem.testing.judge.misbehave.scene import Act, Scene
from golem.testing.judge.reply import Reply

_BLOCK: Final = 65536


def ends_at(length: int) -> Act:
    """The body ends after `length` bytes as if that were all of it."""
    return lambda reply, scene: _sized(replace(reply, pieces=first(reply.pieces, length)))


def gzipped() -> Act:
    """A compressed body, whether it was asked for or not."""

    def act(reply: Reply, scene: Scene) -> Reply:
        body = gzip.compress(reply.body(), mtime=0)
        length = None if reply.length is None else len(body)
        packed = replace(reply, pieces=pieces([body], 256), length=length)
        return packed.with_header("content-encoding", "gzip")

    return act


def bomb(size: int = 2**30) -> Act:
    """A few bytes that decompress to a line of `size`."""

    def act(reply: Reply, scene: Scene) -> Reply:
        bombed = replace(reply, pieces=_packed(size), length=None)
        return bombed.with_header("content-encoding", "gzip")

    return act


def content_type(kind: str) -> Act:
    """Another content type than the body has."""
    return lambda reply, scene: reply.with_header("content-type", kind)


def invalid_utf8(after: int = 1) -> Act:
    """Bytes that are no UTF-8, after so many pieces."""

    def act(reply: Reply, scene: Scene) -> Reply:
        body = list(reply.pieces)
        body.insert(after, b"data: \xff\xfe\xed\xa0\x80\n\n")
        return _sized(replace(reply, pieces=body))

    return act


def replaced(old: bytes, new: bytes) -> Act:
    """Other bytes in place of some."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return _sized(replace(reply, pieces=[p.replace(old, new) for p in reply.pieces]))

    return act


def empty() -> Act:
    """No body at all."""
    return lambda reply, scene: replace(reply, pieces=(), length=0)


# --- streams


def error_event(
    after: int = 1,
    message: str = "The server had an error processing your request.",
    *,
    code: str | None = None,
) -> Act:
    """After so many events of a stream, an error in place of the rest; status 200."""

    def act(reply: Reply, scene: Scene) -> Reply:
        if reply.length is not None:
            return scene.provider.reply(scene.provider.failure(message, 500, code))
        fault = scene.provider.failing_event(message, code)
        return replace(reply, pieces=[*itertools.islice(reply.pieces, after), fault])

    return act


def without_end(events: int = 1) -> Act:
    """The last events of a stream never come; the body ends as if it were whole."""
    return lambda reply, scene: _sized(replace(reply, pieces=list(reply.pieces)[:-events]))


def twice_done() -> Act:
    """The last event of a stream comes twice; a plain answer stays as it is."""

    def act(reply: Reply, scene: Scene) -> Reply:
        if reply.length is not None:
            return reply
        body = list(reply.pieces)
        return replace(reply, pieces=[*body, body[-1]])

    return act


def huge_event(size: int = 10_000_000, after: int = 1) -> Act:
    """One event of `size` bytes of text, after so many events of a stream."""

    def act(reply: Reply, scene: Scene) -> Reply:
        body = list(reply.pieces)
        big = scene.provider.large_event(size)
        reply = replace(reply, pieces=itertools.chain(body[:after], big, body[after:]))
        return replace(reply, length=None)

    return act


def endless(what: str = "events", after: int = 1) -> Act:
    """A body without end: of ``events``, ``comments``, or one ``line`` that never ends."""
    if what not in ("events", "comments", "line"):
        raise ValueError(f"endless {what!r}: events, comments or line")

    def act(reply: Reply, scene: Scene) -> Reply:
        more = {
            "events": scene.provider.text_event("x" * 1000),
            "comments": b": nothing to tell\n\n" * 100,
            "line": b"x" * _BLOCK,
        }[what]
        begun = [*itertools.islice(reply.pieces, after), b"data: " if what == "line" else b""]
        return replace(reply, pieces=itertools.chain(begun, itertools.repeat(more)), length=None)

    return act


def _sized(reply: Reply) -> Reply:
    """`reply` with the length that its body has now, if it tells one."""
    if reply.length is None:
        return reply
    body = reply.body()
    return replace(reply, pieces=(body,), length=len(body))


def _packed(size: int) -> Iterator[bytes]:
    """``data: xxx…``, `size` bytes of it, in gzip's format, made as it is sent."""
    packer = zlib.compressobj(wbits=31)
    yield packer.compress(b"data: ")
    for _ in range(0, size, _BLOCK):
        yield packer.compress(b"x" * _BLOCK)
    yield packer.flush()
