"""Records of served runs: every event once and in order, for any number of readers."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import anyio.to_thread
import pytest

from golem.errors import ReplayFullError, ReplayGapError, UnknownRunError
from golem.events import RunStopped, decode_event
from golem.web.replay import MemoryReplay, Replay
from golem.web.replay_sqlite import INTERRUPTED, SQLiteReplay

Make = Callable[..., Replay]


class Clock:
    """A clock that stands still until it is told to go on."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
async def make(
    request: pytest.FixtureRequest, tmp_path: Path, clock: Clock, anyio_backend: str
) -> AsyncIterator[Make]:
    """Makes a record of either kind, with bounds of its own."""
    made: list[SQLiteReplay] = []

    def memory(**bounds: float) -> Replay:
        return MemoryReplay(clock=clock, **bounds)  # type: ignore[arg-type]

    def sqlite(**bounds: float) -> Replay:
        made.append(SQLiteReplay(tmp_path / "replay.db", clock=clock, **bounds))  # type: ignore[arg-type]
        return made[-1]

    yield memory if request.param == "memory" else sqlite
    for replay in made:
        await replay.aclose()


def data(seq: int) -> bytes:
    return b'{"seq":%d}' % seq


async def read(replay: Replay, run_id: str = "r", after: int = -1) -> list[int]:
    return [seq async for seq, _ in replay.read(run_id, after)]


async def test_a_record_is_a_replay(make: Make) -> None:
    assert isinstance(make(), Replay)


async def test_what_was_kept_is_read_once_and_in_order(make: Make) -> None:
    replay = make()
    await replay.begin("r", owner="me", conversation_id="c", report=b"{}")
    for seq in range(3):
        await replay.append("r", seq, data(seq))
    await replay.finish("r", 3, data(3))
    assert [tuple(event) async for event in replay.read("r")] == [(n, data(n)) for n in range(4)]
    assert await read(replay, after=1) == [2, 3]
    assert await read(replay, after=3) == []
    record = await replay.record("r")
    assert record is not None
    assert (record.owner, record.conversation_id, record.report) == ("me", "c", b"{}")
    assert (record.state, record.first, record.last, record.over) == ("ended", 0, 3, True)


async def test_readers_follow_until_the_run_is_over(make: Make) -> None:
    replay = make()
    await replay.begin("r", owner="me")
    found: list[list[int]] = []

    async def follow() -> None:
        found.append(await read(replay))

    async with anyio.create_task_group() as tasks:
        for _ in range(5):
            tasks.start_soon(follow)
        for seq in range(20):
            await replay.append("r", seq, data(seq))
            await anyio.lowlevel.checkpoint()
        assert found == []
        await replay.finish("r", 20, data(20))
    assert found == [list(range(21))] * 5


async def test_readers_that_come_and_go_at_random_miss_nothing(make: Make) -> None:
    replay = make()
    await replay.begin("r", owner="me")
    rng = random.Random(7)
    found: list[list[int]] = []

    async def come_and_go() -> None:
        seen: list[int] = []
        while seen[-1:] != [60]:
            async with contextlib.aclosing(replay.read("r", seen[-1] if seen else -1)) as events:  # type: ignore[type-var]
                async for seq, _ in events:
                    seen.append(seq)
                    if rng.random() < 0.2:
                        break
        found.append(seen)

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(come_and_go)
        for seq in range(60):
            await replay.append("r", seq, data(seq))
        await replay.finish("r", 60, data(60))
    assert found == [list(range(61))] * 20


async def test_a_reader_that_is_cancelled_costs_the_others_nothing(make: Make) -> None:
    replay = make()
    await replay.begin("r", owner="me")
    await replay.append("r", 0, data(0))
    with anyio.move_on_after(0.05) as scope:
        await read(replay)
    assert scope.cancelled_caught
    await replay.finish("r", 1, data(1))
    assert await read(replay) == [0, 1]


async def test_numbers_must_rise_and_may_leave_some_out(make: Make) -> None:
    replay = make()
    await replay.begin("r", owner="me")
    await replay.append("r", 0, data(0))
    for seq in (0, -1):
        with pytest.raises(ValueError, match="comes after event 0"):
            await replay.append("r", seq, data(seq))
    await replay.append("r", 5, data(5))
    await replay.finish("r", 7, data(7))
    with pytest.raises(ValueError, match="is over"):
        await replay.append("r", 8, data(8))
    with pytest.raises(ValueError, match="is over"):
        await replay.finish("r", 8, data(8))
    assert await read(replay) == [0, 5, 7]


