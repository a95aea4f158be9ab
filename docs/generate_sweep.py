"""Writes docs/sweep.md: how many points each scenario of the sweep has, on either backend.

Run it from the project's root, ``python -m docs.generate_sweep``, after a change to the scenarios
(``tests/run/scenarios.py``) or to what a run awaits. Every point was died at to count it.
"""

from __future__ import annotations

from pathlib import Path

import anyio

from golem.testing import How, SweepReport, sweep_leaving, sweep_stops
from tests.run.scenarios import SCENARIOS, Scenario
from tests.run.test_sweep import Worlds, cancelled

TARGET = Path(__file__).parent / "sweep.md"
BACKENDS = ("asyncio", "trio")

HEAD = """\
# The sweep

Nothing a run has produced is ever lost. To prove it, golem's tests make a run die at *every single
point* and demand the same each time: the evidence that existed is in the partial, the partial
resumes with one more run (without any repair after a stop), the journal does too, the cancellation
arrives as the backend's own exception and nothing is begun behind it, observers get numbered events
and exactly one terminal event, and no task is left behind. The harness is public:
`golem.testing.sweep_cancellation`, `sweep_stops`, `sweep_leaving`.

Ways to die: *run* and *stream*: cancelled at each suspension, by a cancel scope and, on asyncio,
by `task.cancel()` as well, and where tools run in parallel at every turn of the event loop too;
*stopped*: another task calls `stream.stop()` at each suspension, with
`when="now"`, `"after_tools"` and `"after_model"`; *left*: the reader leaves the stream at each
event. The table is made by `docs/generate_sweep.py`; the numbers are points died at. Those of
scenarios in which timers or threads run beside each other differ by a few from run to run.

| scenario | backend | run | stream | stopped | left |
| --- | --- | ---: | ---: | ---: | ---: |
"""


async def points(scenario: Scenario, backend: str) -> list[int]:
    """The points of each way to die, added up over its forms."""
    ways: list[How] = ["scope", "native"] if backend == "asyncio" else ["scope"]
    if scenario.options.get("parallel_tool_calls"):
        ways.append("tick")
    found = [
        _sum([await cancelled(scenario, form, how) for how in ways]) for form in ("run", "stream")
    ]
    worlds = Worlds(scenario)
    found.append(
        _sum(
            [
                await sweep_stops(worlds.open, worlds.check, when=when, history=scenario.history)
                for when in ("now", "after_tools", "after_model")
            ]
        )
    )
    left = await sweep_leaving(worlds.open, worlds.check, history=scenario.history)
    return [*found, left.points]


def _sum(reports: list[SweepReport]) -> int:
    return sum(report.points for report in reports)


def main() -> None:
    """Sweep every scenario and write the table."""
    rows: list[str] = []
    total = 0
    for name, scenario in SCENARIOS.items():
        for backend in BACKENDS:
            counted = anyio.run(points, scenario, backend, backend=backend)
            total += sum(counted)
            rows.append(f"| {name} | {backend} | {' | '.join(map(str, counted))} |")
    TARGET.write_text(HEAD + "\n".join(rows) + f"\n\nTogether {total:,} points, 0 losses.\n")


if __name__ == "__main__":
    main()
