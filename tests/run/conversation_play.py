"""Plays a plan: carries one run out in its form, strikes it, and keeps all that came of it."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import sniffio
import tenacity

from golem import (
    Agent,
    DeferredResults,
    Event,
    Message,
    Partial,
    Result,
    RunError,
    RunStream,
    trim_history,
)
from golem._run.resume import Unresolved
from golem._run.retry import DEFAULT_RETRY
from golem.events import Terminal
from golem.testing import ScriptedModel
from golem.testing.deaths import evidence_of
from golem.testing.ways import Steps, living_tasks
from tests.run.conversation_plans import Plan
from tests.run.conversation_tools import TOOLS, Speaker, World

AT_ONCE = DEFAULT_RETRY.copy(wait=tenacity.wait_none())


@dataclass
class Played:
    """One run and what came of it."""

    plan: Plan
    supplied: list[Message]
    deferred: DeferredResults | None
    world: World
    seen: list[Event] = field(default_factory=list)
    result: Result[Any] | None = None
    error: BaseException | None = None
    struck: bool = False
    told: list[Terminal | None] = field(default_factory=list)
    """What ``stream.stop()`` has returned."""

    @property
    def events(self) -> list[Event]:
        return self.world.watch.events

    @property
    def journal(self) -> list[Message]:
        return self.world.watch.journal

    @property
    def terminal(self) -> Any:
        return self.events[-1]

    @property
    def evidence(self) -> Partial | None:
        """The partial, of a result too."""
        return evidence_of(self.terminal)


def processor(kind: str) -> dict[str, Any]:
    """The option for a history processor of that kind."""

    async def breaks(history: list[Message]) -> list[Message]:
        await anyio.lowlevel.checkpoint()
        raise LookupError("the processor is broken")

    return {"": {}, "trims": {"history_processor": trim_history(5)}}.get(
        kind, {"history_processor": breaks}
    )


def broken_observer(event: Event) -> None:
    raise ZeroDivisionError(event.kind)


def agent_of(plan: Plan, model: Any) -> Agent[Any, Any]:
    output, mode = plan.output
    options: dict[str, Any] = {
        "instructions": plan.instructions,
        "output_mode": mode,
        "output_retries": plan.output_retries,
        "tools": TOOLS,
        "parallel_tool_calls": plan.parallel,
        "limits": plan.limits,
        "max_turns": plan.max_turns,
        "retry": AT_ONCE,
        "timeout": plan.timeout,
    }
    if plan.observer_fails:
        options["on_event"] = broken_observer
    return Agent(model, output_type=output, **options, **processor(plan.processor))


async def play(
    plan: Plan,
    history: Sequence[Message],
    run_id: str,
    *,
    deferred: DeferredResults | None = None,
    unresolved: Unresolved = "error",
    streamed: bool | None = None,
) -> Played:
    """Carry the plan out; whatever the run raises is in what comes back.

    Raises AssertionError for a task or a generator that is left behind, and ValueError where
    golem refuses to begin.
    """
    model = Speaker(plan.script, native_output=plan.output[1] == "native")
    world = World(model, plan.journal_fails_at)
    played = Played(plan, list(history), deferred, world)
    given: dict[str, Any] = {
        "history": history,
        "run_id": run_id,
        "conversation_id": f"fork of {run_id}" if plan.forks else "",
        "deps": world,
        "on_event": world.watch,
        "journal": world.write,
        "deferred": deferred,
        "unresolved": unresolved,
    }
    agent = agent_of(plan, ScriptedModel([]) if plan.other_model else model)
    if plan.other_model:
        given["model"] = model
    streaming = plan.form.streamed if streamed is None else streamed

    async def go() -> None:
        if not streaming:
            played.result = await agent.run(plan.prompt, **given)
            return
        world.stream = stream = agent.stream(plan.prompt, **given)
        await _read(played, stream)
        played.result = stream.result

    before = living_tasks()
    with no_generator_left():
        await _STRIKES.get(plan.form.kind, _plain)(played, go)
    assert before == living_tasks(), "a task was left behind"
    return played


async def _read(played: Played, stream: RunStream[Any]) -> None:
    form = played.plan.form
    strike = anyio.Event()

    async def stop() -> None:
        await strike.wait()
        played.told.append(await stream.stop(form.when, within=form.within))

    async def read() -> None:
        async with stream:
            if form.kind == "leave" and form.at < 0:
                return
            async for event in stream:
                played.seen.append(event)
                for n, (at, when) in enumerate(form.saying):
                    if event.seq == at:
                        played.world.say(f"said {n} at {at}", when)
                if event.seq == form.at and form.kind == "leave":
                    return
                if event.seq == form.at and form.kind == "stop":
                    played.told.append(await stream.stop(form.when, within=form.within))
                if event.seq == form.at and form.kind == "stopped":
                    strike.set()
                await anyio.lowlevel.checkpoint()

    if form.kind != "stopped":
        await read()
        return
    failed: list[RunError] = []
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(stop)
        try:
            await read()
        except RunError as error:  # a task group would wrap it
            failed.append(error)
        if not strike.is_set():
            tasks.cancel_scope.cancel()
    if failed:
        raise failed[0]


Go = Callable[[], Awaitable[None]]


async def _plain(played: Played, go: Go) -> None:
    try:
        await go()
    except RunError as error:
        played.error = error


async def _by_scope(played: Played, go: Go) -> None:
    steps = Steps(played.plan.form.at, played.world.watch)
    with anyio.CancelScope() as scope:
        steps.strike = scope.cancel
        await steps.drive(_caught(played, go))
    played.struck = steps.reached


async def _natively(played: Played, go: Go) -> None:
    if sniffio.current_async_library() != "asyncio":  # nothing else can be cancelled like that
        await _by_scope(played, go)
        return
    steps = Steps(played.plan.form.at, played.world.watch)

    async def drive() -> None:
        await steps.drive(_caught(played, go))

    task = asyncio.create_task(drive())
    steps.strike = task.cancel
    try:
        await task
    except asyncio.CancelledError as error:
        played.error = error
    played.struck = steps.reached


async def _caught(played: Played, go: Go) -> None:
    """The run, with what it raised kept; a cancellation goes on to whoever cancelled."""
    try:
        await go()
    except RunError as error:
        played.error = error
    except BaseException as error:
        played.error = error
        raise


_STRIKES: dict[str, Callable[[Played, Go], Awaitable[None]]] = {
    "scope": _by_scope,
    "native": _natively,
}


@contextmanager
def no_generator_left() -> Iterator[None]:
    """Assert that every asynchronous generator begun in here has come to its end."""
    begun: list[AsyncGenerator[Any, Any]] = []
    outer, finalizer = sys.get_asyncgen_hooks()

    def first(generator: AsyncGenerator[Any, Any]) -> None:
        begun.append(generator)
        if outer is not None:
            outer(generator)

    sys.set_asyncgen_hooks(firstiter=first)
    try:
        yield
    finally:
        sys.set_asyncgen_hooks(firstiter=outer, finalizer=finalizer)
    left = [g.__qualname__ for g in begun if g.ag_frame is not None]
    assert not left, f"generators left open: {left}"
