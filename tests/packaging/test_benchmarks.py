"""The benchmarks run; what they measure is another day's question (``nox -s bench``)."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.mark.parametrize("program", sorted(path.name for path in BENCHMARKS.glob("bench_*.py")))
def test_a_benchmark_runs_and_writes_its_figures(program: str, tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    flags = ["--messages", "50", "--rounds", "1", "--json", str(figures)]
    subprocess.run(
        [sys.executable, "-W", "error", str(BENCHMARKS / program), *flags],
        check=True,
        capture_output=True,
    )
    assert json.loads(figures.read_text("utf-8"))
