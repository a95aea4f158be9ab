"""The record of served runs: what lets a reader come back, and a paused run be resumed.

Here are the port (`Replay`) and the record in memory; the one on disk is in ``replay_sqlite``.
A record holds events as the encoded JSON they are sent from, one per `seq`, who began each run,
and, of a paused run, the conversation that its answers continue. It knows nothing of HTTP.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from typing import Final, Literal, NamedTuple, Protocol, runtime_checkable

import anyio
import anyio.lowlevel
from msgspec import Struct
from msgspec.structs import replace

from golem.errors import ReplayFullError, ReplayGapError, UnknownRunError

RunState = Literal["running", "ended", "paused", "interrupted"]
"""``interrupted``: the process that carried the run out has died."""

MIB: Final = 1024 * 1024
NEVER: Final = float("inf")


class RunRecord(Struct, frozen=True):
    """What a record knows of a run beside its events.

    `owner` is the identity that began it. `last` is the `seq` of its newest event (-1: none yet),
    `first` of the oldest that was not dropped. `paused` is what resuming a paused run needs,
    opaque to the record; `resumed_by` names the run that has taken it over.
    """

    run_id: str
    owner: str
    conversation_id: str
    report: bytes = b""
    state: RunState = "running"
    first: int = 0
    last: int = -1
    paused: bytes = b""
    resumed_by: str = ""

    @property
    def over(self) -> bool:
        """Whether no further event comes."""
        return self.state != "running"


class Recorded(NamedTuple):
    """An event as it is recorded: its `seq` and its JSON."""

    seq: int
    data: bytes


@runtime_checkable
class Replay(Protocol):
    """Where the events of served runs are kept. Every method may raise UnknownRunError.

    The order of calls for one run: `begin`, `append` with rising `seq`, `finish`. `read` may be
    called by any number of readers at any time after `begin`.
    """

    async def begin(
        self, run_id: str, *, owner: str, conversation_id: str = "", report: bytes = b""
    ) -> None:
        """A run begins. Raises ValueError for a known id, ReplayFullError where none fits."""
        ...

    async def append(self, run_id: str, seq: int, data: bytes) -> None:
        """Keep an event, and show it to who reads; returns when that cannot be lost any more.

        Raises ValueError unless `seq` is higher than the last, and for a run that is over.
        """
        ...

    async def finish(self, run_id: str, seq: int, data: bytes, *, paused: bytes = b"") -> None:
        """Keep the terminal event and end the run, in one step; raises as `append` does.

        `paused`: what resuming it needs; the run is then ``paused``, else ``ended``.
        """
        ...

    def read(self, run_id: str, after: int = -1) -> AsyncGenerator[Recorded, None]:
        """Every event with a higher `seq`, in order, once each, those to come included.

        Ends behind the terminal event. Close it when leaving early (``contextlib.aclosing``).
        Raises ReplayGapError where events that the reader has not had were dropped.
        """
        ...

    async def record(self, run_id: str) -> RunRecord | None:
        """What is known of the run; None for an unknown one."""
        ...

    async def latest(self, conversation_id: str) -> RunRecord | None:
        """The run of that conversation which began last; None where none is known."""
        ...

    async def claim(self, run_id: str, by: str) -> bool:
        """Take a paused run over, for the run `by` that resumes it: True for exactly one caller.

        False for a run that is not paused, or that has been taken over.
        """
        ...


class Page(NamedTuple):
    """A piece of a run's events as one look found them, and whether that is all there will be."""

    events: Sequence[Recorded]
    over: bool


async def follow(
    after: int, look: Callable[[int], Awaitable[Page]], changed: Callable[[], Awaitable[None]]
) -> AsyncGenerator[Recorded, None]:
    """The events behind `after` as they come: what every record's `read` does.

    `look` gives what there is behind a `seq`; `changed`, called before a look has been made that
    finds nothing, must return once something has come since the look before.
    """
    while True:
        page = await look(after)
        for event in page.events:
            after = event.seq
            yield event
        if page.events:
            await anyio.lowlevel.checkpoint()  # a long record must not keep the others waiting
        elif page.over:
            return
        else:
            await changed()


