"""What a server can do wrong, one function each: ``ChatJudge(misbehave=cut_at(100))``.

Each gives a `Misbehavior`: a function from the reply that was due to the one that is sent.
They compose: ``lambda reply: trickle()(gzipped()(reply))``. Those that need the wire's own events
(`error_event`, `huge_event`, `endless`) are told it by the judge.
"""

from __future__ import annotations

import gzip
import itertools
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from golem.testing.judge.reply import Reply, json_reply, plain
from golem.testing.judge.wire import Wire


class Scene(Struct, frozen=True):
    """What a misbehaviour may need to know: the wire, and where another host listens."""

    wire: Wire
    elsewhere: str = ""
    key: str = ""


Misbehavior = Callable[[Reply, Scene], Reply]

PAGE: Final = (
    b"<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n"
    b"<center><h1>502 Bad Gateway</h1></center>\r\n<hr><center>nginx</center>\r\n"
    b"</body>\r\n</html>\r\n"
)


def both(first: Misbehavior, second: Misbehavior) -> Misbehavior:
    """One after the other."""
    return lambda reply, scene: second(first(reply, scene), scene)


# --- connections


def cut_at(length: int) -> Misbehavior:
    """The connection is closed after `length` bytes of the body."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return replace(reply, pieces=_first(reply.pieces, length), then="cut")

    return act


def trickle(size: int = 1, pause: float = 0.0) -> Misbehavior:
    """The body comes `size` bytes at a time, `pause` seconds apart."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return replace(reply, pieces=_pieces(reply.pieces, size), pause=pause)

    return act


def slow_head(pause: float = 0.01) -> Misbehavior:
    """Status line and headers come byte by byte."""
    return lambda reply, scene: replace(reply, slow_head=True, pause=pause)


def late(delay: float) -> Misbehavior:
    """Nothing comes for so many seconds."""
    return lambda reply, scene: replace(reply, delay=delay)


def hangs(after: int = 0) -> Misbehavior:
    """After so many pieces of the body nothing comes, and the connection stays open."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return replace(reply, pieces=itertools.islice(reply.pieces, after), then="hang")

    return act


def closes() -> Misbehavior:
    """The connection is closed after the answer, which did not say so."""
    return lambda reply, scene: replace(reply, then="close")


# --- whole answers


def status(code: int, message: str = "", *, kind: str = "server_error") -> Misbehavior:
    """The provider's error, with a status such as 500, 503 or 529."""

    def act(reply: Reply, scene: Scene) -> Reply:
        text = message or "The server had an error while processing your request. Sorry about that!"
        return _with_request_id(
            json_reply(scene.wire.failure(text, kind, None), status=code), reply
        )

    return act


def rate_limited(after: str = "", *, header: str = "retry-after") -> Misbehavior:
    """429, to be tried again `after`: seconds or a date, or milliseconds as ``retry-after-ms``."""

    def act(reply: Reply, scene: Scene) -> Reply:
        text = "Rate limit reached for requests. Please try again later."
        said = scene.wire.failure(text, "requests", "rate_limit_exceeded")
        refusal = _with_request_id(json_reply(said, status=429), reply)
        return refusal.with_header(header, after) if after else refusal

    return act


def out_of_quota() -> Misbehavior:
    """429 that no waiting cures."""

    def act(reply: Reply, scene: Scene) -> Reply:
        text = (
            "You exceeded your current quota, please check your plan and billing details. For more"
            " information on this error, read the docs:"
            " https://platform.openai.com/docs/guides/error-codes/api-errors."
        )
        said = scene.wire.failure(text, "insufficient_quota", "insufficient_quota")
        return json_reply(said, status=429)

    return act


def html_page(code: int = 502) -> Misbehavior:
    """A gateway's page in place of the answer, with whatever status."""
    return lambda reply, scene: plain(PAGE, status=code, kind="text/html")


def quotes_the_key(code: int = 401) -> Misbehavior:
    """An error that quotes the key it was sent, as debugging proxies do."""

    def act(reply: Reply, scene: Scene) -> Reply:
        text = f"The key {scene.key} is not allowed here."
        return json_reply(scene.wire.failure(text, "invalid_request_error", scene.key), status=code)

    return act


