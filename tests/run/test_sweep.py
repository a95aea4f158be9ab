"""Nothing is ever lost: every scenario, dying at every point, in every way there is to die."""

from __future__ import annotations

from typing import Any

import pytest
import sniffio

from golem._run.rules import StopWhen
from golem.events import RunStopped
from golem.testing import (
    Death,
    How,
    SweepReport,
    Watch,
    read,
    sweep_cancellation,
    sweep_leaving,
    sweep_stops,
)
from tests.run.scenarios import SCENARIOS, Scenario, World

every_scenario = pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())


class Worlds:
    """A new world for each attempt of a sweep; the last is the one that died."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario

    def _new(self) -> World:
        self.current = World(self._scenario)
        return self.current

    async def run(self, watch: Watch) -> object:
        return await self._new().start(watch)

    async def read(self, watch: Watch) -> object:
        return await read(self._new().open(watch))

    def open(self, watch: Watch) -> Any:
        return self._new().open(watch)

    def check(self, death: Death) -> None:
        self.current.check(death)
        stream = self.current.stream
        if stream is not None:
            assert death.terminal is stream.outcome
            if stream.result is None:
                assert death.partial == stream.partial


async def cancelled(scenario: Scenario, form: str, how: How) -> SweepReport:
    worlds = Worlds(scenario)
    start = worlds.read if form == "stream" else worlds.run
    return await sweep_cancellation(start, worlds.check, how=how, history=scenario.history)


@pytest.mark.parametrize("how", ["scope", "native"])
@pytest.mark.parametrize("form", ["run", "stream"])
@every_scenario
async def test_cancelling_at_any_suspension_loses_nothing(
    scenario: Scenario, form: str, how: How
) -> None:
    if how == "native" and sniffio.current_async_library() != "asyncio":
        return  # only asyncio's tasks can be cancelled from outside a scope
    report = await cancelled(scenario, form, how)
    assert report.points >= 10


@pytest.mark.parametrize("form", ["run", "stream"])
@pytest.mark.parametrize("name", [name for name in SCENARIOS if "parallel" in name])
async def test_cancelling_at_any_moment_of_a_parallel_group_loses_nothing(
    name: str, form: str
) -> None:
    report = await cancelled(SCENARIOS[name], form, "tick")
    assert report.points >= 10


@pytest.mark.parametrize("when", ["now", "after_tools", "after_model"])
@every_scenario
async def test_stopping_at_any_suspension_leaves_nothing_to_repair(
    scenario: Scenario, when: StopWhen
) -> None:
    worlds = Worlds(scenario)
    report = await sweep_stops(worlds.open, worlds.check, when=when, history=scenario.history)
    assert report.points >= 10


@every_scenario
async def test_leaving_at_any_event_settles_the_run_with_its_evidence(scenario: Scenario) -> None:
    worlds = Worlds(scenario)

    def check(death: Death) -> None:
        worlds.check(death)
        left = death.point < len(death.events) - 1  # else at the terminal event itself
        assert isinstance(death.terminal, RunStopped) or not left

    report = await sweep_leaving(worlds.open, check, history=scenario.history)
    assert report.points >= 5