async def test_a_run_begins_once(make: Make) -> None:
    replay = make()
    await replay.begin("r", owner="me")
    with pytest.raises(ValueError, match="has begun before"):
        await replay.begin("r", owner="somebody else")
    record = await replay.record("r")
    assert record is not None
    assert record.owner == "me"


async def test_an_unknown_run_is_unknown_everywhere(make: Make) -> None:
    replay = make()
    assert await replay.record("x") is None
    assert await replay.latest("x") is None
    assert await replay.latest("") is None
    for call in (replay.append("x", 0, b""), replay.finish("x", 0, b""), replay.claim("x", "y")):
        with pytest.raises(UnknownRunError, match="'x'"):
            await call
    with pytest.raises(UnknownRunError):
        await read(replay, "x")


async def test_at_the_bound_of_a_run_its_oldest_events_go_and_late_readers_are_told(
    make: Make,
) -> None:
    replay = make(max_run_bytes=100)
    await replay.begin("r", owner="me")
    async with contextlib.aclosing(replay.read("r")) as current:  # type: ignore[type-var]
        for seq in range(30):
            await replay.append("r", seq, b"x" * 30)
            assert await anext(current) == (seq, b"x" * 30)
    with pytest.raises(ReplayGapError) as caught:
        await read(replay)
    assert caught.value.first == 27
    await replay.finish("r", 30, b"y" * 1000)  # the last always stays
    assert await read(replay, after=29) == [30]
    with pytest.raises(ReplayGapError, match="before 30"):
        await read(replay, after=28)


async def test_a_run_is_forgotten_some_time_after_its_end(make: Make, clock: Clock) -> None:
    replay = make(ttl=10, paused_ttl=100)
    for run_id in ("going on", "ended", "paused"):
        await replay.begin(run_id, owner="me", conversation_id=f"c-{run_id}")
    await replay.finish("ended", 0, data(0))
    await replay.finish("paused", 0, data(0), paused=b"history")
    clock.now += 10
    await replay.begin("later", owner="me")
    assert await replay.record("ended") is None
    assert await replay.latest("c-ended") is None
    with pytest.raises(UnknownRunError):
        await read(replay, "ended")
    assert await replay.record("paused") is not None
    clock.now += 90
    assert await replay.record("paused") is None
    assert await replay.record("going on") is not None


async def test_at_the_bound_of_runs_the_oldest_that_has_ended_goes(make: Make) -> None:
    replay = make(max_runs=2)
    await replay.begin("a", owner="me")
    await replay.begin("b", owner="me")
    with pytest.raises(ReplayFullError, match="all 2 runs"):
        await replay.begin("c", owner="me")
    await replay.finish("a", 0, data(0), paused=b"waits")
    with pytest.raises(ReplayFullError):
        await replay.begin("c", owner="me")
    await replay.finish("b", 0, data(0))
    await replay.begin("c", owner="me")
    assert await replay.record("b") is None
    assert await replay.record("a") is not None


async def test_a_paused_run_is_taken_over_by_exactly_one(make: Make) -> None:
    replay = make()
    await replay.begin("r", owner="me")
    assert not await replay.claim("r", "early")
    await replay.finish("r", 0, data(0), paused=b"history")
    record = await replay.record("r")
    assert record is not None
    assert (record.state, record.paused, record.resumed_by) == ("paused", b"history", "")
    won: list[str] = []

    async def claim(name: str) -> None:
        if await replay.claim("r", name):
            won.append(name)

    async with anyio.create_task_group() as tasks:
        for number in range(10):
            tasks.start_soon(claim, f"n{number}")
    assert len(won) == 1
    record = await replay.record("r")
    assert record is not None
    assert (record.resumed_by, record.paused) == (won[0], b"")


async def test_the_latest_run_of_a_conversation(make: Make) -> None:
    replay = make()
    for run_id, conversation in (("a", "c"), ("b", "c"), ("d", "e")):
        await replay.begin(run_id, owner="me", conversation_id=conversation)
    latest = await replay.latest("c")
    assert latest is not None
    assert latest.run_id == "b"


