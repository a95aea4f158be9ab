"""What each encoder makes of single things: the words of its protocol, one by one."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from typing import Any

import pytest

from golem import (
    Agent,
    AssistantMessage,
    Event,
    Message,
    Part,
    Pending,
    PendingCall,
    RunError,
    Thinking,
    Tool,
    ToolCall,
    ToolMessage,
    UserMessage,
    sanitize_history,
)
from golem import events as ev
from golem.model import TextDelta, ThinkingDelta
from golem.result import Partial, Result
from golem.testing import Fragments, ScriptedModel, dies
from golem.usage import Usage
from golem.web import (
    EncoderFactory,
    Frame,
    agui,
    chat_chunks,
    golem_events,
    guarded,
    messages_from_agui,
    messages_from_ui,
    ui_messages,
    verbatim,
)
from golem.web.ui_messages import UIMessages
from tests.run import virtual_time
from tests.run.scenarios import SCENARIOS, Scenario, World
from tests.run.support import asks
from tests.web import streams
from tests.web.judging import Judge

chat = chat_chunks(model="m", created=7, include_usage=True)
ALL: dict[str, EncoderFactory] = {
    "golem": golem_events,
    "ui": ui_messages,
    "agui": agui,
    "chat": chat,
}


def told(events: list[Event], encode: EncoderFactory) -> list[Any]:
    """The frames as JSON, without the end."""
    data = [frame.data for frame in streams.frames(events, encode)]
    return [json.loads(item) for item in data if item != b"[DONE]"]


def of_type(chunks: list[Any], *types: str) -> list[Any]:
    return [chunk for chunk in chunks if chunk["type"] in types]


def run(*middle: Any, end: Any = None) -> list[Event]:
    """A run of these kinds of events, each ``(class, *values)``, numbered."""
    result: Result[Any] = Result("ok", [], [], "r", "c")
    last = (ev.RunFinished, result) if end is None else end
    listed = [(ev.RunStarted, 0, 0, 0), (ev.ModelStarted, 0, 1), *middle, last]
    return [kind("r", "c", n, *values) for n, (kind, *values) in enumerate(listed)]


# Frames


def test_a_frame_is_one_event_whatever_its_data() -> None:
    """Line breaks of every kind are data lines; none can end a field."""
    frame = Frame(b"a\r\nb\rc\nd", event="x\ny", id="1\r2\0")
    expected = b"id: 1 2 \nevent: x y\ndata: a\ndata: b\ndata: c\ndata: d\n\n"
    assert expected == frame.encode() == bytes(frame)


def test_an_encoder_tells_of_events_that_just_end() -> None:
    """Without an id: who reads it resumes behind the last event. And no protocol's good end."""
    cut = run()[:2]
    assert [frame for frame in streams.frames(cut, golem_events) if not frame.id] == []
    ends = {name: streams.frames(cut, encode)[-1] for name, encode in ALL.items()}
    assert [ends[name].id for name in ("ui", "agui", "chat")] == ["", "", ""]
    assert b'"type":"error"' in ends["ui"].data
    assert b'"RUN_ERROR"' in ends["agui"].data
    assert json.loads(ends["chat"].data)["error"]["code"] == "cut_off"


@pytest.mark.parametrize("name", ["ui", "agui", "chat"])
def test_events_nobody_here_knows_are_left_out(name: str) -> None:
    """They count all the same: ids go on."""
    unknown = ev.UnknownEvent("news", b'{"kind":"news","runId":"r","seq":2,"secret":1}')
    events = [*run()[:2], unknown, ev.TextDelta("r", "c", 3, "x")]
    frames = streams.frames(events, ALL[name])
    assert b"secret" not in b"".join(frame.data for frame in frames)
    assert [frame.id for frame in frames if frame.id][-1] == "r:3"


def test_golem_s_own_stream_passes_unknown_events_on() -> None:
    """To the byte; by its own number where it says one, else by its neighbours'."""
    given = [
        *run()[:1],
        ev.UnknownEvent("news", b'{"kind":"news","runId":"r","seq":5}'),
        ev.UnknownEvent("old", b"7"),
    ]
    frames = streams.frames(given, golem_events)
    assert [frame.data for frame in frames[1:]] == [b'{"kind":"news","runId":"r","seq":5}', b"7"]
    assert [frame.id for frame in frames] == ["r:0", "r:5", "r:6"]


