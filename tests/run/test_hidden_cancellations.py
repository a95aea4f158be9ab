"""A cancellation gets through, whatever the code that golem awaits makes of it.

On asyncio a native cancellation strikes once. A client, a tool, a journal that makes an error of
it, or swallows it, must not keep the run going: nothing but the task's own count tells then.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import anyio
import pytest
import tenacity

from golem import (
    Agent,
    AssistantMessage,
    Event,
    Message,
    ModelRetry,
    Partial,
    RunError,
    ToolFailed,
    ToolMessage,
    TransportError,
    UsageLimits,
    partial_from,
    tool,
)
from golem._run import waiting
from golem.events import RunStopped
from golem.limits import Timeouts
from golem.model import Delta, Request, Response
from golem.testing import ScriptedModel
from tests.run import virtual_time
from tests.run.support import Recorder, SlowRecorder, asks, well_formed

pytestmark = pytest.mark.virtual_time

Waits = Callable[[], Awaitable[Any]]


@pytest.fixture(autouse=True)
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "GRACE_SECONDS", 0.01)


def raising(error: Exception) -> Waits:
    async def wait() -> Any:
        try:
            await anyio.sleep_forever()
        except BaseException as cancellation:
            raise error from cancellation

    return wait


def swallowing(value: Any = "swallowed") -> Waits:
    async def wait() -> Any:
        try:
            await anyio.sleep_forever()
        except BaseException:
            return value

    return wait


def hiding() -> list[Any]:
    errors = [TransportError("reset"), ConnectionError("gone"), ToolFailed("no"), ModelRetry("no")]
    return [pytest.param(raising(error), id=type(error).__name__) for error in errors]


class Waiting:
    """A model whose connection waits for ever and says what it likes of its cancellation."""

    def __init__(self, wait: Waits) -> None:
        self.wait = wait

    async def generate(self, request: Request) -> Response:
        found: Response = await self.wait()
        return found

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        yield await self.wait()


def at(place: str, wait: Waits, called: Any = None) -> Agent[Any, Any]:
    """An agent that comes to wait at that place; or `called` is what it calls there."""

    async def waits(*_: Any) -> Any:
        return await wait()

    waits = called or waits

    async def tool_that_waits() -> Any:
        """Wait."""
        return await wait()

    async def counts(messages: Any, tools: Any = ()) -> int:
        return await waits()  # type: ignore[no-any-return]

    if place == "model":
        return Agent(Waiting(wait))
    scripted = ScriptedModel(["x"])
    if place == "tool":
        return Agent(
            ScriptedModel([asks(("1", "w")), "x"]), tools=[tool(name="w")(tool_that_waits)]
        )
    if place == "parallel tool":
        two = asks(("1", "w"), ("2", "w"))
        return Agent(
            ScriptedModel([two, "x"]),
            tools=[tool(name="w")(tool_that_waits)],
            parallel_tool_calls=True,
        )
    if place == "decoder":
        return Agent(scripted, decoder=waits)
    options: dict[str, Any] = {
        "journal": {"journal": waits},
        "observer": {"on_event": waits},
        "processor": {"history_processor": waits},
        "request processor": {"request_processor": waits},
        "instructions": {"instructions": waits},
    }[place]
    return Agent(scripted, **options)


PLACES = [
    "model",
    "tool",
    "parallel tool",
    "decoder",
    "journal",
    "observer",
    "processor",
    "request processor",
    "instructions",
]


async def collect(agent: Agent[Any, Any], form: str, **options: Any) -> None:
    if form == "run":
        await agent.run("p", **options)
    else:
        async with agent.stream("p", **options) as stream:
            async for _ in stream:
                pass


@pytest.mark.parametrize("form", ["run", "stream"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wait", [*hiding(), pytest.param(swallowing(), id="swallowed")])
@pytest.mark.parametrize("how", ["cancel", "timeout"])
@pytest.mark.parametrize("watch", [Recorder, SlowRecorder])
def test_a_native_cancellation_gets_through(
    watch: type[Recorder], how: str, wait: Waits, place: str, form: str
) -> None:
    recorder = watch()

    async def main() -> None:
        run = collect(at(place, wait), form, on_event=recorder)
        if how == "cancel":
            task = asyncio.create_task(run)
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await run

    virtual_time.run(main, backend="asyncio")
    well_formed(recorder.events)
    assert isinstance(recorder.events[-1], RunStopped)


@pytest.mark.parametrize("form", ["run", "stream"])
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("wait", hiding())
async def test_a_scopes_cancellation_gets_through(wait: Waits, place: str, form: str) -> None:
    recorder = Recorder()
    with anyio.move_on_after(0.01) as scope:
        await collect(at(place, wait), form, on_event=recorder)
    assert scope.cancelled_caught
    well_formed(recorder.events)
    assert isinstance(recorder.events[-1], RunStopped)


@pytest.mark.parametrize("form", ["run", "stream"])
@pytest.mark.parametrize("place", ["model", "tool", "parallel tool", "decoder"])
@pytest.mark.parametrize("wait", [*hiding(), pytest.param(swallowing(), id="swallowed")])
@pytest.mark.parametrize("outside", [True, False])
async def test_golems_own_timeout_is_no_cancellation(
    outside: bool, wait: Waits, place: str, form: str
) -> None:
    """Within a scope of the caller's too, where a native cancellation would look the same."""
    recorder = Recorder()
    if place == "model" and "swallowing" in wait.__qualname__:
        wait = swallowing(
            Response(AssistantMessage("late"))
        )  # a whole answer, which comes too late
    with anyio.move_on_after(30 if outside else None) as scope:
        with pytest.raises(RunError) as caught:
            await collect(at(place, wait), form, on_event=recorder, timeout=0.01)
    assert not scope.cancelled_caught
    well_formed(recorder.events)
    assert recorder.kinds[-1] == "run_failed"
    assert isinstance(caught.value.__cause__, TimeoutError)


