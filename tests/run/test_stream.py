"""The stream as its reader holds it: pulling, leaving, closing, misusing."""

from __future__ import annotations

import gc
import warnings
from collections.abc import AsyncIterator
from random import Random
from typing import Any, TypeVar

import anyio
import anyio.lowlevel
import pytest

from golem import (
    Agent,
    AssistantMessage,
    Event,
    ProtocolError,
    RunError,
    RunStream,
    TransportError,
    Usage,
    partial_from,
    tool,
)
from golem.events import TERMINAL, RunFinished, RunStopped, TextDelta, ToolFinished, ToolStarted
from golem.model import Delta, Request, Response, ThinkingDelta, ToolCallDelta
from golem.model import TextDelta as Text
from golem.testing import Fragments, FunctionModel, ScriptedModel
from tests.run.support import Gives, Recorder, SlowRecorder, asks, boom, echo, resumes, well_formed

pytestmark = pytest.mark.virtual_time

T = TypeVar("T")


class Watched:
    """A model whose stream tells when it was closed; `trouble` is raised in closing it."""

    def __init__(self, trouble: BaseException | None = None) -> None:
        self.closed = 0
        self._trouble = trouble

    async def generate(self, request: Request) -> Response:
        return Response(AssistantMessage("one two"))

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        try:
            for text in ("one ", "two"):
                await anyio.lowlevel.checkpoint()
                yield Text(text)
            yield Response(AssistantMessage("one two"))
        finally:
            await anyio.lowlevel.checkpoint()
            self.closed += 1
            if self._trouble is not None:
                raise self._trouble


class Bare:
    """An async iterator that is no generator: with no `aclose`, or one that is counted."""

    def __init__(self, *items: Any) -> None:
        self._items = list(items)

    def __aiter__(self) -> Bare:
        return self

    async def __anext__(self) -> Any:
        await anyio.lowlevel.checkpoint()
        if not self._items:
            raise StopAsyncIteration
        return self._items.pop(0)


class Streams:
    """A model whose stream is the given iterator."""

    def __init__(self, items: Any) -> None:
        self._items = items

    async def generate(self, request: Request) -> Response:
        raise NotImplementedError

    def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        items: AsyncIterator[Delta | Response] = self._items
        return items


async def _collect(items: AsyncIterator[T], seen: list[T]) -> None:
    async for item in items:
        seen.append(item)


# Reading to the end


async def test_nothing_runs_before_the_first_pull() -> None:
    model, recorder = ScriptedModel(["x"]), Recorder()
    stream = Agent(model).stream("p", on_event=recorder)
    assert (stream.outcome, stream.result, stream.partial) == (None, None, None)
    assert (model.requests, recorder.events) == ([], [])
    await stream.aclose()


async def test_a_run_is_pulled_event_by_event() -> None:
    """Nothing is buffered: observers are exactly where the reader is."""
    recorder = Recorder()
    async with Agent(ScriptedModel([asks(("1", "echo")), "x"]), tools=[echo]).stream(
        "p", on_event=recorder
    ) as stream:
        async for event in stream:
            assert event is recorder.events[-1]
            await anyio.lowlevel.checkpoint()
            assert event is recorder.events[-1]


async def test_a_finished_stream_has_its_result_and_stays_at_its_end() -> None:
    async with Agent(ScriptedModel(["x"])).stream("p") as stream:
        events = [event async for event in stream]
        assert [event async for event in stream] == []
    assert isinstance(stream.outcome, RunFinished)
    assert stream.outcome is events[-1]
    assert stream.result is stream.outcome.result
    await stream.aclose()
    await stream.aclose()
    assert [event async for event in stream] == []


async def test_a_bare_loop_may_read_to_the_end() -> None:
    stream = Agent(ScriptedModel(["x"])).stream("p")
    well_formed([event async for event in stream])
    assert stream.result is not None


