"""Starting the examples as a person does: as programs, seen only by what they print."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE = 60.0


def environment() -> dict[str, str]:
    """The environment of this process without a key that would choose another model."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OPENAI_") and name != "FORCE_COLOR"
    } | {"PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}


def run(*arguments: str, cwd: Path = ROOT) -> str:
    """What a program prints; fails when it does not succeed."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=PATIENCE,
        check=False,
    )
    output = done.stdout.decode()
    assert done.returncode == 0, output
    return output


class Program:
    """A running program: lines in, text out."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.seen = ""
        self._unread = ""

    def send(self, line: str) -> None:
        """Type a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        self.process.stdin.flush()

    def read_until(self, *marks: str) -> str:
        """What it prints from here to the last of `marks`, which come in this order."""
        found = ""
        for mark in marks:
            while mark not in self._unread:
                piece = self._read()
                assert piece, f"no {mark!r} in what it printed:\n{self.seen}"
                self._unread += piece
            before, _, self._unread = self._unread.partition(mark)
            found += before + mark
        return found

    def wait(self) -> int:
        """Wait for its end; the exit status."""
        while self._read():
            pass
        return self.process.wait(PATIENCE)

    def _read(self) -> str:
        """The next piece of its output; empty at the end, or when nothing comes."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
        if not ready:
            return ""
        piece = os.read(self.process.stdout.fileno(), 4096).decode(errors="replace")
        self.seen += piece
        return piece


@contextmanager
def started(*arguments: str) -> Iterator[Program]:
    """A program that is killed at the end if it is still there."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        # A runner in the background may have told its children to ignore Ctrl-C.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        yield Program(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def eventually(condition: Callable[[], object], what: str) -> None:
    """Wait until `condition()` is true."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.02)