# What stays at the server


SECRET = "postgres://user:password@host"


def events_of(agent: Agent[Any, Any]) -> list[Event]:
    """What a stream of this agent gives."""

    async def go() -> list[Event]:
        events: list[Event] = []
        try:
            async with agent.stream("p") as stream:
                async for event in stream:
                    events.append(event)
        except RunError:
            pass
        return events

    return virtual_time.run(go, backend="asyncio")


def breaks(*_: object, **__: object) -> str:
    """Break."""
    raise OSError(SECRET)


FAILING: dict[str, Callable[[], Agent[Any, Any]]] = {
    "model": lambda: Agent(ScriptedModel([OSError(SECRET)]), retry=None),
    "stream": lambda: Agent(
        ScriptedModel([dies("a longer answer", 1, OSError(SECRET))]), retry=None
    ),
    "tool": lambda: Agent(ScriptedModel([asks(("1", "t"))]), tools=[Tool("t", breaks, schema={})]),
    "decode": lambda: Agent(ScriptedModel(["x"]), decoder=breaks),
    "history": lambda: Agent(ScriptedModel(["x"]), history_processor=breaks),
}


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("stage", FAILING)
def test_foreign_errors_stay_at_the_server(name: str, stage: str) -> None:
    """A client reads where it happened and of which class it was, unless it is told more."""
    events = events_of(FAILING[stage]())
    body = streams.body(events, ALL[name]).decode()
    assert SECRET not in body
    assert "OSError" in body
    assert "Traceback" not in body
    makers: dict[str, EncoderFactory] = {
        "golem": functools.partial(golem_events, describe=verbatim),
        "ui": functools.partial(ui_messages, describe=verbatim),
        "agui": functools.partial(agui, describe=verbatim),
        "chat": chat_chunks(model="m", created=1, describe=verbatim),
    }
    assert SECRET in streams.body(events, makers[name]).decode()


def test_golem_s_own_words_and_the_application_s_are_told() -> None:
    """Limits, the turns, and what a tool or a decoder has said to the model."""
    own = [streams.scenario(n)[-1] for n in ("too many turns", "output rejected for good")]
    for event in own:
        assert isinstance(event, ev.RunFailed)
        assert guarded(event) == event.error
    rejected = ev.ToolFinished("r", "c", 1, 0, "1", "t", "{}", "told", error="e", error_type="E")
    assert guarded(rejected) == "e"


@pytest.mark.parametrize("name", ALL)
def test_instructions_stay_at_the_server(name: str) -> None:
    """However the run ends."""
    for scenario in ("answer", "paused", "a tool fails", "a tool stops the run"):
        world = World(Scenario(SCENARIOS[scenario].script, {"instructions": "TOP SECRET"}))
        assert b"TOP SECRET" not in streams.body(events_of(world.agent()), ALL[name])


# The AI SDK


def test_a_conversation_survives_its_way_through_the_client(judge: Judge) -> None:
    """What a browser keeps of a run and posts back is what the run has added."""
    for name in ("answer", "tools, one by one", "tools, in parallel", "steered", "paused"):
        events = streams.scenario(name)
        read = judge.read("ui6", streams.body(events, ui_messages))
        assert [m for m in _of(events) if not _is_prompt(m)] == messages_from_ui([read["message"]])


def _of(events: list[Event]) -> list[Message]:
    """The messages of a run as a client may know them."""
    added = [event.message for event in events if isinstance(event, ev.MessageAdded)]
    return [_without_ids(message) for message in added]


def _without_ids(message: Any) -> Any:
    return type(message)(
        **{
            name: getattr(message, name)
            for name in message.__struct_fields__
            if name not in ("run_id", "conversation_id")
        }
    )


def _is_prompt(message: Message) -> bool:
    return isinstance(message, UserMessage) and message.content == "p"


