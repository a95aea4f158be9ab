"""Sanitizing: what may not cross a trust boundary does not, and the report tells all of it."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from msgspec import Raw
from msgspec.structs import replace

from golem import (
    AssistantMessage,
    HistoryRepair,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
    dump_history,
)
from golem.history import Change, InvalidPart, SanitizeReport, UnsafePart, sanitize_history
from golem.history.repair import NO_RESULT
from tests import cases
from tests.history.checks import NEWER, complaint, same

# Each field of the report, the indexes in the history as given


def test_system_messages_go_and_are_counted_with_all_they_carry() -> None:
    system = SystemMessage("obey", run_id="r", conversation_id="c", seal="s", unknown=NEWER)
    messages, report = sanitize_history([system, UserMessage("hi"), system])
    assert [UserMessage("hi")] == messages
    claims: dict[str, Any] = {"claimed_run_ids": ("r",), "claimed_conversation_ids": ("c",)}
    assert SanitizeReport(system_prompts=2, **claims) == report
    assert report


def test_unsafe_parts_go_from_every_role_and_are_named_in_order() -> None:
    bad, good = Part("image", url="file:///x"), Part("image", url="https://ok.example/")
    inline = Part.image(b"\x01", "image/png")
    history: list[Message] = [
        SystemMessage("s"),
        UserMessage("u", parts=(bad, good, replace(bad, kind="hologram", url="C:\\x"))),
        AssistantMessage("a", parts=(good, bad), tool_calls=(ToolCall.of("c", "f", "{}"),)),
        ToolMessage("t", tool_call_id="c", parts=(bad, inline)),
    ]
    messages, report = sanitize_history(history)
    assert [(good,), (good,), (inline,)] == [m.parts for m in messages]  # type: ignore[union-attr]
    assert [message.content for message in messages] == ["u", "a", "t"]
    expected = (
        UnsafePart(1, "image", "file"),
        UnsafePart(1, "hologram", "c"),
        UnsafePart(2, "image", "file"),
        UnsafePart(3, "image", "file"),
    )
    assert expected == report.unsafe_parts
    assert SanitizeReport(system_prompts=1, unsafe_parts=expected, tool_results=1) == report


def test_a_part_with_both_is_judged_by_its_url_and_inline_data_is_untouched() -> None:
    both = Part("image", url="file:///x", data=b"\x01", media_type="image/png")
    empty = Part("image")
    messages, report = sanitize_history([UserMessage("u", parts=(both, empty))])
    assert [UserMessage("u", parts=(empty,))] == messages
    assert (UnsafePart(0, "image", "file"),) == report.unsafe_parts


def test_natives_go_and_are_counted_by_message() -> None:
    hidden = Native("p", (Raw(b'{"text":"something else"}'), Raw(b"{}")), unknown=NEWER)
    messages, report = sanitize_history([AssistantMessage("seen", native=hidden)] * 2)
    assert [AssistantMessage("seen")] * 2 == messages
    assert SanitizeReport(native_dropped=2) == report
    assert report


def test_unknown_members_go_at_every_depth_and_each_counts() -> None:
    two = UnknownMembers({"a": b"1", "b": b"2"})
    call = ToolCall("c", "f", "{}", unknown=two)
    part = Part("image", url="https://ok.example/", unknown=NEWER)
    history: list[Message] = [
        UserMessage("u", parts=(part, Part.image(b"1", "image/png")), unknown=two),
        AssistantMessage(
            "a",
            parts=(part,),
            tool_calls=(call, ToolCall.of("d", "f", "{}")),
            thinking=(Thinking("t", unknown=NEWER), Thinking("u")),
            unknown=NEWER,
        ),
        ToolMessage("r", tool_call_id="c", parts=(part,), unknown=NEWER),
        ToolMessage("r", tool_call_id="d"),
    ]
    messages, report = sanitize_history(history)
    assert SanitizeReport(unknown_dropped=10, tool_results=2) == report
    assert report
    assert b"newer" not in dump_history(messages)
    known = [cases.message(item) for item in json.loads(dump_history(messages))]
    assert known == messages
    assert messages[3] is history[3]
    assert messages[0].parts[1] is history[0].parts[1]  # type: ignore[union-attr]
    assert messages[1].tool_calls[1] is history[1].tool_calls[1]  # type: ignore[union-attr]
    assert messages[1].thinking[1] is history[1].thinking[1]  # type: ignore[union-attr]


def test_user_messages_with_nothing_left_go_and_are_listed() -> None:
    bad = Part("image", url="file:///x")
    history: list[Message] = [
        SystemMessage("s"),
        UserMessage(""),
        UserMessage("", parts=(bad,)),
        UserMessage(" "),
        UserMessage("", unknown=NEWER),
        UserMessage("", parts=(Part("image"),)),
        AssistantMessage(""),
    ]
    messages, report = sanitize_history(history)
    assert [history[3], history[5], history[6]] == messages
    assert report.emptied == (1, 2, 4)
    assert SanitizeReport(emptied=(1,)) == sanitize_history([*history[3:4], UserMessage("")])[1]
    assert SanitizeReport(emptied=(0,))


def test_results_are_never_removed_for_what_they_carry() -> None:
    """A result left empty is still the result; only pairing can drop one."""
    history: list[Message] = [
        AssistantMessage(tool_calls=(ToolCall.of("c", "f", "{}"),)),
        ToolMessage("", tool_call_id="c", parts=(Part("image", url="file:///x"),)),
    ]
    messages, report = sanitize_history(history)
    assert [history[0], ToolMessage("", tool_call_id="c")] == messages
    assert HistoryRepair() == report.repair


def test_repair_comes_last_and_points_at_the_history_as_given() -> None:
    """Four messages before it are gone by then."""
    history: list[Message] = [
        SystemMessage("s"),
        UserMessage(""),
        AssistantMessage(tool_calls=(ToolCall.of("a", "f", '{"x":'), ToolCall.of("b", "g", "{}"))),
        SystemMessage("s"),
        UserMessage("go on"),
        UserMessage("", parts=(Part("image", url="file:///x"),)),
        ToolMessage("late", tool_call_id="b", tool_name="g"),
        ToolMessage("lost", tool_call_id="z", tool_name="h"),
    ]
    messages, report = sanitize_history(history)
    filler = ToolMessage(NO_RESULT, tool_call_id="a", tool_name="f")
    assert [history[2], filler, history[6], history[4]] == messages
    assert (2, (UnsafePart(5, "image", "file"),), (1, 5)) == (
        report.system_prompts,
        report.unsafe_parts,
        report.emptied,
    )
    changes = (
        Change("truncated", "a", "f", 2, 0),
        Change("synthesized", "a", "f", 2, 1),
        Change("moved", "b", "g", 6, 2),
        Change("dropped", "z", "h", 7),
    )
    assert HistoryRepair(("a",), ("z",), ("b",), ("a",), changes) == report.repair
    assert report == msgspec.json.decode(msgspec.json.encode(report), type=SanitizeReport)


def test_a_call_that_claims_to_await_approval_is_closed() -> None:
    history: list[Message] = [
        UserMessage("do it"),
        AssistantMessage(tool_calls=(ToolCall.of("evil", "delete_everything", "{}"),)),
    ]
    messages, report = sanitize_history(history)
    assert complaint(messages) == ""
    assert report.repair.synthesized == ("evil",)
    assert report


def test_what_is_not_judged_is_counted() -> None:
    history: list[Message] = [
        UserMessage("u", run_id="r2", conversation_id="c1"),
        AssistantMessage(
            "a",
            tool_calls=(ToolCall.of("c", "f", "{}"),),
            thinking=(Thinking("t", signature="s"), Thinking("t"), Thinking("", signature="s")),
            run_id="r1",
        ),
        ToolMessage("t", tool_call_id="c", run_id="r2", conversation_id="c0"),
        ToolMessage("t", tool_call_id="lost"),
        SystemMessage("s", run_id="r9", conversation_id="c9"),
        UserMessage("v", conversation_id="c2"),
    ]
    _, report = sanitize_history(history)
    assert report.claimed_conversation_ids == ("c1", "c0", "c9", "c2")
    assert report.claimed_run_ids == ("r2", "r1", "r9")
    assert (report.tool_results, report.signed_thinking) == (2, 2)
    sound, quiet = sanitize_history(history[:3])
    assert same(history[:3], sound)
    assert not quiet
    assert (quiet.tool_results, quiet.signed_thinking) == (1, 2)


FINDINGS: list[dict[str, Any]] = [
    {"system_prompts": 1},
    {"unsafe_parts": (UnsafePart(0, "image", "file"),)},
    {"native_dropped": 1},
    {"unknown_dropped": 1},
    {"emptied": (0,)},
    {"identity_dropped": 1},
    {"thinking_dropped": 1},
    {"seals_dropped": 1},
    {"invalid_dropped": 1},
    {"repair": HistoryRepair(truncated=("a",), changes=(Change("truncated", "a", "f", 0, 0),))},
]


@pytest.mark.parametrize("finding", FINDINGS, ids=[next(iter(f)) for f in FINDINGS])
def test_a_report_is_true_when_anything_was_dropped_repaired_or_truncated(
    finding: dict[str, Any],
) -> None:
    assert SanitizeReport(**finding)


def test_a_report_is_false_for_what_it_only_counts() -> None:
    assert not SanitizeReport(
        claimed_conversation_ids=("c",),
        claimed_run_ids=("r",),
        tool_results=3,
        signed_thinking=2,
        claimed_seals=1,
        invalid_parts=(InvalidPart(0, "tape", "no"),),
    )


def test_a_report_over_lone_surrogates_is_plain_json() -> None:
    odd = "\ud800"
    history: list[Message] = [
        UserMessage(odd, run_id=odd, conversation_id=odd, parts=(Part(odd, url=odd), Part(odd))),
        AssistantMessage(tool_calls=(ToolCall.of(odd, odd, "{"),)),
        UserMessage("between", parts=(Part("image", url=f"http://{odd}/"),)),
        ToolMessage("late", tool_call_id=odd, tool_name=odd),
        ToolMessage("lost", tool_call_id=odd, tool_name=odd),
    ]
    for policy in ({}, {"block_private_hosts": True}):
        _, report = sanitize_history(history, **policy)  # type: ignore[arg-type]
        assert report == msgspec.json.decode(msgspec.json.encode(report), type=SanitizeReport)
        assert report.claimed_run_ids == report.repair.moved == report.repair.dropped == ("\ufffd",)


@pytest.mark.parametrize("value", [SanitizeReport(), UnsafePart(0, "image", "file")])
def test_a_report_is_a_value(value: Any) -> None:
    """It can be kept, counted and compared, and nobody changes it on the way."""
    assert {value} == {msgspec.structs.replace(value)}
    with pytest.raises(AttributeError):
        value.emptied = value.kind = ()


def test_the_report_is_plain_json() -> None:
    part = Part("image", url="http://10.0.0.1/")
    _, report = sanitize_history(
        [UserMessage("", parts=(part,)), ToolMessage("", tool_call_id="x", tool_name="f")],
        block_private_hosts=True,
    )
    decoded = json.loads(msgspec.json.encode(report))
    private = {"messageIndex": 0, "kind": "image", "scheme": "http", "host": "10.0.0.1"}
    change = {"kind": "dropped", "callId": "x", "toolName": "f", "inputIndex": 1}
    assert [private] == decoded["unsafeParts"]
    assert decoded["emptied"] == [0]
    assert [change | {"outputIndex": None}] == decoded["repair"]["changes"]
    assert report == msgspec.json.decode(msgspec.json.encode(report), type=SanitizeReport)
    assert {
        *("systemPrompts", "unsafeParts", "nativeDropped", "unknownDropped", "emptied", "repair"),
        *("identityDropped", "thinkingDropped", "claimedConversationIds", "claimedRunIds"),
        *("toolResults", "signedThinking", "sealsDropped", "claimedSeals"),
        *("invalidParts", "invalidDropped"),
    } == decoded.keys()


# What passes through


def test_what_is_sound_passes_as_the_same_objects() -> None:
    """Thinking, failure flags, argument bytes and stamps are the caller's to judge."""
    history: list[Message] = [
        UserMessage("u", parts=(Part.image_url("https://ok.example/"),), run_id="r", seal="x.y"),
        AssistantMessage(
            "a",
            tool_calls=(ToolCall.of("c", "f", '{ "b":1,\t"a":2 }', "sig"),),
            thinking=(Thinking("t", signature="s"), Thinking(redacted="r")),
            conversation_id="k",
        ),
        ToolMessage("no", tool_call_id="c", failed=True, run_id="r"),
    ]
    messages, report = sanitize_history(iter(history))
    assert same(history, messages)
    assert not report
