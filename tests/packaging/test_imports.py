"""What importing golem costs, and what it leaves alone."""

from __future__ import annotations

import subprocess
import sys

LIST = "import sys; before = set(sys.modules); import {name}; print(*set(sys.modules) - before)"


def loaded_by(name: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", LIST.format(name=name)], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_importing_golem_loads_neither_httpx_nor_an_adapter_nor_an_extra() -> None:
    loaded = loaded_by("golem")
    assert "golem.agent" in loaded
    assert loaded.isdisjoint(
        {"httpx", "httpcore", "trio", "golem_adapters", "golem.wire.http", "opentelemetry"}
    )


def test_importing_golem_loads_nothing_dear_that_only_some_runs_need() -> None:
    loaded = loaded_by("golem")
    assert loaded.isdisjoint(
        {"asyncio", "tenacity", "ssl", "socket", "hashlib", "importlib.metadata"}
    )


def test_the_testing_tools_load_no_test_runner_and_no_adapter() -> None:
    loaded = loaded_by("golem.testing.conformance")
    assert "golem.testing.judge" in loaded
    assert loaded.isdisjoint(
        {"httpx", "trio", "golem_adapters", "golem.wire.http", "pytest", "hypothesis"}
    )