def test_ui_words() -> None:
    """Thinking between text, a call cut off, media, an output, what is only news."""
    picture = Part.image(b"png", "image/png")
    answer = AssistantMessage("ab", thinking=(Thinking("hm"),), parts=(picture,))
    chunks = told(
        run(
            (ev.TextDelta, "a"),
            (ev.ThinkingDelta, "hm"),
            (ev.TextDelta, "b"),
            (ev.MessageAdded, answer),
            (ev.OutputRejected, 1, "too short"),
            (ev.ModelStarted, 0, 1),
            (ev.ModelFinished, 0, 1, Usage(), None, "secret host", "OSError"),
            (ev.ModelStarted, 0, 2),
            (ev.ToolCallDelta, 0, "1", "t", '{"n'),
            end=(ev.RunFailed, "model", "secret host", None, "OSError"),
        ),
        ui_messages,
    )
    blocks = [c["type"] for c in chunks if c["type"].split("-")[0] in ("text", "reasoning")]
    expected = ["text-start", "text-delta", "text-end"]
    assert blocks == [*expected, *(t.replace("text", "reasoning") for t in expected), *expected]
    (file,) = of_type(chunks, "file")
    assert file == {"type": "file", "url": "data:image/png;base64,cG5n", "mediaType": "image/png"}
    news = [c for c in chunks if c["type"].startswith("data-")]
    assert all(c["transient"] for c in news)
    assert [c["data"] for c in news if c["type"] == "data-golem-rejected"] == [
        {"round": 1, "reason": "too short"}
    ]
    (cut,) = of_type(chunks, "tool-input-error")
    assert cut["input"] == '{"n'
    kinds = [c["type"] for c in chunks[-4:]]
    assert kinds == ["tool-input-error", "finish-step", "error", "finish"]


@pytest.mark.parametrize("version", [5, 6, 7])
def test_a_step_that_is_asked_again(judge: Judge, version: Any) -> None:
    """Only the newest client can take back what it showed; the others show both."""
    encode = functools.partial(ui_messages, version=version)
    events = run(
        (ev.TextDelta, "half a"),
        (ev.ToolCallDelta, 0, "1", "t", "{"),
        (ev.ModelStarted, 0, 2),
        (ev.TextDelta, "whole"),
        (ev.MessageAdded, AssistantMessage("whole")),
    )
    read = judge.read(f"ui{version}", streams.body(events, encode))
    assert (read["errors"], read["invalid"]) == ([], None)
    texts = [part["text"] for part in read["message"]["parts"] if part["type"] == "text"]
    assert texts == (["whole"] if version == 7 else ["half a", "whole"])


def test_results_of_tools_as_a_program_reads_them() -> None:
    """An object or an array as itself; any other text as it is."""

    def output(text: str) -> Any:
        finished = (ev.ToolFinished, 0, "1", "t", "{}", text)
        asked = (ev.MessageAdded, asks(("1", "t")))
        chunks = told(run(asked, (ev.ToolStarted, 0, "1", "t", "{}"), finished), ui_messages)
        return of_type(chunks, "tool-output-available")[0]["output"]

    assert output('{"a": [1]}') == {"a": [1]}
    for text in ("plain", "5", '"x"', "[1", "{NaN}", "[" * 300 + "]" * 300, ""):
        assert output(text) == text


def test_media_of_a_result_comes_behind_it(judge: Judge) -> None:
    """And back to it, when the client posts the message."""
    sound = Part.audio(b"wav", "audio/wav")
    events = run(
        (ev.MessageAdded, asks(("1", "t"))),
        (ev.ToolStarted, 0, "1", "t", "{}"),
        (ev.ToolFinished, 0, "1", "t", "{}", "heard", (sound, Part.image_url("https://a/b"))),
    )
    read = judge.read("ui6", streams.body(events, ui_messages))
    assert messages_from_ui([read["message"]])[1] == ToolMessage(
        "heard",
        parts=(sound, Part.image_url("https://a/b", "image/*")),
        tool_call_id="1",
        tool_name="t",
    )