def redirects(code: int = 307) -> Misbehavior:
    """To another host, which notes whether the key came along (`Judge.elsewhere`)."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return plain(b"", status=code).with_header("location", scene.elsewhere)

    return act


# --- bodies


def gzipped() -> Misbehavior:
    """A compressed body, whether it was asked for or not."""

    def act(reply: Reply, scene: Scene) -> Reply:
        body = gzip.compress(reply.body(), mtime=0)
        length = None if reply.length is None else len(body)
        packed = replace(reply, pieces=_pieces([body], 256), length=length)
        return packed.with_header("content-encoding", "gzip")

    return act


def content_type(kind: str) -> Misbehavior:
    """Another content type than the body has."""
    return lambda reply, scene: reply.with_header("content-type", kind)


def invalid_utf8(after: int = 1) -> Misbehavior:
    """Bytes that are no UTF-8, after so many pieces."""

    def act(reply: Reply, scene: Scene) -> Reply:
        pieces = list(reply.pieces)
        pieces.insert(after, b"data: \xff\xfe\xed\xa0\x80\n\n")
        return _of_any_length(replace(reply, pieces=pieces))

    return act


def replaced(old: bytes, new: bytes) -> Misbehavior:
    """Other bytes in place of some."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return _of_any_length(replace(reply, pieces=[p.replace(old, new) for p in reply.pieces]))

    return act


def error_event(
    after: int = 1,
    message: str = "The server had an error processing your request.",
    *,
    code: str | None = None,
) -> Misbehavior:
    """After so many events of a stream, an error in place of the rest; status 200."""

    def act(reply: Reply, scene: Scene) -> Reply:
        if reply.length is not None:
            return json_reply(scene.wire.failure(message, "server_error", code))
        fault = scene.wire.failing_event(message, "server_error", code)
        return replace(reply, pieces=[*itertools.islice(reply.pieces, after), fault])

    return act


def without_end(events: int = 1) -> Misbehavior:
    """The last events of a stream never come; the body ends as if it were whole."""
    return lambda reply, scene: _of_any_length(replace(reply, pieces=list(reply.pieces)[:-events]))


def twice_done() -> Misbehavior:
    """The last event comes twice."""

    def act(reply: Reply, scene: Scene) -> Reply:
        pieces = list(reply.pieces)
        return _of_any_length(replace(reply, pieces=[*pieces, pieces[-1]]))

    return act


def huge_event(size: int = 10_000_000, after: int = 1) -> Misbehavior:
    """One event of `size` bytes of text, after so many events."""

    def act(reply: Reply, scene: Scene) -> Reply:
        pieces = list(reply.pieces)
        big = _pieces([scene.wire.text_event("x" * size)], 65536)
        return replace(reply, pieces=itertools.chain(pieces[:after], big, pieces[after:]))

    return act


def endless(what: str = "events", after: int = 1) -> Misbehavior:
    """A stream without end: of ``events``, ``comments``, or one ``line`` that never ends."""
    if what not in ("events", "comments", "line"):
        raise ValueError(f"endless {what!r}: events, comments or line")

    def act(reply: Reply, scene: Scene) -> Reply:
        more = {
            "events": scene.wire.text_event("x" * 1000),
            "comments": b": nothing to tell\n\n" * 100,
            "line": b"x" * 65536,
        }[what]
        begun = [*itertools.islice(reply.pieces, after), b"data: " if what == "line" else b""]
        return replace(reply, pieces=itertools.chain(begun, itertools.repeat(more)), length=None)

    return act


def empty() -> Misbehavior:
    """No body at all."""
    return lambda reply, scene: replace(reply, pieces=(), length=0)


def in_an_event() -> Misbehavior:
    """A plain body where a stream was asked for, or as the only event of one."""
    return lambda reply, scene: plain(b"".join(reply.pieces))


def _of_any_length(reply: Reply) -> Reply:
    if reply.length is None:
        return reply
    body = reply.body()
    return replace(reply, pieces=(body,), length=len(body))


def _with_request_id(reply: Reply, of: Reply) -> Reply:
    for name, value in of.headers:
        if name == "x-request-id":
            return reply.with_header(name, value)
    return reply


def _first(pieces: Iterable[bytes], length: int) -> Iterator[bytes]:
    for piece in pieces:
        if length <= 0:
            return
        yield piece[:length]
        length -= len(piece)


def _pieces(pieces: Iterable[bytes], size: int) -> Iterator[bytes]:
    for piece in pieces:
        for place in range(0, len(piece), size):
            yield piece[place : place + size]
