"""The sweep: a run dies at every single point in turn, and nothing may be lost at any of them.

A sweep drives a run by hand and counts where it suspends. It cancels the first run at its first
suspension, the second at its second, until one gets through; whatever the run was waiting for
then (a processor, an observer, a model, a tool, its thread, the journal, its own reader), the same
is demanded::

    async def start(watch: Watch) -> object:
        return await make_agent().run("hi", on_event=watch, journal=watch.write)

    report = await sweep_cancellation(start)
    print(report.points)

Make everything anew in `start`: a model that counts its requests serves one run. What is demanded
of every death is listed at `Death`; `check` may demand more. Works on asyncio and on trio.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from typing import Any, Final, Literal

import anyio
import anyio.lowlevel
import sniffio
from msgspec import Struct

from golem._run.evidence import partial_from
from golem._run.rules import StopWhen
from golem.agent import Agent
from golem.errors import RunError
from golem.events import TERMINAL, Event, MessageAdded, RunFailed, RunStopped, Terminal
from golem.history.repair import normalize_history
from golem.history.report import HistoryRepair
from golem.messages import Message
from golem.result import Partial
from golem.stream import RunStream
from golem.testing.scripted import ScriptedModel
from golem.testing.strict import Strict

BEGINNINGS: Final = ("model_started", "tool_started")


class Watch:
    """What one run said: give it as ``on_event=``, and its `write` as ``journal=``.

    Both take a moment, as whatever writes to a file or a socket does, so that a sweep dies there
    too. `begun` holds the suspension at which each event was told.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.journal: list[Message] = []
        self.begun: list[int] = []
        self.suspended = 0

    async def __call__(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)
        self.begun.append(self.suspended)
        await anyio.lowlevel.checkpoint()

    async def write(self, message: Message) -> None:
        """Take a message for good."""
        await anyio.lowlevel.checkpoint()
        self.journal.append(message)
        await anyio.lowlevel.checkpoint()


class Death(Struct, frozen=True):
    """One run that died, or ended otherwise, at the `point` of a sweep.

    This is demanded of every one, and AssertionError raised otherwise:

    - the run got the backend's own cancellation (`error`), nothing else, and began no request and
      no tool behind the next suspension; what stopped it otherwise raised nothing;
    - the observer saw events numbered without gaps and exactly one terminal event (`terminal`);
    - the exception, the terminal event and the stream have the same evidence (`partial`);
    - ``partial.messages`` continues with one more run, repaired in the asked turn only, and not
      at all where a stop has closed it;
    - so does the journal, where there is one; it has every message that was said to be added;
    - no task is left.
    """

    point: int
    error: BaseException | None
    terminal: Terminal
    partial: Partial | None
    events: Sequence[Event]
    journal: Sequence[Message]
    repair: HistoryRepair | None
    """What one more run from the partial had to repair."""


How = Literal["scope", "native", "tick"]
Check = Callable[[Death], object]
Start = Callable[[Watch], Awaitable[object]]
Open = Callable[[Watch], RunStream[Any]]


class SweepReport(Struct, frozen=True):
    """How many points there were, and how many of the deaths had left evidence."""

    points: int
    with_evidence: int


async def read(stream: RunStream[Any]) -> object:
    """Read a stream to its end as a slow reader does; its result."""
    async with stream:
        async for _ in stream:
            await anyio.lowlevel.checkpoint()
    return stream.result


async def sweep_cancellation(
    start: Start,
    check: Check | None = None,
    *,
    how: How = "scope",
    history: Sequence[Message] = (),
) -> SweepReport:
    """Cancel the run that `start` awaits at each of its suspensions in turn.

    `how`: by a cancel ``scope`` around it, or ``native``, as asyncio's ``task.cancel()`` does
    (asyncio only). By ``tick`` a scope is cancelled after one turn of the event loop, after two,
    and so on, which strikes *inside* tools that run concurrently; not for runs that wait for a
    clock. `history` is what was journaled before the run.

    Raises AssertionError, with the point as a note, where a demand is not met.
    """
    attempt = {"scope": _cancelled, "native": _cancelled_natively, "tick": _cancelled_later}[how]
    swept = _Sweep(check, history)
    while await swept.next(lambda watch, steps: attempt(start, watch, steps)):
        pass
    return swept.report


async def sweep_stops(
    open_stream: Open,
    check: Check | None = None,
    *,
    when: StopWhen = "now",
    history: Sequence[Message] = (),
) -> SweepReport:
    """Have another task call ``stream.stop(when)`` at each suspension of a reader in turn."""
    swept = _Sweep(check, history)
    while await swept.next(lambda watch, steps: _stopped(open_stream, watch, steps, when)):
        pass
    return swept.report


