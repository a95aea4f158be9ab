"""The record of served runs in an SQLite file: it outlives the process, and processes share it.

What is done with it is SQL; how it is done, off the event loop, stands in ``sqlite_worker``. A run
whose process has died is found by the lock that every process holds on a file of its own for as
long as it lives: whoever gets that lock knows that its holder is gone.
"""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple
from weakref import WeakValueDictionary

import anyio
from msgspec.structs import replace

from golem.errors import ReplayFullError, UnknownRunError
from golem.events import RunStopped, encode_event
from golem.ids import new_id
from golem.web.replay import (
    MIB,
    Page,
    Recorded,
    RunRecord,
    check_bounds,
    check_gap,
    check_next,
    follow,
)
from golem.web.sqlite_worker import Worker

_POLL_SECONDS: Final = 0.1
"""How often a run that another process carries out is looked at."""
_BUSY_SECONDS: Final = 30.0
"""How long another process may hold the file."""
_PAGE: Final = 500
"""How many events one look takes from the file."""

_SCHEMA: Final = """
create table if not exists runs (
    number integer primary key autoincrement,
    run_id text not null unique,
    owner text not null,
    conversation_id text not null,
    report blob not null,
    state text not null default 'running',
    first integer not null default 0,
    last integer not null default -1,
    size integer not null default 0,
    paused blob not null default x'',
    resumed_by text not null default '',
    process text not null,
    forget_at real
);
create index if not exists runs_of_conversation on runs (conversation_id, number);
create index if not exists runs_to_forget on runs (forget_at) where forget_at is not null;
create index if not exists runs_going_on on runs (process) where state = 'running';
create table if not exists events (
    number integer not null,
    seq integer not null,
    data blob not null,
    primary key (number, seq)
) without rowid;
"""

_COLUMNS: Final = (
    "run_id, owner, conversation_id, report, state, first, last, paused, resumed_by, "
    "number, process, size, forget_at"
)

INTERRUPTED: Final = "interrupted: the process that carried the run out has ended"
"""The reason in the terminal event of a run whose process has died."""


