"""The event union: its JSON, and what the events of every scenario have in common."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any, get_args

import anyio
import msgspec
import pytest

from golem import (
    Agent,
    AssistantMessage,
    Part,
    Partial,
    Pending,
    PendingCall,
    Result,
    RunError,
    Thinking,
    ToolCall,
    ToolCanceled,
    ToolMessage,
    ToolResult,
    TransportError,
    UnknownEvent,
    UnknownMembers,
    Usage,
    UserMessage,
    decode_event,
    encode_event,
    load_message,
    tool,
)
from golem import events as ev
from golem._run import model_turn
from golem.model import Delta, Details, Request, Response, TextDelta
from golem.testing import Fragments, ScriptedModel
from tests.run.support import Recorder, SlowRecorder, announced, asks, boom, echo, well_formed

pytestmark = pytest.mark.virtual_time

MESSAGES = [
    UserMessage("p", parts=(Part.image(b"\x00\x01", "image/png"),)),
    asks(("1", "t", '{"a": 1.50}'), ("2", "t", '{"cut')),
    ToolMessage("r", tool_call_id="1", failed=True),
]
PARTIAL = Partial(
    MESSAGES, MESSAGES, "r", "c", Usage(1, 2), 1, 2, "length", "t", "th", [MESSAGES[2]]
)
RESULT = Result("out", MESSAGES, MESSAGES, "r", "c", Usage(1, 2), 1, 2, "stop")
PAUSED = msgspec.structs.replace(
    RESULT,
    output=None,
    cost=0.5,
    pending=Pending((PendingCall("approval", "1", "t", '{"a": 1.50}', "why"),)),
)
IDS = ("r", "c", 7)
EVERY = [
    ev.RunStarted(*IDS, 3, 2, 4),
    ev.ModelStarted(*IDS, 0, 1),
    ev.ModelFinished(*IDS, 0, 1, Usage(1, 2), "tool_call", "err"),
    ev.TextDelta(*IDS, "é\u2028"),
    ev.ThinkingDelta(*IDS, "hm"),
    ev.ToolCallDelta(*IDS, 0, "1", "t", '{"a'),
    ev.ToolStarted(*IDS, 0, "1", "t", '{"a'),
    ev.ToolFinished(*IDS, 0, "1", "t", "{}", "r", (Part.image(b"x", "a/b"),), True, "e"),
    ev.ToolDeferred(*IDS, 0, "1", "t", "{}", "external", "job 7"),
    ev.RunCanceled(*IDS, 0, "1", "t", "why"),
    ev.OutputRejected(*IDS, 1, "no digit"),
    ev.MessageAdded(*IDS, MESSAGES[1]),
    ev.RunFinished(*IDS, RESULT),
    ev.RunPaused(*IDS, PAUSED),
    ev.RunFailed(*IDS, "model", "cut", PARTIAL),
    ev.RunStopped(*IDS, "left", PARTIAL),
]


def test_every_kind_is_covered_here() -> None:
    assert set(get_args(ev.Event)) == {type(event) for event in EVERY}


@pytest.mark.parametrize("event", EVERY, ids=lambda event: event.kind)
def test_an_event_survives_its_json(event: ev.Event) -> None:
    data = encode_event(event)
    assert b"\n" not in data
    assert event == decode_event(data) == decode_event(data.decode())
    plain = json.loads(data)
    assert (event.kind, "r", "c", 7) == (
        plain["kind"],
        plain["runId"],
        plain["conversationId"],
        plain["seq"],
    )


def test_unknown_members_of_a_message_go_out_with_its_event() -> None:
    message = load_message(b'{"role":"assistant","content":"x","newer":{"b": 1}}')
    assert isinstance(message, AssistantMessage)
    assert message.unknown == UnknownMembers({"newer": b'{"b": 1}'})
    data = encode_event(ev.MessageAdded(*IDS, message))
    assert b'"newer":{"b": 1}' in data
    assert ("message_added", data) == (decode_event(data).kind, encode_event(decode_event(data)))


@pytest.mark.parametrize(
    "data",
    [
        b'{"kind":"budget_spent","runId":"r","tokens":[1, 2]}',
        b'{"kind":"text_delta","text":"no seq"}',
        b'{"seq":1,"kind":"run_started","supplied":"many"}',
    ],
)
def test_an_event_of_a_newer_version_is_kept_as_it_is(data: bytes) -> None:
    event = decode_event(data)
    assert isinstance(event, UnknownEvent)
    assert (json.loads(data)["kind"], data) == (event.kind, encode_event(event))


def test_unknown_members_of_a_known_event_do_not_make_it_unknown() -> None:
    data = b'{"kind":"text_delta","runId":"r","conversationId":"c","seq":7,"text":"x","new":1}'
    assert ev.TextDelta(*IDS, "x") == decode_event(data)


DEEP = b"[" * 5000 + b"]" * 5000


NOT_EVENTS: dict[str, bytes | str] = {
    **{repr(data): data for data in (b"", b"nope", b"[]", b"{}", b"7", b"\xff", "\ud800")},
    "a kind that is no text": b'{"kind":7}',
    "cut": b'{"kind":"new","x":',
    "deep behind its kind": b'{"kind":"new","x":' + DEEP + b"}",
    "deep before its kind": b'{"x":' + DEEP + b',"kind":"text_delta"}',
}


@pytest.mark.parametrize("data", NOT_EVENTS.values(), ids=NOT_EVENTS.keys())
def test_what_is_no_event_is_a_value_error(data: Any) -> None:
    with pytest.raises(ValueError, match=r"not an event|surrogates"):
        decode_event(data)


def test_lone_surrogates_never_keep_an_event_from_being_written() -> None:
    event = decode_event(encode_event(ev.RunFailed(*IDS, "tool", "bad \ud800 name")))
    assert ev.RunFailed(*IDS, "tool", "bad \ufffd name") == event


@pytest.mark.parametrize("output", [object(), {(1, 2): 3}, {1j}], ids=["object", "keys", "set"])
async def test_an_output_that_json_cannot_carry_keeps_no_event_from_being_written(
    output: Any,
) -> None:
    recorder = Recorder()
    await Agent(ScriptedModel(["x"]), decoder=lambda text: output, on_event=recorder).run("p")
    read = ev.decode_event(ev.encode_event(recorder.events[-1]))
    assert isinstance(read, ev.RunFinished)
    assert read.result.output == {"unencodable": type(output).__name__}


LONE = "lone \ud800 half"


@pytest.mark.parametrize(
    "script",
    [
        [LONE],
        [asks(("1", "echo", '{"said": "\ud800"}')), "x"],
        [asks(("\ud800", "\ud800")), "x"],
        [AssistantMessage("x", thinking=(Thinking(LONE),))],
        [
            asks(("1", "echo", '{"said": "\\ud800"}')),
            Fragments([TextDelta("x"), ValueError("dies")]),
        ],
        [Response(AssistantMessage("x"), details=Details(finish_message=LONE))],
        [ValueError(LONE)],
        [Fragments([TextDelta(LONE), ValueError(LONE)])],
    ],
    ids=[
        "text",
        "arguments",
        "names",
        "thinking",
        "arguments in a partial",
        "details",
        "error",
        "dying",
    ],
)
async def test_lone_surrogates_of_a_model_stay_outside(script: list[Any]) -> None:
    recorder = Recorder()
    async with Agent(ScriptedModel(script), tools=[echo], on_event=recorder).stream("p") as stream:
        with contextlib.suppress(RunError):
            async for _ in stream:
                pass
    assert [ev.decode_event(ev.encode_event(event)) for event in recorder.events] == recorder.events


def test_events_are_values() -> None:
    for event in EVERY:
        with pytest.raises(AttributeError):
            event.seq = 1  # type: ignore[misc]
        assert msgspec.structs.replace(event, seq=8).seq == 8


# Scenarios


@tool
async def stop() -> str:
    """Stop the run."""
    raise ToolCanceled("enough")


@tool
def media() -> ToolResult:
    """Give media."""
    return ToolResult("shot", (Part.image(b"x", "image/png"),))


SCENARIOS: dict[str, tuple[list[Any], list[str]]] = {
    "answer": (
        ["hi"],
        [
            *("run_started", "message_added", "model_started", "model_finished"),
            *("message_added", "run_finished"),
        ],
    ),
    "tool": (
        [asks(("1", "media")), "hi"],
        [
            *("run_started", "message_added", "model_started", "model_finished", "message_added"),
            *("tool_started", "tool_finished", "message_added"),
            *("model_started", "model_finished", "message_added", "run_finished"),
        ],
    ),
    "tool failed": (
        [asks(("1", "echo"), ("2", "boom"), ("3", "echo"))],
        [
            *("run_started", "message_added", "model_started", "model_finished", "message_added"),
            *("tool_started", "tool_finished", "tool_started", "tool_finished", "run_failed"),
        ],
    ),
    "tool stop": (
        [asks(("1", "stop"), ("2", "echo"))],
        [
            *("run_started", "message_added", "model_started", "model_finished", "message_added"),
            *("tool_started", "tool_finished", "message_added", "message_added"),
            *("run_canceled", "run_stopped"),
        ],
    ),
    "model failed": (
        [TransportError("cut")],
        ["run_started", "message_added", "model_started", "model_finished", "run_failed"],
    ),
    "stream cut": (
        [Fragments([TextDelta("ha"), TransportError("cut")])],
        ["run_started", "message_added", "model_started", "model_finished", "run_failed"],
    ),
    "loop": (
        [asks(("1", "echo")), asks(("2", "echo")), asks(("3", "echo"))],
        [
            *("run_started", "message_added"),
            *("model_started", "model_finished", "message_added"),
            *("tool_started", "tool_finished", "message_added"),
            *("model_started", "model_finished", "message_added"),
            *("tool_started", "tool_finished", "message_added"),
            "run_failed",
        ],
    ),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS.keys())
async def test_events_tell_the_whole_run_in_order(
    scenario: tuple[list[Any], list[str]], streamed: bool
) -> None:
    """For both forms; deltas come only when streaming, everything else is the same."""
    script, kinds = scenario
    agents, runs = SlowRecorder(), Recorder()
    agent = Agent(
        ScriptedModel(script),
        tools=[echo, boom, stop, media],
        on_event=agents,
        max_turns=2,
        retry=None,
    )
    seen: list[ev.Event] = []
    left: Any = None
    try:
        if streamed:
            async with agent.stream("p", on_event=runs) as stream:
                async for event in stream:
                    seen.append(event)
            left = stream.result
        else:
            left = await agent.run("p", on_event=runs)
    except RunError as error:
        left = error.partial
    well_formed(runs.events)
    assert agents.events == runs.events
    assert seen == (runs.events if streamed else [])
    assert kinds == [kind for kind in runs.kinds if not kind.endswith("_delta")]
    if left is not None:
        assert left.new_messages == announced(runs.events)
    assert runs.events == [decode_event(encode_event(event)) for event in runs.events]


async def test_deltas_concatenated_are_the_answer() -> None:
    answer = asks(("1", "echo", '{"text": "a longer text"}'), ("2", "echo"), text="let me look")
    recorder = Recorder()
    async with Agent(ScriptedModel([answer, "done"]), tools=[echo]).stream(
        "p", on_event=recorder
    ) as stream:
        async for _ in stream:
            pass
    first = recorder.events[: recorder.kinds.index("model_finished")]
    assert "".join(e.text for e in first if isinstance(e, ev.TextDelta)) == "let me look"
    calls: dict[int, list[str]] = {}
    for event in first:
        if isinstance(event, ev.ToolCallDelta):
            call = calls.setdefault(event.index, ["", "", ""])
            call[0] += event.id
            call[1] += event.name
            call[2] += event.args
    assert list(answer.tool_calls) == [ToolCall.of(*call) for call in calls.values()]


@pytest.mark.parametrize("ends", ["is stopped", "breaks", "hangs"])
async def test_an_answer_that_is_complete_is_told_whatever_becomes_of_its_stream(
    ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The model's turn counts, so its event says what it has consumed."""
    monkeypatch.setattr(model_turn, "GRACE_SECONDS", 0.05)
    begun = anyio.current_time()

    class Lingers:
        async def generate(self, request: Request) -> Response:
            raise NotImplementedError

        async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
            yield TextDelta("hello")
            yield Response(AssistantMessage("hello"), Usage(2, 1))
            if ends == "is stopped":
                answered.set()
            if ends == "breaks":
                raise TransportError("closed badly")
            await anyio.sleep_forever()

    async def stop() -> None:
        await answered.wait()
        await stream.stop()

    answered, recorder = anyio.Event(), Recorder()
    stream = Agent(Lingers(), timeout=0.02 if ends == "hangs" else None).stream(
        "p", on_event=recorder
    )
    async with anyio.create_task_group() as tasks:
        if ends == "is stopped":
            tasks.start_soon(stop)
        with contextlib.suppress(RunError):
            async with stream:
                async for _ in stream:
                    pass
    waited = {"is stopped": 0, "breaks": 0, "hangs": 0.02}[ends]
    assert anyio.current_time() - begun == pytest.approx(waited)  # not the grace
    finished = [event for event in recorder.events if isinstance(event, ev.ModelFinished)]
    assert [event.usage for event in finished] == [Usage(2, 1)]
    assert [event.finish_reason for event in finished] == ["stop"]
    assert [event.error for event in finished] == [""]
    assert stream.partial is not None
    assert stream.partial.usage == Usage(2, 1)
    well_formed(recorder.events)


