"""Who a run is and which conversation it belongs to (contract §3)."""

from __future__ import annotations

import uuid
from typing import Any

import anyio
import pytest

from golem import (
    Agent,
    AssistantMessage,
    Message,
    RunError,
    SystemMessage,
    ToolCanceled,
    ToolMessage,
    UserMessage,
    dump_history,
    load_history,
    new_id,
    tool,
)
from golem.testing import ScriptedModel
from tests.run.support import Recorder, asks, boom, echo

Q = UserMessage("q")


def identified(conversation: str) -> UserMessage:
    return UserMessage("q", run_id="old", conversation_id=conversation)


@tool
async def stop() -> str:
    """Stop the run."""
    raise ToolCanceled("enough")


def test_a_new_id_is_a_time_ordered_uuid_of_version_7() -> None:
    ids = [new_id() for _ in range(100)]
    assert ids == sorted(ids)
    assert len(set(ids)) == 100
    assert {7} == {uuid.UUID(made).version for made in ids}
    assert {str} == {type(made) for made in ids}


async def test_a_run_id_is_minted_fresh_and_never_inherited() -> None:
    agent = Agent(ScriptedModel(["a", "b"]))
    first = await agent.run("p")
    second = await agent.run("p", history=first.messages)
    assert first.run_id != second.run_id
    assert first.conversation_id == second.conversation_id


async def test_given_ids_win_and_empty_ones_mint() -> None:
    agent = Agent(ScriptedModel(["a", "b"]))
    given = await agent.run("p", run_id="r", conversation_id="c", history=[identified("h")])
    assert (given.run_id, given.conversation_id) == ("r", "c")
    minted = await agent.run("p", run_id="", conversation_id="")
    assert 7 == uuid.UUID(minted.run_id).version == uuid.UUID(minted.conversation_id).version


@pytest.mark.parametrize(
    ("history", "conversation"),
    [
        ([identified("x"), identified("y"), Q], "y"),
        ([identified("x"), SystemMessage("s", conversation_id="sys")], "x"),
        ([identified("x"), ToolMessage("r", tool_call_id="lost", conversation_id="orphan")], "x"),
        ([Q, SystemMessage("s", conversation_id="sys")], None),
        ([Q, AssistantMessage("a", run_id="only-a-run")], None),
    ],
    ids=["newest", "not-system", "not-dropped", "system-alone", "run-id-alone"],
)
async def test_the_newest_message_that_stays_names_the_conversation(
    history: list[Message], conversation: str | None
) -> None:
    result = await Agent(ScriptedModel(["a"])).run("p", history=history)
    if conversation is None:
        assert uuid.UUID(result.conversation_id).version == 7
    else:
        assert conversation == result.conversation_id


async def test_a_message_the_processor_removed_does_not_name_the_conversation() -> None:
    agent = Agent(ScriptedModel(["a"]), history_processor=lambda history: history[:1])
    result = await agent.run("p", history=[identified("x"), identified("cut")])
    assert result.conversation_id == "x"


async def test_a_fork_leaves_the_history_its_old_conversation() -> None:
    agent = Agent(ScriptedModel(["a", "b"]))
    first = await agent.run("p")
    fresh = new_id()
    fork = await agent.run("q", history=first.messages, conversation_id=fresh)
    assert [first.conversation_id] * 2 + [fresh] * 2 == [
        message.conversation_id for message in fork.messages
    ]


async def test_the_association_survives_storage() -> None:
    agent = Agent(ScriptedModel(["a", "b"]))
    first = await agent.run("p", conversation_id="c")
    again = await agent.run("q", history=load_history(dump_history(first.messages)))
    assert again.conversation_id == "c"


async def test_everything_a_run_adds_is_stamped_and_nothing_else_is() -> None:
    """Prompt, turns, results, corrections, closings are; history, fillers, instructions not."""
    history: list[Message] = [Q, asks(("lost", "t"))]
    calls = [
        asks(("1", "echo"), ("2", "nope"), ("3", "echo", "[]")),
        asks(("4", "stop"), ("5", "echo")),
    ]
    agent = Agent(ScriptedModel(calls), instructions="i", tools=[echo, stop])
    with pytest.raises(RunError) as caught:
        await agent.run("p", history=history, run_id="r", conversation_id="c")
    partial = caught.value.partial
    assert partial is not None
    received = len(partial.messages) - len(partial.new_messages)
    assert received == 4  # instructions, two supplied, one filler
    stamps = [(message.run_id, message.conversation_id) for message in partial.messages]
    assert [("", "")] * received + [("r", "c")] * len(partial.new_messages) == stamps
    assert [str(message.__struct_config__.tag) for message in partial.new_messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "tool",
        "assistant",
        "tool",
        "tool",
    ]


async def test_ids_are_on_every_event_and_the_error_of_a_run_that_never_began() -> None:
    def fail(_: list[Message]) -> Any:
        raise OSError("x")

    recorder = Recorder()
    agent = Agent(ScriptedModel([]), history_processor=fail)
    with pytest.raises(RunError) as caught:
        await agent.run("p", history=[identified("x")], on_event=recorder)
    error = caught.value
    assert error.conversation_id == "x"
    assert uuid.UUID(error.run_id).version == 7
    assert [(error.run_id, "x")] == [(e.run_id, e.conversation_id) for e in recorder.events]


async def test_ids_are_on_the_error_its_evidence_and_what_the_batch_left() -> None:
    agent = Agent(ScriptedModel([asks(("1", "echo"), ("2", "boom"))]), tools=[echo, boom])
    with pytest.raises(RunError) as caught:
        await agent.run("p")
    error, partial = caught.value, caught.value.partial
    assert partial is not None
    ids = error.run_id, error.conversation_id
    assert ids == (partial.run_id, partial.conversation_id)
    assert [ids] == [(r.run_id, r.conversation_id) for r in partial.batch_results]


async def test_the_streams_ids_are_known_before_the_first_event_and_stay() -> None:
    stream = Agent(ScriptedModel(["a"])).stream("p")
    before = stream.run_id, stream.conversation_id
    async with stream:
        events = [event async for event in stream]
    assert {before} == {(event.run_id, event.conversation_id) for event in events}


async def test_concurrent_runs_of_one_agent_stay_attributable() -> None:
    recorder = Recorder()
    agent = Agent(ScriptedModel(["a"] * 5), on_event=recorder)
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(agent.run, "p")
    runs: dict[str, list[int]] = {}
    for event in recorder.events:
        runs.setdefault(event.run_id, []).append(event.seq)
    assert len(runs) == 5
    assert all(list(range(len(seen))) == seen for seen in runs.values())
