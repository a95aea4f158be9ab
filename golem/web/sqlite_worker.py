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
        self.called = anyio.Event()  # it is done, or its turn to see to what is waiting

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
        self._begun: list[_Job[Any]] = []  # taken from the queue, and not told yet
        self._leader: _Job[Any] | None = None  # whose turn it is to have a batch done
        self._threads = anyio.CapacityLimiter(1)  # never behind tools that block theirs
        self._busy = threading.Lock()

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Have it done, with whatever else waits for its turn."""
        job = _Job(work)
        self._queue.append(job)
        if self._leader is None:
            self._leader = job
        try:
            if self._leader is not job:
                await job.called.wait()
            while not job.done:
                await self._next_batch()
        finally:
            if not job.done:  # nobody waits for it any more, and nobody may be waited for in vain
                self._queue = [other for other in self._queue if other is not job]
                self._begun = [other for other in self._begun if other is not job]
            if self._leader is job:
                self._hand_over()
        return job.result()

    async def close(self, then: Callable[[], None]) -> None:
        """Close the file behind what is being done; for good."""
        await self._run(partial(self._shut, then))

    async def _next_batch(self) -> None:
        batch, self._queue = self._queue, []
        self._begun += batch
        await self._run(partial(self._carry_out, batch))

    def _hand_over(self) -> None:
        """Tell those whose work is done; the first of the others leads.

        A leader whose task was killed leaves a thread at work: then the next one waits for that.
        """
        for job in self._begun:
            if job.done:
                job.called.set()
        self._begun = [job for job in self._begun if not job.done]
        self._leader = next(iter((*self._begun, *self._queue)), None)
        if self._leader is not None:
            self._leader.called.set()

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
