"""Pieces of a body that came together are given together, and none is waited for."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from golem.wire.ready import Ready

pytestmark = pytest.mark.anyio


class Network:
    """What a client reads from: so many bytes at a time, after a checkpoint."""

    def __init__(self, *reads: bytes) -> None:
        self.reads = list(reads)
        self.count = 0

    async def read(self, most: int, **limits: float) -> bytes:
        with anyio.fail_after(limits.get("timeout")):
            await checkpoint()
        self.count += 1
        return self.reads.pop(0)


async def framed(network: Any, *, fails: bool = False) -> AsyncIterator[bytes]:
    """A client's iterator: one piece a byte, a lock at the end of the body, or a failure there."""
    while data := await network.read(64, timeout=5.0):
        for byte in data:
            yield bytes([byte])
            if fails and byte == ord("!"):
                raise OSError("gone")
        if data.endswith(b"."):
            with anyio.CancelScope(shield=True):
                await checkpoint()
            return


async def test_what_one_read_brings_comes_at_once_and_without_the_next_read() -> None:
    network = Network(b"abc", b"d", b"ef.")
    ready = Ready(framed(network), network)
    given = [(await anext(ready), network.count) for _ in range(3)]
    assert given == [(b"abc", 1), (b"d", 2), (b"ef.", 3)]
    with pytest.raises(StopAsyncIteration):
        await anext(ready)
    with pytest.raises(StopAsyncIteration):
        await anext(ready)


async def test_a_body_of_nothing_ends() -> None:
    network = Network(b"")
    assert [piece async for piece in Ready(framed(network), network)] == []


async def test_a_failure_comes_behind_what_came_before_it() -> None:
    network = Network(b"ab!")
    ready = Ready(framed(network, fails=True), network)
    assert await anext(ready) == b"ab!"
    with pytest.raises(OSError, match="gone"):
        await anext(ready)


@pytest.mark.parametrize("fails", [False, True])
async def test_a_body_that_has_ended_leaves_nothing_to_the_collector(fails: bool) -> None:
    network = Network(b"ab!" if fails else b"ab.")
    pieces = framed(network, fails=fails)
    held = weakref.ref(pieces)
    ready = Ready(pieces, network)
    gc.disable()
    try:
        assert len(await anext(ready)) == 3
        with pytest.raises(OSError if fails else StopAsyncIteration):
            await anext(ready)
        del ready, pieces
        assert held() is None
    finally:
        gc.enable()


async def test_a_failing_read_fails_the_pull_that_waits_for_it() -> None:
    network = Network(b"ab")
    ready = Ready(framed(network), network)
    assert await anext(ready) == b"ab"
    with pytest.raises(IndexError):  # nothing left to read
        await anext(ready)


async def test_a_connection_carries_one_body_after_the_other() -> None:
    network = Network(b"ab.", b"cd.", b"ef.")
    for expected in (b"ab.", b"cd."):
        assert [piece async for piece in Ready(framed(network), network)] == [expected]
    assert await network.read(64) == b"ef."  # as the head of the next answer is


async def test_a_pull_that_waits_can_be_cancelled_and_nothing_is_lost_before_it() -> None:
    class Silent(Network):
        async def read(self, most: int, **limits: float) -> bytes:
            return await super().read(most, **limits) if self.reads else await self.never()

        async def never(self) -> bytes:
            await anyio.sleep_forever()
            raise AssertionError

    network = Silent(b"abc")
    ready = Ready(framed(network), network)
    assert await anext(ready) == b"abc"
    with anyio.move_on_after(0.01) as scope:
        await anext(ready)
    assert scope.cancelled_caught
    with pytest.raises(StopAsyncIteration):
        await anext(ready)