@pytest.mark.parametrize("wait", hiding())
async def test_a_turns_timeout_that_the_client_made_its_own_error_is_not_retried(
    wait: Waits,
) -> None:
    model = Waiting(wait)
    with pytest.raises(RunError, match="turn timeout") as caught:
        await Agent(model).run("p", timeout=Timeouts(turn=0.01))
    assert (caught.value.stage, type(caught.value.__cause__)) == ("model", TimeoutError)


def test_what_a_tool_gave_instead_of_stopping_is_evidence() -> None:
    agent = at("tool", swallowing("half of it"))
    stored: list[Message] = []

    async def store(message: Message) -> None:
        stored.append(message)

    async def main() -> Partial | None:
        task = asyncio.create_task(agent.run("p", journal=store))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        return partial_from(caught.value)

    partial = virtual_time.run(main, backend="asyncio")
    assert partial is not None
    assert [m.content for m in partial.resume_messages] == ["p", "", "half of it"]
    assert stored == partial.resume_messages


async def test_a_scope_that_was_left_has_nothing_to_do_with_the_next_pull() -> None:
    async def observe(event: Event) -> None:
        if event.kind == "run_started":
            await swallowing()()

    async with Agent(ScriptedModel(["x"]), on_event=observe).stream("p") as stream:
        with anyio.move_on_after(0.01):
            assert (await anext(stream)).kind == "run_started"
        rest = [event.kind async for event in stream]
    assert rest[-1] == "run_finished"


def test_a_task_that_was_cancelled_long_ago_may_run_agents() -> None:
    """Much code swallows a cancellation without giving the request back."""

    async def main() -> str:
        current = asyncio.current_task()
        assert current is not None
        current.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(1)
        return (await Agent(ScriptedModel(["x"])).run("p")).output

    assert asyncio.run(main()) == "x"


# CancelledError where nobody has cancelled anything


STRAY = {
    "decoder": "decode",
    "journal": "history",
    "processor": "history",
    "request processor": "history",
    "instructions": "history",
    "counter": "model",
    "retry policy": "model",
}


@pytest.mark.parametrize("form", ["run", "stream"])
@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(("place", "stage"), STRAY.items())
async def test_a_stray_cancelled_error_is_an_error_of_who_raised_it(
    place: str, stage: str, asynchronous: bool, form: str
) -> None:
    """Who awaited a task that somebody else has cancelled has not been cancelled himself."""

    async def gives_up(*_: Any) -> Any:
        raise asyncio.CancelledError

    def gives_up_at_once(*_: Any) -> Any:
        raise asyncio.CancelledError

    class Counter:
        count_tokens = staticmethod(gives_up if asynchronous else gives_up_at_once)

    broken = Counter.count_tokens
    made: dict[str, Agent[Any, Any]] = {
        "counter": Agent(
            ScriptedModel(["x"]), counter=Counter(), limits=UsageLimits(per_request_input_tokens=9)
        ),
        "retry policy": Agent(
            ScriptedModel([TransportError("reset")]), retry=tenacity.AsyncRetrying(retry=broken)
        ),
    }
    recorder = Recorder()
    agent = made.get(place) or at(place, broken, called=broken)
    with pytest.raises(RunError, match="nobody had cancelled the run") as caught:
        await collect(agent, form, on_event=recorder)
    assert stage == caught.value.stage
    assert recorder.kinds[-1] == "run_failed"
    well_formed(recorder.events)


# What no task group may keep


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("parallel", [False, True])
async def test_what_is_no_exception_leaves_a_group_as_it_is(
    error: type[BaseException], parallel: bool, anyio_backend_name: str
) -> None:
    """A tool that awaited a cancelled future raises CancelledError without being cancelled."""
    if anyio_backend_name == "trio" and error is not KeyboardInterrupt:
        return  # CancelledError is asyncio's; one of the others is enough

    @tool
    async def first() -> str:
        return "first"

    @tool
    async def breaks() -> str:
        await anyio.sleep(0.01)
        raise error

    recorder = Recorder()
    agent = Agent(
        ScriptedModel([asks(("1", "first"), ("2", "breaks"))]),
        tools=[first, breaks],
        parallel_tool_calls=parallel,
        on_event=recorder,
    )
    with pytest.raises(error) as caught:
        await agent.run("p")
    partial = partial_from(caught.value)
    assert partial is not None
    assert [m.content for m in partial.batch_results] == ["first"]
    well_formed(recorder.events)


@pytest.mark.parametrize(
    ("error", "ends"),
    [(ModelRetry("again"), "corrected"), (ToolFailed("no"), "failed")],
    ids=["ModelRetry", "ToolFailed"],
)
async def test_a_tools_word_out_of_its_own_task_group_is_its_word(
    error: Exception, ends: str
) -> None:
    async def says() -> None:
        raise error

    @tool(retries=1)
    async def groups() -> str:
        async with anyio.create_task_group() as group:
            group.start_soon(says)
        return "unreached"

    agent = Agent(ScriptedModel([asks(("1", "groups")), "x"]), tools=[groups])
    result = await agent.run("p")
    (told,) = [m for m in result.messages if isinstance(m, ToolMessage)]
    assert told.failed is (ends == "failed")
