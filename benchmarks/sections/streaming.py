"""Streaming over a real loopback server in a process of its own: chunk to user event."""

from __future__ import annotations

import asyncio

import chat_server
import clients
import peers
from rows import Row, timed, times_as_long, times_faster
from timing import compare_async

STREAMS = 50
PAUSE = 25
"""Milliseconds between the chunks of a paced stream."""


def measure(chunks: int, rounds: int) -> list[Row]:
    """One burst of `chunks`, and fifty streams at once that share as many."""
    with chat_server.running() as server:
        return [_burst(server, chunks, rounds), _paced(server, chunks // STREAMS, rounds)]


def _burst(server: str, chunks: int, rounds: int) -> Row:
    url = f"{server}/burst/{chunks}/v1"
    contestants = {
        "httpx, counting bytes": clients.httpx_bytes(url),
        "golem": clients.golem_stream(url),
        "golem, aiohttp": clients.golem_stream(url, aiohttp=True),
    }
    contestants |= {n: make(url) for n, make in clients.STREAMS.items() if peers.there(n)}
    found = compare_async(contestants, rounds, chunks, close=clients.close)
    goals = [
        times_as_long(found, "golem", "httpx, counting bytes", 1.35),
        times_faster(found, "golem", "pydantic-ai", 15),
        times_faster(found, "golem", "openai-agents", 8),
        times_faster(found, "golem", "openai SDK", 6),
    ]
    title = f"stream, a burst of {chunks:,} chunks"
    return timed(title, "µs/chunk", found, goals, "chunk to user event; client CPU")


def _paced(server: str, chunks: int, rounds: int) -> Row:
    url = f"{server}/paced/{chunks}/{PAUSE}/v1"
    alone = {
        "httpx, counting bytes": clients.httpx_bytes(url),
        "golem": clients.golem_stream(url),
        "golem, aiohttp": clients.golem_stream(url, aiohttp=True),
    }
    alone |= {n: make(url) for n, make in clients.STREAMS.items() if peers.there(n)}

    def together(run: clients.Run) -> clients.Run:
        async def all_of_them() -> None:
            async with asyncio.TaskGroup() as tasks:
                for _ in range(STREAMS):
                    tasks.create_task(_awaited(run))

        return all_of_them

    contestants = {name: together(run) for name, run in alone.items()}
    found = compare_async(
        contestants, min(rounds, 5), STREAMS * chunks, loops=1, close=clients.close
    )
    goals = [
        times_faster(found, "golem, aiohttp", "openai-agents", 3),
        times_faster(found, "golem, aiohttp", "pydantic-ai", 5),
    ]
    title = f"{STREAMS} paced streams, a chunk every {PAUSE} ms"
    return timed(title, "µs/chunk", found, goals, "client CPU; the wall time is the server's")


async def _awaited(run: clients.Run) -> None:
    await run()
