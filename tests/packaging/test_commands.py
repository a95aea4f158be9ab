"""The commands that a newcomer and CI are told are the same commands."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BOOTSTRAP = "python3 -m venv .venv && .venv/bin/python -m pip install -qq nox && .venv/bin/nox"


def lines(name: str) -> list[str]:
    return [line.strip() for line in (ROOT / name).read_text(encoding="utf-8").splitlines()]


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", ".ci/run"])
def test_the_test_command_stands_alone_on_a_line_of(name: str) -> None:
    assert BOOTSTRAP in lines(name)


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md"])
def test_the_demo_command_stands_alone_on_a_line_of(name: str) -> None:
    assert f"{BOOTSTRAP} -s demo" in lines(name)


def test_ci_runs_nothing_else_of_the_project() -> None:
    calls = [line for line in lines(".ci/run") if "nox" in line and not line.startswith("#")]
    assert calls == [BOOTSTRAP]


def test_ci_can_be_started_as_a_program() -> None:
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