async def test_a_failed_run_raises_once_after_its_terminal_event() -> None:
    seen: list[Event] = []
    stream = Agent(ScriptedModel([TransportError("cut")])).stream("p")
    with pytest.raises(RunError) as caught:
        await _collect(stream, seen)
    well_formed(seen)
    assert seen[-1] is stream.outcome
    assert caught.value.stage == "model"
    assert [event async for event in stream] == []


async def test_text_iterates_only_the_text_and_raises_as_the_stream_does() -> None:
    agent = Agent(
        ScriptedModel(
            [
                asks(("1", "echo"), text="calling"),
                Fragments([Text("ha"), TransportError("cut")]),
            ]
        ),
        tools=[echo],
    )
    pieces: list[str] = []
    async with agent.stream("p") as stream:
        with pytest.raises(RunError):
            await _collect(stream.text(), pieces)
    assert "".join(pieces) == "callingha"


async def test_partial_grows_while_the_run_goes_on() -> None:
    texts: list[str] = []
    async with Agent(ScriptedModel(["a longer answer"])).stream("p") as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                assert stream.partial is not None
                texts.append(stream.partial.text)
    assert texts == ["a longer", "a longer answer"]


# Leaving


async def test_closing_before_the_first_pull_settles_the_outcome() -> None:
    recorder = Recorder()
    model = ScriptedModel(["x"])
    async with Agent(model).stream("p", on_event=recorder) as stream:
        pass
    assert isinstance(stream.outcome, RunStopped)
    assert [stream.outcome] == recorder.events
    assert (model.requests, stream.partial) == ([], None)
    await stream.aclose()
    assert len(recorder.events) == 1
    assert [event async for event in stream] == []


def _total(script: list[Any]) -> int:
    """How many events the stream of that script has."""
    recorder = Recorder()

    async def read() -> None:
        stream = Agent(ScriptedModel(script), tools=[echo, boom]).stream("p", on_event=recorder)
        try:
            async for _ in stream:
                pass
        except RunError:
            pass

    anyio.run(read)
    return len(recorder.events)


LEAVING = {
    "answer": ["x"],
    "tools": [asks(("1", "echo"), ("2", "echo")), "x"],
    "failure": [asks(("1", "echo"), ("2", "boom"))],
}


@pytest.mark.parametrize("how", ["break", "raise", "aclose"])
@pytest.mark.parametrize(
    ("script", "at"),
    [(name, at) for name, script in LEAVING.items() for at in range(_total(script))],
)
async def test_leaving_at_any_event_settles_the_run_exactly_once(
    script: str, at: int, how: str
) -> None:
    first, second = SlowRecorder(), Recorder()
    model = ScriptedModel(LEAVING[script], usage=Usage(1, 1))
    agent = Agent(model, tools=[echo, boom], on_event=first)
    stream = agent.stream("p", on_event=second)
    left: Event | None = None
    try:
        async with stream:
            async for event in stream:
                if event.seq == at:
                    left = event
                    if how == "raise":
                        raise LookupError
                    if how == "aclose":
                        await stream.aclose()
                        assert [event async for event in stream] == []
                    break
    except LookupError:
        assert how == "raise"
    well_formed(second.events)
    assert first.events == second.events
    assert second.events[-1] is stream.outcome
    if isinstance(left, TERMINAL):
        assert left is stream.outcome
    else:
        assert isinstance(stream.outcome, RunStopped)
        assert stream.outcome.partial == stream.partial
        assert at + 2 == len(second.events)
    if stream.partial is not None and stream.result is None:
        asked = stream.partial.messages[-1]
        unanswered = [call.id for call in getattr(asked, "tool_calls", ())]
        await resumes(stream.partial, synthesized=unanswered)


async def test_leaving_closes_the_models_stream_at_once() -> None:
    model = Watched()
    async with Agent(model).stream("p") as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break
        assert model.closed == 0
    assert model.closed == 1
    assert stream.partial is not None
    assert stream.partial.text == "one "


