"""Connections that are slow, silent, broken or gone."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from golem.testing.judge.misbehave.scene import Act, Inattention, Scene
from golem.testing.judge.reply import Reply


def trickle(size: int = 1, pause: float = 0.0) -> Act:
    """The body comes `size` bytes at a time, `pause` seconds apart."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return replace(reply, pieces=pieces(reply.pieces, size), pause=pause)

    return act


def slow_head(pause: float = 0.01) -> Act:
    """Status line and headers come byte by byte, `pause` seconds apart."""
    return lambda reply, scene: replace(reply, slow_head=True, pause=pause)


def huge_head(size: int = 10_000_000) -> Act:
    """A header of `size` bytes."""
    return lambda reply, scene: reply.with_header("x-filler", "x" * size)


def late(delay: float) -> Act:
    """Nothing comes for `delay` seconds."""
    return lambda reply, scene: replace(reply, delay=delay)


def hangs(after: int = 0) -> Act:
    """After so many pieces of the body nothing comes, and the connection stays open."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return replace(reply, pieces=itertools.islice(reply.pieces, after), then="hang")

    return act


def closes() -> Act:
    """The connection is closed after the answer, which did not say so."""
    return lambda reply, scene: replace(reply, then="close")


def cut_at(length: int) -> Act:
    """The connection is closed after `length` bytes of the body, before its end is told."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return replace(reply, pieces=first(reply.pieces, length), then="cut")

    return act


def cut_after(events: int) -> Act:
    """The connection is closed after so many events of a stream."""

    def act(reply: Reply, scene: Scene) -> Reply:
        return replace(reply, pieces=itertools.islice(reply.pieces, events), then="cut")

    return act


def drops_request(after: int = 0) -> Inattention:
    """The connection is closed while the request is being sent, its body read so far, about.

    On a kept connection it is what every server does now and then.
    """
    return Inattention(after)


def stops_reading(after: int = 0) -> Inattention:
    """Of the request's body so many bytes are read, about, and the connection stays open."""
    return Inattention(after, hangs=True)


# --- cutting bodies


def first(body: Iterable[bytes], length: int) -> Iterator[bytes]:
    """The first `length` bytes of a body in pieces."""
    for piece in body:
        if length <= 0:
            return
        yield piece[:length]
        length -= len(piece)


def pieces(body: Iterable[bytes], size: int) -> Iterator[bytes]:
    """A body in pieces of at most `size` bytes."""
    for piece in body:
        for place in range(0, len(piece), size):
            yield piece[place : place + size]
