"""What a history goes through before a judge sees it, and what requests around it ask for."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import anyio
import pytest
from hypothesis import strategies as st

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Message,
    RunError,
    ToolCall,
    TransportError,
    UnsupportedContentError,
    UserMessage,
    repair,
    tool,
)
from golem.history import drop_turn, fork_at, merge, rewind_to, sanitize_history, trim_history
from golem.model import ToolChoice, ToolSpec
from golem.testing import ScriptedModel
from golem.testing.judge import Judge

BEGIN = UserMessage("begin")
SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "string"}},
    "required": ["a"],
    "additionalProperties": False,
}
CHOICES = [ToolChoice("auto"), ToolChoice("none"), ToolChoice("required")]
CHOICES.append(ToolChoice("tool", "get weather"))
TOOLS = (ToolSpec("f", "", SCHEMA), ToolSpec("get weather", "Weather.", {"type": "object"}))


# --- edits

Edit = Callable[[list[Message], int], list[Message]]

EDITS = st.lists(
    st.tuples(
        st.sampled_from(
            [
                fork_at,
                rewind_to,
                drop_turn,
                lambda history, place: merge(history[:place], history),
                lambda history, place: sanitize_history(history)[0],
                lambda history, place: list(trim_history(place + 1)([BEGIN, *history])),
            ]
        ),
        st.integers(0, 12),
    ),
    min_size=1,
    max_size=3,
)
"""Edits one after the other, each with the place it is made at."""


def edited(history: list[Message], edits: Sequence[tuple[Edit, int]]) -> list[Message]:
    """The repaired history after these edits, without those for which there is nothing to edit."""
    messages = list(repair(history))
    for edit, place in edits:
        try:
            messages = edit(messages, place % (len(messages) + 1))
        except HistoryError:
            continue
    return messages


# --- runs


@tool
def echo(text: str = "") -> str:
    """Say it again."""
    return text


IDS = st.lists(st.sampled_from(["a", "b", "", "call_1", "abcDEF123", "a b"]), max_size=3)


def lives(parts: st.SearchStrategy[list[Any]]) -> st.SearchStrategy[Any]:
    """What `lived` takes: parts of a history, the ids of a run's calls, whether it died of them."""
    return st.lists(st.tuples(parts, IDS, st.booleans()), min_size=1, max_size=4)


def lived(
    life: Sequence[tuple[list[Any], list[str], bool]],
    messages_of: Callable[[list[Any]], list[Message]] = list,
) -> list[Message]:
    """The history that is left when each part has joined it and gone through its run."""
    history: list[Message] = []
    for part, asked, dies in life:
        history = aged([*history, *messages_of(part)], asked, dies=dies)
    return history


def aged(history: list[Message], asked: list[str], *, dies: bool) -> list[Message]:
    """A history that went through a run with calls of these ids, which died after them or not."""
    calls = tuple(ToolCall.of(call_id, "echo", '{"text":"x"}') for call_id in asked)
    script: list[Any] = [AssistantMessage(tool_calls=calls)] if calls else []
    gone = TransportError("gone", retryable=False)
    agent = Agent(ScriptedModel([*script, gone if dies else "done"]), tools=[echo])
    if not dies:
        return list(agent.run_sync("go on", history=history).messages)
    with pytest.raises(RunError) as caught:
        agent.run_sync("go on", history=history)
    partial = caught.value.partial  # none where nothing had happened yet
    return list(partial.messages) if partial else history


def go_on(
    judge: Judge, model_at: Callable[[Any], Any], history: list[Message], *, counts: bool = False
) -> None:
    """Assert that the judge takes two more runs of a history, over sockets.

    It asks for a tool first, and so gets its own ids, parts and signatures back. With `counts` it
    is asked for a count afterwards.
    """

    async def runs() -> None:
        async with judge:
            model = model_at(judge)
            agent: Agent[Any] = Agent(model, tools=[echo], instructions="Be brief.", retry=None)
            first = await agent.run("go on", history=history)
            stream = agent.stream("and on", history=first.messages)
            async with stream:
                async for _ in stream:
                    pass
            assert len(judge.requests) == 4
            assert "capital of France" in stream.result.output
            if counts:
                assert await model.count_tokens(first.messages) > 0

    anyio.run(runs)
    assert judge.violations == []


# --- what is refused

NAMED = re.compile(r"messages\[\d+\]\.parts\[\d+\]: ")


def unless_named(refusals: Callable[[], list[str]]) -> list[str]:
    """What is refused; nothing where the adapter refuses a part itself and names it."""
    try:
        return refusals()
    except UnsupportedContentError as error:
        return [] if NAMED.match(str(error)) else [str(error)]
