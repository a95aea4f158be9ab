"""A member of a wrong type ends in a HistoryError that names the place, or does no harm."""

from __future__ import annotations

import enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw
from msgspec.structs import fields, replace

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Message,
    Native,
    Part,
    Repairer,
    RunError,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
    normalize_history,
    repair,
)
from golem.faults import fault_of
from golem.history import sanitize_history
from golem.testing import ScriptedModel
from tests.history.checks import same
from tests.history.passes import CALL, PASSES, RESULT, USER, error_of
from tests.strategies import MESSAGES

WRONG: list[tuple[str, Message]] = [
    ("content", UserMessage(5)),
    ("content", UserMessage(None)),
    ("content", ToolMessage(b"bytes", tool_call_id="c")),
    ("content", AssistantMessage(["text"])),
    ("parts", UserMessage("u", parts=None)),
    ("parts", UserMessage("u", parts=5)),
    ("parts", UserMessage("u", parts="x")),
    ("parts", AssistantMessage("u", parts={"a": Part("image")})),
    ("parts[0]", UserMessage("u", parts=(None,))),
    ("parts[1]", ToolMessage("r", parts=(Part("image"), "x"))),
    ("parts[0].url", UserMessage("u", parts=(Part("image", url=5),))),
    ("parts[0].data", UserMessage("u", parts=(Part("image", data="x"),))),
    ("parts[0].kind", UserMessage("u", parts=(Part(None),))),
    ("parts[0].unknown", UserMessage("u", parts=(Part("x", unknown={"a": b"1"}),))),
    ("toolCalls", AssistantMessage(tool_calls=None)),
    ("toolCalls", AssistantMessage(tool_calls=5)),
    ("toolCalls", AssistantMessage(tool_calls="abc")),
    ("toolCalls", AssistantMessage(tool_calls={"a": 1})),
    ("toolCalls[0]", AssistantMessage(tool_calls=(5,))),
    ("toolCalls[1]", AssistantMessage(tool_calls=(CALL.tool_calls[0], None))),
    ("toolCalls[0]", AssistantMessage(tool_calls=(Thinking(id="c"),))),
    ("toolCalls[0].id", AssistantMessage(tool_calls=(ToolCall.of([], "f", "{}"),))),
    ("toolCalls[0].id", AssistantMessage(tool_calls=(ToolCall.of(5, "f", "{}"),))),
    ("toolCalls[0].name", AssistantMessage(tool_calls=(ToolCall.of("c", None, "{}"),))),
    ("thinking", AssistantMessage(thinking=5)),
    ("thinking[0]", AssistantMessage(thinking=("hm",))),
    ("thinking[0].signature", AssistantMessage(thinking=(Thinking("t", signature=5),))),
    ("native", AssistantMessage(native="x")),
    ("native.provider", AssistantMessage(native=Native(5))),
    ("native.items[1]", AssistantMessage(native=Native("p", (Raw(b"{}"), b"{}")))),
    ("toolCallId", ToolMessage("r", tool_call_id=5)),
    ("toolCallId", ToolMessage("r", tool_call_id=["c"])),
    ("toolCallId", ToolMessage("r", tool_call_id={"c"})),
    ("failed", ToolMessage("r", failed=None)),
    ("runId", UserMessage("u", run_id=5)),
    ("runId", UserMessage("u", run_id=[])),
    ("conversationId", AssistantMessage("a", conversation_id={})),
    ("seal", SystemMessage("s", seal=5)),
    ("seal", UserMessage("u", seal=b"a.b")),
    ("unknown", UserMessage("u", unknown={"a": b"1"})),
    ("unknown", UserMessage("u", unknown=None)),
    ("unknown", UserMessage("u", unknown=UnknownMembers({"a": "1"}))),  # type: ignore[dict-item]
    ("unknown", SystemMessage("s", unknown=UnknownMembers({1: b"1"}))),  # type: ignore[dict-item]
    ("thinking[0].unknown", AssistantMessage(thinking=(Thinking("t", unknown=None),))),
    ("toolCalls[0].signature", AssistantMessage(tool_calls=(ToolCall.of("c", "f", "{}", 5),))),
    (
        "toolCalls[0].unknown",
        AssistantMessage(tool_calls=(ToolCall("c", "f", "{}", unknown={"a": b"1"}),)),
    ),
    ("native.unknown", AssistantMessage(native=Native("p", unknown=None))),
]


