"""What people who do not know golem pass by mistake is named before anything runs."""

from __future__ import annotations

from typing import Any

import pytest

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Part,
    RunError,
    ToolCall,
    ToolMessage,
    UserMessage,
    decode_event,
    encode_event,
    load_message,
)
from golem import events as ev
from golem.options import AgentOptions
from golem.result import Partial, Result
from golem.testing import ScriptedModel
from tests.run.support import echo

MISTAKES: dict[str, tuple[dict[str, Any], str]] = {
    "a number as prompt": ({"prompt": 3}, "prompt must be text, not int"),
    "bytes as prompt": ({"prompt": b"hi"}, "prompt must be text, not bytes"),
    "a message as prompt": ({"prompt": UserMessage("hi")}, "must be text, not UserMessage"),
    "a part as a dict": ({"parts": [{"kind": "image"}]}, "prompt part 0 is no Part but dict"),
    "a number as an id": ({"run_id": 7}, "run_id must be text, not int"),
    "a misspelled option": ({"histroy": []}, "no option 'histroy'"),
    "one part": ({"parts": Part("image")}, "parts must be a list, or iterable, not Part"),
    "one tool": ({"tools": echo}, "tools must be a list, or iterable, not Tool"),
}


@pytest.mark.parametrize(("options", "said"), MISTAKES.values(), ids=MISTAKES.keys())
async def test_a_mistake_is_a_type_error_that_names_it(options: dict[str, Any], said: str) -> None:
    model = ScriptedModel(["never"])
    with pytest.raises(TypeError, match=said):
        await Agent(model).run(**({"prompt": "p"} | options))
    assert model.requests == []


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (UserMessage("q"), "expected an iterable of messages, not UserMessage"),
        (b"[]", "not bytes; load_history reads JSON"),
    ],
)
async def test_what_is_no_list_of_messages_is_no_history(history: Any, said: str) -> None:
    model = ScriptedModel(["never"])
    with pytest.raises(HistoryError, match=said):
        await Agent(model).run("p", history=history)
    assert model.requests == []


@pytest.mark.parametrize("option", sorted(AgentOptions.__optional_keys__))
async def test_an_agents_option_may_be_none(option: str) -> None:
    """As a run's: whoever wraps golem passes on what was not given."""
    agent = Agent(ScriptedModel(["ok"]), **{option: None})  # type: ignore[call-overload]
    assert (await agent.run("p")).output == "ok"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"tools": echo}, "tools must be a list, or iterable, not Tool"),
        ({"instructions": 3}, "a function or a list of these, not int"),
        ({"instructions": ["a", None]}, "not a list with NoneType"),
    ],
)
def test_a_mistake_in_an_agent_is_a_type_error_that_names_it(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(TypeError, match=said):
        Agent(ScriptedModel([]), **options)


async def test_no_history_may_be_none() -> None:
    result = await Agent(ScriptedModel(["ok"])).run("p", history=None)  # type: ignore[arg-type]
    assert result.output == "ok"


async def test_a_bad_part_is_named_by_its_place_in_the_history_as_given() -> None:
    """Also behind what repair drops or adds, and on a result that repair would drop."""
    bad = (Part("image"),)
    orphan = ToolMessage("x", tool_call_id="nobody", tool_name="t")
    asking = AssistantMessage(tool_calls=(ToolCall.of("q", "f", "{}"),))
    for history, place in (
        ([orphan, asking, UserMessage("bad", parts=bad)], "history[2].parts[0]"),
        ([ToolMessage("x", parts=bad, tool_call_id="nobody")], "history[0].parts[0]"),
    ):
        with pytest.raises(RunError) as caught:
            await Agent(ScriptedModel([])).run("p", history=history)
        assert caught.value.stage == "history"
        assert place in str(caught.value)


NEWER = load_message('{"role":"user","content":"x","zz":{"a":  1}}')
HOLDING: dict[str, ev.Event] = {
    "message": ev.MessageAdded("r", "c", 1, NEWER, 3),
    "result": ev.RunFinished("r", "c", 2, Result("out", [NEWER], [NEWER], "r", "c")),
    "partial": ev.RunStopped("r", "c", 2, "why", Partial([NEWER], [NEWER], "r", "c")),
    "failure": ev.RunFailed("r", "c", 2, "model", "why", Partial([NEWER], [], "r", "c")),
}


@pytest.mark.parametrize("event", HOLDING.values(), ids=HOLDING.keys())
def test_an_event_holding_a_message_of_a_newer_writer_is_read(event: ev.Event) -> None:
    assert event == decode_event(encode_event(event))
