"""The local model server is a process that nobody has to clean up after."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import local_model as local_model_package
from local_model import local_model, missing

from .programs import eventually, started

pytestmark = pytest.mark.e2e

PARENT = """
import sys, time
sys.path.insert(0, "examples")
from local_model import local_model
with local_model() as base_url:
    print(base_url, flush=True)
    time.sleep(60)
"""


@pytest.fixture(autouse=True)
def installed() -> None:
    if reason := missing():
        pytest.skip(reason)


def listens(base_url: str) -> bool:
    address = urlsplit(base_url)
    assert address.port is not None
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", address.port)) == 0


def test_the_server_listens_on_loopback_while_its_block_runs_and_not_after() -> None:
    with local_model() as base_url:
        assert urlsplit(base_url).hostname == "127.0.0.1"
        assert listens(base_url)
    assert not listens(base_url)


@pytest.mark.parametrize("death", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_server_ends_with_its_parent_however_that_dies(death: signal.Signals) -> None:
    with started("-c", PARENT) as parent:
        base_url = parent.read_until("/v1\n").strip()
        assert listens(base_url)
        parent.process.send_signal(death)
        parent.wait()
        eventually(lambda: not listens(base_url), "the server is gone")


def test_a_server_whose_parent_is_gone_before_it_heard_the_address_ends() -> None:
    """Its first line meets a closed pipe; the server's destructor would hang after that."""
    serve = Path(local_model_package.__file__).with_name("serve.py")
    orphan = subprocess.Popen(
        [sys.executable, str(serve)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert orphan.stdin is not None
    assert orphan.stdout is not None
    orphan.stdin.close()
    orphan.stdout.close()
    try:
        assert orphan.wait(timeout=60) == 0
    finally:
        orphan.kill()
        orphan.wait()
