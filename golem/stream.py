"""A run as its caller watches it: an async iterator of events that is also a context manager."""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Iterable
from types import TracebackType
from typing import Any, Final, Generic, Self, cast, get_args

import anyio

from golem._run.driver import Run
from golem._run.evidence import attach, carries
from golem._run.rules import SayWhen, StopWhen
from golem.carrying import Pull, current_task, inside, is_over, started_by_a_tool
from golem.errors import RunError
from golem.events import Event, Terminal, TextDelta
from golem.limits import check_number
from golem.messages import Part, UserMessage
from golem.rawjson import clean_text
from golem.result import OutputT, Partial, Result

LOOK_SECONDS: Final = 0.1
"""How often who waits for a stream's end looks whether its reader is still there."""


class RunStream(Generic[OutputT]):
    """A streamed run, made by ``agent.stream()``; nothing runs before the first event is pulled.

    ::

        async with agent.stream("hi") as stream:
            async for event in stream: ...

    The stream is pulled: nothing is buffered, a slow reader slows the run. Leaving the ``async
    with`` stops the run where it is, closes the provider's response at once and settles
    `outcome`; what it had produced is in `partial`. Without ``async with`` read to the end:
    leaving early would leave the cleanup to the garbage collector.

    After the terminal event of a run that failed or that a tool stopped, the next pull raises its
    RunError.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._events = run.events()
        self._ahead: list[Event] = []
        self._failed: RunError | None = None  # met while reading ahead; raised behind that
        self._reading = False
        self._reading_ahead = False
        self._closing = False
        self._pulls = 0
        self._reader: weakref.ref[Any] | None = None
        self._pulled: anyio.Event | None = None  # made by whoever waits for the end of a pull
        self._closed = False

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
        """The result of a run that finished or paused; None before, and for any other ending."""
        return cast("Result[OutputT] | None", self._run.result)

    @property
    def partial(self) -> Partial | None:
        """The evidence the run has produced so far; None while there is none."""
        return self._run.partial

    @property
    def partial_output(self) -> Any:
        """What the answer that is on its way amounts to so far; None while that is nothing.

        Text as it is, structured output as plain JSON values, best effort. For showing, never for
        acting on: it may change until the answer is whole.
        """
        return self._run.partial_output

    @property
    def unsaid(self) -> list[UserMessage]:
        """What was enqueued and has not joined: once the run is over, what the model never read."""
        return self._run.unsaid

    def text(self) -> AsyncIterator[str]:
        """Only the text, piece by piece; raises as the stream does. Read one or the other."""
        return _Text(self)

    def enqueue(
        self,
        text: str,
        *,
        parts: Iterable[Part] = (),
        when: SayWhen = "next_turn",
    ) -> None:
        """Say something more to the model while the run goes on.

        It joins as a user message at the next legal place: behind the tools that are being run, or
        behind an answer, and the run goes on with it; with ``idle`` only behind an answer. Its
        ``message_added`` event tells where. A run that ends otherwise leaves it in `unsaid`.

        Raises ValueError for nothing to say, for a part no run may send, for another `when`, or
        when the run is over; TypeError for what is no text.
        """
        if when not in get_args(SayWhen):
            raise ValueError(f"when must be one of {get_args(SayWhen)}, got {when!r}")
        if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"the message must be text, not {type(text).__name__}")
        if self.outcome is not None:
            raise ValueError("the run is over")
        said = UserMessage(clean_text(text), parts=tuple(parts))
        if not (said.content or said.parts):
            raise ValueError("there is nothing to say: neither text nor parts")
        for part in said.parts:
            if not isinstance(part, Part):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"expected a Part, not {type(part).__name__}")
            part.validate()
        self._run.enqueue(said, when)

    async def stop(self, when: StopWhen = "now", *, within: float | None = None) -> Terminal | None:
        """Stop the run: at once, after the model turn, or after the tools that are being run.

        Open calls are closed with the fixed text, so that the transcript resumes without repair.
        With `within` a later stop becomes ``now`` after that many seconds. Of several stops the
        soonest stands, whoever came first. The stream ends in ``run_stopped`` (or in its answer or
        pause, where that came first) and raises nothing.

        Returns the terminal event: what happened. None at once where the caller is who the run
        waits for: the stream's reader, for a later stop; a tool or an observer of the run itself,
        and for a later stop whatever task a tool has started, as long as that tool runs. None too
        for a later stop of a stream that nobody reads yet. Where the reader's task has ended, what
        is left of the run is carried out here.

        Raises ValueError for another `when`, and for a negative `within`.
        """
        run = self._run
        if when not in get_args(StopWhen):
            raise ValueError(f"when must be one of {get_args(StopWhen)}, got {when!r}")
        if within is not None:
            check_number("within", within)
        if run.outcome is not None:
            if when == "now":  # who is still being shown the end has his grace, not more
                run.cut_short()
            return run.outcome
        deadline = None if within is None else anyio.current_time() + within
        run.request_stop(when, deadline)
        if self._carried_out_here and (when != "now" or not started_by_a_tool()):
            return None
        if when != "now":
            if self._reader is None or self._reader() is current_task():
                return None
            with anyio.move_on_after(within):
                await self._ended_or_deserted()
            if run.outcome is None and self._deserted:
                await self._read_ahead()
        await self._end_now()
        return run.outcome

    async def aclose(self) -> None:
        """Stop the run where it is and close what it holds; as leaving the ``async with``.

        A pull that another task is in ends at once, as by ``stop("now")``; whoever closes beside
        another waits for him. From within the run itself (a tool, an observer) it stops the run.
        """
        self._closed = True
        if self._carried_out_here:
            if self._run.outcome is None:
                self._run.request_stop("now")
            return
        # Shielded, and bounded by what it waits for: all of that has its own time to end.
        with anyio.CancelScope(shield=True):
            while self._in_use:
                if self._run.outcome is None:
                    self._run.request_stop("now")
                await self._changes()
            self._closing = True
            outside = self._carry_out()
            try:
                await self._events.aclose()
                await self._run.left()
            finally:
                inside.set(outside)
                self._closing = False
                self._tell_waiters()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        while self._closing or self._reading_ahead:
            await self._changes()
        if self._ahead:
            return self._ahead.pop(0)
        if self._closed:
            raise StopAsyncIteration
        if self._failed is not None:
            error, self._failed = self._failed, None
            raise error from error.__cause__
        if self._reading:
            raise RuntimeError("the stream is being read by another task")
        event = self._run.at_hand()
        if event is not None:
            return event
        self._reader = weakref.ref(current_task())
        return await self._pull()

    async def _pull(self) -> Event:
        self._reading = True
        outside = self._carry_out()
        try:
            return await self._events.__anext__()
        finally:
            inside.set(outside)
            self._reading = False
            if self._pulled is not None:
                self._tell_waiters()

    def _carry_out(self) -> tuple[Pull, ...]:
        """Let who is called from here on know that the run waits for him; what was so before."""
        self._pulls += 1
        outside = inside.get()
        inside.set((*outside, (self, self._pulls)))
        return outside

    @property
    def _carried_out_here(self) -> bool:
        """Whether the run may be waiting for the current task: it was called, or started, by it."""
        active = self._reading or self._closing
        return active and (self, self._pulls) in inside.get()

    @property
    def _in_use(self) -> bool:
        """Whether a task is at the events: reading, reading ahead, or closing."""
        return self._reading or self._reading_ahead or self._closing

    async def _end_now(self) -> None:
        """See a run that is to end now to its end: wait for who is at it, or read the rest."""
        while self._run.outcome is None:
            if self._in_use:
                await self._changes()
            else:
                self._run.request_stop("now")
                with anyio.CancelScope(shield=True):
                    await self._read_ahead()

    async def _read_ahead(self) -> None:
        """Take the last events of a run that was stopped between two pulls, for the reader.

        Shielded where that is the end: they are the reader's, whatever becomes of the task that
        has stopped the run.
        """
        self._reading_ahead = True
        try:
            while True:  # to the very end: nothing is left to the collector
                self._ahead.append(await self._pull())
        except StopAsyncIteration:
            pass
        except RunError as error:
            self._failed = error
        finally:
            outcome = self._run.outcome
            if outcome is not None and outcome not in self._ahead[-1:]:
                self._ahead.append(outcome)
            self._reading_ahead = False
            self._tell_waiters()

    @property
    def _deserted(self) -> bool:
        """Whether the reader's task has ended, and nobody else is at the events."""
        return not self._in_use and self._reader is not None and is_over(self._reader)

    async def _ended_or_deserted(self) -> None:
        """Until the run is over, or nobody is left who would read on."""
        while self._run.outcome is None and not self._deserted:
            with anyio.move_on_after(LOOK_SECONDS):
                await self._changes()

    async def _changes(self) -> None:
        """Until a pull has ended."""
        if self._pulled is None:
            self._pulled = anyio.Event()
        await self._pulled.wait()

    def _tell_waiters(self) -> None:
        if self._pulled is not None:
            self._pulled.set()
            self._pulled = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.aclose()
        if error is not None and not isinstance(error, Exception) and not carries(error):
            attach(error, self.partial)  # cancelled while the reader was at something else


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
