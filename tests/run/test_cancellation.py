"""Where a cancellation comes from and where it goes, and whatever else is no Exception.

That nothing is lost at any single suspension is `test_sweep`'s; here stand the cases with a story.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest
import trio

from golem import (
    Agent,
    Event,
    Message,
    Partial,
    RunError,
    RunStream,
    TransportError,
    Usage,
    partial_from,
    tool,
)
from golem.events import TERMINAL, RunFinished, RunStopped
from golem.model import Delta, Request, Response
from golem.model import TextDelta as Text
from golem.testing import ScriptedModel
from tests.run import virtual_time
from tests.run.support import (
    Gives,
    Recorder,
    asks,
    echo,
    well_formed,
)

pytestmark = pytest.mark.virtual_time

# Where cancellation comes from, and where it goes


async def test_a_deadline_ends_a_hanging_model_and_the_stream_keeps_the_evidence() -> None:
    class Hangs:
        async def generate(self, request: Request) -> Response:
            raise NotImplementedError

        async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
            yield Text("so far")
            await anyio.sleep_forever()

    with anyio.CancelScope() as scope:
        async with Agent(Hangs()).stream("p") as stream:
            async for event in stream:
                if event.kind == "text_delta":
                    scope.cancel()
    assert scope.cancelled_caught
    assert stream.partial is not None
    assert stream.partial.text == "so far"
    assert isinstance(stream.outcome, RunStopped)


@pytest.mark.virtual_time(False)
async def test_a_cancelled_run_does_not_wait_for_a_tools_thread() -> None:
    """The thread cannot be stopped; it is left to itself and its result goes nowhere."""

    entered, release = threading.Event(), threading.Event()

    @tool
    def block() -> str:
        entered.set()
        release.wait(30)
        return "too late"

    recorder = Recorder()
    agent = Agent(ScriptedModel([asks(("1", "block"))]), tools=[block], on_event=recorder)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(agent.run, "p")
            await anyio.to_thread.run_sync(entered.wait, 30)
            tasks.cancel_scope.cancel()
    finally:
        release.set()
    well_formed(recorder.events)
    stopped = recorder.events[-1]
    assert isinstance(stopped, RunStopped)
    assert stopped.partial is not None
    assert (stopped.partial.tool_calls, stopped.partial.batch_results) == (1, [])


async def test_a_model_that_fails_in_its_cleanup_cannot_turn_a_cancellation_into_an_error(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Connection:
        """Class-based, so that its aclose runs after the cancellation has struck."""

        def __aiter__(self) -> Connection:
            return self

        async def __anext__(self) -> Any:
            await anyio.sleep_forever()

        async def aclose(self) -> None:
            await anyio.lowlevel.checkpoint()
            raise OSError("already closed")

    class Model:
        async def generate(self, request: Request) -> Response:
            raise NotImplementedError

        def stream(self, request: Request) -> AsyncIterator[Any]:
            return Connection()

    recorder = Recorder()
    raised: list[BaseException] = []

    async def read() -> None:
        try:
            async with Agent(Model()).stream("p", on_event=recorder) as stream:
                async for _ in stream:
                    pass
        except BaseException as error:
            raised.append(error)
            raise

    with anyio.move_on_after(0.01):
        await read()
    assert [isinstance(e, anyio.get_cancelled_exc_class()) for e in raised] == [True]
    assert recorder.kinds[-1] == "run_stopped"
    assert len(caplog.records) == 1


@pytest.mark.parametrize("where", ["model", "tool"])
async def test_who_makes_an_error_of_the_cancellation_does_not_undo_it(where: str) -> None:
    async def converts() -> Any:
        try:
            await anyio.sleep_forever()
        except BaseException as error:
            raise OSError("connection lost") from error

    class Model:
        async def generate(self, request: Request) -> Response:
            response: Response = await converts()
            return response

        async def stream(self, request: Request) -> AsyncIterator[Any]:
            yield await converts()

    async def convert() -> str:
        """Convert."""
        text: str = await converts()
        return text

    recorder = Recorder()
    model: Any = Model() if where == "model" else ScriptedModel([asks(("1", "convert"))])
    with anyio.move_on_after(0.01) as scope:
        await Agent(model, tools=[convert], on_event=recorder).run("p")
    assert scope.cancelled_caught
    well_formed(recorder.events)
    assert recorder.kinds[-1] == "run_stopped"


async def test_cleanup_of_a_model_may_await_although_the_run_is_cancelled() -> None:
    closed: list[str] = []

    class Connection:
        def __aiter__(self) -> Connection:
            return self

        async def __anext__(self) -> Any:
            await anyio.sleep_forever()

        async def aclose(self) -> None:
            await anyio.lowlevel.checkpoint()
            closed.append("closed")

    class Model:
        async def generate(self, request: Request) -> Response:
            raise NotImplementedError

        def stream(self, request: Request) -> AsyncIterator[Any]:
            return Connection()

    with anyio.move_on_after(0.01):
        async for _ in Agent(Model()).stream("p"):
            pass
    assert closed == ["closed"]


@pytest.mark.parametrize("place", ["terminal", "first"])
async def test_observers_behind_one_that_hangs_get_the_event_all_the_same(place: str) -> None:
    async def hang(event: Event) -> None:
        if isinstance(event, TERMINAL) if place == "terminal" else event.seq == 0:
            await anyio.sleep_forever()

    recorder = Recorder()
    with anyio.move_on_after(0.01) as scope:
        await Agent(ScriptedModel(["x"]), on_event=hang).run("p", on_event=recorder)
    assert scope.cancelled_caught
    well_formed(recorder.events)


async def test_a_cancelled_ending_still_has_its_result() -> None:
    """Cancelled while the observers are told: the answer is there, for both forms."""

    async def hang(event: Event) -> None:
        if isinstance(event, TERMINAL):
            await anyio.sleep_forever()

    found: list[Partial | None] = []

    async def run() -> None:
        try:
            await Agent(ScriptedModel(["x"])).run("p", on_event=hang)
        except anyio.get_cancelled_exc_class() as error:
            found.append(partial_from(error))
            raise

    stream = Agent(ScriptedModel(["x"])).stream("p", on_event=hang)
    with anyio.move_on_after(0.01):
        await run()
    with anyio.move_on_after(0.01):
        async with stream:
            async for _ in stream:
                pass
    assert isinstance(stream.outcome, RunFinished)
    assert stream.result is not None
    for partial in (*found, stream.partial):
        assert partial is not None
        assert [message.content for message in partial.messages] == ["p", "x"]


class Alarm(BaseException):
    """Stands for KeyboardInterrupt and SystemExit, which would end the test's own loop."""


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("where", ["model", "tool", "thread", "observer", "processor"])
async def test_what_is_no_exception_passes_untouched_with_its_evidence(
    where: str, streamed: bool
) -> None:
    alarm = Alarm("now")

    @tool
    async def inline() -> str:
        raise alarm

    @tool
    def threaded() -> str:
        raise alarm

    def observe(event: Event) -> None:
        if where == "observer" and event.kind == "tool_started":
            raise alarm

    def process(history: list[Message]) -> list[Message]:
        if where == "processor":
            raise alarm
        return history

    name = {"tool": "inline", "thread": "threaded"}.get(where, "echo")
    model: Any = Gives(alarm) if where == "model" else ScriptedModel([asks(("1", name)), "x"])
    recorder = Recorder()
    agent = Agent(
        model, tools=[inline, threaded, echo], on_event=observe, history_processor=process
    )
    stream = agent.stream("p", on_event=recorder)
    with pytest.raises(Alarm) as caught:
        await (_read(stream) if streamed else agent.run("p", on_event=recorder))
    assert alarm is caught.value
    well_formed(recorder.events)
    assert recorder.kinds[-1] == "run_stopped"
    partial = partial_from(alarm)
    assert partial == recorder.events[-1].partial  # type: ignore[union-attr]
    assert (partial is None) == (where in ("model", "processor"))


