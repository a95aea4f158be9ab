"""The journal: every message is handed to the application as it becomes final (contract §4.9)."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable

from golem import events as ev
from golem._run.commands import describe
from golem._run.herald import Herald
from golem._run.machine import Machine, RunFailure
from golem.messages import Message, ToolMessage

Write = Callable[[Message], Awaitable[None]]
"""Stores one message; awaited before the run goes on."""


class Journal:
    """Writes each message once, whichever of its moments comes first.

    The prompt before the model is asked, an assistant turn before its tools start, a result as it
    finishes. Concatenated it is resume-ready history.
    """

    def __init__(self, write: Write | None) -> None:
        self._write = write
        self._results: Counter[tuple[str, str]] = Counter()  # written before they joined

    async def write(self, message: Message) -> None:
        """A message has joined the transcript. Raises RunFailure (``history``)."""
        if self._write is None:
            return
        if isinstance(message, ToolMessage):
            key = message.tool_call_id, message.content
            if self._results[key]:
                self._results[key] -= 1
                return
        await self._call(message)

    async def write_result(self, machine: Machine, result: ToolMessage | None) -> None:
        """A call of the batch has its result. Raises RunFailure (``history``)."""
        if self._write is None or result is None:
            return
        await self._call(machine.stamped(result))
        # Not before: a write that was cut off is made again where the result joins after all.
        self._results[result.tool_call_id, result.content] += 1

    async def _call(self, message: Message) -> None:
        assert self._write is not None  # noqa: S101 - asked only where there is a journal
        try:
            await self._write(message)
        except Exception as error:
            raise RunFailure("history", f"journal: {describe(error)}", error) from error


async def tell(
    machine: Machine, journal: Journal, herald: Herald
) -> AsyncGenerator[ev.MessageAdded, None]:
    """Journal what has joined the transcript since the last time, and tell of it."""
    for place, message in machine.joined():
        await journal.write(message)
        yield herald.event(ev.MessageAdded, message, place)
