"""The app behind real servers: streams, disconnects, resumption, stops, and how it shuts down."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from golem import Agent, AssistantMessage, Message
from golem.model import Response, TextDelta
from golem.testing import FunctionModel
from golem.web.asgi import App, app
from golem.web.replay import MemoryReplay
from golem.web.replay_sqlite import SQLiteReplay
from tests.web.agents import ANSWER, Ends, agent_for, look, paced, respond
from tests.web.serving import SERVERS, Answer, Client, Sent, number, served, until

Serve = Callable[[Any], contextlib.AbstractAsyncContextManager[Client]]


pytestmark = pytest.mark.parametrize(("anyio_backend", "server"), SERVERS)


@pytest.fixture
def serve(server: str) -> Serve:
    """Serves an app with the server of the test."""

    @contextlib.asynccontextmanager
    async def serving(app: App) -> AsyncIterator[Client]:
        async with served(app, server) as port:
            yield Client(port)

    return serving


def going_on(app: App) -> int:
    """How many runs the app carries out."""
    return len(app._runs._going_on) + len(app._runs._tasks)


async def read_until(answer: Answer, kind: str) -> list[Sent]:
    """The events up to the first of that kind."""
    found: list[Sent] = []
    async for sent in answer.events():
        found.append(sent)
        if sent.json.get("kind") == kind:
            break
    return found


def run_of(sent: list[Sent]) -> str:
    run_id: str = next(s.json["runId"] for s in sent if s.id)
    return run_id


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


async def test_who_leaves_cancels_the_run_and_its_evidence_is_kept(serve: Serve) -> None:
    ends = Ends()
    journal: list[Message] = []

    async def write(message: Message) -> None:
        journal.append(message)

    def serving(identity: str) -> Any:
        return agent_for(identity), {"journal": write}

    served_app = app(serving, on_end=ends)
    async with serve(served_app) as client:
        async with client.ask("POST", "/runs", {"prompt": "hang"}) as answer:
            sent = await read_until(answer, "text_delta")
        outcome = await ends.one()
        assert outcome.kind == "run_stopped"
        assert outcome.partial is not None  # type: ignore[union-attr]
        assert outcome.partial.text == ANSWER[:24]  # type: ignore[union-attr]
        assert [message.content for message in journal] == ["hang"]
        await until(lambda: going_on(served_app) == 0)
        # Who comes back is told how it ended.
        after = f"/runs/{run_of(sent)}/events?after={sent[-1].id}"
        async with client.ask("GET", after) as answer:
            rest = [each.json["kind"] async for each in answer.events()]
        assert rest[-1] == "run_stopped"
        assert set(rest[:-1]) == {"text_delta"}


async def test_who_leaves_a_detached_run_finds_it_going_on(serve: Serve) -> None:
    gate = anyio.Event()
    ends = Ends()
    served_app = app(paced(gate.wait), on_disconnect="detach", on_end=ends)
    async with serve(served_app) as client:
        async with client.ask("POST", "/runs", {"prompt": "hi"}) as answer:
            sent = await read_until(answer, "model_started")
        assert going_on(served_app) == 2
        assert (await client.get(f"/runs/{run_of(sent)}")).json["state"] == "running"
        after = f"/runs/{run_of(sent)}/events?after={sent[-1].id}"
        async with client.ask("GET", after) as answer:
            gate.set()
            rest = [each async for each in answer.events()]
        assert [number(each) for each in rest] == list(range(number(sent[-1]) + 1, 15))
        assert rest[-1].json["kind"] == "run_finished"
        assert (await ends.one()).kind == "run_finished"
        await until(lambda: going_on(served_app) == 0)


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


# Readers that are slow


class Counting(FunctionModel):
    """Counts the pieces it has given out."""

    def __init__(self) -> None:
        super().__init__(respond)
        self.pieces = 0

    async def stream(self, request: Any) -> Any:
        for _ in range(100_000):
            await anyio.lowlevel.checkpoint()
            self.pieces += 1
            yield TextDelta("some text")
        yield Response(AssistantMessage("some text" * 100_000))


async def test_a_slow_reader_slows_the_run(serve: Serve) -> None:
    model = Counting()
    served_app = app(lambda identity: Agent(model))
    async with serve(served_app) as client:
        async with client.ask("POST", "/runs", {"prompt": "hi"}):
            pieces = -1
            while pieces != model.pieces:  # until all buffers on the way are full
                pieces = model.pieces
                await anyio.sleep(0.3)
            assert 0 < pieces < 100_000
        await until(lambda: going_on(served_app) == 0)


async def test_a_reader_that_takes_nothing_counts_as_gone(serve: Serve) -> None:
    ends = Ends()
    served_app = app(lambda identity: Agent(Counting()), send_timeout=0.1, on_end=ends)
    async with serve(served_app) as client, client.ask("POST", "/runs", {"prompt": "hi"}):
        assert (await ends.one()).kind == "run_stopped"


async def test_a_detached_run_waits_for_nobody_and_late_readers_are_told(serve: Serve) -> None:
    ends = Ends()
    replay = MemoryReplay(max_run_bytes=5_000)
    served_app = app(agent_for, replay=replay, on_disconnect="detach", on_end=ends)
    async with serve(served_app) as client:
        async with client.ask("POST", "/runs", {"prompt": "long"}) as answer:
            run_id = answer.headers["golem-run-id"]
            assert (await ends.one()).kind == "run_finished"
        gone = await client.get(f"/runs/{run_id}/events")
        assert (gone.status, gone.json["error"]["code"]) == (410, "dropped")
        first = gone.json["error"]["detail"]["first"]
        async with client.ask("GET", f"/runs/{run_id}/events?after={first - 1}") as rest:
            assert number(await anext(rest.events())) == first


async def test_a_reader_that_falls_behind_the_bound_is_told_when_it_comes_back(
    serve: Serve,
) -> None:
    replay = MemoryReplay(max_run_bytes=2_000)
    await replay.begin("r", owner="local", conversation_id="c")
    event = b'{"kind":"text_delta","runId":"r","conversationId":"c","seq":%d,"text":"x"}'
    await replay.append("r", 0, event % 0)
    async with serve(app(agent_for, replay=replay)) as client:
        async with client.ask("GET", "/runs/r/events") as answer:
            events = answer.events()
            assert (await anext(events)).event == "intake"
            assert number(await anext(events)) == 0
            for seq in range(1, 100):
                await replay.append("r", seq, event % seq)
            seen = [number(each) async for each in events]
        assert seen == []  # the stream ended, without a terminal event
        gone = await client.get("/runs/r/events?after=0")
        assert gone.status == 410


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


# Clients that speak HTTP slowly, or stop in the middle


async def raw(client: Client, *pieces: bytes) -> tuple[int, bytes]:
    """What the server answers to these bytes, and then nothing more."""
    received = b""
    async with await anyio.connect_tcp("127.0.0.1", client.port) as stream:
        for piece in pieces:
            await stream.send(piece)
        while b"}" not in received:
            received += await stream.receive()
    return int(received.split()[1]), received


HEAD = b"POST /runs HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"


async def test_refusals_and_empty_answers_are_well_formed(serve: Serve) -> None:
    """One connection goes on behind each: the server agrees about where it ended."""
    requests = (("HEAD", "/runs", 405), ("OPTIONS", "/runs", 204), ("GET", "/x", 404))
    async with (
        serve(app(agent_for)) as client,
        await anyio.connect_tcp("127.0.0.1", client.port) as stream,
    ):
        for method, path, status in requests * 2:
            await stream.send(f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
            received = b""
            while b"\r\n\r\n" not in received or (method == "GET" and b"}}" not in received):
                received += await stream.receive()
            assert received.startswith(b"HTTP/1.1 %d" % status)
            assert received.endswith(b"}}" if method == "GET" else b"\r\n\r\n")


async def test_a_body_that_does_not_come_is_not_waited_for(serve: Serve) -> None:
    async with serve(app(agent_for, body_timeout=0.1)) as client:
        status, text = await raw(client, HEAD + b"content-length: 100\r\n\r\n", b'{"prompt"')
        assert (status, b'"too_slow"' in text) == (408, True)


async def test_a_body_that_does_not_end_is_cut(serve: Serve) -> None:
    async with serve(app(agent_for, max_bytes=1000)) as client:
        chunk = b"400\r\n" + b"x" * 0x400 + b"\r\n"
        status, text = await raw(client, HEAD + b"transfer-encoding: chunked\r\n\r\n", chunk)
        assert (status, b'"too_large"' in text) == (413, True)
        status, text = await raw(client, HEAD + b"content-length: 100000000000\r\n\r\n")
        assert (status, b'"too_large"' in text) == (413, True)


async def test_a_client_that_leaves_in_the_middle_of_its_body_begins_nothing(
    serve: Serve, caplog: pytest.LogCaptureFixture
) -> None:
    served_app = app(agent_for)
    async with serve(served_app) as client:
        async with await anyio.connect_tcp("127.0.0.1", client.port) as stream:
            await stream.send(HEAD + b'content-length: 100\r\n\r\n{"prompt":')
            await anyio.sleep(0.05)
        assert (await client.get("/runs/x")).status == 404
    assert going_on(served_app) == 0
    assert caplog.records == []


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_a_client_that_leaves_before_its_run_begins_begins_nothing(
    serve: Serve, policy: Any
) -> None:
    hangs, asked, left = False, 0, 0

    async def found_slowly(identity: str) -> Agent:
        nonlocal asked, left
        if hangs:
            asked += 1
            try:
                await anyio.sleep_forever()
            finally:
                left += 1
        return agent_for(identity)

    ends = Ends()
    served_app = app(found_slowly, on_disconnect=policy, on_end=ends)
    async with serve(served_app) as client:
        run_id = run_of(await client.run({"prompt": "delete"}))
        hangs = True
        answer = {"approvals": {"c-delete": True}}
        bodies: dict[str, Any] = {
            "/runs": {"prompt": "hi"},
            "/v1/chat/completions": {"messages": [{"role": "user", "content": "hi"}]},
            f"/runs/{run_id}/resume": answer,
        }
        for path, body in bodies.items():
            text = json.dumps(body).encode()
            head = HEAD.replace(b"/runs", path.encode())
            before = asked
            async with await anyio.connect_tcp("127.0.0.1", client.port) as stream:
                await stream.send(head + b"content-length: %d\r\n\r\n%b" % (len(text), text))
                await until(lambda before=before: asked == before + 1)
            await until(lambda before=before: left == before + 1)
        hangs = False
        assert going_on(served_app) == 0
        assert len(ends.told) == 1
        resumed = await client.run(answer, f"/runs/{run_id}/resume")  # nothing is used up
    assert resumed[-1].json["kind"] == "run_finished"


DISCONNECTS = {
    "/runs": {"prompt": "look delete"},
    "/ui": {"messages": [{"id": "1", "role": "user", "parts": [{"type": "text", "text": "look"}]}]},
    "/agui": {"messages": [{"id": "1", "role": "user", "content": "look crash"}]},
    "/v1/chat/completions": {"stream": True, "messages": [{"role": "user", "content": "hi"}]},
}


@pytest.mark.parametrize("policy", ["cancel", "detach"])
@pytest.mark.parametrize("path", DISCONNECTS)
async def test_leaving_at_any_event_ends_in_one_end_that_is_told_and_recorded(
    serve: Serve, path: str, policy: Any
) -> None:
    ends = Ends()
    served_app = app(agent_for, on_disconnect=policy, on_end=ends)
    async with serve(served_app) as client:
        whole = await client.run(DISCONNECTS[path], path)
        for had in range(min(len(whole), 20)):
            async with client.ask("POST", path, DISCONNECTS[path]) as answer:
                run_id = answer.headers["golem-run-id"]
                reading = answer.events()
                for _ in range(had):
                    await anext(reading)
            await until(lambda had=had: len(ends.told) == had + 2 and going_on(served_app) == 0)
            async with client.ask("GET", f"/runs/{run_id}/events") as answer:
                recorded = [sent async for sent in answer.events() if sent.id]
            assert [number(sent) for sent in recorded] == list(range(len(recorded)))
            assert recorded[-1].json["kind"] == ends.told[-1][1].kind


@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_a_completion_that_nobody_waits_for_any_more_is_cancelled(
    serve: Serve, policy: Any
) -> None:
    ends = Ends()
    served_app = app(agent_for, on_end=ends, on_disconnect=policy)
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hang"}]}).encode()
    head = HEAD.replace(b"/runs", b"/v1/chat/completions")
    async with serve(served_app) as client:
        async with await anyio.connect_tcp("127.0.0.1", client.port) as stream:
            await stream.send(head + b"content-length: %d\r\n\r\n%b" % (len(body), body))
            await until(lambda: going_on(served_app) == 1)
        assert (await ends.one()).kind == "run_stopped"
        await until(lambda: going_on(served_app) == 0)