async def test_run_started_counts_what_was_supplied_kept_and_sent() -> None:
    recorder = Recorder()
    agent = Agent(
        ScriptedModel(["x"]), instructions="i", history_processor=lambda history: history[1:]
    )
    history = [UserMessage("cut"), UserMessage("q"), asks(("1", "t"))]
    result = await agent.run("p", history=history, on_event=recorder)
    started = recorder.events[0]
    assert isinstance(started, ev.RunStarted)
    assert (started.supplied, started.kept, started.sent) == (3, 3, 5)
    assert result.repair == started.repair
    assert started.repair.synthesized == ("1",)


async def test_a_failing_tool_shows_its_error_and_a_corrected_one_both() -> None:
    recorder = Recorder()
    script = [asks(("1", "nope")), asks(("2", "boom"))]
    with pytest.raises(RunError):
        await Agent(ScriptedModel(script), tools=[boom]).run("p", on_event=recorder)
    corrected, failed = (e for e in recorder.events if isinstance(e, ev.ToolFinished))
    assert corrected.result.startswith("There is no tool named nope.")
    assert corrected.error.startswith("rejected: ")
    assert (failed.result, failed.error) == ("", "boom")


async def test_an_observers_exception_is_logged_and_harms_nobody(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(event: ev.Event) -> None:
        raise ValueError(f"cannot take {event.seq}")

    async def broken_too(event: ev.Event) -> None:
        raise StopAsyncIteration

    recorder = Recorder()
    agent = Agent(ScriptedModel(["x"]), on_event=broken)
    result = await agent.run("p", on_event=recorder)
    assert result.output == "x"
    well_formed(recorder.events)
    assert len(recorder.events) == len(caplog.records)
    assert {"golem"} == {record.name for record in caplog.records}
    again = await Agent(ScriptedModel(["y"])).run("p", on_event=broken_too)
    assert again.output == "y"