@pytest.mark.parametrize("trouble", [OSError("reset"), TransportError("cut")])
async def test_trouble_in_closing_the_models_stream_is_logged_and_hides_nothing(
    trouble: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = Recorder()
    model = Watched(trouble)
    async with Agent(model).stream("p", on_event=recorder) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                break
    assert isinstance(stream.outcome, RunStopped)
    well_formed(recorder.events)
    assert len(caplog.records) == 1


async def test_a_stream_in_use_refuses_a_second_reader_and_goes_on() -> None:
    """One reader at a time; whoever comes in between is told so and the run is unharmed."""
    entered, go = anyio.Event(), anyio.Event()

    @tool
    async def wait() -> str:
        entered.set()
        await go.wait()
        return "waited"

    recorder = Recorder()
    agent = Agent(ScriptedModel([asks(("1", "wait")), "x"]), tools=[wait], on_event=recorder)
    stream = agent.stream("p")

    async def read() -> None:
        async for _ in stream:
            pass

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        await entered.wait()
        with pytest.raises(RuntimeError, match="read by another task"):
            await anext(stream)
        assert stream.outcome is None
        go.set()
    assert stream.result is not None
    well_formed(recorder.events)


@pytest.mark.parametrize("hangs", ["model", "tool"])
async def test_closing_a_stream_ends_the_pull_that_another_task_is_in(hangs: str) -> None:
    """As a web handler does that leaves while a task of its own reads."""
    entered = anyio.Event()

    async def wait() -> str:
        entered.set()
        await anyio.sleep_forever()
        return "unreached"

    async def ask(request: Request) -> str:
        return await wait()

    recorder = Recorder()
    scripted = ScriptedModel([asks(("1", "wait"))])
    model = scripted if hangs == "tool" else FunctionModel(ask)
    agent = Agent(model, tools=[tool(wait)], on_event=recorder)
    read: list[str] = []

    async def reader(stream: RunStream[str]) -> None:
        read.extend([event.kind async for event in stream])

    async with anyio.create_task_group() as group:
        async with agent.stream("p") as stream:
            group.start_soon(reader, stream)
            await entered.wait()
        assert isinstance(stream.outcome, RunStopped)
    assert read == recorder.kinds[: len(read)]
    well_formed(recorder.events)
    with pytest.raises(StopAsyncIteration):
        await anext(stream)


async def test_a_stream_may_be_read_by_one_task_after_another() -> None:
    """No cancel scope or task group is open across a pull, so who pulls does not matter."""
    recorder = Recorder()
    agent = Agent(ScriptedModel([asks(("1", "echo")), "x"]), tools=[echo], on_event=recorder)

    async def pull() -> None:
        await anext(stream, None)

    async with agent.stream("p") as stream:
        while stream.outcome is None:
            async with anyio.create_task_group() as group:
                group.start_soon(pull)
    assert stream.result is not None
    well_formed(recorder.events)


async def test_leaving_a_bare_loop_is_the_only_way_to_lose_the_ending() -> None:
    """Documented: without `async with` cleanup waits for the collector, or for `aclose`."""
    stream = Agent(ScriptedModel(["x"])).stream("p")
    async for _ in stream:
        break
    assert stream.outcome is None
    await stream.aclose()
    assert isinstance(stream.outcome, RunStopped)


async def test_leaving_early_inside_async_with_leaves_nothing_to_the_collector() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for at in range(6):
            async with Agent(Watched()).stream("p") as stream:
                async for event in stream:
                    if event.seq == at:
                        break
            del stream
            gc.collect()
            await anyio.lowlevel.checkpoint()


# Streams of models


async def test_a_models_iterator_needs_no_aclose() -> None:
    items = Bare(Text("x"), Response(AssistantMessage("x")))
    async with Agent(Streams(items)).stream("p") as stream:
        async for _ in stream:
            pass
    assert stream.result is not None
    assert stream.result.output == "x"


async def test_a_model_that_cannot_be_iterated_fails_its_turn() -> None:
    for items in (None, 7, [Text("x")]):
        stream = Agent(Streams(items)).stream("p")
        with pytest.raises(RunError) as caught:
            async for _ in stream:
                pass
        assert caught.value.stage == "model"


@pytest.mark.parametrize(
    "garbage",
    [
        {"text": "y"},
        Text(None),  # type: ignore[arg-type]
        ThinkingDelta(5),  # type: ignore[arg-type]
        ToolCallDelta(0, "c", "echo", None),  # type: ignore[arg-type]
    ],
    ids=lambda garbage: type(garbage).__name__,
)
async def test_garbage_in_a_models_stream_fails_its_turn(garbage: Any) -> None:
    recorder = Recorder()
    stream = Agent(Gives(Text("x"), garbage), on_event=recorder).stream("p")
    with pytest.raises(RunError) as caught:
        async for _ in stream:
            pass
    well_formed(recorder.events)
    assert caught.value.stage == "model"
    assert isinstance(caught.value.__cause__, ProtocolError)
    assert caught.value.partial is not None
    assert caught.value.partial.text == "x"


async def test_a_slow_reader_meets_no_task_of_golems() -> None:
    """Between pulls nothing of the run is running: the tool has ended or has not begun."""
    inside = 0

    @tool
    async def count() -> str:
        nonlocal inside
        inside += 1
        await anyio.lowlevel.checkpoint()
        inside -= 1
        return ""

    agent = Agent(ScriptedModel([asks(("1", "count"), ("2", "count")), "x"]), tools=[count])
    async with agent.stream("p") as stream:
        async for event in stream:
            await anyio.lowlevel.checkpoint()
            assert inside == 0
            if isinstance(event, (ToolStarted, ToolFinished)):
                assert event.name == "count"


@pytest.mark.parametrize("seed", range(40))
async def test_closing_and_stopping_beside_each_other_never_collide(seed: int) -> None:
    """A client disconnects while the user presses stop, and the connection closes slowly."""
    random = Random(seed)

    class Slow:
        async def generate(self, request: Request) -> Response:
            raise NotImplementedError

        async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
            try:
                while True:
                    await anyio.lowlevel.checkpoint()
                    yield Text("x")
            finally:
                with anyio.CancelScope(shield=True):
                    for _ in range(5):
                        await anyio.lowlevel.checkpoint()

    async def observe(event: Event) -> None:
        await anyio.lowlevel.checkpoint()

    recorder = Recorder()
    stream = Agent(Slow(), on_event=observe).stream("p", on_event=recorder)

    async def wait(most: int) -> None:
        for _ in range(random.randrange(most)):
            await anyio.lowlevel.checkpoint()

    async def reader() -> None:
        async with stream:
            for _ in range(random.randrange(1, 12)):
                await anext(stream, None)

    async def closer() -> None:
        await wait(60)
        await stream.aclose()

    async def stopper() -> None:
        await wait(60)
        await stream.stop(random.choice(["now", "after_model"]), within=0.001)

    async with anyio.create_task_group() as group:
        for task in random.sample([reader, closer, closer, stopper, stopper], 5):
            group.start_soon(task)
    assert isinstance(stream.outcome, RunStopped)
    well_formed(recorder.events)


async def test_a_tool_that_closes_its_stream_stops_the_run() -> None:
    @tool
    async def close() -> str:
        await stream.aclose()
        await anyio.sleep_forever()
        return "unreached"

    stream = Agent(ScriptedModel([asks(("1", "close"))]), tools=[close]).stream("p")
    async with stream:
        async for _ in stream:
            pass
    assert isinstance(stream.outcome, RunStopped)


async def test_a_reader_cancelled_while_handling_another_runs_error_has_his_own_evidence() -> None:
    found: list[Any] = []
    with anyio.CancelScope() as scope:
        try:
            await Agent(ScriptedModel([asks(("1", "boom"))]), tools=[boom]).run("A")
        except RunError:
            try:
                async with Agent(ScriptedModel(["b"])).stream("B") as stream:
                    async for event in stream:
                        if event.kind == "message_added" and event.message.content == "b":
                            scope.cancel()
                            await anyio.lowlevel.checkpoint()
            except BaseException as error:
                found.append(partial_from(error))
                raise
    assert [message.content for message in found[0].messages] == ["B", "b"]
