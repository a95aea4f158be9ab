"""Installs the protocols' own readers from npm, once for each lockfile, and asks them."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Self

import pytest

HERE = Path(__file__).parent / "judges"
CACHE = Path(__file__).parents[2] / ".npm-judges"
FILES = ("package.json", "package-lock.json", "judge.mjs")


def installed() -> Path:
    """A directory with the judges and their packages; made once, whole or not at all."""
    digest = hashlib.sha256(b"".join((HERE / name).read_bytes() for name in FILES)).hexdigest()[:16]
    found = CACHE / digest
    if found.exists():
        return found
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.fail("these tests need node and npm: the judges are the protocols' own readers")
    CACHE.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=CACHE))
    for name in FILES:
        shutil.copy(HERE / name, made)
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(made)
        pytest.fail(f"the judges could not be installed:\n{done.stderr[-2000:]}")
    try:
        os.rename(made, found)
    except OSError:  # another session was faster
        shutil.rmtree(made)
    return found


class Judge:
    """A Node process that reads streams as browsers do."""

    def __enter__(self) -> Self:
        place = installed()
        self._node = subprocess.Popen(
            ["node", "judge.mjs"],
            cwd=place,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )
        return self

    def __exit__(self, *_: object) -> None:
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        self._node.stdin.close()
        self._node.wait()
        self._node.stdout.close()

    def read(self, protocol: str, body: bytes, **given: Any) -> dict[str, Any]:
        """What the reader of ``ui5``, ``ui6``, ``ui7`` or ``agui`` makes of the stream."""
        assert self._node.stdin is not None
        assert self._node.stdout is not None
        asked = {"protocol": protocol, "body": body.decode(), **given}
        self._node.stdin.write(json.dumps(asked) + "\n")
        self._node.stdin.flush()
        found: dict[str, Any] = json.loads(self._node.stdout.readline())
        return found