def test_nobody_is_asked_about_a_call_of_a_batch_that_was_stopped() -> None:
    """That it waits is known once the run has paused, not when the tool says so."""
    script = [asks(("1", "ask", '{"n":"1"}'), ("2", "stop", '{"n":"2"}'))]
    for encode in (ui_messages, agui):
        body = streams.body(events_of(World(Scenario(script)).agent()), encode)
        assert b"tool-approval-request" not in body
        assert b"interrupt" not in body.replace(b"interrupted before execution", b"")
    paused = told(streams.scenario("paused"), ui_messages)
    kinds = [chunk["type"] for chunk in paused]
    assert kinds.index("tool-approval-request") > max(
        n for n, kind in enumerate(kinds) if kind == "tool-output-available"
    )


def test_the_message_s_id() -> None:
    """The run's, or the one that a resumed run goes on with."""
    assert told(run(), ui_messages)[0]["messageId"] == "r"
    encode = functools.partial(ui_messages, message_id="m-1")
    assert told(run(), encode)[0]["messageId"] == "m-1"
    assert isinstance(ui_messages(), UIMessages)
    assert dict(ui_messages().headers) == {"x-vercel-ai-ui-message-stream": "v1"}


def test_a_resumed_run_goes_on_with_the_message_that_asked(judge: Judge) -> None:
    """Approved, denied and answered calls end in the parts that the client has."""
    events = streams.scenario("resumed")
    parts = [
        {
            "type": f"tool-{call.name}",
            "toolCallId": call.id,
            "state": "approval-responded",
            "input": {"n": call.id},
            "approval": {"id": call.id, "approved": call.id == "0"},
        }
        for call in asks(("0", "ask"), ("3", "ask")).tool_calls
    ]
    later = {"type": "tool-later", "toolCallId": "2", "state": "input-available", "input": {}}
    asking = {"id": "m", "role": "assistant", "parts": [*parts, later]}
    encode = functools.partial(ui_messages, message_id="m")
    read = judge.read("ui6", streams.body(events, encode), message=asking)
    assert (read["errors"], read["invalid"]) == ([], None)
    states = [p["state"] for p in read["message"]["parts"] if "toolCallId" in p]
    assert states == ["output-available", "output-denied", "output-available"]


# AG-UI


def test_ag_ui_keeps_the_conversation_whole(judge: Judge) -> None:
    """Its client's messages are the run's, signatures and what a user has thrown in included."""
    thinking = (
        Thinking("hm", signature="s", provider="p"),
        Thinking(redacted="x", provider="p"),
    )
    call = ToolCall.of("1", "slow", '{"n":"1"}', "sig")
    script: list[Any] = [
        AssistantMessage("let me", thinking=thinking, tool_calls=(call,)),
        Fragments([ThinkingDelta("so"), TextDelta("done")]),
    ]
    SCENARIOS["signed"] = Scenario(script)
    try:
        events = streams.scenario("signed")
    finally:
        del SCENARIOS["signed"]
    asked = [{"id": "u", "role": "user", "content": "p"}]
    read = judge.read("agui", streams.body(events, agui), messages=asked)
    assert _of(events) == messages_from_agui({"messages": read["messages"]})
    steered = streams.scenario("steered")
    read = judge.read("agui", streams.body(steered, agui), messages=asked)
    assert _of(steered) == messages_from_agui(read["messages"])


def test_ag_ui_takes_arguments_as_they_are() -> None:
    """Cut off, empty, a scalar: text is text."""
    for args in ('{"n":', "5", "", '{"a": 1}'):
        chunks = told(run((ev.MessageAdded, asks(("1", "t", args)))), agui)
        assert args == "".join(c["delta"] for c in of_type(chunks, "TOOL_CALL_ARGS"))


def test_ag_ui_endings() -> None:
    """Success with its output, an interrupt for each call that waits, cancelled, an error."""
    (done,) = of_type(told(streams.scenario("output, native"), agui), "RUN_FINISHED")
    assert (done["result"], done["outcome"]) == ({"n": 1}, {"type": "success"})
    (paused,) = of_type(told(streams.scenario("paused"), agui), "RUN_FINISHED")
    assert paused["outcome"]["interrupts"] == [
        {"id": "1", "reason": "approval", "toolCallId": "1", "message": "sure?"},
        {"id": "2", "reason": "external", "toolCallId": "2", "message": "job"},
    ]
    (stopped,) = of_type(told(streams.scenario("a tool stops the run"), agui), "RUN_FINISHED")
    assert stopped["outcome"] == {"type": "cancelled"}
    assert "enough" in stopped["metadata"]["reason"]
    (failed,) = of_type(told(streams.scenario("a tool fails"), agui), "RUN_ERROR")
    assert failed["code"] == "tool"