async def _read(stream: RunStream[Any]) -> None:
    async with stream:
        async for _ in stream:
            pass


async def test_a_group_with_a_cancellation_in_it_carries_the_evidence_in_every_member() -> None:
    """A scope that takes its cancellation out of a group rebuilds the group from the rest."""
    inner = ValueError("sibling")
    group = BaseExceptionGroup("tool's own tasks", [inner, Alarm()])

    @tool
    async def fails() -> str:
        raise group

    with pytest.raises(BaseExceptionGroup) as caught:
        await Agent(ScriptedModel([asks(("1", "fails"))]), tools=[fails]).run("p")
    assert group is caught.value
    rest = caught.value.split(Alarm)[1]
    assert rest is not None
    assert partial_from(rest) is not None
    assert partial_from(rest) == partial_from(group)


def test_a_tool_that_raises_cancelled_error_itself_is_not_turned_into_a_result() -> None:
    @tool
    async def gives_up() -> str:
        raise asyncio.CancelledError

    recorder = Recorder()
    agent = Agent(ScriptedModel([asks(("1", "gives_up"))]), tools=[gives_up], on_event=recorder)

    async def main() -> Partial | None:
        try:
            await agent.run("p")
        except asyncio.CancelledError as error:
            return partial_from(error)
        return None

    partial = asyncio.run(main())
    assert partial is not None
    assert partial.tool_calls == 1
    well_formed(recorder.events)


