"""Programs that serve at a port of the loopback, as somebody would start them."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
PATIENCE = 60.0
"""Seconds after which a program that says nothing counts as dead."""


class Served:
    """A program that answers: where, and what it prints."""

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.port = port
        self.url = f"http://127.0.0.1:{port}"

    def next_line(self) -> str:
        """The next line it prints."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


@contextmanager
def served(program: str, port: int | None = None) -> Iterator[Served]:
    """One of the examples at a port, by default a free one; ended with the block."""
    port = port or _free_port()
    process = subprocess.Popen(
        [sys.executable, str(EXAMPLES / program), str(port)], stdout=subprocess.PIPE, text=True
    )
    try:
        _until_it_answers(process, port)
        yield Served(process, port)
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _until_it_answers(process: subprocess.Popen[str], port: int) -> None:
    until = time.monotonic() + PATIENCE
    while True:
        try:
            socket.create_connection(("127.0.0.1", port)).close()
        except ConnectionRefusedError:
            assert process.poll() is None, f"it ended with {process.returncode}"
            assert time.monotonic() < until, "it does not answer"
            time.sleep(0.05)
        else:
            return