@pytest.mark.parametrize(("path", "message"), WRONG)
def test_the_first_malformed_member_is_found_with_its_path(path: str, message: Message) -> None:
    fault = fault_of(message, 7)
    assert fault is not None
    assert (7, path) == (fault.index, fault.path)
    assert "expected " in fault.reason


def test_the_error_says_what_was_expected_and_what_stood_there() -> None:
    odd = AssistantMessage(tool_calls=(ToolCall.of([], "f", "{}"),))
    expected = "history[1].toolCalls[0].id: expected str, not list"
    assert expected == str(error_of(normalize_history, [USER, odd]))


def test_a_full_message_is_not_called_malformed() -> None:
    full = AssistantMessage(
        "a",
        parts=(Part.image(b"1", "image/png"),),
        tool_calls=(*CALL.tool_calls, ToolCall.of("d", "f", "{cut")),
        thinking=(Thinking("t"),),
        native=Native("p", (Raw(b"{}"),)),
    )
    assert fault_of(full, 0) is None


@given(MESSAGES)
def test_no_sound_message_is_called_malformed(message: Message) -> None:
    assert fault_of(message, 0) is None


REPAIRS = ("normalize", "repair", "arepair", "feed", "pairing")
"""They are the fast path of every run: they look at what pairing needs."""


@pytest.mark.parametrize("name", [name for name in PASSES if name not in REPAIRS])
@pytest.mark.parametrize(("path", "message"), WRONG)
def test_every_malformed_member_is_named(name: str, path: str, message: Message) -> None:
    error = error_of(PASSES[name], [USER, CALL, RESULT, message, UserMessage("x", run_id="r")])
    assert error is not None
    assert (3, path) == (error.index, error.path)


@pytest.mark.parametrize("name", REPAIRS)
@pytest.mark.parametrize(("path", "message"), WRONG)
def test_a_malformed_member_passes_repair_unread_or_is_named(
    name: str, path: str, message: Message
) -> None:
    error = error_of(PASSES[name], [USER, CALL, RESULT, message, UserMessage("x", run_id="r")])
    assert error is None or (3, path) == (error.index, error.path)


@pytest.mark.parametrize(("path", "message"), WRONG)
async def test_a_run_names_every_malformed_member_before_anything_is_sent(
    path: str, message: Message
) -> None:
    model = ScriptedModel(["never"])
    with pytest.raises(RunError) as caught:
        await Agent(model).run("go on", history=[USER, CALL, RESULT, message])
    cause = caught.value.__cause__
    assert isinstance(cause, HistoryError)
    assert (3, path, "history", []) == (
        cause.index,
        cause.path,
        caught.value.stage,
        model.requests,
    )


def test_a_list_for_a_tuple_and_a_kind_of_text_are_as_good() -> None:
    """What the codec would not make, and nobody trips over."""

    class Text(enum.StrEnum):
        ID = "c"
        TYPE = "image/png"

    odd = AssistantMessage(
        Text.ID,
        parts=[Part.image(bytearray(b"x"), Text.TYPE)],  # type: ignore[arg-type]
        tool_calls=[ToolCall.of(Text.ID, "f", "{}")],  # type: ignore[arg-type]
        thinking=[Thinking("t")],  # type: ignore[arg-type]
    )
    for name, function in PASSES.items():
        assert error_of(function, [USER, odd, RESULT, UserMessage("x", run_id="r")]) is None, name


def test_what_pairing_needs_repair_misses() -> None:
    """A false value in place of an empty one does no harm."""
    for path, message in WRONG:
        if path.startswith("toolCall") and getattr(message, "tool_calls", ()) is not None:
            error = error_of(normalize_history, [USER, message])
            unread = path.endswith((".signature", ".unknown"))
            assert (error is None) == unread, message
            assert error is None or (1, path) == (error.index, error.path)


@pytest.mark.parametrize("name", REPAIRS)
def test_a_kind_of_text_or_a_list_has_repair_read_no_more(name: str) -> None:
    """What repair never reads passes, whatever the types of what it reads."""

    class Text(enum.StrEnum):
        ID = "c"

    broken: Any = (None,)
    for message in (
        AssistantMessage(tool_calls=list(CALL.tool_calls), parts=broken),  # type: ignore[arg-type]
        AssistantMessage(tool_calls=(ToolCall.of(Text.ID, "f", "{}"),), parts=broken),
        ToolMessage("r", tool_call_id=Text.ID, tool_name="f", parts=broken),
    ):
        assert error_of(PASSES[name], [USER, CALL, message, RESULT]) is None, message