class _Kept:
    """One run in memory."""

    def __init__(self, record: RunRecord) -> None:
        self.record = record
        self.events: deque[Recorded] = deque()
        self.size = 0
        self.forget_at = NEVER
        self.changed = anyio.Event()

    def drop_oldest(self) -> int:
        """Drop the oldest event; returns its size."""
        seq, data = self.events.popleft()
        self.size -= len(data)
        self.record = replace(self.record, first=seq + 1)
        return len(data)


class MemoryReplay:
    """A record in this process: it is gone with the process, and other processes have no part.

    Args:
        max_runs: How many runs are known at once. At the bound the run that ended first is
            forgotten; where all are running, or paused, no further one can begin.
        max_run_bytes: How much of one run is kept; at the bound its oldest events are dropped.
            A reader who has them notices nothing, who comes later is told (ReplayGapError). The
            run never waits for readers.
        max_bytes: The same for all runs together; first the runs that have ended are forgotten.
        ttl: Seconds after its end until a run is forgotten.
        paused_ttl: The same for a run that waits for somebody.
        clock: Gives seconds; for tests.
    """

    def __init__(
        self,
        *,
        max_runs: int = 1000,
        max_run_bytes: int = 4 * MIB,
        max_bytes: int = 256 * MIB,
        ttl: float = 600.0,
        paused_ttl: float = 86_400.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        check_bounds(max_runs=max_runs, max_run_bytes=max_run_bytes, max_bytes=max_bytes)
        check_bounds(ttl=ttl, paused_ttl=paused_ttl)
        self._max_runs, self._max_run_bytes, self._max_bytes = max_runs, max_run_bytes, max_bytes
        self._ttl, self._paused_ttl = ttl, paused_ttl
        self._clock = clock
        self._runs: dict[str, _Kept] = {}  # in the order they began
        self._ended: dict[str, None] = {}  # in the order they ended, paused ones not among them
        self._latest: dict[str, str] = {}  # conversation to run
        self._size = 0
        self._forgets_at = NEVER  # the next time something is to be forgotten

    def __repr__(self) -> str:
        return f"MemoryReplay({len(self._runs)} runs, {self._size} bytes)"

    async def begin(
        self, run_id: str, *, owner: str, conversation_id: str = "", report: bytes = b""
    ) -> None:
        """As `Replay.begin`."""
        self._forget_old()
        if run_id in self._runs:
            raise ValueError(f"run {run_id!r} has begun before")
        if len(self._runs) >= self._max_runs and not self._forget_first():
            raise ReplayFullError(f"all {self._max_runs} runs of the record go on or are paused")
        self._runs[run_id] = _Kept(RunRecord(run_id, owner, conversation_id, report))
        if conversation_id:
            self._latest[conversation_id] = run_id

    async def append(self, run_id: str, seq: int, data: bytes) -> None:
        """As `Replay.append`."""
        kept = self._kept(run_id)
        self._keep(kept, seq, data)
        self._tell(kept)

    async def finish(self, run_id: str, seq: int, data: bytes, *, paused: bytes = b"") -> None:
        """As `Replay.finish`."""
        kept = self._kept(run_id)
        self._keep(kept, seq, data)
        state: RunState = "paused" if paused else "ended"
        kept.record = replace(kept.record, state=state, paused=paused)
        self._forget_in(kept, self._paused_ttl if paused else self._ttl)
        if not paused:
            self._ended[run_id] = None
        self._tell(kept)

    def read(self, run_id: str, after: int = -1) -> AsyncGenerator[Recorded, None]:
        """As `Replay.read`."""

        async def look(after: int) -> Page:
            kept = self._kept(run_id)
            check_gap(kept.record, after)
            return Page(_behind(kept.events, after), kept.record.over)

        async def changed() -> None:
            await self._kept(run_id).changed.wait()

        return follow(after, look, changed)

    async def record(self, run_id: str) -> RunRecord | None:
        """As `Replay.record`."""
        self._forget_old()
        kept = self._runs.get(run_id)
        return None if kept is None else kept.record

    async def latest(self, conversation_id: str) -> RunRecord | None:
        """As `Replay.latest`."""
        return await self.record(self._latest.get(conversation_id, ""))

    async def claim(self, run_id: str, by: str) -> bool:
        """As `Replay.claim`."""
        kept = self._kept(run_id)
        if kept.record.state != "paused" or kept.record.resumed_by:
            return False
        kept.record = replace(kept.record, resumed_by=by, paused=b"")
        self._forget_in(kept, self._ttl)
        self._ended[run_id] = None
        return True

    def _kept(self, run_id: str) -> _Kept:
        try:
            return self._runs[run_id]
        except KeyError:
            raise UnknownRunError(f"there is no run {run_id!r}") from None

    def _keep(self, kept: _Kept, seq: int, data: bytes) -> None:
        check_next(kept.record, seq)
        kept.events.append(Recorded(seq, data))
        kept.record = replace(kept.record, last=seq)
        kept.size += len(data)
        self._size += len(data)
        while kept.size > self._max_run_bytes and len(kept.events) > 1:
            self._size -= kept.drop_oldest()
        while self._size > self._max_bytes and self._forget_first():
            pass
        while self._size > self._max_bytes and len(kept.events) > 1:
            self._size -= kept.drop_oldest()

    @staticmethod
    def _tell(kept: _Kept) -> None:
        kept.changed.set()
        kept.changed = anyio.Event()

    def _forget_in(self, kept: _Kept, seconds: float) -> None:
        kept.forget_at = self._clock() + seconds
        self._forgets_at = min(self._forgets_at, kept.forget_at)

    def _forget_old(self) -> None:
        now = self._clock()
        if now < self._forgets_at:
            return
        for run_id in [run_id for run_id, kept in self._runs.items() if kept.forget_at <= now]:
            self._forget(run_id)
        self._forgets_at = min((kept.forget_at for kept in self._runs.values()), default=NEVER)

    def _forget_first(self) -> bool:
        """Forget the run that ended first; False where there is none."""
        run_id = next(iter(self._ended), None)
        if run_id is not None:
            self._forget(run_id)
        return run_id is not None

    def _forget(self, run_id: str) -> None:
        kept = self._runs.pop(run_id)
        self._ended.pop(run_id, None)
        self._size -= kept.size
        if self._latest.get(kept.record.conversation_id) == run_id:
            del self._latest[kept.record.conversation_id]
        self._tell(kept)  # who still reads it is told by the next look


def check_next(record: RunRecord, seq: int) -> None:
    """Raise ValueError unless `seq` may be the run's next."""
    if record.over:
        raise ValueError(f"run {record.run_id!r} is over")
    if seq <= record.last:
        raise ValueError(f"event {seq} of run {record.run_id!r} comes after event {record.last}")


def check_gap(record: RunRecord, after: int) -> None:
    """Raise ReplayGapError where what comes behind `after` was dropped."""
    if after + 1 < record.first:
        raise ReplayGapError(record.first)


def check_bounds(**bounds: float) -> None:
    """Raise ValueError for a bound that nothing fits into."""
    for name, value in bounds.items():
        if not value > 0:
            raise ValueError(f"{name} must be more than 0, got {value!r}")


def _behind(events: deque[Recorded], after: int) -> list[Recorded]:
    """The events with a higher `seq`, looked for from the end: that is where readers are."""
    found: list[Recorded] = []
    for event in reversed(events):
        if event.seq <= after:
            break
        found.append(event)
    found.reverse()
    return found
