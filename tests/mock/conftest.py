"""An independent mock of the providers, from npm: one Node process for the session."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.npm import installed

HERE = Path(__file__).parent
PATIENCE = 60.0
"""Seconds after which a mock that does not answer counts as dead."""


class Mock:
    """The running mock: where it answers, and how it is told to misbehave."""

    def __init__(self, url: str) -> None:
        self.url = url

    def chaos(self, rates: Mapping[str, float]) -> None:
        """From here on fail at these rates: ``{"dropRate": 1}``."""
        self._ask("DELETE", b"")
        if rates:
            self._ask("POST", json.dumps(rates).encode())

    def _ask(self, method: str, body: bytes) -> None:
        address = f"{self.url}/__aimock/chaos"
        fields = {"content-type": "application/json"}
        with urlopen(Request(address, body, fields, method=method), timeout=PATIENCE) as answer:
            answer.read()


@pytest.fixture(scope="session")
def mock() -> Iterator[Mock]:
    """The mock; skips, and says so, where there is no Node to run it."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        pytest.skip("the mock of the providers needs node and npm")
    program = installed(HERE) / "node_modules/@copilotkit/aimock/dist/cli.js"
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    answers = str(HERE / "answers.json")
    process = subprocess.Popen(
        ["node", str(program), "-p", str(port), "-f", answers, "--log-level", "silent"]
    )
    try:
        until = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except ConnectionRefusedError:
                assert process.poll() is None, f"the mock ended with {process.returncode}"
                assert time.monotonic() < until, "the mock does not answer"
                time.sleep(0.05)
        yield Mock(f"http://127.0.0.1:{port}")
    finally:
        process.terminate()
        process.wait(PATIENCE)
