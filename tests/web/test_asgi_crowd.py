"""500 streams at once whose readers come and go at random: each event once, and in order."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from golem import Agent
from golem.testing import ScriptedModel
from golem.web.asgi import app
from golem.web.replay import MemoryReplay, Replay
from golem.web.replay_sqlite import SQLiteReplay
from tests.web.serving import SERVERS, Client, number, served

STREAMS = 500
TEXT = "Words that come one after the other, until there are enough of them to be cut."


@pytest.fixture(params=["memory", "sqlite"])
async def replay(
    request: pytest.FixtureRequest, tmp_path: Path, anyio_backend: str
) -> AsyncIterator[Replay]:
    if request.param == "memory":
        yield MemoryReplay()
    else:
        kept = SQLiteReplay(tmp_path / "replay.db")
        yield kept
        await kept.aclose()


class Reader:
    """Reads one run to its end, over as many connections as that takes."""

    def __init__(self, client: Client, seed: int) -> None:
        self.client = client
        self.rng = random.Random(seed)
        self.seen: list[int] = []
        self.text = ""
        self.kind = ""
        self.run_id = ""
        self.connections = 0

    async def read(self) -> None:
        await self._piece("POST", "/runs", {"prompt": "go on"})
        while self.kind != "run_finished":
            after = f"?after={self.run_id}:{self.seen[-1]}" if self.seen else ""
            await self._piece("GET", f"/runs/{self.run_id}/events{after}", None)

    async def _piece(self, method: str, path: str, body: object) -> None:
        self.connections += 1
        async with self.client.ask(method, path, body) as answer:
            assert answer.status == 200
            self.run_id = answer.headers["golem-run-id"]
            async for sent in answer.events():
                if sent.id:
                    self.seen.append(number(sent))
                    self.kind = sent.json["kind"]
                    self.text += sent.json.get("text", "")
                if self.kind != "run_finished" and self.rng.random() < 0.1:
                    return


@pytest.mark.parametrize(("anyio_backend", "server"), [SERVERS[0], SERVERS[-1]])
async def test_a_crowd_that_comes_and_goes_gets_each_event_once_and_in_order(
    replay: Replay, server: str
) -> None:
    served_app = app(
        lambda identity: Agent(ScriptedModel([TEXT])), replay=replay, on_disconnect="detach"
    )
    async with served(served_app, server) as port:
        readers = [Reader(Client(port), seed) for seed in range(STREAMS)]
        async with anyio.create_task_group() as tasks:
            for reader in readers:
                tasks.start_soon(reader.read)
    assert {tuple(reader.seen) for reader in readers} == {tuple(range(16))}
    assert {reader.text for reader in readers} == {TEXT}
    assert len({reader.run_id for reader in readers}) == STREAMS
    assert sum(reader.connections for reader in readers) > 1.5 * STREAMS
    assert served_app._runs._going_on == {}
    assert served_app._runs._tasks == {}
