"""A run as its caller watches it: an async iterator of events that is also a context manager."""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Generic, Self, cast

import anyio

from golem._run.driver import CLEANUP_SECONDS, Run
from golem.events import Event, Terminal, TextDelta
from golem.result import OutputT, Partial, Result


class RunStream(Generic[OutputT]):
    """A streamed run, made by ``agent.stream()``; nothing runs before the first event is pulled.

    ::

        async with agent.stream("hi") as stream:
            async for event in stream: ...

    The stream is pulled: nothing is buffered, a slow reader slows the run. Leaving the ``async
    with`` stops the run where it is, closes the provider's response at once and settles
    `outcome`; what it had produced is in `partial`. Without ``async with`` read to the end:
    leaving early would leave the cleanup to the garbage collector.

    After the terminal event of a run that failed or was stopped, the next pull raises its
    RunError.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._events = run.events()

    @property
    def run_id(self) -> str:
        """The id of this run."""
        return self._run.run_id

    @property
    def conversation_id(self) -> str:
        """The id of the conversation, as far as it is known; settled with the first event."""
        return self._run.conversation_id

    @property
    def outcome(self) -> Terminal | None:
        """The terminal event, however the run ended; None while it goes on."""
        return self._run.outcome

    @property
    def result(self) -> Result[OutputT] | None:
        """The result of a run that finished; None before, and for any other ending."""
        return cast("Result[OutputT] | None", self._run.result)

    @property
    def partial(self) -> Partial | None:
        """The evidence the run has produced so far; None while there is none."""
        return self._run.partial

    def text(self) -> AsyncIterator[str]:
        """Only the text, piece by piece; raises as the stream does. Read one or the other."""
        return _Text(self)

    async def aclose(self) -> None:
        """Stop the run where it is and close what it holds; as leaving the ``async with``."""
        with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
            await self._events.aclose()
            await self._run.left()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        return await anext(self._events)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()


class _Text:
    """The text deltas of a stream. No generator: leaving it early leaves nothing to clean up."""

    def __init__(self, events: AsyncIterator[Event]) -> None:
        self._events = events

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> str:
        while not isinstance(event := await anext(self._events), TextDelta):
            pass
        return event.text
