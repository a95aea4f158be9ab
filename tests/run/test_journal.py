"""The journal holds what the partial holds, however a run ends, and keeps no run from ending."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import anyio
import pytest

from golem import (
    Agent,
    Approval,
    AssistantMessage,
    DeferredResults,
    Event,
    Message,
    ModelRetry,
    RunError,
    RunStream,
    ToolCanceled,
    TransportError,
    Usage,
    closing,
    dump_message,
    normalize_history,
    tool,
)
from golem._run import model_turn, waiting
from golem.events import RunFailed, RunFinished, RunStopped
from golem.history.repair import NO_RESULT
from golem.model import Delta, Request, Response
from golem.model import TextDelta as Text
from golem.testing import ScriptedModel
from tests.run import virtual_time
from tests.run.support import Recorder, SlowRecorder, announced, asks, echo, well_formed

pytestmark = pytest.mark.virtual_time


class Stored:
    """A journal that remembers."""

    def __init__(self) -> None:
        self.messages: list[Message] = []

    async def __call__(self, message: Message) -> None:
        await anyio.lowlevel.checkpoint()
        self.messages.append(message)

    @property
    def contents(self) -> list[str]:
        return [message.content for message in self.messages]


class Answers:
    """A model that gives its whole response, and then something else happens."""

    def __init__(self, then: Callable[[], Any]) -> None:
        self.then = then

    async def generate(self, request: Request) -> Response:
        raise NotImplementedError

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        yield Text("hello")
        yield Response(AssistantMessage("hello"), usage=Usage(5, 5))
        await self.then()


async def fails() -> None:
    raise TransportError("closed badly")


async def hangs() -> None:
    await anyio.sleep_forever()


async def read(stream: RunStream[Any], until: str = "") -> list[Event]:
    seen: list[Event] = []
    async with stream:
        try:
            async for event in stream:
                seen.append(event)
                if event.kind == until:
                    break
        except RunError:
            pass
    return seen


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "GRACE_SECONDS", 0.02)


# What has been produced is stored


async def test_a_turn_is_stored_before_its_end_is_shown() -> None:
    stored = Stored()
    stream = Agent(ScriptedModel(["hello"]), journal=stored).stream("p")
    await read(stream, until="model_finished")
    assert stored.contents == ["p", "hello"]


@pytest.mark.parametrize("then", [fails, hangs])
async def test_a_turn_is_complete_whatever_its_connection_does_behind_it(
    then: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_turn, "GRACE_SECONDS", 0.01)
    stored, recorder = Stored(), Recorder()
    stream = Agent(Answers(then), journal=stored, on_event=recorder).stream("p")
    await read(stream)
    assert stored.contents == ["p", "hello"]
    assert recorder.kinds[-2:] == ["message_added", "run_finished"]
    well_formed(recorder.events)


async def test_a_journal_that_is_not_async_is_told_to_be() -> None:
    lines: list[Message] = []
    plain: Any = lines.append
    with pytest.raises(
        RunError, match=r"journal: it has to be async, and gave NoneType$"
    ) as caught:
        await Agent(ScriptedModel(["hi"]), journal=plain).run("p")
    assert caught.value.stage == "history"


async def test_what_a_full_disk_keeps_from_the_journal_is_told_all_the_same() -> None:
    """The run fails, and its events have said every message that its partial holds."""
    recorder = Recorder()

    async def full(message: Message) -> None:
        if message.content == "and hurry":
            raise OSError("the disk is full")

    def hurries(event: Event) -> None:
        recorder(event)
        if event.kind == "model_started":
            stream.enqueue("and hurry")
            stream.enqueue("one more thing", when="idle")

    stream = Agent(ScriptedModel(["first"])).stream("q", on_event=hurries, journal=full)
    await read(stream)
    assert recorder.kinds[-1] == "run_failed"
    assert stream.partial is not None
    told = announced(recorder.events)
    assert [m.content for m in told] == ["q", "first", "and hurry", "one more thing"]
    assert told == stream.partial.new_messages


async def test_a_turn_that_has_no_price_is_stored_and_told() -> None:
    def price(usage: Usage) -> float:
        raise ZeroDivisionError

    stored, recorder = Stored(), Recorder()
    agent = Agent(ScriptedModel(["x"]), price=price, journal=stored, on_event=recorder)
    with pytest.raises(RunError):
        await agent.run("p")
    assert stored.contents == ["p", "x"]
    assert recorder.kinds[-2:] == ["message_added", "run_failed"]


async def test_a_journal_is_asked_for_one_message_at_a_time() -> None:
    """Calls that run together finish together; one file, one connection is all it may have."""
    stored = Stored()
    writing = False

    async def journal(message: Message) -> None:
        nonlocal writing
        assert not writing
        writing = True
        await anyio.sleep(0.1)
        writing = False
        await stored(message)

    calls = [(str(n), "echo", f'{{"text": "{n}"}}') for n in range(5)]
    agent = Agent(
        ScriptedModel([asks(*calls), "done"]),
        tools=[echo],
        parallel_tool_calls=True,
        journal=journal,
    )
    result = await agent.run("p")
    assert sorted(stored.contents) == sorted(m.content for m in result.messages)


async def test_results_that_wait_for_a_slow_journal_are_stored_at_the_end_all_the_same() -> None:
    stored = Stored()

    async def journal(message: Message) -> None:
        await anyio.sleep(0.4)
        await stored(message)

    calls = [(str(n), "echo", f'{{"text": "{n}"}}') for n in range(5)]
    agent = Agent(
        ScriptedModel([asks(*calls), "done"]),
        tools=[echo],
        parallel_tool_calls=True,
        journal=journal,
        timeout=1.5,  # over while the second result is being written
    )
    with pytest.raises(RunError) as caught:
        await agent.run("p")
    partial = caught.value.partial
    assert partial is not None
    assert len(partial.batch_results) == 5
    assert {m.content for m in partial.resume_messages} == set(stored.contents)


@pytest.mark.parametrize("ends", ["fails", "stops"])
async def test_the_results_beside_a_batch_are_stored_with_it(ends: str) -> None:
    """A sibling that is to correct its call has its answer, though the batch has failed."""

    @tool(retries=1)
    async def refuses() -> str:
        raise ModelRetry("again")

    @tool
    async def breaks() -> str:
        if ends == "stops":
            await stream.stop()
        raise ValueError("broken")

    stored = Stored()
    stream = Agent(
        ScriptedModel([asks(("1", "refuses"), ("2", "echo"), ("3", "breaks"))]),
        tools=[refuses, echo, breaks],
        parallel_tool_calls=True,
        journal=stored,
    ).stream("p")
    await read(stream)
    assert stream.partial is not None
    in_partial = {message.content for message in stream.partial.resume_messages}
    assert in_partial - {NO_RESULT} <= set(stored.contents)
    assert not normalize_history(stored.messages)[1].dropped


async def test_results_that_say_the_same_are_stored_each_where_ids_do_not_tell_them_apart() -> None:
    """A model may repeat an id in one turn, and a server may send none."""

    @tool(retries=1)
    async def one() -> str:
        raise ModelRetry("again")

    @tool(retries=1)
    async def other() -> str:
        raise ModelRetry("again")

    @tool
    async def stops() -> str:
        raise ToolCanceled

    stored = Stored()
    stream = Agent(
        ScriptedModel([asks(("", "one"), ("1", "stops"), ("", "other"))]),
        tools=[one, other, stops],
        parallel_tool_calls=True,
        journal=stored,
    ).stream("p")
    await read(stream)
    assert stream.partial is not None
    held = [*stream.partial.new_messages, *stream.partial.batch_results]
    assert sorted(map(dump_message, held)) == sorted(map(dump_message, stored.messages))


async def test_the_answers_of_a_resumed_run_are_stored_before_anything_runs() -> None:
    stored = Stored()

    @tool(requires_approval=True)
    async def acts() -> str:
        assert "It is external." in stored.contents
        assert any("denied" in content for content in stored.contents)
        raise ValueError("broken")

    calls = asks(("1", "acts"), ("2", "acts"), ("3", "acts"))
    agent = Agent(ScriptedModel([calls]), tools=[acts])
    paused = await agent.run("p")
    answers = DeferredResults(
        approvals={"1": True, "2": Approval(False)}, external={"3": "It is external."}
    )
    with pytest.raises(RunError, match="broken"):
        await agent.run(None, history=paused.messages, deferred=answers, journal=stored)


async def test_a_write_that_a_cancellation_cut_off_is_made_once_more() -> None:
    entered = anyio.Event()

    class Slow(Stored):
        async def __call__(self, message: Message) -> None:
            if message.content == "hello" and not entered.is_set():
                entered.set()
                await anyio.sleep_forever()
            self.messages.append(message)

    stored = Slow()
    stream = Agent(ScriptedModel(["hello"]), journal=stored).stream("p")
    async with anyio.create_task_group() as group:
        group.start_soon(read, stream)
        await entered.wait()
        group.cancel_scope.cancel()
    assert isinstance(stream.outcome, RunStopped)
    assert stored.contents == ["p", "hello"]


# No journal and no observer keeps a run from ending


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("place", ["p", "hello"])
async def test_a_hanging_journal_fails_the_run_at_its_timeout(place: str) -> None:
    async def write(message: Message) -> None:
        if message.content == place:
            await anyio.sleep_forever()

    recorder = Recorder()
    agent = Agent(ScriptedModel(["hello"]), journal=write, on_event=recorder)
    with pytest.raises(RunError, match="journal: still waited for") as caught:
        await agent.run("p", timeout=0.01)
    assert caught.value.stage == "history"
    assert isinstance(caught.value.__cause__, TimeoutError)
    well_formed(recorder.events)


@pytest.mark.usefixtures("short_grace")
async def test_a_stop_does_not_wait_for_a_hanging_journal() -> None:
    entered = anyio.Event()

    async def write(message: Message) -> None:
        entered.set()
        await anyio.sleep_forever()

    stream = Agent(ScriptedModel(["hello"]), journal=write).stream("p")
    async with anyio.create_task_group() as group:
        group.start_soon(read, stream)
        await entered.wait()
        outcome = await stream.stop()
    assert isinstance(outcome, RunFailed)
    assert outcome.stage == "history"


async def test_a_stop_lets_the_journal_store_what_it_closes() -> None:
    stored = Stored()

    @tool
    async def stops() -> str:
        await stream.stop()
        await anyio.sleep_forever()
        return "unreached"

    stream = Agent(ScriptedModel([asks(("1", "stops"))]), tools=[stops], journal=stored).stream("p")
    await read(stream)
    assert isinstance(stream.outcome, RunStopped)
    assert stored.contents == ["p", "", NO_RESULT]


async def test_an_observers_own_cancelled_error_fails_no_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """It awaited a task that somebody else has cancelled."""

    async def observe(event: Event) -> None:
        raise asyncio.CancelledError

    assert (await Agent(ScriptedModel(["x"]), on_event=observe).run("p")).output == "x"
    assert "an observer of run" in caplog.text


def test_a_cancellation_that_the_last_observer_swallows_reaches_the_caller() -> None:
    async def observe(event: Event) -> None:
        if event.kind == "run_finished":
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                return

    async def main() -> None:
        async with asyncio.timeout(0.05):
            await Agent(ScriptedModel(["x"]), on_event=observe).run("p")

    with pytest.raises(TimeoutError):
        virtual_time.run(main, backend="asyncio")


@pytest.mark.usefixtures("short_grace")
async def test_a_stop_frees_a_run_whose_end_an_observer_hangs_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    entered = anyio.Event()

    async def observe(event: Event) -> None:
        if event.kind == "run_finished":
            entered.set()
            await anyio.sleep_forever()

    stream = Agent(ScriptedModel(["x"]), on_event=observe).stream("p")
    async with anyio.create_task_group() as group:
        group.start_soon(read, stream)
        await entered.wait()
        assert isinstance(await stream.stop(), RunFinished)
    assert "hung at event" in caplog.text


async def test_every_observer_gets_the_end_though_the_connection_closes_slowly(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(closing, "CLEANUP_SECONDS", 0.02)

    class Peer:
        def __aiter__(self) -> Peer:
            return self

        async def __anext__(self) -> Delta:
            return Text("x")

        async def aclose(self) -> None:
            await anyio.sleep_forever()

    class Model:
        async def generate(self, request: Request) -> Response:
            raise NotImplementedError

        def stream(self, request: Request) -> Any:
            return Peer()

    recorder = SlowRecorder()
    stream = Agent(Model(), on_event=recorder).stream("p")
    await read(stream, until="text_delta")
    assert recorder.kinds[-1] == "run_stopped"


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize("how", ["timeout", "stop", "cancel"])
async def test_no_run_waits_for_a_hanging_observer(
    how: str, caplog: pytest.LogCaptureFixture
) -> None:
    entered, recorder = anyio.Event(), Recorder()

    async def observe(event: Event) -> None:
        if event.kind in ("model_started", "run_failed", "run_stopped"):
            entered.set()
            await anyio.sleep_forever()

    timeout = 0.01 if how == "timeout" else None
    stream = Agent(ScriptedModel(["hello"]), on_event=observe).stream(
        "p", on_event=recorder, timeout=timeout
    )
    async with anyio.create_task_group() as group:
        group.start_soon(read, stream)
        await entered.wait()
        if how == "stop":
            await stream.stop()
        elif how == "cancel":
            group.cancel_scope.cancel()
    assert isinstance(stream.outcome, RunFailed if how == "timeout" else RunStopped)
    well_formed(recorder.events)
    assert "still waited for" in caplog.text