class SQLiteReplay:
    """A record in an SQLite file, which several processes may use at once.

    A restarted process finds ended and paused runs as they were; a run whose process died ends
    in ``run_stopped`` with the reason `INTERRUPTED`. Only the process that carries a run out can
    stop it.

    Args:
        path: The file; made where there is none, beside it one for each process that uses it.
        max_runs: How many runs are known at once. At the bound the run that began first is
            forgotten, of those that have ended; where there is none no further one can begin.
        max_run_bytes: How much of one run is kept; at the bound its oldest events are dropped.
        ttl: Seconds after its end until a run is forgotten.
        paused_ttl: The same for a run that waits for somebody.
        clock: Gives seconds since some time that is the same for all processes; for tests.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        max_runs: int = 100_000,
        max_run_bytes: int = 64 * MIB,
        ttl: float = 86_400.0,
        paused_ttl: float = 30 * 86_400.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        check_bounds(max_runs=max_runs, max_run_bytes=max_run_bytes)
        check_bounds(ttl=ttl, paused_ttl=paused_ttl)
        self._path = Path(path).absolute()
        self._max_runs, self._max_run_bytes = max_runs, max_run_bytes
        self._ttl, self._paused_ttl = ttl, paused_ttl
        self._clock = clock
        self._process = new_id()
        self._worker = Worker(self._open)
        self._alive: sqlite3.Connection | None = None
        self._own: set[str] = set()  # runs that go on in this process
        self._bells: WeakValueDictionary[str, _Bell] = WeakValueDictionary()

    def __repr__(self) -> str:
        return f"SQLiteReplay({str(self._path)!r})"

    async def begin(
        self, run_id: str, *, owner: str, conversation_id: str = "", report: bytes = b""
    ) -> None:
        """As `Replay.begin`."""
        await self._worker.do(partial(self._begin, run_id, owner, conversation_id, report))
        self._own.add(run_id)

    async def append(self, run_id: str, seq: int, data: bytes) -> None:
        """As `Replay.append`."""
        await self._worker.do(partial(self._keep, run_id, seq, data))
        self._tell(run_id)

    async def finish(self, run_id: str, seq: int, data: bytes, *, paused: bytes = b"") -> None:
        """As `Replay.finish`."""
        await self._worker.do(partial(self._finish, run_id, seq, data, paused))
        self._own.discard(run_id)
        self._tell(run_id)

    def read(self, run_id: str, after: int = -1) -> AsyncGenerator[Recorded, None]:
        """As `Replay.read`."""
        bell = self._bells.setdefault(run_id, _Bell())
        rung = bell.rung

        async def look(after: int) -> Page:
            nonlocal rung
            rung = bell.rung  # before looking: what is kept from here on sets it
            return await self._worker.do(partial(self._look, run_id, after))

        async def changed() -> None:
            with anyio.move_on_after(None if run_id in self._own else _POLL_SECONDS):
                await rung.wait()

        return follow(after, look, changed)

    async def record(self, run_id: str) -> RunRecord | None:
        """As `Replay.record`."""
        row = await self._worker.do(partial(self._row, "run_id = ?", run_id))
        return None if row is None else row.record

    async def latest(self, conversation_id: str) -> RunRecord | None:
        """As `Replay.latest`."""
        where = "conversation_id = ? order by number desc limit 1"
        row = await self._worker.do(partial(self._row, where, conversation_id))
        return None if row is None else row.record

    async def claim(self, run_id: str, by: str) -> bool:
        """As `Replay.claim`."""
        return await self._worker.do(partial(self._claim, run_id, by))

    async def aclose(self) -> None:
        """Close the file. Runs that this process has not finished count as interrupted then."""
        await self._worker.close(self._close)
        self._own.clear()

    # Below: in the worker's thread, in a transaction.

    def _open(self) -> sqlite3.Connection:
        path = self._path
        alive = sqlite3.connect(_life_line(path, self._process), check_same_thread=False)
        _lock(alive)
        self._alive = alive
        path.touch(
            mode=0o600
        )  # conversations are nobody else's; what SQLite adds has the same mode
        db = sqlite3.connect(path, timeout=_BUSY_SECONDS, check_same_thread=False)
        db.isolation_level = None
        db.execute("pragma journal_mode = wal")
        db.execute("pragma synchronous = normal")
        db.executescript(_SCHEMA)
        self._reap(db)
        return db

    def _reap(self, db: sqlite3.Connection) -> None:
        """End the runs of processes that have died, and remove their files."""
        for path in self._path.parent.glob(_life_line(self._path, "*").name):
            self._lives(path.name.removeprefix(f"{self._path.name}.").removesuffix(".live"))
        going_on = db.execute("select run_id from runs where state = 'running'").fetchall()
        for (run_id,) in going_on:
            self._row("run_id = ?", run_id, db)

    def _close(self) -> None:
        if self._alive is not None:
            self._alive.close()
            _life_line(self._path, self._process).unlink(missing_ok=True)

    def _begin(
        self, run_id: str, owner: str, conversation_id: str, report: bytes, db: sqlite3.Connection
    ) -> None:
        self._forget_old(db)
        (known,) = db.execute("select count(*) from runs").fetchone()
        if known >= self._max_runs and not self._forget_first(db):
            raise ReplayFullError(f"all {self._max_runs} runs of the record go on or are paused")
        try:
            db.execute(
                "insert into runs (run_id, owner, conversation_id, report, process) "
                "values (?, ?, ?, ?, ?)",
                (run_id, owner, conversation_id, report, self._process),
            )
        except sqlite3.IntegrityError as error:
            raise ValueError(f"run {run_id!r} has begun before") from error

    def _keep(self, run_id: str, seq: int, data: bytes, db: sqlite3.Connection) -> _Row:
        row = self._known(run_id, db)
        check_next(row.record, seq)
        db.execute("insert into events values (?, ?, ?)", (row.number, seq, data))
        row = row._replace(size=row.size + len(data))
        if row.size > self._max_run_bytes:
            row = _drop_oldest(db, row, seq, self._max_run_bytes)
        db.execute(
            "update runs set last = ?, size = ?, first = ? where number = ?",
            (seq, row.size, row.record.first, row.number),
        )
        return row

    def _finish(
        self, run_id: str, seq: int, data: bytes, paused: bytes, db: sqlite3.Connection
    ) -> None:
        row = self._keep(run_id, seq, data, db)
        forget_at = self._clock() + (self._paused_ttl if paused else self._ttl)
        db.execute(
            "update runs set state = ?, paused = ?, forget_at = ? where number = ?",
            ("paused" if paused else "ended", paused, forget_at, row.number),
        )

    def _look(self, run_id: str, after: int, db: sqlite3.Connection) -> Page:
        row = self._known(run_id, db)
        check_gap(row.record, after)
        found = db.execute(
            "select seq, data from events where number = ? and seq > ? order by seq limit ?",
            (row.number, after, _PAGE),
        )
        return Page([Recorded(*event) for event in found], row.record.over)

    def _claim(self, run_id: str, by: str, db: sqlite3.Connection) -> bool:
        row = self._known(run_id, db)
        if row.record.state != "paused" or row.record.resumed_by:
            return False
        db.execute(
            "update runs set resumed_by = ?, paused = x'', forget_at = ? where number = ?",
            (by, self._clock() + self._ttl, row.number),
        )
        return True

    def _known(self, run_id: str, db: sqlite3.Connection) -> _Row:
        row = self._row("run_id = ?", run_id, db)
        if row is None:
            raise UnknownRunError(f"there is no run {run_id!r}")
        return row

    def _row(self, where: str, value: str, db: sqlite3.Connection) -> _Row | None:
        """The run, ended as interrupted where its process has died."""
        row = _select(db, where, value)
        if row is None or (row.forget_at is not None and row.forget_at <= self._clock()):
            return None
        if row.record.over or row.process == self._process or self._lives(row.process):
            return row
        self._interrupt(row, db)
        return _select(db, where, value)

    def _interrupt(self, row: _Row, db: sqlite3.Connection) -> None:
        record = row.record
        seq = record.last + 1
        event = RunStopped(record.run_id, record.conversation_id, seq, INTERRUPTED)
        values = (row.number, seq, encode_event(event))
        db.execute("insert into events values (?, ?, ?)", values)
        db.execute(
            "update runs set state = 'interrupted', last = ?, forget_at = ? where number = ?",
            (seq, self._clock() + self._ttl, row.number),
        )

    def _lives(self, process: str) -> bool:
        """Whether that process holds its lock; its file goes with it."""
        path = _life_line(self._path, process)
        if not path.exists():
            return False
        with contextlib.closing(sqlite3.connect(path, timeout=0)) as lock:
            try:
                _lock(lock)
            except sqlite3.OperationalError:
                return True
        path.unlink(missing_ok=True)
        return False

    def _forget_old(self, db: sqlite3.Connection) -> None:
        _forget(db, "forget_at <= ?", self._clock())

    def _forget_first(self, db: sqlite3.Connection) -> int:
        first = "select min(number) from runs where forget_at is not null and state != 'paused'"
        return _forget(db, f"number = ({first})")

    # Again on the event loop.

    def _tell(self, run_id: str) -> None:
        bell = self._bells.get(run_id)
        if bell is not None:
            bell.rung.set()
            bell.rung = anyio.Event()


class _Bell:
    """What the readers of one run wait at; it is there as long as one of them is."""

    def __init__(self) -> None:
        self.rung = anyio.Event()


class _Row(NamedTuple):
    """A run as the file has it."""

    record: RunRecord
    number: int
    process: str
    size: int
    forget_at: float | None


def _select(db: sqlite3.Connection, where: str, value: str) -> _Row | None:
    found = db.execute(f"select {_COLUMNS} from runs where {where}", (value,))  # noqa: S608
    row = found.fetchone()
    return None if row is None else _Row(RunRecord(*row[:-4]), *row[-4:])


def _drop_oldest(db: sqlite3.Connection, row: _Row, last: int, bound: int) -> _Row:
    """Drop the oldest events, all but the last if need be, until the rest is within the bound."""
    oldest = db.execute(
        "select seq, length(data) from events where number = ? and seq < ? order by seq",
        (row.number, last),
    )
    first, size = row.record.first, row.size
    while size > bound and (event := oldest.fetchone()) is not None:
        first = event[0] + 1
        size -= event[1]
    oldest.close()
    db.execute("delete from events where number = ? and seq < ?", (row.number, first))
    return row._replace(record=replace(row.record, first=first), size=size)


def _forget(db: sqlite3.Connection, where: str, *values: float) -> int:
    """Forget the runs of which `where` holds; returns how many they were."""
    numbers = f"select number from runs where {where}"  # noqa: S608 - conditions of this module
    db.execute(f"delete from events where number in ({numbers})", values)  # noqa: S608
    return db.execute(f"delete from runs where number in ({numbers})", values).rowcount  # noqa: S608


def _lock(life_line: sqlite3.Connection) -> None:
    """Hold the file's lock until the connection is closed, or its process is no more.

    Raises sqlite3.OperationalError where somebody else holds it.
    """
    life_line.isolation_level = None
    life_line.execute("pragma journal_mode = off")  # nothing is ever written
    life_line.execute("begin exclusive")


def _life_line(path: Path, process: str) -> Path:
    """The file that a process keeps locked as long as it lives."""
    return path.with_name(f"{path.name}.{process}.live")
