"""golem beside other libraries, in one run: the table of docs/performance.md.

    nox -s bench                  in an environment of its own, with the others
    nox -s bench -- --quick       without them, in less than two minutes

Figures go to benchmarks/results.json and the table to the page where `--write` is given; a quick
run writes neither.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import msgspec
import table
from rows import Row
from sections import corpus, install, linear, passes, record, runs, streaming

HERE = Path(__file__).parent
PAGE = HERE.parent / "docs" / "performance.md"
VERSIONS = (
    *("golem-agents", "msgspec", "httpx", "httpx-aiohttp", "orjson", "pydantic-ai-slim"),
    *("openai-agents", "langchain-core", "langchain-openai", "litellm", "strands-agents"),
    *("openai", "anthropic"),
)


def main() -> None:
    """Measure every section, print the table, write what is asked for."""
    warnings.filterwarnings("ignore", module="pydantic")  # what peers make it say is theirs
    flags = _flags()
    messages = flags.messages or (2_000 if flags.quick else 10_000)
    rounds = flags.rounds or (3 if flags.quick else 15)
    sections: dict[str, Callable[[], list[Row]]] = {
        "record": lambda: record.measure(messages, rounds),
        "passes": lambda: passes.measure(messages, rounds),
        "linear": lambda: linear.measure(messages * 100 if flags.full else 4 * messages, rounds),
        "corpus": lambda: corpus.measure(max(messages // 5, 20), rounds),
        "streaming": lambda: streaming.measure(max(messages // 5, 100), rounds),
        "runs": lambda: runs.measure(rounds, 100 if flags.quick else runs.CONCURRENT),
        "install": lambda: install.measure(rounds),
    }
    rows: list[Row] = []
    for name, measure in sections.items():
        if flags.only and name not in flags.only:
            continue
        started = time.perf_counter()
        rows += measure()
        print(f"{name}: {time.perf_counter() - started:.0f} s", file=sys.stderr)
    print(table.plain(rows))
    sizes = f"Histories of {messages:,} messages, medians of {rounds} rounds."
    figures = {"machine": _machine(), "sizes": sizes, "versions": _versions(), "rows": rows}
    if flags.json:
        flags.json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)) + b"\n")
    if flags.write:
        about = (_machine(), sizes, _sentence(_versions()))
        table.write_page(PAGE, rows, "\n\n".join(about))


def _flags() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="less of everything, nothing written")
    parser.add_argument("--messages", type=int, help="length of the histories")
    parser.add_argument("--rounds", type=int, help="rounds; each runs everyone once")
    parser.add_argument("--only", nargs="+", metavar="SECTION", help="only these sections")
    parser.add_argument("--json", type=Path, help="where the figures go")
    parser.add_argument("--write", action="store_true", help="put the table into the page")
    flags = parser.parse_args()
    flags.full = not flags.quick and not flags.messages
    return flags


def _machine() -> str:
    python = f"{platform.python_implementation()} {platform.python_version()}"
    today = dt.datetime.now(tz=dt.UTC).date()
    return f"{python}, {platform.system()} {platform.machine()}, {os.cpu_count()} cores, {today}."


def _versions() -> dict[str, str]:
    found: dict[str, str] = {}
    for name in VERSIONS:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _sentence(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items()) + "."


if __name__ == "__main__":
    main()
