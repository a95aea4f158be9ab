"""Packages from npm that tests need: installed once for each lockfile, whole or not at all."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

CACHE = Path(__file__).parents[1] / ".npm"


def installed(folder: Path, *files: str) -> Path:
    """A directory with these files of `folder`, and beside them what its lockfile names.

    Fails the test, and says why, where the packages cannot be had.
    """
    names = ("package.json", "package-lock.json", *files)
    digest = hashlib.sha256(b"".join((folder / name).read_bytes() for name in names)).hexdigest()
    found = CACHE / digest[:16]
    if found.exists():
        return found
    npm = shutil.which("npm")
    if npm is None or shutil.which("node") is None:
        pytest.fail(f"these tests need node and npm, for what {folder / 'package.json'} names")
    CACHE.mkdir(exist_ok=True)
    made = Path(tempfile.mkdtemp(dir=CACHE))
    for name in names:
        shutil.copy(folder / name, made)
    command = [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
    done = subprocess.run(command, cwd=made, capture_output=True, text=True, check=False)
    if done.returncode:
        shutil.rmtree(made)
        pytest.fail(f"npm could not install what {folder} needs:\n{done.stderr[-2000:]}")
    try:
        os.rename(made, found)
    except OSError:  # another session was faster
        shutil.rmtree(made)
    return found