@pytest.mark.parametrize("bound", ["max_runs", "max_run_bytes", "ttl", "paused_ttl"])
async def test_a_bound_that_nothing_fits_into_is_refused(make: Make, bound: str) -> None:
    with pytest.raises(ValueError, match=bound):
        make(**{bound: 0})


async def test_all_runs_together_are_bounded_in_memory() -> None:
    replay = MemoryReplay(max_bytes=1000)
    for number in range(3):
        await replay.begin(f"r{number}", owner="me")
        await replay.finish(f"r{number}", 0, b"x" * 400)
    assert await replay.record("r0") is None
    assert await replay.record("r2") is not None
    await replay.begin("long", owner="me")
    for seq in range(10):
        await replay.append("long", seq, b"x" * 300)
    record = await replay.record("long")
    assert record is not None
    assert (record.first, record.last) == (7, 9)
    assert repr(replay) == "MemoryReplay(1 runs, 900 bytes)"


# On disk


def life_lines(place: Path) -> int:
    """How many processes have the file open."""
    return len(list(place.glob("*.live")))


async def test_a_file_outlives_who_wrote_it(tmp_path: Path) -> None:
    path = tmp_path / "replay.db"
    first = SQLiteReplay(path)
    await first.begin("ended", owner="me", conversation_id="c")
    await first.append("ended", 0, data(0))
    await first.finish("ended", 1, data(1))
    await first.begin("paused", owner="me")
    await first.finish("paused", 0, data(0), paused=b"history")
    await first.aclose()
    second = SQLiteReplay(path)
    assert await read(second, "ended") == [0, 1]
    record = await second.record("paused")
    assert record is not None
    assert record.paused == b"history"
    assert await second.claim("paused", "other")
    await second.aclose()
    assert life_lines(tmp_path) == 0


async def test_two_processes_read_one_run(tmp_path: Path) -> None:
    path = tmp_path / "replay.db"
    one, other = SQLiteReplay(path), SQLiteReplay(path)
    await one.begin("r", owner="me")
    found: list[int] = []

    async def follow() -> None:
        found.extend(await read(other))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(follow)
        for seq in range(5):
            await one.append("r", seq, data(seq))
            await anyio.sleep(0.01)
        await one.finish("r", 5, data(5))
    assert found == [0, 1, 2, 3, 4, 5]
    await one.aclose()
    await other.aclose()


async def test_processes_write_to_one_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "replay.db"
    replays = [SQLiteReplay(path) for _ in range(3)]
    found: list[list[int]] = []

    async def write(replay: Replay, run_id: str) -> None:
        await replay.begin(run_id, owner="me")
        for seq in range(10):
            await replay.append(run_id, seq, data(seq))
        await replay.finish(run_id, 10, data(10))

    async def follow(replay: Replay, run_id: str) -> None:
        while await replay.record(run_id) is None:  # noqa: ASYNC110 - as another process looks
            await anyio.sleep(0.01)
        found.append(await read(replay, run_id))

    async with anyio.create_task_group() as tasks:
        for number in range(12):
            tasks.start_soon(write, replays[number % 3], f"r{number}")
            tasks.start_soon(follow, replays[(number + 1) % 3], f"r{number}")
    assert found == [list(range(11))] * 12
    for replay in replays:
        await replay.aclose()


async def test_a_file_is_for_its_user_alone(tmp_path: Path) -> None:
    replay = SQLiteReplay(tmp_path / "replay.db")
    await replay.begin("r", owner="me")
    modes = {path.suffix: path.stat().st_mode & 0o077 for path in made_in(tmp_path)}
    assert {modes[suffix] for suffix in (".db", ".db-shm", ".db-wal")} == {0}
    assert len(modes) == 4  # and one that is empty, by which others see that the process lives
    await replay.aclose()


def made_in(place: Path) -> list[Path]:
    return list(place.iterdir())


CRASHES = """
import asyncio, os, sys
from golem.web.replay_sqlite import SQLiteReplay

async def main():
    replay = SQLiteReplay(sys.argv[1])
    await replay.begin("r", owner="me", conversation_id="c")
    await replay.append("r", 0, b"{}")
    await replay.append("r", 1, b"{}")
    print("ready", flush=True)
    sys.stdin.readline()
    os._exit(9)

asyncio.run(main())
"""


