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

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

import anyio.lowlevel
from msgspec import Struct

from golem._run.rules import StopWhen
from golem.messages import Message
from golem.stream import RunStream
from golem.testing import ways
from golem.testing.deaths import Death, Watch, demand, examine
from golem.testing.ways import Open, Start, Steps, living_tasks

How = Literal["scope", "native", "tick"]
Check = Callable[[Death], object]


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
    attempts = {
        "scope": ways.cancelled,
        "native": ways.cancelled_natively,
        "tick": ways.cancelled_later,
    }
    attempt = attempts[how]
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
    while await swept.next(lambda watch, steps: ways.stopped(open_stream, watch, steps, when)):
        pass
    return swept.report


async def sweep_leaving(
    open_stream: Open, check: Check | None = None, *, history: Sequence[Message] = ()
) -> SweepReport:
    """Leave the stream's ``async with`` at each event in turn."""
    swept = _Sweep(check, history)
    while await swept.next(lambda watch, steps: ways.left(open_stream, watch, steps)):
        pass
    return swept.report


class _Sweep:
    """Attempt after attempt, each made to end one point later, until one gets through."""

    def __init__(self, check: Check | None, history: Sequence[Message]) -> None:
        self._check = check
        self._history = history
        self._at = 0
        self._with_evidence = 0

    @property
    def report(self) -> SweepReport:
        """What has been swept."""
        return SweepReport(self._at, self._with_evidence)

    async def next(
        self, attempt: Callable[[Watch, Steps], Awaitable[BaseException | None]]
    ) -> bool:
        """One attempt; False where the run got through before its point."""
        watch = Watch()
        steps = Steps(self._at, watch)
        before = living_tasks()
        try:
            error = await attempt(watch, steps)
            if not steps.reached:
                return False
            demand(before == living_tasks(), "a task was left behind")
            death = await examine(watch, error, self._at, self._history)
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
