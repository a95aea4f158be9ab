"""The offline examples run as they stand; those with a model run in the end-to-end lane."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
OFFLINE = {
    "forking.py": "3 turns; bounded: 4",
    "history_repair.py": "dropped:     call_oslo",
    "history_sanitization.py": "message 3: image dropped, host 0xa9fea9fe",
    "run_ids.py": "same conversation: True",
}
WITH_A_MODEL = {"conversation.py", "demo.py"}
HELPERS = {"choose_model.py"}


@pytest.mark.parametrize("name", sorted(OFFLINE))
def test_an_offline_example_runs(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert OFFLINE[name] in done.stdout


def test_no_example_is_forgotten() -> None:
    programs = {path.name for path in EXAMPLES.glob("*.py")}
    assert programs == OFFLINE.keys() | WITH_A_MODEL | HELPERS
