"""The app behind real servers: streams, resumption, stops, records, and how it shuts down."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import anyio
import pytest

from golem import Agent
from golem.web.asgi import app
from golem.web.replay import MemoryReplay
from golem.web.replay_sqlite import SQLiteReplay
from tests.web.agents import Counting, Ends, agent_for, look, paced
from tests.web.serving import SERVERS, Sent, Serve, going_on, number, read_until, run_of, until

pytestmark = pytest.mark.parametrize(("anyio_backend", "server"), SERVERS)


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_a_run_is_streamed_and_can_be_read_again(serve: Serve, policy: Any) -> None:
    served_app = app(agent_for, on_disconnect=policy)
    async with serve(served_app) as client:
        async with client.ask("POST", "/runs", {"prompt": "look"}) as answer:
            assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
            assert answer.headers["cache-control"] == "no-cache, no-transform"
            told = [sent async for sent in answer.events()]
        assert told[0].event == "intake"
        events = told[1:]
        assert [number(sent) for sent in events] == list(range(len(events)))
        assert events[-1].json["result"]["output"] == "Done: found"
        path = f"/runs/{run_of(told)}/events"
        for after in (0, 3, len(events) - 2):
            async with client.ask("GET", f"{path}?after={events[after].id}") as answer:
                assert [sent async for sent in answer.events()] == events[after + 1 :]
            headers = {"last-event-id": events[after].id}
            async with client.ask("GET", path, headers=headers) as answer:
                assert [sent async for sent in answer.events()] == events[after + 1 :]
        async with client.ask("GET", path) as answer:
            assert [sent async for sent in answer.events()] == told
        over = await client.get(path, {"last-event-id": events[-1].id})
        assert (over.status, over.body) == (204, b"")
        assert going_on(served_app) == 0


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_several_tabs_read_one_run(serve: Serve, policy: Any) -> None:
    gate = anyio.Event()
    served_app = app(paced(gate.wait), on_disconnect=policy)
    async with (
        serve(served_app) as client,
        client.ask("POST", "/runs", {"prompt": "hi"}) as first,
        anyio.create_task_group() as tasks,
    ):
        sent = await read_until(first, "model_started")
        path = f"/runs/{run_of(sent)}/events"
        tabs: list[list[Sent]] = []

        async def tab() -> None:
            async with client.ask("GET", path) as answer:
                head = await read_until(answer, "model_started")
                ready.append(1)
                tabs.append(head + [each async for each in answer.events()])

        ready: list[int] = []
        for _ in range(3):
            tasks.start_soon(tab)
        await until(lambda: len(ready) == 3)
        gate.set()
        sent += [each async for each in first.events()]
        await until(lambda: len(tabs) == 3)
        assert tabs == [sent] * 3


# Stops


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_a_run_is_stopped(serve: Serve, policy: Any) -> None:
    served_app = app(agent_for, on_disconnect=policy)
    async with (
        serve(served_app) as client,
        client.ask("POST", "/runs", {"prompt": "hang"}) as answer,
    ):
        sent = await read_until(answer, "text_delta")
        path = f"/runs/{run_of(sent)}/stop"
        stopped = await client.post(path, b"")
        assert (stopped.status, stopped.json) == (200, {"ended": True, "outcome": "run_stopped"})
        rest = [each async for each in answer.events()]
        assert rest[-1].json["kind"] == "run_stopped"
        again = await client.post(path, {"when": "after_tools"})
        assert (again.status, again.json) == (200, {"ended": True, "outcome": "run_stopped"})


@pytest.mark.parametrize("policy", ["cancel", "detach"])
@pytest.mark.parametrize("when", ["after_model", "after_tools"])
async def test_a_run_is_stopped_later(serve: Serve, policy: Any, when: str) -> None:
    gate = anyio.Event()
    served_app = app(paced(gate.wait), on_disconnect=policy)
    async with (
        serve(served_app) as client,
        client.ask("POST", "/runs", {"prompt": "look"}) as answer,
        anyio.create_task_group() as tasks,
    ):
        sent = await read_until(answer, "model_started")
        stopped: list[Any] = []

        async def stop() -> None:
            found = await client.post(f"/runs/{run_of(sent)}/stop", {"when": when})
            stopped.append((found.status, found.json))

        tasks.start_soon(stop)
        served_run = next(iter(served_app._runs._going_on.values()))
        await until(lambda: served_run.stream._run._stop == when)
        gate.set()
        kinds = [each.json["kind"] async for each in answer.events()]
        assert kinds[-1] == "run_stopped"
        assert ("tool_started" in kinds) == (when == "after_tools")
        assert kinds.count("model_started") == 0
        await until(lambda: bool(stopped))
        assert stopped == [(200, {"ended": True, "outcome": "run_stopped"})]


async def test_a_later_stop_strikes_within_its_time(serve: Serve) -> None:
    async with (
        serve(app(agent_for)) as client,
        client.ask("POST", "/runs", {"prompt": "hang"}) as answer,
    ):
        sent = await read_until(answer, "text_delta")
        order = {"when": "after_tools", "within": 0.05}
        stopped = await client.post(f"/runs/{run_of(sent)}/stop", order)
        assert stopped.json == {"ended": True, "outcome": "run_stopped"}


async def test_only_the_process_that_carries_a_run_out_stops_it(
    serve: Serve, tmp_path: Path
) -> None:
    elsewhere, here = (SQLiteReplay(tmp_path / "r.db") for _ in range(2))
    await elsewhere.begin("r", owner="local")
    async with serve(app(agent_for, replay=here)) as client:
        stopped = await client.post("/runs/r/stop", {})
        assert (stopped.status, stopped.json["error"]["code"]) == (409, "elsewhere")
    await elsewhere.aclose()
    await here.aclose()


# Where it is mounted, and how it ends


async def test_the_app_works_below_a_path(serve: Serve) -> None:
    inner = app(agent_for)

    async def outer(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "root_path": "/api/agents"}
        await inner(scope, receive, send)

    async with serve(outer) as client:
        told = await client.run({"prompt": "hi"}, "/api/agents/runs")
        assert told[-1].json["kind"] == "run_finished"
        assert (await client.get(f"/api/agents/runs/{run_of(told)}")).status == 200
        assert (await client.get("/api/agentsruns")).status == 404


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_shutting_down_ends_what_goes_on_and_keeps_its_evidence(
    serve: Serve, policy: Any
) -> None:
    ends = Ends()
    replay = MemoryReplay()
    served_app = app(
        agent_for, replay=replay, on_disconnect=policy, on_end=ends, shutdown_timeout=5.0
    )
    async with serve(served_app) as client:
        async with client.ask("POST", "/runs", {"prompt": "hang"}) as answer:
            sent = await read_until(answer, "text_delta")
            async with served_app.running():
                pass
            rest = [each.json["kind"] async for each in answer.events()]
            assert rest[-1] == "run_stopped"
            outcome = await ends.one()
            assert outcome.partial is not None  # type: ignore[union-attr]
            record = await replay.record(run_of(sent))
            assert record is not None
            assert record.state == "ended"
        refused = await client.post("/runs", {"prompt": "hi"})
        assert (refused.status, refused.json["error"]["code"]) == (503, "shutting_down")
        assert going_on(served_app) == 0


async def test_what_does_not_end_in_time_is_cancelled(serve: Serve) -> None:
    ends = Ends()
    served_app = app(lambda identity: Agent(Counting()), on_end=ends, shutdown_timeout=0.1)
    async with (
        serve(served_app) as client,
        client.ask("POST", "/runs", {"prompt": "hi"}) as answer,
    ):
        await read_until(answer, "text_delta")
        async with served_app.running():
            pass  # the reader takes nothing more
        assert (await ends.one()).kind == "run_stopped"
        assert going_on(served_app) == 0


async def test_a_server_that_shuts_down_ends_detached_runs(serve: Serve) -> None:
    ends = Ends()
    served_app = app(agent_for, on_disconnect="detach", on_end=ends)
    async with serve(served_app) as client:
        async with client.ask("POST", "/runs", {"prompt": "hang"}) as answer:
            await read_until(answer, "text_delta")
        assert ends.told == []
    assert [outcome.kind for _, outcome in ends.told] == ["run_stopped"]
    assert going_on(served_app) == 0


async def test_a_server_that_shuts_down_under_its_readers_keeps_the_evidence(serve: Serve) -> None:
    ends = Ends()
    served_app = app(agent_for, on_end=ends)
    async with contextlib.AsyncExitStack() as connections, serve(served_app) as client:
        asking = client.ask("POST", "/runs", {"prompt": "hang"})
        answer = await connections.enter_async_context(asking)
        await read_until(answer, "text_delta")
    assert [outcome.kind for _, outcome in ends.told] == ["run_stopped"]
    assert ends.told[0][1].partial is not None  # type: ignore[union-attr]
    assert going_on(served_app) == 0


async def test_options_of_a_run_come_with_the_agent(serve: Serve) -> None:
    seen: list[str] = []

    def serving(identity: str) -> Any:
        return agent_for(identity), {
            "tools": [look],
            "run_id": "not for the application to choose",
            "on_event": lambda event: seen.append(event.kind),
        }

    async with serve(app(serving)) as client:
        told = await client.run({"prompt": "delete look"})
        assert "There is no tool named delete" in str([each.data for each in told])
        assert [each.json["kind"] for each in told[1:]] == seen
        assert run_of(told) != "not for the application to choose"


# A record that fails


class Failing(MemoryReplay):
    """A record that takes no event from one on, but for the terminal one."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self.at = at

    async def append(self, run_id: str, seq: int, data: bytes) -> None:
        if self.at <= seq:
            raise OSError("no space left on the disk")
        await super().append(run_id, seq, data)