# Chat Completions


def test_the_agent_s_own_tools_are_no_business_of_a_chat_client() -> None:
    """It would try to run them."""
    chunks = told(streams.scenario("tools, one by one"), chat)
    assert "tool_calls" not in json.dumps(chunks)
    said = [c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]]
    assert "".join(said) == "let me see\n\ndone"
    assert chunks[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert [c["choices"][0]["finish_reason"] for c in chunks if c["choices"]][-1] == "stop"
    assert chunks[-1]["usage"]["prompt_tokens"] == 4
    assert chunks[0]["usage"] is None


def test_a_call_that_only_the_client_can_answer_is_one_of_its_own() -> None:
    """Unless somebody has to approve another first: a client cannot say that."""

    def paused(*kinds: str) -> Any:
        calls = [PendingCall(k, str(n), "t", "{}") for n, k in enumerate(kinds)]  # type: ignore[arg-type]
        pending = Pending(
            approvals=tuple(c for c in calls if c.kind == "approval"),
            external=tuple(c for c in calls if c.kind == "external"),
        )
        result: Result[Any] = Result(None, [], [], "r", "c", pending=pending)
        return told(run(end=(ev.RunPaused, result)), chat)

    asked, last = paused("external", "external")[-3:-1]
    function = {"name": "t", "arguments": "{}"}
    assert asked["choices"][0]["delta"]["tool_calls"] == [
        {"index": n, "id": str(n), "type": "function", "function": function} for n in (0, 1)
    ]
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert "tool_calls" not in json.dumps(paused("external", "approval"))


def test_a_value_that_was_not_written_as_text_comes_as_json() -> None:
    """Once: what the model wrote as text is not repeated."""
    for name in ("output, by tool", "output, native"):
        chunks = told(streams.scenario(name), chat)
        said = [c["choices"][0]["delta"].get("content", "") for c in chunks if c["choices"]]
        assert json.loads("".join(said).split("\n\n")[-1]) == {"n": 1}


@pytest.mark.parametrize("name", ALL)
def test_an_output_that_json_cannot_carry(name: str) -> None:
    """Its type is told; the stream does not break at its end."""
    result: Result[Any] = Result(object(), [], [], "r", "c")
    body = streams.body(run(end=(ev.RunFinished, result)), ALL[name]).replace(b"\\", b"")
    assert b'{"unencodable":"object"}' in body


@pytest.mark.parametrize("name", ALL)
def test_lone_surrogates_in_events_become_the_replacement_character(name: str) -> None:
    """A stream of bytes has no place for them; golem's own events have none."""
    events = run((ev.TextDelta, "\ud800"), (ev.ToolCallDelta, 0, "1", "\udfff", "\ud801"))
    assert "\ufffd" in streams.body(events, ALL[name]).decode()


def test_what_a_client_keeps_can_be_sanitized_and_sent_on(judge: Judge) -> None:
    """The whole way: run, browser, request, next run's history."""
    for name in SCENARIOS:
        events = streams.scenario(name)
        if "resumed" in name:
            continue
        read = judge.read("ui6", streams.body(events, ui_messages))
        if read["message"] is not None:
            history, report = sanitize_history(messages_from_ui([read["message"]]))
            assert not report.repair.dropped
            assert not report.unknown_dropped
            assert history or not read["message"]["parts"]


def test_a_partial_s_usage_is_told() -> None:
    """Of failed and stopped runs too."""
    partial = Partial([], [], "r", "c", usage=Usage(3, 2))
    for end in ((ev.RunFailed, "loop", "no", partial), (ev.RunStopped, "no", partial)):
        (last,) = of_type(told(run(end=end), agui), "RUN_FINISHED", "RUN_ERROR")
        assert last["usage"] == [{"inputTokens": 3, "outputTokens": 2, "totalTokens": 5}]
