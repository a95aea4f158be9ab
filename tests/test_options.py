"""Options are keywords of typed dictionaries: a misspelled one must not be ignored."""

from __future__ import annotations

from typing import Any

import pytest

from golem import Agent, tool
from golem.testing import ScriptedModel


def test_an_agent_refuses_an_option_there_is_not() -> None:
    wrong: dict[str, Any] = {"limit": None}
    with pytest.raises(TypeError, match=r"Agent has no option 'limit'; options are: .*limits"):
        Agent(ScriptedModel([]), **wrong)


async def test_a_run_refuses_an_option_there_is_not() -> None:
    agent: Agent[None] = Agent(ScriptedModel(["hi"]))
    wrong: dict[str, Any] = {"dependencies": None}
    with pytest.raises(TypeError, match="a run has no option 'dependencies'"):
        await agent.run("hello", **wrong)
    with pytest.raises(TypeError, match="a run has no option 'dependencies'"):
        agent.stream("hello", **wrong)


def test_a_tool_refuses_an_option_there_is_not() -> None:
    wrong: dict[str, Any] = {"retry": 1}
    with pytest.raises(TypeError, match="tool 'act' has no option 'retry'"):

        @tool(**wrong)
        def act() -> str:
            """Act."""
            return ""
