"""Many runs at once in this process: client CPU and wall seconds a run, errors, memory grown.

python benchmarks/concurrent_runs.py NAME URL RUNS      prints one JSON object
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from pathlib import Path

import clients


def _peak() -> float:
    """MB, on Linux. Not getrusage's: that begins at the peak of who started this process."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) / 1024


async def _main(name: str, url: str, runs: int) -> dict[str, float]:
    if name == "golem, aiohttp":
        run = clients.golem_run(url, aiohttp=True)
    else:
        run = clients.RUNS[name](url)
    await run()  # imports and first connections are not what is asked for
    peak = _peak()
    wall, cpu = time.perf_counter(), time.process_time()
    ended = await asyncio.gather(*(run() for _ in range(runs)), return_exceptions=True)
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    grown = _peak() - peak
    await clients.close()
    errors = sum(isinstance(one, BaseException) for one in ended)
    return {"cpu": cpu / runs, "wall": wall / runs, "errors": errors, "grown": grown}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_main(sys.argv[1], sys.argv[2], int(sys.argv[3])))))