async def sweep_leaving(
    open_stream: Open, check: Check | None = None, *, history: Sequence[Message] = ()
) -> SweepReport:
    """Leave the stream's ``async with`` at each event in turn."""
    swept = _Sweep(check, history)
    while await swept.next(lambda watch, steps: _left(open_stream, watch, steps)):
        pass
    return swept.report


class _Steps:
    """Drives a coroutine, counts where it suspends, and strikes at one of these places."""

    def __init__(self, at: int, watch: Watch) -> None:
        self.at = at
        self.strike: Callable[[], object] = lambda: None
        self._watch = watch

    @property
    def reached(self) -> bool:
        return self._watch.suspended > self.at

    @types.coroutine
    def drive(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        resume: Callable[[Any], Any] = coroutine.send
        value: Any = None
        while True:
            try:
                trap = resume(value)
            except StopIteration as done:
                return done.value
            if self._watch.suspended == self.at:
                self.strike()
            self._watch.suspended += 1
            try:
                value, resume = (yield trap), coroutine.send
            except BaseException as thrown:  # noqa: BLE001 - it is thrown on
                value, resume = thrown, coroutine.throw


class _Sweep:
    """Attempt after attempt, each made to end one point later, until one gets through."""

    def __init__(self, check: Check | None, history: Sequence[Message]) -> None:
        self._check = check
        self._history = history
        self._at = 0
        self._with_evidence = 0

    @property
    def report(self) -> SweepReport:
        return SweepReport(self._at, self._with_evidence)

    async def next(
        self, attempt: Callable[[Watch, _Steps], Awaitable[BaseException | None]]
    ) -> bool:
        """One attempt; False where the run got through before its point."""
        watch = Watch()
        steps = _Steps(self._at, watch)
        before = _tasks()
        try:
            error = await attempt(watch, steps)
            if not steps.reached:
                return False
            _demand(before == _tasks(), "a task was left behind")
            death = await self._examine(watch, error)
            self._with_evidence += death.partial is not None
            if self._check is not None:
                done = self._check(death)
                if isinstance(done, Awaitable):
                    await done
        except BaseException as wrong:
            wrong.add_note(f"at point {self._at} of the sweep")
            raise
        self._at += 1
        return True

    async def _examine(self, watch: Watch, error: BaseException | None) -> Death:
        terminal = _well_formed(watch.events)
        partial = _evidence(terminal)
        if error is not None and not isinstance(error, RunError):
            expected = anyio.get_cancelled_exc_class()
            _demand(isinstance(error, expected), f"the run got {error!r}, not its cancellation")
            for event, at in zip(watch.events, watch.begun, strict=True):
                late = event.kind in BEGINNINGS and at > self._at + 1
                _demand(not late, f"{event.kind} after the cancellation")
        if error is not None:
            found = partial_from(error)
            _demand(found == partial, f"the exception has other evidence: {found}")
        repair = None
        if partial is not None:
            repair = await resumes(partial.messages)
        if watch.journal:
            added = [e.message for e in watch.events if isinstance(e, MessageAdded)]
            lost = [message for message in added if message not in watch.journal]
            _demand(not lost, f"not in the journal: {lost}")
            await resumes([*self._history, *watch.journal], whole=False)
        return Death(self._at, error, terminal, partial, watch.events, watch.journal, repair)


async def resumes(messages: Sequence[Message], *, whole: bool = True) -> HistoryRepair:
    """Assert that one more run continues from these messages; what it had to repair.

    `whole`: nothing but missing results of one turn may be repaired.
    """
    before = list(messages)
    model = ScriptedModel(["resumed"])
    result = await Agent(Strict(model)).run("continue", history=messages)
    _demand(before == list(messages), "a run has changed the history it was given")
    repair = result.repair
    if whole:
        _demand(not repair.dropped and not repair.moved, f"more than gaps was repaired: {repair}")
        turns = {change.input_index for change in repair.changes if change.kind == "synthesized"}
        _demand(len(turns) <= 1, f"several turns had gaps: {repair}")
    again, second = normalize_history(result.messages)
    _demand(list(again) == result.messages and not mended(second), "repair is not stable")
    return repair


def mended(repair: HistoryRepair) -> bool:
    """Whether anything was repaired; arguments that were cut off are only told of."""
    return any(change.kind != "truncated" for change in repair.changes)


def _well_formed(events: Sequence[Event]) -> Terminal:
    _demand(bool(events), "no terminal event")
    numbers = [event.seq for event in events]
    _demand(numbers == list(range(len(events))), f"events with gaps: {numbers}")
    _demand(len({event.run_id for event in events}) == 1, "events of several runs")
    *others, terminal = events
    ended = [event.kind for event in others if isinstance(event, TERMINAL)]
    _demand(not ended, f"an event behind a terminal event: {ended}")
    if not isinstance(terminal, TERMINAL):
        raise AssertionError(f"the last event is {terminal.kind}")
    return terminal


def _evidence(terminal: Terminal) -> Partial | None:
    """The partial of a terminal event, or what the partial of a finished run would be."""
    if isinstance(terminal, (RunStopped, RunFailed)):
        return terminal.partial
    result = terminal.result
    return Partial(
        messages=result.messages,
        new_messages=result.new_messages,
        run_id=result.run_id,
        conversation_id=result.conversation_id,
        usage=result.usage,
        requests=result.requests,
        tool_calls=result.tool_calls,
        finish_reason=result.finish_reason,
        cost=result.cost,
    )


class _Caught:
    """Awaits the run, and keeps what it raised."""

    def __init__(self, start: Start, watch: Watch) -> None:
        self._start = start
        self._watch = watch
        self.error: BaseException | None = None

    async def go(self) -> None:
        try:
            await self._start(self._watch)
        except BaseException as error:
            self.error = error
            raise


async def _cancelled(start: Start, watch: Watch, steps: _Steps) -> BaseException | None:
    caught = _Caught(start, watch)
    with anyio.CancelScope() as scope:
        steps.strike = scope.cancel
        try:
            await steps.drive(caught.go())
        except RunError:
            _demand(not steps.reached, "the cancellation became a RunError")
    _demand(scope.cancelled_caught == steps.reached, "the cancellation was lost")
    return caught.error


async def _cancelled_natively(start: Start, watch: Watch, steps: _Steps) -> BaseException | None:
    caught = _Caught(start, watch)

    async def drive() -> None:
        await steps.drive(caught.go())

    task = asyncio.create_task(drive())
    steps.strike = task.cancel
    try:
        await task
    except asyncio.CancelledError as error:
        caught.error = error  # as whoever awaits the task gets it
    except RunError:
        _demand(not steps.reached, "the cancellation became a RunError")
    _demand(task.cancelled() == steps.reached, "the cancellation was lost")
    return caught.error


async def _cancelled_later(start: Start, watch: Watch, steps: _Steps) -> BaseException | None:
    caught = _Caught(start, watch)
    scope = anyio.CancelScope()

    async def strike() -> None:
        for _ in range(steps.at):
            await anyio.lowlevel.checkpoint()
        scope.cancel()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(strike)
        with scope, contextlib.suppress(RunError):
            await caught.go()
        tasks.cancel_scope.cancel()
    # Struck too late it is not caught: the run had got through.
    watch.suspended = steps.at + scope.cancelled_caught
    watch.begun = [steps.at] * len(watch.begun)  # nobody counted
    return caught.error


async def _stopped(
    open_stream: Open, watch: Watch, steps: _Steps, when: StopWhen
) -> BaseException | None:
    stream = open_stream(watch)
    seen: list[Event] = []
    said: list[object] = []
    raised: list[BaseException] = []

    strike = anyio.Event()

    async def stop() -> None:
        await strike.wait()
        said.append(await stream.stop(when))

    async def go() -> None:
        try:
            async with stream:
                async for event in stream:
                    seen.append(event)
                    await anyio.lowlevel.checkpoint()
        except RunError as error:  # it failed before the stop could end it
            raised.append(error)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop)
        steps.strike = strike.set
        await steps.drive(go())
        if not steps.reached:
            tasks.cancel_scope.cancel()
    if steps.reached:
        _demand(seen == watch.events, "the reader and the observer saw different events")
        _demand(said == [stream.outcome], f"stop() gave {said}, not what happened")
        if isinstance(stream.outcome, RunStopped) and stream.outcome.partial is not None:
            repair = await resumes(stream.outcome.partial.messages)
            _demand(not mended(repair), f"a stop has left something to repair: {repair}")
    return raised[0] if raised else None


async def _left(open_stream: Open, watch: Watch, steps: _Steps) -> BaseException | None:
    stream = open_stream(watch)
    try:
        async with stream:
            async for event in stream:
                if event.seq == steps.at:
                    watch.suspended = steps.at + 1  # this point was reached
                    break
                await anyio.lowlevel.checkpoint()
    except RunError:
        _demand(not steps.reached, "leaving has raised")
    _demand(watch.events[-1] is stream.outcome, "the outcome is not what observers were told")
    return None


def _tasks() -> int:
    if sniffio.current_async_library() == "trio":
        living: int = sys.modules["trio"].lowlevel.current_statistics().tasks_living
        return living
    return len(asyncio.all_tasks())


def _demand(met: bool, otherwise: str) -> None:
    if not met:
        raise AssertionError(otherwise)
