"""Whatever a history went through: repaired and encoded, no judge refuses it.

The judges have a record of the facts of their own, so what is proved is that two readings of the
rules agree; nothing here is asked of a provider.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from golem import Message, UserMessage
from golem.model import OutputSchema, Settings, ToolChoice
from golem.testing.judge import ChatJudge, ResponsesJudge, judge_chat, judge_responses
from golem.testing.strategies import ANY_HISTORY, HOSTILE_HISTORY
from golem_adapters import OpenAI, OpenAIResponses
from tests.adapters.encoding import check, encode, encode_responses
from tests.judge.aging import BEGIN, CHOICES, EDITS, SCHEMA, TOOLS, edited, go_on, lived, lives
from tests.judge.judging import CHAT, RESPONSES, SERVERS

HISTORIES = HOSTILE_HISTORY | ANY_HISTORY


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


@pytest.mark.parametrize("server", SERVERS)
@given(history=HISTORIES, edits=EDITS)
@settings(max_examples=40)
def test_an_edited_history_is_taken(server: str, history: list[Message], edits: Any) -> None:
    assert SERVERS[server](edited(history, edits)) == []


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


LIVE: list[Any] = [
    *(pytest.param(ChatJudge, OpenAI, name, id=f"chat-{name}") for name in CHAT),
    *(
        pytest.param(ResponsesJudge, OpenAIResponses, name, id=f"responses-{name}")
        for name in RESPONSES
    ),
]


@pytest.mark.parametrize(("judge_type", "adapter", "dialect"), LIVE)
@given(life=lives(HISTORIES))
@settings(max_examples=6)
def test_a_run_on_whatever_earlier_runs_left_is_taken(
    judge_type: Any, adapter: Any, dialect: str, life: Any
) -> None:
    def model_at(judge: Any) -> Any:
        return adapter("m", base_url=judge.base_url, api_key=judge.key, dialect=dialect)

    go_on(judge_type(dialect=dialect), model_at, lived(life))
