"""What installing and importing costs: CPU, memory, packages, megabytes."""

from __future__ import annotations

import json
import os
import re
import statistics
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import peers
from rows import Goal, Row

PROBE = """
import json, resource, time
started = time.process_time()
{statement}
cpu = time.process_time() - started
rss = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize() / 1e6
print(json.dumps([cpu, rss]))
"""
IMPORTS = {
    "python": ("", None),
    "golem": ("import golem", None),
    "golem and its OpenAI model": ("import golem; from golem_adapters import OpenAI", None),
    "pydantic-ai": ("import pydantic_ai", "pydantic-ai"),
    "pydantic-ai and its OpenAI model": (
        "import pydantic_ai, pydantic_ai.models.openai",
        "pydantic-ai",
    ),
    "openai-agents": ("import agents", "openai-agents"),
    "litellm": ("import litellm", "litellm"),
}
DISTRIBUTIONS = {
    "golem": ("golem-agents", ()),
    "pydantic-ai": ("pydantic-ai-slim", ("openai", "anthropic")),
    "openai-agents": ("openai-agents", ()),
    "litellm": ("litellm", ()),
}


def measure(rounds: int) -> list[Row]:
    """Imports in fresh interpreters, and what stands in site-packages for it."""
    there = {n: code for n, (code, peer) in IMPORTS.items() if peer is None or peers.there(peer)}
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in there}
    for code in there.values():
        _import(code)  # compiled once, as an installed package is
    for _ in range(rounds):
        for name, code in there.items():
            samples[name].append(_import(code))
    cpu = {name: statistics.median(c for c, _ in found) for name, found in samples.items()}
    rss = {name: statistics.median(r for _, r in found) for name, found in samples.items()}
    model = " and its OpenAI model"

    def share(what: str) -> Goal:
        peer = f"pydantic-ai{what}"
        value = cpu[f"golem{what}"] / cpu[peer] if peer in cpu else None
        return Goal(f"golem{what} / {peer}", value, 0.2)

    return [
        Row(
            "import",
            "ms",
            {name: (value * 1e3, None) for name, value in cpu.items()},
            [share(""), share(model)],
        ),
        Row(
            "memory of the process after import",
            "MB",
            {name: (value, None) for name, value in rss.items()},
            [Goal("golem, MB", rss["golem"], 30)],
        ),
        *_installed(),
    ]


def _import(statement: str) -> tuple[float, float]:
    code = PROBE.format(statement=statement)
    # golem is installed for editing: where Python may not keep what it compiles, golem alone would
    # be compiled anew in each of them.
    keeping = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, check=True, env=keeping
    )
    cpu, rss = json.loads(done.stdout)
    return cpu, rss


def _installed() -> list[Row]:
    found = {
        name: _closure(distribution, extras)
        for name, (distribution, extras) in DISTRIBUTIONS.items()
        if name == "golem" or peers.there(name)
    }
    count = {name: float(len(names)) for name, names in found.items()}
    size = {name: sum(map(_megabytes, names)) for name, names in found.items()}
    note = "with all that it requires, as pip would install it here; compiled Python not counted"
    return [
        Row(
            "installed packages",
            "packages",
            {name: (value, None) for name, value in count.items()},
            [Goal("golem", count["golem"], 12)],
        ),
        Row(
            "installed size",
            "MB",
            {name: (value, None) for name, value in size.items()},
            [Goal("golem, MB", size["golem"], 6)],
            note,
        ),
    ]


def _closure(name: str, extras: tuple[str, ...]) -> set[str]:
    """The names of a distribution and of all that it requires."""
    from packaging.requirements import Requirement

    seen: set[str] = set()
    waiting = [(name, extras)]
    done: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        current = waiting.pop()
        if current in done:
            continue
        done.add(current)
        name, extras = current
        seen.add(re.sub(r"[-_.]+", "-", name).lower())
        for text in metadata.requires(name) or ():
            required = Requirement(text)
            marker = required.marker
            wanted = any(marker.evaluate({"extra": e}) for e in ("", *extras)) if marker else True
            if wanted:
                waiting.append((required.name, tuple(sorted(required.extras))))
    return seen


def _megabytes(name: str) -> float:
    """What a distribution takes, without compiled files that any interpreter makes anew."""
    distribution = metadata.distribution(name)
    if name == "golem-agents":
        return _source_megabytes()
    paths = [file.locate() for file in distribution.files or () if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in map(_path, paths) if path.is_file()) / 1e6


def _path(located: object) -> Path:
    return Path(str(located))


def _source_megabytes() -> float:
    """The two packages themselves: installed for editing, they are no files of a distribution."""
    import golem
    import golem_adapters

    roots = [Path(str(package.__file__)).parent for package in (golem, golem_adapters)]
    files = [path for root in roots for path in root.rglob("*") if path.suffix != ".pyc"]
    return sum(path.stat().st_size for path in files if path.is_file()) / 1e6
