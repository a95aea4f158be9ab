"""The journal: every message is handed to the application as it becomes final (contract §4.9)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

import anyio

from golem._run.cancellation import told
from golem._run.commands import RunFailure, describe
from golem._run.machine import Machine
from golem._run.waiting import Waiting
from golem.messages import Message, ToolMessage

Write = Callable[[Message], Awaitable[None]]
"""Stores one message; awaited before the run goes on, one at a time."""

_log = logging.getLogger("golem")


class Journal:
    """Writes each message once, whichever of its moments comes first.

    `kept`: there is somebody to hand them to. Without it nothing is written, whatever is asked.

    The prompt before the model is asked, an assistant turn before its tools start, a result as it
    finishes. Concatenated it is resume-ready history, and holds what `partial` holds.
    """

    def __init__(self, write: Write | None, waiting: Waiting) -> None:
        self.kept = write is not None
        self._write = write
        self._waiting = waiting
        self._ahead: list[ToolMessage] = []  # results written before they joined
        self._failed = False
        self._written: anyio.Event | None = None  # set when the write that is under way is over

    async def catch_up(self, machine: Machine) -> None:
        """Write all that is final and has not been written, unless a write has failed.

        Raises RunFailure (``history``).
        """
        if self._write is None or self._failed:
            return
        written = self._ahead.copy()
        for result in machine.unrecorded:
            if result in written:
                written.remove(result)
            else:
                await self._write_ahead(result)
        unwritten = machine.unwritten
        while unwritten:
            message = unwritten[0]
            if isinstance(message, ToolMessage) and message in self._ahead:
                self._ahead.remove(message)
            else:
                await self._call(message)
            unwritten.popleft()

    async def write_result(self, machine: Machine, result: ToolMessage | None) -> None:
        """A call of the batch has its result. Raises RunFailure (``history``)."""
        if self._write is not None and result is not None:
            await self._write_ahead(machine.stamped(result))

    async def close(self, machine: Machine | None) -> None:
        """The run is over, however: write what there still is. What fails now is logged."""
        if machine is None:
            return
        try:
            await self.catch_up(machine)
        except RunFailure:
            _log.exception("the journal of run %s is not complete", machine.run_id)

    async def _write_ahead(self, result: ToolMessage) -> None:
        await self._call(result)
        # Not before: a write that was cut off is made again.
        self._ahead.append(result)

    async def _call(self, message: Message) -> None:
        assert self._write is not None  # noqa: S101 - asked only where there is a journal
        while self._written is not None:  # calls that run together finish together
            await self._written.wait()
        self._written = written = anyio.Event()
        try:
            await self._waiting.on_last_words(told(self._write, message))
        except Exception as error:
            self._failed = True
            raise RunFailure("history", f"journal: {describe(error)}", error) from error
        finally:
            self._written = None
            written.set()
