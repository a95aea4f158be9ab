"""Clients of the app behind real servers: slow ones, and those that leave, wherever they are."""

from __future__ import annotations

import json
from typing import Any

import anyio
import pytest

from golem import Agent, Message
from golem.web.asgi import app
from golem.web.replay import MemoryReplay
from tests.web.agents import ANSWER, Counting, Ends, agent_for, paced
from tests.web.serving import SERVERS, Client, Serve, going_on, number, read_until, run_of, until

pytestmark = pytest.mark.parametrize(("anyio_backend", "server"), SERVERS)


# Clients that leave


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


# Readers that are slow


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