@pytest.mark.parametrize("run", [asyncio.run, trio.run], ids=["asyncio", "trio"])
def test_a_keyboard_interrupt_leaves_the_loop_with_its_evidence(run: Any) -> None:
    @tool
    async def interrupted() -> str:
        raise KeyboardInterrupt

    recorder = Recorder()
    agent = Agent(ScriptedModel([asks(("1", "interrupted"))]), tools=[interrupted])

    async def main() -> None:
        await agent.run("p", on_event=recorder)

    with pytest.raises(KeyboardInterrupt) as caught:
        run(main() if run is asyncio.run else main)
    assert partial_from(caught.value) is not None
    well_formed(recorder.events)


def test_the_evidence_survives_asyncios_timeout() -> None:
    @tool
    async def hang() -> str:
        await asyncio.sleep(60)
        return ""

    async def main() -> Partial | None:
        agent = Agent(ScriptedModel([asks(("1", "hang"))], usage=Usage(1, 1)), tools=[hang])
        try:
            async with asyncio.timeout(0.01):
                await agent.run("p")
        except TimeoutError as error:
            return partial_from(error)
        return None

    partial = virtual_time.run(main, backend="asyncio")
    assert partial is not None
    assert (1, Usage(1, 1)) == (partial.tool_calls, partial.usage)


async def test_one_cancelled_run_leaves_the_others_of_its_agent_alone() -> None:
    go = anyio.Event()

    @tool
    async def wait() -> str:
        await go.wait()
        return "waited"

    agent = Agent(ScriptedModel([asks(("1", "wait"))] * 2 + ["x"] * 2), tools=[wait])
    results: list[str] = []

    async def run() -> None:
        results.append((await agent.run("p")).output)

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        with anyio.move_on_after(0.01):
            await agent.run("p")
        go.set()
    assert results == ["x"]


async def test_a_run_without_evidence_is_not_given_that_of_the_run_before() -> None:
    """The second run's exception has the first one's error as its context."""

    async def hang(messages: list[Message]) -> list[Message]:
        await anyio.sleep_forever()
        return messages

    second = Agent(ScriptedModel(["never"]), request_processor=hang)
    died = TransportError("gone", retryable=False)
    found: list[Partial | None] = []
    try:
        await Agent(ScriptedModel([asks(("1", "unknown")), died])).run("first")
    except RunError as first:
        found.append(first.partial)
        try:
            with anyio.fail_after(0.01):
                await second.run("second")
        except TimeoutError as error:
            found.append(partial_from(error))
    assert [partial is None for partial in found] == [False, True]
