"""The benchmarks run; what they measure is another day's question (``nox -s bench``)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """The rows of the whole table, of hardly any work."""
    figures = tmp_path_factory.mktemp("performance") / "figures.json"
    flags = ["--quick", "--messages", "50", "--rounds", "1", "--json", str(figures)]
    subprocess.run(
        [sys.executable, "-W", "error", str(BENCHMARKS / "performance.py"), *flags],
        check=True,
        capture_output=True,
    )
    found: list[dict[str, Any]] = json.loads(figures.read_text("utf-8"))["rows"]
    return found


def test_the_table_is_measured_without_anyone_to_compare_with(rows: list[dict[str, Any]]) -> None:
    assert len({row["title"] for row in rows}) == len(rows)
    assert all(cpu > 0 for row in rows for cpu, _ in row["figures"].values())


def test_every_goal_has_a_number_or_says_that_there_is_none(rows: list[dict[str, Any]]) -> None:
    goals = [goal for row in rows for goal in row["goals"]]
    assert {goal["kind"] for goal in goals} == {"at least", "at most"}
    measured = [goal for goal in goals if goal["value"] is not None]
    assert measured
    assert all(goal["what"] and goal["bound"] >= 0 for goal in goals)


def test_the_page_has_a_place_for_the_table() -> None:
    page = (BENCHMARKS.parent / "docs" / "performance.md").read_text("utf-8")
    begin, end = "<!-- made by `nox -s bench`: begin -->", "<!-- made by `nox -s bench`: end -->"
    assert 0 < page.index(begin) < page.index(end)
