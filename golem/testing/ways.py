"""The ways in which a sweep makes a run end: cancelled, stopped, left, each at a given point."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any

import anyio
import anyio.lowlevel
import sniffio

from golem._run.rules import StopWhen
from golem.errors import RunError
from golem.events import Event, RunStopped
from golem.stream import RunStream
from golem.testing.deaths import Watch, demand, mended, resumes

Start = Callable[[Watch], Awaitable[object]]
Open = Callable[[Watch], RunStream[Any]]


class Steps:
    """Drives a coroutine, counts where it suspends, and strikes at one of these places."""

    def __init__(self, at: int, watch: Watch) -> None:
        self.at = at
        self.strike: Callable[[], object] = lambda: None
        self._watch = watch

    @property
    def reached(self) -> bool:
        """Whether the run came to that place."""
        return self._watch.suspended > self.at

    @types.coroutine
    def drive(self, coroutine: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
        """What the coroutine gives, for the same task to await."""
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


async def cancelled(start: Start, watch: Watch, steps: Steps) -> BaseException | None:
    """Cancel a scope around the run; what the run raised."""
    caught = _Caught(start, watch)
    with anyio.CancelScope() as scope:
        steps.strike = scope.cancel
        try:
            await steps.drive(caught.go())
        except RunError:
            demand(not steps.reached, "the cancellation became a RunError")
    demand(scope.cancelled_caught == steps.reached, "the cancellation was lost")
    return caught.error


async def cancelled_natively(start: Start, watch: Watch, steps: Steps) -> BaseException | None:
    """Cancel the run's task, as ``task.cancel()`` does; what whoever awaits it gets."""
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
        demand(not steps.reached, "the cancellation became a RunError")
    demand(task.cancelled() == steps.reached, "the cancellation was lost")
    return caught.error


async def cancelled_later(start: Start, watch: Watch, steps: Steps) -> BaseException | None:
    """Cancel a scope after so many turns of the event loop; what the run raised."""
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


async def stopped(
    open_stream: Open, watch: Watch, steps: Steps, when: StopWhen
) -> BaseException | None:
    """Have another task stop the stream; what the reader got where it had failed before."""
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
        demand(seen == watch.events, "the reader and the observer saw different events")
        demand(said == [stream.outcome], f"stop() gave {said}, not what happened")
        if isinstance(stream.outcome, RunStopped) and stream.outcome.partial is not None:
            left = stream.outcome.partial
            for messages in (left.messages, left.resume_messages):
                repair = await resumes(messages)
                demand(not mended(repair), f"a stop has left something to repair: {repair}")
    return raised[0] if raised else None


async def left(open_stream: Open, watch: Watch, steps: Steps) -> BaseException | None:
    """Leave the stream at the event of that number."""
    stream = open_stream(watch)
    try:
        async with stream:
            async for event in stream:
                if event.seq == steps.at:
                    watch.suspended = steps.at + 1  # this point was reached
                    break
                await anyio.lowlevel.checkpoint()
    except RunError:
        demand(not steps.reached, "leaving has raised")
    demand(watch.events[-1] is stream.outcome, "the outcome is not what observers were told")
    return None


def living_tasks() -> int:
    """How many tasks the event loop has, this one included."""
    if sniffio.current_async_library() == "trio":
        living: int = sys.modules["trio"].lowlevel.current_statistics().tasks_living
        return living
    return len(asyncio.all_tasks())
