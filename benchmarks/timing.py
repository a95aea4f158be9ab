"""Timing of contestants against each other: interleaved rounds, medians, CPU beside wall time.

Everyone runs once in each round, so that a slow phase of the machine hits all alike. The ratio of
two medians of one run is the result; the times themselves mean little on another machine.
CPU is this process's: a server beside it does not count.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager

from msgspec import Struct

Work = Callable[[], object]
AsyncWork = Callable[[], Awaitable[object]]

SHORTEST = 0.02
"""Seconds of CPU a sample takes at least: short work is repeated within one."""


class Timing(Struct, frozen=True):
    """Median seconds for one unit of work."""

    cpu: float
    wall: float


def compare(
    contestants: Mapping[str, Work], rounds: int, units: int = 1, *, warm: bool = True
) -> dict[str, Timing]:
    """How long one of the `units` takes that each contestant does when called.

    With `warm` each does its work once before every sample, so that nobody pays for what the one
    before has done to the processor's caches and to the pages of memory.
    """
    loops = {name: _loops(call) for name, call in contestants.items()}
    samples: dict[str, list[Timing]] = {name: [] for name in contestants}
    with _frozen():
        for _ in range(rounds):
            for name, call in contestants.items():
                samples[name].append(_sample(call, loops[name], units, warm=warm))
    return {name: _median(found) for name, found in samples.items()}


def compare_async(
    contestants: Mapping[str, AsyncWork],
    rounds: int,
    units: int = 1,
    *,
    loops: int | None = None,
    close: AsyncWork | None = None,
) -> dict[str, Timing]:
    """`compare` for coroutine functions, all of which run on one asyncio loop.

    `loops`: how often each is awaited in a sample, one after the other; found out by default.
    `close`: awaited in the end, on the same loop.
    """
    with asyncio.Runner() as runner:

        def driven(work: AsyncWork, times: int) -> Work:
            async def repeat() -> None:
                for _ in range(times):
                    await work()

            return lambda: runner.run(repeat())

        times = {
            name: loops or _loops(driven(work, 1)) for name, work in contestants.items()
        }  # which warms them up as well
        samples: dict[str, list[Timing]] = {name: [] for name in contestants}
        with _frozen():
            for _ in range(rounds):
                for name, work in contestants.items():
                    once = driven(work, times[name])
                    samples[name].append(_sample(once, 1, units * times[name]))
        if close:
            driven(close, 1)()
    return {name: _median(found) for name, found in samples.items()}


@contextmanager
def _frozen() -> Generator[None]:
    """The collector leaves alone what is there by now.

    It runs before each sample. With half a million objects of imported libraries to walk through,
    it would leave nothing of what is to be measured in the processor's caches.
    """
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _loops(call: Work) -> int:
    """How often to repeat `call` for a sample to be long enough, in CPU time.

    By the clock a busy machine would make one call of it, which what is around it outweighs.
    """
    call()  # warm
    started = time.process_time()
    call()
    return max(1, round(SHORTEST / max(time.process_time() - started, 1e-7)))


def _sample(call: Work, loops: int, units: int, *, warm: bool = False) -> Timing:
    gc.collect()
    gc.disable()
    if warm:
        call()
    wall, cpu = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(loops):
        call()
    cpu, wall = time.process_time_ns() - cpu, time.perf_counter_ns() - wall
    gc.enable()
    return Timing(cpu / loops / units / 1e9, wall / loops / units / 1e9)


def _median(samples: list[Timing]) -> Timing:
    return Timing(
        statistics.median(sample.cpu for sample in samples),
        statistics.median(sample.wall for sample in samples),
    )