async def test_a_run_whose_process_has_died_ends_as_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "replay.db"
    command = [sys.executable, "-c", CRASHES, str(path)]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert (await process.stdout.receive()).strip() == b"ready"
        replay = SQLiteReplay(path)
        record = await replay.record("r")
        assert record is not None
        assert record.state == "running"
        assert life_lines(tmp_path) == 2
        events: list[tuple[int, bytes]] = []

        async def follow() -> None:
            events.extend([event async for event in replay.read("r")])

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(follow)
            await anyio.sleep(0.05)
            await process.stdin.send(b"die\n")
    assert [seq for seq, _ in events] == [0, 1, 2]
    assert decode_event(events[-1][1]) == RunStopped("r", "c", 2, INTERRUPTED)
    record = await replay.record("r")
    assert record is not None
    assert record.state == "interrupted"
    with pytest.raises(ValueError, match="is over"):
        await replay.append("r", 3, b"{}")
    assert life_lines(tmp_path) == 1
    await replay.aclose()


async def test_a_closed_record_leaves_what_went_on_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "replay.db"
    first = SQLiteReplay(path)
    await first.begin("r", owner="me")
    await first.aclose()
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        await first.append("r", 0, data(0))
    second = SQLiteReplay(path)
    record = await second.record("r")
    assert record is not None
    assert (record.state, record.last) == ("interrupted", 0)
    await second.aclose()


async def test_a_file_that_cannot_be_opened_fails_who_asks(tmp_path: Path) -> None:
    replay = SQLiteReplay(tmp_path / "missing" / "replay.db")
    with pytest.raises(sqlite3.OperationalError):
        await replay.begin("r", owner="me")
    assert "missing" in repr(replay)


async def test_many_who_write_at_once_share_a_transaction(tmp_path: Path) -> None:
    replay = SQLiteReplay(tmp_path / "replay.db")
    await replay.begin("warm", owner="me")
    commits = 0

    def count(statement: str) -> None:
        nonlocal commits
        commits += statement == "commit"

    assert replay._worker._db is not None
    replay._worker._db.set_trace_callback(count)

    async def write(number: int) -> None:
        await replay.begin(f"r{number}", owner="me")
        for seq in range(10):
            await replay.append(f"r{number}", seq, data(seq))

    async with anyio.create_task_group() as tasks:
        for number in range(50):
            tasks.start_soon(write, number)
    assert commits < 50 * 11 / 5
    assert await read_some(replay, "r49", 10) == list(range(10))
    await replay.aclose()


async def read_some(replay: Replay, run_id: str, count: int) -> list[int]:
    found: list[int] = []
    async with contextlib.aclosing(replay.read(run_id)) as events:  # type: ignore[type-var]
        async for seq, _ in events:
            found.append(seq)
            if len(found) == count:
                break
    return found


async def test_writers_that_are_cancelled_at_random_hold_nobody_up(tmp_path: Path) -> None:
    replay = SQLiteReplay(tmp_path / "replay.db")
    rng = random.Random(3)
    done: list[int] = []

    async def write(number: int) -> None:
        with anyio.move_on_after(rng.random() * 0.02):
            await replay.begin(f"r{number}", owner="me")
        if rng.random() < 0.5:
            await replay.record(f"r{number}")
            done.append(number)

    async with anyio.create_task_group() as tasks:
        for number in range(200):
            tasks.start_soon(write, number)
    assert done
    assert (replay._worker._queue, replay._worker._begun) == ([], [])
    assert replay._worker._leader is None
    await replay.aclose()


async def test_tasks_that_are_killed_hold_nobody_up(tmp_path: Path, anyio_backend: str) -> None:
    """asyncio's own cancellation gets through where anyio's is shielded."""
    replay = SQLiteReplay(tmp_path / "replay.db")
    await replay.begin("first", owner="me")
    if anyio_backend == "asyncio":
        for round_ in range(10):
            tasks = [
                asyncio.create_task(replay.begin(f"r{round_}-{number}", owner="me"))
                for number in range(10)
            ]
            await anyio.sleep(0.001 * round_ / 4)
            for task in tasks[::2]:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert await replay.record(f"r{round_}-1") is not None
    assert await replay.record("first") is not None
    assert replay._worker._leader is None
    await replay.aclose()
