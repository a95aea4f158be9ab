"""Work with an SQLite file off the event loop: one thread at a time, in batches.

Whoever comes first takes along, in one transaction, what has been asked for meanwhile, so that
hundreds of streams cost few commits. What the work is, is its callers' business.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Generic, TypeVar, cast

import anyio
import anyio.to_thread

T = TypeVar("T")


class _Job(Generic[T]):
    """Something to be done with the file, and what came of it."""

    def __init__(self, work: Callable[[sqlite3.Connection], T]) -> None:
        self._work = work
        self._value: T | None = None
        self._error: BaseException | None = None
        self.done = False

    def carry_out(self, db: sqlite3.Connection) -> None:
        """Do it; only an error of the file itself is raised, and ends the batch."""
        try:
            self._value = self._work(db)
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - whoever asked for it is told
            self._error = error

    def fail(self, error: BaseException) -> None:
        """The batch was undone."""
        self._error = error

    def result(self) -> T:
        """What came of it. Raises what was raised."""
        if self._error is not None:
            raise self._error
        return cast("T", self._value)


class Worker:
    """Does jobs in a thread, one batch after the other, each batch in one transaction.

    A job checks before it writes: one that raises has written nothing that must not stay.
    """

    def __init__(self, connect: Callable[[], sqlite3.Connection]) -> None:
        self._connect = connect
        self._db: sqlite3.Connection | None = None
        self._closed = False
        self._queue: list[_Job[Any]] = []
        self._turn = anyio.Lock()
        self._threads = anyio.CapacityLimiter(1)  # never behind tools that block theirs
        self._busy = threading.Lock()

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Have it done, with whatever else waits for its turn."""
        job = _Job(work)
        self._queue.append(job)
        try:
            async with self._turn:
                # A leader that was cancelled leaves a thread behind, which may have this job.
                while not job.done:
                    batch, self._queue = self._queue, []
                    await self._run(partial(self._carry_out, batch))
        finally:
            if job in self._queue:
                self._queue.remove(job)
        return job.result()

    async def close(self, then: Callable[[], None]) -> None:
        """Close the file behind what is being done; for good."""
        async with self._turn:
            await self._run(partial(self._shut, then))

    async def _run(self, work: Callable[[], None]) -> None:
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(work, limiter=self._threads)

    def _carry_out(self, batch: Sequence[_Job[Any]]) -> None:
        with self._busy:
            try:
                self._transact(batch)
            except (sqlite3.Error, OSError) as error:
                for job in batch:
                    job.fail(error)
            finally:
                for job in batch:
                    job.done = True

    def _transact(self, batch: Sequence[_Job[Any]]) -> None:
        if self._closed:
            raise sqlite3.ProgrammingError("the record has been closed")
        if self._db is None:
            self._db = self._connect()
        db = self._db
        db.execute("begin immediate")
        try:
            for job in batch:
                job.carry_out(db)
            db.execute("commit")
        except BaseException:
            if db.in_transaction:
                db.execute("rollback")
            raise

    def _shut(self, then: Callable[[], None]) -> None:
        with self._busy:
            self._closed = True
            if self._db is not None:
                self._db.close()
                self._db = None
            then()
