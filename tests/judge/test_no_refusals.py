"""Whatever a history went through: repaired and encoded, no judge refuses it.

The judges have a record of the facts of their own, so what is proved is that two readings of the
rules agree; nothing here is asked of a provider.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Message,
    RunError,
    ToolCall,
    TransportError,
    UserMessage,
    repair,
    tool,
)
from golem.history import drop_turn, fork_at, merge, rewind_to, sanitize_history, trim_history
from golem.model import OutputSchema, Settings, ToolChoice, ToolSpec
from golem.testing import ScriptedModel
from golem.testing.judge import (
    ChatJudge,
    ResponsesJudge,
    judge_chat,
    judge_responses,
)
from golem.testing.strategies import ANY_HISTORY, HOSTILE_HISTORY
from golem_adapters import OpenAI, OpenAIResponses
from tests.adapters.encoding import check, encode, encode_responses
from tests.judge.judging import CHAT, RESPONSES, SERVERS

HISTORIES = HOSTILE_HISTORY | ANY_HISTORY
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


@pytest.mark.parametrize("server", SERVERS)
@given(history=HISTORIES)
def test_any_repaired_history_is_taken(server: str, history: list[Message]) -> None:
    assert SERVERS[server](history) == []


@pytest.mark.parametrize("server", SERVERS)
@given(
    history=HISTORIES,
    stream=st.booleans(),
    choice=st.sampled_from([None, *CHOICES]),
    tools=st.sampled_from([(), TOOLS]),
    schema=st.sampled_from([None, OutputSchema("an answer", SCHEMA)]),
    parallel=st.sampled_from([None, False]),
    cached=st.sampled_from([None, "conversation-1"]),
)
@settings(max_examples=40)
def test_any_request_around_it_is_taken(
    server: str,
    history: list[Message],
    stream: bool,
    choice: ToolChoice | None,
    tools: Any,
    schema: OutputSchema | None,
    parallel: bool | None,
    cached: str | None,
) -> None:
    begin = UserMessage("answer in JSON")  # where JSON is all that is enforced, golem asks for it
    found = SERVERS[server](
        [begin, *history],
        stream=stream,
        tools=tools,
        tool_choice=choice,
        output_schema=schema,
        settings=Settings(
            max_tokens=5,
            temperature=0.5,
            parallel_tool_calls=parallel,
            prompt_cache_key=cached,
            reasoning_effort="low",
        ),
    )
    assert found == []


EDITS: list[Callable[[list[Message], int], list[Message]]] = [
    fork_at,
    rewind_to,
    drop_turn,
    lambda history, place: merge(history[:place], history),
    lambda history, place: sanitize_history(history)[0],
    lambda history, place: list(trim_history(place + 1)([BEGIN, *history])),
]


def edited(history: list[Message], edit: Any, place: int) -> list[Message]:
    """The history after an edit, or as it was where there is nothing to edit."""
    try:
        found: list[Message] = edit(history, place % (len(history) + 1))
    except HistoryError:
        return history
    return found


@pytest.mark.parametrize("server", SERVERS)
@given(
    history=HISTORIES,
    edits=st.lists(st.tuples(st.sampled_from(EDITS), st.integers(0, 12)), min_size=1, max_size=3),
)
@settings(max_examples=40)
def test_an_edited_history_is_taken(
    server: str, history: list[Message], edits: list[tuple[Any, int]]
) -> None:
    messages = list(repair(history))
    for edit, place in edits:
        messages = edited(messages, edit, place)
    assert SERVERS[server](messages) == []


@given(HISTORIES)
def test_the_judges_and_the_field_reports_agree(history: list[Message]) -> None:
    """The checker that came with the reports shares no line with the judges."""
    chat = json.loads(encode([BEGIN, *history]))
    responses = json.loads(encode_responses([BEGIN, *history]))
    assert (judge_chat(chat), judge_responses(responses)) == ([], [])
    found = [*check("openai-chat", chat), *check("openai-responses", responses)]
    # Its rule about reasoning compares the first of a whole conversation with the first call.
    assert [name for name in found if name != "reasoning_precedes_call"] == []


# --- through whole runs


@tool
def echo(text: str = "") -> str:
    """Say it again."""
    return text


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


LIVE: list[Any] = [
    *(pytest.param(ChatJudge, OpenAI, name, id=f"chat-{name}") for name in CHAT),
    *(
        pytest.param(ResponsesJudge, OpenAIResponses, name, id=f"responses-{name}")
        for name in RESPONSES
    ),
]
IDS = st.lists(st.sampled_from(["a", "b", "", "call_1", "abcDEF123", "a b"]), max_size=3)


@pytest.mark.parametrize(("judge_type", "adapter", "dialect"), LIVE)
@given(steps=st.lists(st.tuples(HISTORIES, IDS, st.booleans()), min_size=1, max_size=4))
@settings(max_examples=6)
def test_a_run_on_whatever_earlier_runs_left_is_taken(
    judge_type: Any, adapter: Any, dialect: str, steps: list[tuple[list[Message], list[str], bool]]
) -> None:
    """Over sockets: the judge asks for a tool first, and gets its own ids back."""
    history: list[Message] = []
    for more, asked, dies in steps:
        history = aged([*history, *more], asked, dies=dies)

    async def go_on() -> None:
        async with judge:
            model = adapter("m", base_url=judge.base_url, api_key=judge.key, dialect=dialect)
            agent: Agent[Any] = Agent(model, tools=[echo], instructions="Be brief.", retry=None)
            first = await agent.run("go on", history=history)
            stream = agent.stream("and on", history=first.messages)
            async with stream:
                async for _ in stream:
                    pass
            assert len(judge.requests) == 4
            assert "capital of France" in stream.result.output

    judge = judge_type(dialect=dialect)
    anyio.run(go_on)
    assert judge.violations == []
