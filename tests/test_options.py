"""What untyped callers pass: a misspelled option or a wrong value is refused, and not ignored."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from golem import Agent, AssistantMessage, Tool, ToolCall, UsageLimitError, tool
from golem.model import OutputSchema, Settings, ToolSpec
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


def test_what_is_no_model_policy_or_mode_is_refused_before_any_run() -> None:
    retry: dict[str, Any] = {"retry": 3}
    with pytest.raises(TypeError, match="a tenacity policy"):
        Agent(ScriptedModel([]), **retry)
    mode: dict[str, Any] = {"output_mode": "json"}
    with pytest.raises(ValueError, match="output_mode must be one of"):
        Agent(ScriptedModel([]), **mode)
    nothing: Any = object()
    with pytest.raises(TypeError, match="is no model"):
        Agent(nothing)


def test_one_tool_is_no_list_of_tools_and_a_number_no_instructions() -> None:
    one: dict[str, Any] = {"tools": Tool("act", len, schema={})}
    with pytest.raises(TypeError, match="tools must be a list, or iterable, not Tool"):
        Agent(ScriptedModel([]), **one)
    with pytest.raises(TypeError, match="tools must be a list, or iterable, not Tool"):
        Agent(ScriptedModel([])).stream("hello", **one)
    number: dict[str, Any] = {"instructions": 3}
    with pytest.raises(TypeError, match="instructions must be text, a function or a list of these"):
        Agent(ScriptedModel([]), **number)


async def test_settings_are_refused_by_name_wherever_they_are_given() -> None:
    agent: Agent[None] = Agent(ScriptedModel(["hi"]))
    plain: dict[str, Any] = {"settings": {"temperature": 1}}
    with pytest.raises(TypeError, match=r"settings must be golem.Settings, not dict"):
        Agent(ScriptedModel([]), **plain)
    with pytest.raises(TypeError, match=r"settings must be golem.Settings, not dict"):
        await agent.run("hello", **plain)
    misspelled: dict[str, Any] = {"temprature": 1}
    with pytest.raises(TypeError, match="'temprature'"):
        Settings(**misspelled)


CYCLE: dict[str, Any] = {}
CYCLE["a"] = [CYCLE]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"temperature": float("nan")}, r"settings\.temperature must be a finite number, not nan"),
        ({"top_p": "0.5"}, r"settings\.top_p must be a finite number, not '0\.5'"),
        ({"seed": True}, r"settings\.seed must be a finite number, not True"),
        ({"max_tokens": 0}, r"settings\.max_tokens must be at least 1, not 0"),
        ({"max_tokens": 1.5}, r"settings\.max_tokens must be a whole number, not 1\.5"),
        ({"seed": 1.0}, r"settings\.seed must be a whole number, not 1\.0"),
        ({"reasoning_effort": 3}, r"settings\.reasoning_effort must be a text, not 3"),
        ({"prompt_cache_key": b"k"}, r"settings\.prompt_cache_key must be a text, not b'k'"),
        ({"parallel_tool_calls": 1}, r"settings\.parallel_tool_calls must be True or False, not 1"),
        ({"stop": 5}, r"settings\.stop must be a text, or several, not 5"),
        ({"stop": ["a", None]}, r"settings\.stop must be a text, or several, not \['a', None\]"),
        (
            {"extra_body": {"a": [1, {"b": (0.5, float("nan"))}]}},
            r"settings\.extra_body\.a\[1\]\.b\[1\] is no number that JSON can spell",
        ),
        ({"extra_body": {"a": float("-inf")}}, r"settings\.extra_body\.a is no number"),
        ({"extra_body": CYCLE}, r"settings\.extra_body is nested more than 256 deep"),
        ({"extra_body": [1]}, r"settings\.extra_body must be a mapping, not list"),
    ],
)
def test_a_value_that_no_provider_takes_is_refused_by_name(
    values: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Settings(**values)


NAN_INSIDE = {"properties": {"n": {"enum": [1, float("nan")]}}}


def test_a_schema_with_a_number_that_json_cannot_spell_is_refused_by_its_place() -> None:
    place = r"schema\.properties\.n\.enum\[1\] is no number that JSON can spell"
    with pytest.raises(ValueError, match=rf"tool 'look': {place}"):
        Tool("look", print, schema=NAN_INSIDE)
    with pytest.raises(ValueError, match=rf"tool 'look': {place}"):
        ToolSpec("look", "", NAN_INSIDE)
    with pytest.raises(ValueError, match=rf"output 'answer': {place}"):
        OutputSchema("answer", NAN_INSIDE)
    with pytest.raises(ValueError, match=r"tool 'look': schema is nested more than 256 deep"):
        ToolSpec("look", "", CYCLE)


def test_one_stop_text_is_not_one_for_each_letter() -> None:
    texts: Any = "END"
    assert Settings(stop=texts).stop == ("END",)
    texts = ["a", "b"]
    assert Settings(stop=texts).stop == ("a", "b")


async def test_a_stream_refuses_a_when_there_is_not() -> None:
    agent: Agent[None] = Agent(ScriptedModel(["hi"]))
    later: Any = "later"
    async with agent.stream("hello") as stream:
        with pytest.raises(ValueError, match="when must be one of"):
            stream.enqueue("more", when=later)
        with pytest.raises(ValueError, match="when must be one of"):
            await stream.stop(later)


@pytest.mark.parametrize("when", ["after_model", "after_tools"])
async def test_a_later_stop_before_the_first_event_does_not_wait_for_a_reader(when: Any) -> None:
    call = AssistantMessage(tool_calls=(ToolCall.of("c", "unknown", "{}"),))
    agent: Agent[None] = Agent(ScriptedModel([call]))
    async with agent.stream("hello") as stream:
        with anyio.fail_after(5):
            assert await stream.stop(when) is None
            kinds = [event.kind async for event in stream]
    assert kinds[-1] == "run_stopped"


async def test_a_sub_agent_is_not_asked_nothing() -> None:
    """An empty prompt is the model's to correct; it must not end the parent's run."""
    empty, asked = (
        AssistantMessage(tool_calls=(ToolCall.of("c", "ask", f'{{"prompt": "{prompt}"}}'),))
        for prompt in ("", "?")
    )
    inner: Agent[None] = Agent(ScriptedModel(["42"]))
    outer: Agent[None] = Agent(
        ScriptedModel([empty, asked, "It is 42."]), tools=[inner.as_tool("ask", "Ask.")]
    )
    assert (await outer.run("go")).output == "It is 42."


def test_a_crossed_limit_names_large_counts_in_full() -> None:
    error = UsageLimitError("total token", 1_000_000, 1_234_567)
    assert str(error) == "run exceeded the total token limit of 1000000 (used 1234567)"
    assert str(UsageLimitError("cost", 0.3, 0.1 + 0.2 + 0.1)).endswith("of 0.3 (used 0.4)")
