"""What of a body has come already, told from what would have to be waited for.

An HTTP client gives a body piece by piece, as it was framed, also where one read from the network
brought hundreds of them. Here they are taken together: as many as there are, and never one more.
What stands between the pieces and the network (decompression, framing, the pool) is the client's
own code; it is carried on to the point where it would read, and from there only when it is asked
for more. So nothing of it (no deadline, no scope) is open while what there was is looked at.

Of a client only its iterator and its network stream are known here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from types import coroutine
from typing import Any, Final

_ASKS: Final = object()
"""What a step gives in place of what an event loop would understand: it is about to read."""


class Ready:
    """The pieces of a body, as many in one as are there once the first of them is.

    `pieces` are an async generator's, which reads from `network` and from nothing else. What it
    raises comes behind what it gave before.
    """

    __slots__ = ("_failure", "_pieces", "_reader", "_step")

    def __init__(self, pieces: AsyncIterator[bytes], network: Any) -> None:
        self._pieces = pieces
        self._reader = _Reader.of(network)
        self._step: Any = None  # a step of `pieces` that stands where it is about to read
        self._failure: BaseException | None = None

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if self._failure is not None:
            failure, self._failure = self._failure, None
            try:
                raise failure
            finally:
                del failure  # which knows this frame: nobody should be left to the collector
        step, self._step = self._step, None
        found: list[bytes] = [await (self._pieces.__anext__() if step is None else step)]
        try:
            step, asked = self._look(found)
            while asked is not _ASKS:  # the end of a body waits for a lock, say
                found.append(await _carried_on(step, asked))
                step, asked = self._look(found)
            self._step = step
        except GeneratorExit:
            raise
        except BaseException as failure:  # noqa: BLE001 - raised by the next call
            self._failure = failure
        return found[0] if len(found) == 1 else b"".join(found)

    def _look(self, found: list[bytes]) -> tuple[Any, object]:
        """Put into `found` what is there; the step that is not, and what it waits for."""
        pull, reader = self._pieces.__anext__, self._reader
        reader.asks = True
        try:
            while True:
                step: Any = pull()
                try:
                    return step, step.send(None)
                except StopIteration as piece:
                    found.append(piece.value)
        finally:
            reader.asks = False


class _Reader:
    """The `read` of a network stream, which asks before it reads where that is wanted."""

    __slots__ = ("_read", "asks")

    def __init__(self, read: Callable[..., Awaitable[bytes]]) -> None:
        self._read = read
        self.asks = False

    @classmethod
    def of(cls, network: Any) -> _Reader:
        """The one of `network`, which keeps it: a connection carries one body after the other."""
        if not isinstance(network.read, cls):
            network.read = cls(network.read)
        reader: _Reader = network.read
        return reader

    async def __call__(self, *given: Any, **named: Any) -> bytes:
        if self.asks:
            await _ask()
        return await self._read(*given, **named)


@coroutine
def _ask() -> Generator[object, None, None]:
    yield _ASKS


@coroutine
def _carried_on(step: Any, asked: object) -> Generator[object, Any, bytes]:
    """What a step gives that has asked the event loop for something."""
    while True:
        try:
            try:
                answer = yield asked
            except BaseException as error:  # noqa: BLE001 - it is the step's
                asked = step.throw(error)
            else:
                asked = step.send(answer)
        except StopIteration as piece:
            found: bytes = piece.value
            return found
