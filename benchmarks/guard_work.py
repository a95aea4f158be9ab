"""Fixed work for the guard to count the instructions of: everything is prepared, one thing is done.

python benchmarks/guard_work.py [NAME]      without a name only what all have in common is done
"""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable

import histories

import golem
from golem import AssistantMessage
from golem.corpus import normalize_lines
from golem.model import Delta, Request, Response, TextDelta
from golem_adapters.openai.dialect import OPENAI
from golem_adapters.openai.stream import ChatStream

MESSAGES = 600  # few, for making them is counted too, if only to be taken off
CHUNKS = 1_000

CLEAN = histories.conversation(MESSAGES)
DAMAGED = histories.conversation(MESSAGES, damage=0.05)
LINES = [histories.conversation(20, seed=n) for n in range(MESSAGES // 20)]
STREAM = b"".join(
    b'data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":'
    b'[{"index":0,"delta":{"content":"word %d "},"finish_reason":null}]}\n\n' % n
    for n in range(CHUNKS)
)
clean, damaged = golem.load_history(CLEAN), golem.load_history(DAMAGED)


class Words:
    """A model that streams many small pieces without waiting."""

    async def generate(self, request: Request) -> Response:
        """All of it."""
        return Response(AssistantMessage("word " * CHUNKS))

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        """Piece by piece."""
        for _ in range(CHUNKS):
            yield TextDelta("word ")
        yield await self.generate(request)


agent: golem.Agent[None] = golem.Agent(Words())


def decode_stream() -> None:
    """The bytes of a streamed answer to deltas, in pieces that fall as they may."""
    decoder = ChatStream(Request(()), OPENAI, {}, "")
    for start in range(0, len(STREAM), 4096):
        decoder.feed(STREAM[start : start + 4096])
    decoder.feed(b"data: [DONE]\n\n")
    decoder.close()


async def read_events() -> None:
    """A streamed run, every event."""
    async with agent.stream("Go.") as stream:
        async for _ in stream:
            pass


WORK: dict[str, Callable[[], object]] = {
    "decode": lambda: golem.load_history(CLEAN),
    "encode": lambda: golem.dump_history(clean),
    "repair, clean": lambda: golem.normalize_history(clean),
    "repair, damaged": lambda: golem.normalize_history(damaged),
    "repair, streamed": lambda: list(golem.repair(iter(damaged))),
    "sanitize": lambda: golem.sanitize_history(damaged),
    "corpus": lambda: list(normalize_lines(LINES)),
    "stream, bytes to deltas": decode_stream,
    "stream, deltas to events": lambda: asyncio.run(read_events()),
}
REPEATS = 12


def main(name: str | None) -> None:
    """Do the named work a few times over, or nothing."""
    gc.disable()
    for _ in range(REPEATS if name else 0):
        WORK[name or ""]()


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
