"""A guard against slow change that means something on a busy machine: it counts instructions.

Each work of ``guard_work.py`` runs under valgrind's callgrind, once with the work and once with
only what comes before it; the difference is what the work takes. Hashing is fixed and so is the
input, so that the same build of Python counts the same within a fraction of a percent. The counts
are held to the committed ones of that build, a tenth in either direction: what got cheaper is
written down too (``--update``), or the guard would not see it get dearer again.

    nox -s guard                     compare
    nox -s guard -- --update         write the counts of this build of Python
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

HERE = Path(__file__).parent
COUNTS = HERE / "guard.json"
TOLERANCE = 0.1

Counts = Mapping[str, int]


def build() -> str:
    """The build of Python that counts hold for."""
    python = f"{platform.python_implementation()} {platform.python_version()}"
    return f"{python}, {platform.python_compiler()}, {platform.machine()}"


def findings(found: Counts, committed: Counts) -> list[str]:
    """What differs from the committed counts by more than the tolerance, a sentence each.

    Work without a committed count is a finding, and so is a count without its work.
    """
    said: list[str] = []
    for name in sorted({*found, *committed}):
        if name not in committed:
            said.append(f"{name}: no count is committed")
        elif name not in found:
            said.append(f"{name}: a count is committed, but there is no such work")
        elif abs(found[name] - committed[name]) > TOLERANCE * committed[name]:
            change = found[name] / committed[name] - 1
            said.append(f"{name}: {change:+.1%}, {committed[name]:,} to {found[name]:,}")
    return said


def collected(report: str) -> int:
    """The instructions that callgrind says it has seen."""
    found = re.search(r"Collected\s*:\s*(\d+)", report)
    if found is None:
        raise SystemExit(f"callgrind has counted nothing:\n{report}")
    return int(found[1])


def count(*arguments: str) -> int:
    """The instructions of ``guard_work.py`` with these arguments."""
    valgrind = [*("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")]
    program = [sys.executable, str(HERE / "guard_work.py"), *arguments]
    done = subprocess.run(
        [*valgrind, *program],
        env=os.environ | {"PYTHONHASHSEED": "0"},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(f"{' '.join(program)} failed:\n{done.stderr}")
    return collected(done.stderr)


def count_all() -> dict[str, int]:
    """The instructions of each work, without what comes before it."""
    sys.path.insert(0, str(HERE))
    from guard_work import WORK

    before = count()
    found: dict[str, int] = {}
    for name in WORK:
        found[name] = count(name) - before
        print(f"{name:28} {found[name]:>14,}", flush=True)
    return found


def main() -> None:
    """Count, and compare or write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--update", action="store_true", help="write the counts of this build")
    flags = parser.parse_args()
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is missing: nothing was counted, and nothing is guarded")
    committed: dict[str, dict[str, int]] = json.loads(COUNTS.read_text("utf-8"))
    python = build()
    if python not in committed and not flags.update:
        raise SystemExit(f"no counts are committed for {python}: write them with --update")
    found = count_all()
    if flags.update:
        text = json.dumps(committed | {python: found}, indent=2, sort_keys=True)
        COUNTS.write_text(text + "\n", "utf-8")
        return
    said = findings(found, committed[python])
    print(*(said or [f"within {TOLERANCE:.0%} of the committed counts"]), sep="\n")
    sys.exit(bool(said))


if __name__ == "__main__":
    main()
