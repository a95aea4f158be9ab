"""The guard's judgement; what it counts is another day's question (``nox -s guard``)."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import guard

BENCHMARKS = Path(guard.__file__).parent


@pytest.mark.parametrize(
    ("found", "finding"),
    [
        (1_000, []),
        (1_100, []),
        (900, []),
        (1_101, ["decode: +10.1%, 1,000 to 1,101"]),
        (899, ["decode: -10.1%, 1,000 to 899"]),
        (3_000, ["decode: +200.0%, 1,000 to 3,000"]),
    ],
)
def test_a_tenth_in_either_direction_is_let_through(found: int, finding: list[str]) -> None:
    assert guard.findings({"decode": found}, {"decode": 1_000}) == finding


def test_work_and_counts_have_to_go_together() -> None:
    assert guard.findings({"new": 5, "same": 5}, {"old": 5, "same": 5}) == [
        "new: no count is committed",
        "old: a count is committed, but there is no such work",
    ]


def test_nothing_counted_is_no_count() -> None:
    assert guard.collected("==1== Collected : 949939724\n==1==") == 949_939_724
    with pytest.raises(SystemExit, match="has counted nothing"):
        guard.collected("==1== valgrind: failed to start")


def test_a_machine_without_valgrind_is_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["guard.py"])
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(SystemExit, match="valgrind is missing: nothing was counted"):
        guard.main()


def test_a_build_without_counts_is_told_how_to_get_them(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "guard.json").write_text("{}")
    monkeypatch.setattr(guard, "COUNTS", tmp_path / "guard.json")
    monkeypatch.setattr(sys, "argv", ["guard.py"])
    monkeypatch.setattr("shutil.which", lambda name: "/usr/bin/valgrind")
    with pytest.raises(SystemExit, match=r"no counts are committed for .*--update"):
        guard.main()


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.syspath_prepend(BENCHMARKS)
    found: dict[str, Any] = importlib.import_module("guard_work").WORK
    return found


def test_every_committed_count_has_its_work(work: dict[str, Any]) -> None:
    committed = json.loads((BENCHMARKS / "guard.json").read_text("utf-8"))
    assert committed
    assert all(counts.keys() == work.keys() for counts in committed.values())


def test_all_the_work_can_be_done(work: dict[str, Any]) -> None:
    for name in work:
        program = [sys.executable, "-W", "error", str(BENCHMARKS / "guard_work.py"), name]
        subprocess.run(program, check=True)