@pytest.mark.parametrize("policy", ["cancel", "detach"])
@pytest.mark.parametrize("at", [0, 1, 3, 6])
async def test_a_run_that_cannot_be_recorded_is_stopped(
    serve: Serve, policy: Any, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    ends = Ends()
    served_app = app(agent_for, replay=Failing(at), on_disconnect=policy, on_end=ends)
    async with serve(served_app) as client:
        told = await client.run({"prompt": "look long"})
        assert (await ends.one()).kind == "run_stopped"
        assert told[-1].json["kind"] == "run_stopped"
        await until(lambda: going_on(served_app) == 0)
    assert "no space left" in caplog.text


async def test_who_began_a_run_is_told_its_end_though_it_cannot_be_recorded(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    ends = Ends()
    served_app = app(agent_for, replay=NeverEnding(), on_end=ends)
    async with serve(served_app) as client:
        told = await client.run({"prompt": "hi"})
        assert told[-1].json["kind"] == "run_finished"
        assert (await ends.one()).kind == "run_finished"
        await until(lambda: going_on(served_app) == 0)
    assert "no space left" in caplog.text


class NeverEnding(MemoryReplay):
    """A record that cannot take the end of a run."""

    async def finish(self, run_id: str, seq: int, data: bytes, *, paused: bytes = b"") -> None:
        raise OSError("no space left on the disk")