@pytest.mark.parametrize(
    "odd",
    [
        5,
        AssistantMessage(tool_calls=(CALL.tool_calls[0], 5)),
        AssistantMessage(tool_calls=5),
        AssistantMessage(tool_calls=[CALL.tool_calls[0], 5]),
        AssistantMessage(tool_calls=(ToolCall.of("d", "f", "{}"), ToolCall.of([], "f", "{}"))),
        ToolMessage("r", tool_call_id=["c"]),
    ],
)
def test_a_repairer_takes_nothing_of_what_it_refuses(odd: Any) -> None:
    """It can be fed on as if nothing had happened."""
    repairer, other = Repairer(), Repairer()
    settled: list[Message] = []
    expected: list[Message] = []
    for message in (USER, CALL, odd, RESULT, RESULT, UserMessage("x")):
        if message is odd:
            with pytest.raises(HistoryError, match=r"^history\[2\]"):
                repairer.feed(message)
        else:
            settled += repairer.feed(message)
            expected += other.feed(message)
    settled += repairer.close()
    expected += other.close()
    assert same(expected, settled)
    assert other.report == repairer.report


def test_a_bug_is_not_blamed_on_the_history() -> None:
    """Where nothing in the history is malformed the exception passes as it is."""

    class Odd(str):
        def startswith(self, *args: Any) -> bool:
            raise TypeError("a bug")

        def rstrip(self, *args: Any) -> str:
            raise TypeError("a bug")

    message = UserMessage("u", parts=(Part("image", url=Odd("http://x")),))
    with pytest.raises(TypeError, match="a bug"):
        sanitize_history([message], block_private_hosts=True)


@given(st.sampled_from([USER, CALL, RESULT]), st.data())
def test_any_member_of_any_type_is_named_or_passes(message: Message, data: st.DataObject) -> None:
    """Whatever Python puts into a message, only HistoryError leaves."""
    member = data.draw(st.sampled_from([info.name for info in fields(type(message))]))
    junk: list[Any] = [None, 5, 1.5, b"x", "", "x", (), (5,), ("x",), [], [None], {}, {"a": 1}]
    junk += [object(), Raw(b"1"), USER, Part("image"), ToolCall.of("a", "b", "c"), int, ...]
    value = data.draw(st.sampled_from(junk) | st.sampled_from(junk).map(lambda item: (item, item)))
    odd = replace(message, **{member: value})
    name = data.draw(st.sampled_from(list(PASSES)))
    error_of(PASSES[name], [USER, odd, CALL, RESULT, odd])


@pytest.mark.parametrize(
    ("calls", "result"),
    [
        ((ToolCall.of(3, "f", "{}"),), ToolMessage("x", tool_call_id=3)),  # type: ignore[arg-type]
        ((ToolCall.of("3", None, "{}"),), ToolMessage("x", tool_call_id="3")),  # type: ignore[arg-type]
        (
            (ToolCall.of("3", "f", "{}"),),
            ToolMessage("x", tool_call_id="3", tool_name=4),  # type: ignore[arg-type]
        ),
    ],
)
def test_a_batch_that_only_looks_sound_is_named_in_every_form_of_repair(
    calls: Any, result: Any
) -> None:
    history = [UserMessage("u"), AssistantMessage(tool_calls=calls), result]
    for form in (normalize_history, lambda h: list(repair(h)), lambda h: list(repair(iter(h)))):
        with pytest.raises(HistoryError, match="expected str"):
            form(history)


@pytest.mark.parametrize("results", [[], [ToolMessage("r", tool_call_id="3", tool_name="f")]])
def test_calls_that_can_be_read_but_once_are_refused_rather_than_lost(
    results: list[Message],
) -> None:
    for form in (normalize_history, lambda h: list(repair(iter(h)))):
        once = (call for call in [ToolCall.of("3", "f", "{}")])
        with pytest.raises(HistoryError, match="toolCalls: expected tuple"):
            form([AssistantMessage(tool_calls=once), *results])  # type: ignore[arg-type]
