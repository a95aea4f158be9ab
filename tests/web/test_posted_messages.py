"""What clients post, read as messages: whole where it is right, named where it is not."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from ag_ui.core import RunAgentInput
from hypothesis import given
from hypothesis import strategies as st

from golem import (
    Approval,
    AssistantMessage,
    DeferredResults,
    HistoryError,
    Message,
    Part,
    Pending,
    PendingCall,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
    dump_history,
    load_history,
    sanitize_history,
)
from golem.deferral import denial
from golem.history.repair import NO_RESULT
from golem.web import (
    answers_from_agui,
    answers_from_ui,
    messages_from_agui,
    messages_from_chat,
    messages_from_ui,
)

Read = Callable[[Any], list[Message]]
PNG = "data:image/png;base64,cG5n"
WAITING = Pending(
    approvals=(PendingCall("approval", "1", "t", "{}"), PendingCall("approval", "2", "t", "{}")),
    external=(PendingCall("external", "3", "t", "{}"),),
)


def tool_part(state: str, **members: Any) -> dict[str, Any]:
    return {"type": "tool-t", "toolCallId": "1", "state": state, **members}


def user(*parts: Any) -> dict[str, Any]:
    return {"id": "u", "role": "user", "parts": list(parts)}


def assistant(*parts: Any) -> dict[str, Any]:
    return {"id": "a", "role": "assistant", "parts": list(parts)}


TEXT = {"type": "text", "text": "hi"}


# The AI SDK


def test_a_ui_message_of_several_steps() -> None:
    """Each step is a turn with its results; what says nothing to a model is left out."""
    posted = [
        {"id": "s", "role": "system", "parts": [TEXT]},
        user(TEXT, {"type": "file", "url": PNG, "mediaType": "image/png"}, {"type": "data-x"}),
        assistant(
            {"type": "step-start"},
            {"type": "reasoning", "text": "hm", "providerMetadata": {"x": {"signature": "s"}}},
            {"type": "text", "text": "let "},
            {"type": "text", "text": "me"},
            tool_part("output-available", input={"n": 1}, output={"ok": True}),
            {**tool_part("output-error", input={}, errorText="no"), "toolCallId": "2"},
            {"type": "source-url", "sourceId": "x", "url": "https://a"},
            {"type": "step-start"},
            TEXT,
        ),
    ]
    asked = (ToolCall.of("1", "t", '{"n":1}'), ToolCall.of("2", "t", "{}"))
    expected = [
        SystemMessage("hi"),
        UserMessage("hi", parts=(Part.image(b"png", "image/png"),)),
        AssistantMessage("let me", thinking=(Thinking("hm"),), tool_calls=asked),
        ToolMessage('{"ok":true}', tool_call_id="1", tool_name="t"),
        ToolMessage("no", tool_call_id="2", tool_name="t", failed=True),
        AssistantMessage("hi"),
    ]
    assert expected == messages_from_ui(posted)
    assert expected == messages_from_ui({"id": "chat", "messages": posted})
    assert expected == messages_from_ui(json.dumps({"messages": posted}))
    assert expected == messages_from_ui(json.dumps(posted).encode())


@pytest.mark.parametrize(
    ("part", "args", "result"),
    [
        (tool_part("input-streaming"), "", None),
        (tool_part("input-streaming", rawInput='{"n'), '{"n', None),
        (tool_part("input-available", input={}), "{}", None),
        (tool_part("input-available", input='{"cut'), '{"cut', None),
        (tool_part("approval-requested", input={}, approval={"id": "1"}), "{}", None),
        (tool_part("output-available", input={}, output="text"), "{}", "text"),
        (tool_part("output-available", input={}, output=[1, 2.5, None]), "{}", "[1,2.5,null]"),
        (tool_part("output-available", input={}, output=None), "{}", ""),
        (
            tool_part("output-denied", input={}, approval={"id": "1", "reason": "no"}),
            "{}",
            denial("no"),
        ),
        (tool_part("output-denied", input={}), "{}", denial()),
        (tool_part("output-error", input={}, errorText=NO_RESULT), "{}", NO_RESULT),
    ],
)
def test_a_tool_part_in_every_state(part: Any, args: str, result: str | None) -> None:
    """A call that waits or was never finished has no result: repair or its answer gives one."""
    for posted in (part, {**part, "type": "dynamic-tool", "toolName": "t"}):
        call, *rest = messages_from_ui([assistant(posted)])
        assert isinstance(call, AssistantMessage)
        assert call.tool_calls[0].args == args
        expected = [] if result is None else [ToolMessage(result, tool_call_id="1", tool_name="t")]
        assert expected == rest


def test_what_somebody_threw_in_stands_between_the_turns() -> None:
    """As the run had it."""
    quoted = {"type": "data-golem-user", "data": {"text": "and hurry"}}
    found = messages_from_ui([assistant(TEXT, quoted, {"type": "step-start"}, TEXT)])
    assert [AssistantMessage("hi"), UserMessage("and hurry"), AssistantMessage("hi")] == found


def test_answers_are_looked_up_by_the_server_s_record() -> None:
    """Only of the last message, only to calls that wait, only if they are answers."""
    posted = [
        assistant({**tool_part("approval-responded"), "approval": {"id": "1", "approved": True}}),
        user(TEXT),
        assistant(
            {
                **tool_part("approval-responded"),
                "approval": {"id": "1", "approved": False, "reason": "no"},
            },
            {**tool_part("approval-requested"), "toolCallId": "2", "approval": {"id": "2"}},
            {**tool_part("output-available", output={"a": 1}), "toolCallId": "3"},
            {**tool_part("output-available", output="forged"), "toolCallId": "4"},
        ),
    ]
    expected = DeferredResults(approvals={"1": Approval(False, "no")}, external={"3": '{"a":1}'})
    assert expected == answers_from_ui(posted, WAITING)
    assert DeferredResults() == answers_from_ui([user(TEXT)], WAITING)
    truthy = {**tool_part("approval-responded"), "approval": {"id": "1", "approved": "yes"}}
    assert DeferredResults() == answers_from_ui([assistant(truthy)], WAITING)


# AG-UI


def test_an_ag_ui_input() -> None:
    """As its own model writes one; arguments as they are, errors, media, reasoning in its place."""
    posted = {
        "threadId": "t",
        "runId": "r",
        "messages": [
            {"id": "1", "role": "developer", "content": "be nice"},
            {
                "id": "2",
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image", "source": {"type": "url", "value": "https://a/b.png"}},
                    {
                        "type": "document",
                        "source": {"type": "data", "value": "cGRm", "mimeType": "application/pdf"},
                    },
                ],
            },
            {"id": "3", "role": "reasoning", "content": "hm", "encryptedValue": "theirs"},
            {
                "id": "4",
                "role": "assistant",
                "toolCalls": [
                    {"id": "c", "type": "function", "function": {"name": "t", "arguments": '{"n'}}
                ],
            },
            {"id": "5", "role": "tool", "toolCallId": "c", "content": "", "error": "broke"},
            {"id": "6", "role": "activity", "activityType": "x", "content": {}},
            {"id": "7", "role": "assistant", "content": "done"},
        ],
    }
    RunAgentInput.model_validate(posted)
    document = Part.document(b"pdf", "application/pdf")
    assert messages_from_agui(posted) == [
        SystemMessage("be nice"),
        UserMessage("look", parts=(Part.image_url("https://a/b.png"), document)),
        AssistantMessage(
            thinking=(Thinking("hm", signature="theirs"),),
            tool_calls=(ToolCall.of("c", "t", '{"n'),),
        ),
        ToolMessage("broke", tool_call_id="c", tool_name="t", failed=True),
        AssistantMessage("done"),
    ]


def test_an_ag_ui_resume() -> None:
    """An entry for each interrupt; those of nobody are ignored."""
    entries = [
        {"interruptId": "1", "status": "resolved", "payload": {"approved": True, "reason": "ok"}},
        {"interruptId": "2", "status": "cancelled"},
        {"interruptId": "3", "status": "resolved", "payload": {"a": 1}},
        {"interruptId": "4", "status": "resolved", "payload": True},
    ]
    expected = DeferredResults(
        approvals={"1": Approval(True, "ok"), "2": Approval(False)}, external={"3": '{"a":1}'}
    )
    assert expected == answers_from_agui({"resume": entries}, WAITING)
    plain = [{"interruptId": "1", "status": "resolved", "payload": False}]
    expected = DeferredResults(approvals={"1": Approval(False)})
    assert expected == answers_from_agui({"resume": plain}, WAITING)
    assert DeferredResults() == answers_from_agui({}, WAITING)
    for payload in ({"approved": "yes"}, {}, 1):
        odd = [{"interruptId": "1", "status": "resolved", "payload": payload}]
        with pytest.raises(HistoryError, match=r"resume\[0\]\.payload"):
            answers_from_agui({"resume": odd}, WAITING)


# Chat Completions


def test_a_chat_request() -> None:
    """Roles old and new, parts, calls and their results."""
    call = {"id": "c", "type": "function", "function": {"name": "t", "arguments": "{}"}}
    custom = {"id": "d", "type": "custom", "custom": {"name": "u", "input": "free text"}}
    posted = {
        "model": "m",
        "messages": [
            {"role": "developer", "content": [{"type": "text", "text": "be nice"}]},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "look"},
                    {"type": "image_url", "image_url": {"url": "https://a/b.png"}},
                    {"type": "image_url", "image_url": {"url": PNG}},
                    {"type": "input_audio", "input_audio": {"data": "d2F2", "format": "wav"}},
                    {
                        "type": "file",
                        "file": {"file_data": "data:application/pdf;base64,cGRm", "filename": "f"},
                    },
                ],
            },
            {
                "role": "assistant",
                "content": None,
                "reasoning_content": "hm",
                "tool_calls": [call, custom],
            },
            {"role": "tool", "tool_call_id": "c", "content": "5"},
            {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
        ],
    }
    assert messages_from_chat(posted) == [
        SystemMessage("be nice"),
        UserMessage(
            "look",
            parts=(
                Part.image_url("https://a/b.png"),
                Part.image(b"png", "image/png"),
                Part.audio(b"wav", "audio/wav"),
                Part.document(b"pdf", "application/pdf"),
            ),
        ),
        AssistantMessage(
            thinking=(Thinking("hm"),),
            tool_calls=(ToolCall.of("c", "t", "{}"), ToolCall.of("d", "u", "free text")),
        ),
        ToolMessage("5", tool_call_id="c", tool_name="t"),
        AssistantMessage("no"),
    ]


# Faults

FAULTS: list[tuple[Read, Any, str]] = [
    (messages_from_ui, b"{", "history: not JSON"),
    (messages_from_ui, b'[{"role": "\xff"}]', "history: not JSON"),
    (messages_from_ui, b"[" * 5000, "history: not JSON"),
    (messages_from_ui, {}, "history.messages: expected an array, not nothing"),
    (messages_from_ui, 5, "history: expected an object, not a number"),
    (messages_from_ui, [5], "history[0]: expected an object, not a number"),
    (messages_from_ui, [user(TEXT), {}], "history[1].role: expected a string, not nothing"),
    (messages_from_ui, [{"role": "tool"}], "history[0].role: unknown role 'tool'"),
    (messages_from_ui, [user(7)], "history[0].parts[0]: expected an object, not a number"),
    (messages_from_ui, [user({})], "history[0].parts[0].type: expected a string, not nothing"),
    (
        messages_from_ui,
        [user({"type": "text", "text": []})],
        "history[0].parts[0].text: expected a string, not an array",
    ),
    (
        messages_from_ui,
        [user({"type": "file", "url": "data:image/png;base64,?"})],
        "history[0].parts[0].url: not standard base64",
    ),
    (
        messages_from_ui,
        [user({"type": "file", "url": "data:text/plain,hello"})],
        "history[0].parts[0].url: a data URL has to hold base64",
    ),
    (
        messages_from_ui,
        [user({"type": "file", "url": ""})],
        "history[0].parts[0].url: document part has neither a URL nor inline data",
    ),
    (
        messages_from_ui,
        [assistant(TEXT, {"type": "tool-t", "state": "x"})],
        "history[0].parts[1].toolCallId: expected a string, not nothing",
    ),
    (
        messages_from_ui,
        [assistant({"type": "data-golem-part", "data": {"url": PNG, "kind": "smell"}})],
        "history[0].parts[0].data.url: unsupported part kind 'smell'",
    ),
    (messages_from_agui, [{"role": "robot"}], "history[0].role: unknown role 'robot'"),
    (
        messages_from_agui,
        [{"role": "user"}],
        "history[0].content: expected a string or an array, not nothing",
    ),
    (
        messages_from_agui,
        [{"role": "user", "content": [{"type": "binary"}]}],
        "history[0].content[0].type: unknown kind of content 'binary'",
    ),
    (
        messages_from_agui,
        [
            {
                "role": "user",
                "content": [{"type": "image", "source": {"type": "file", "value": "f"}}],
            }
        ],
        "history[0].content[0].source.type: a source of type 'file' cannot be read here",
    ),
    (
        messages_from_agui,
        [{"role": "assistant", "toolCalls": [{"id": "1", "function": {"name": "t"}}]}],
        "history[0].toolCalls[0].function.arguments: expected a string, not nothing",
    ),
    (
        messages_from_agui,
        [{"role": "reasoning", "content": "x", "encryptedValue": '{"redacted":"y"}'}],
        "history[0].encryptedValue: thinking has both text and redacted data",
    ),
    (messages_from_chat, [{"role": "function"}], "history[0].role: unknown role 'function'"),
    (
        messages_from_chat,
        [{"role": "user", "content": [{"type": "file", "file": {"file_id": "f"}}]}],
        "history[0].content[0].type: content of the type 'file' cannot be read here",
    ),
    (
        messages_from_chat,
        [{"role": "assistant", "tool_calls": {}}],
        "history[0].tool_calls: expected an array, not an object",
    ),
    (
        messages_from_chat,
        [{"role": "tool", "content": "x"}],
        "history[0].tool_call_id: expected a string, not nothing",
    ),
]


@pytest.mark.parametrize(("read", "posted", "complaint"), FAULTS)
def test_a_fault_is_named_with_its_place(read: Read, posted: Any, complaint: str) -> None:
    """Index and member, in the client's own names."""
    with pytest.raises(HistoryError) as caught:
        read(posted)
    assert str(caught.value).startswith(complaint)


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
_NAMES = """
role content parts type text toolCallId state input output url mediaType data approval toolCalls
tool_calls function name arguments id encryptedValue messages source value image_url input_audio
file file_data format custom reasoning_content error errorText
"""
_WORDS = """
user assistant system tool developer reasoning activity text file image tool-t dynamic-tool
data-golem-user data-golem-part step-start output-available output-error data:;base64,
data:image/png;base64,cG5n https://a function custom image_url input_audio url
"""
NAMES = st.sampled_from(_NAMES.split())
WORDS = st.sampled_from(_WORDS.split())
POSTED = st.recursive(
    JSON | WORDS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=6),
    max_leaves=30,
)


@given(
    posted=POSTED, read=st.sampled_from([messages_from_ui, messages_from_agui, messages_from_chat])
)
def test_whatever_is_posted_is_messages_or_a_named_fault(posted: Any, read: Read) -> None:
    """Nothing else comes out: no TypeError, no recursion error; and messages can be stored."""
    for document in (posted, [posted], {"messages": posted}):
        try:
            messages = read(document)
        except HistoryError:
            continue
        assert load_history(dump_history(messages)) == messages
        sanitize_history(messages)
