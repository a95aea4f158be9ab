"""A pass whose process dies at a line that says so: what a worker runs is imported by name."""

from __future__ import annotations

import os
import signal

from golem.corpus.lines import Outcome, Pass, normalize_line

FATAL = b'[{"role":"user","content":"die"}]\n'
WRONG = b'[{"role":"user","content":"raise"}]\n'


def fatal_normalizer() -> Pass:
    """A pass that kills its process at `FATAL`, and raises at `WRONG`."""

    def one(line: bytes, number: int) -> Outcome | None:
        if line == FATAL:
            os.kill(os.getpid(), signal.SIGKILL)
        if line == WRONG:
            raise LookupError("a bug")
        return normalize_line(line, number)

    return one
