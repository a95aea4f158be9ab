"""What is no history, or a malformed one, ends in a HistoryError that names the place."""

from __future__ import annotations

import enum
import functools
import json
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, Struct
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
    arepair,
    dump_history,
    load_history,
    normalize_history,
    repair,
)
from golem import history as history_package
from golem.faults import fault_of
from golem.history import (
    Change,
    EstimatedTokens,
    InvalidPart,
    Turn,
    UnsafePart,
    budget_history,
    drop_turn,
    edit_user,
    fork_at,
    merge,
    rewind_to,
    sanitize_history,
    seal,
    trim_history,
    turns,
    verify,
)
from golem.history.repair import pairing
from golem.testing import ScriptedModel
from tests.history.checks import complaint, now, same, work
from tests.strategies import MESSAGES

KEY = b"k" * 16

Pass = Callable[[Iterable[Message]], object]


def _arepair(history: Iterable[Message]) -> list[Message]:
    async def given() -> AsyncIterator[Message]:
        for message in history:
            yield message

    async def collect() -> list[Message]:
        return [message async for message in arepair(given())]

    return now(collect())


def _feed(history: Iterable[Message]) -> list[Message]:
    repairer = Repairer()
    settled = [message for given in history for message in repairer.feed(given)]
    return settled + repairer.close()


PASSES: dict[str, Pass] = {
    "normalize": normalize_history,
    "repair": lambda history: list(repair(history)),
    "arepair": _arepair,
    "feed": _feed,
    "pairing": pairing,
    "sanitize": sanitize_history,
    "sanitize strictly": lambda history: sanitize_history(
        history,
        allowed_hosts=["a.example"],
        block_private_hosts=True,
        max_bytes=10**9,
        strip_identity=True,
        strip_thinking=True,
    ),
    "trim": lambda history: trim_history(1)(history),
    "trim nothing": lambda history: trim_history(10**9)(history),
    "budget": lambda history: now(budget_history(EstimatedTokens(), 10)(history)),
    "turns": lambda history: list(turns(history)),
    "fork": lambda history: fork_at(history, 1),
    "rewind": lambda history: rewind_to(history, 0),
    "rewind to run": lambda history: rewind_to(history, "r"),
    "edit": lambda history: edit_user(history, 0, "x"),
    "drop turn": lambda history: drop_turn(history, 1),
    "merge": lambda history: merge([UserMessage("x")], history),
    "seal": lambda history: seal(history, KEY),
    "verify": lambda history: verify(history, KEY),
    "dump": dump_history,
}

every_pass = pytest.mark.parametrize("function", PASSES.values(), ids=PASSES)

USER = UserMessage("u", run_id="r")
CALL = AssistantMessage(tool_calls=(ToolCall.of("c", "f", "{}"),))
RESULT = ToolMessage("r", tool_call_id="c", tool_name="f")


# Not a message


@every_pass
@pytest.mark.parametrize(
    "odd", [None, 5, "user", b"{}", {"role": "user"}, [], (), Part("image"), object], ids=repr
)
def test_something_that_is_no_message_is_named_with_its_place(function: Pass, odd: Any) -> None:
    with pytest.raises(HistoryError) as caught:
        function([USER, CALL, RESULT, odd, UserMessage("later")])
    assert f"history[3]: not a message but {type(odd).__name__}" == str(caught.value)
    assert caught.value.index == 3


@every_pass
def test_a_subclass_of_a_message_is_none(function: Pass) -> None:
    """It may have members that nobody stores."""

    class Special(UserMessage, frozen=True):
        more: str = ""

    with pytest.raises(HistoryError, match=r"^history\[1\]: not a message but Special$"):
        function([USER, Special("x"), CALL, RESULT])


@every_pass
def test_a_class_is_no_message(function: Pass) -> None:
    with pytest.raises(HistoryError, match=r"^history\[2\]: not a message but StructMeta$"):
        function([USER, CALL, ToolMessage])


@every_pass
def test_an_iterable_that_fails_midway_fails_the_pass_with_its_own_error(function: Pass) -> None:
    class Broken(Exception):
        pass

    def broken() -> Iterator[Message]:
        yield USER
        yield CALL
        raise Broken

    with pytest.raises(Broken):
        function(broken())


@every_pass
@pytest.mark.parametrize("error", [AttributeError("mine"), TypeError("mine")], ids=repr)
def test_the_applications_own_error_is_not_taken_for_a_malformed_message(
    function: Pass, error: Exception
) -> None:
    def broken() -> Iterator[Message]:
        yield USER
        raise error

    with pytest.raises(type(error), match="mine"):
        function(broken())


# Wrong types inside

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
    assert expected == str(_error_of(normalize_history, [USER, odd]))


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
    error = _error_of(PASSES[name], [USER, CALL, RESULT, message, UserMessage("x", run_id="r")])
    assert error is not None
    assert (3, path) == (error.index, error.path)


@pytest.mark.parametrize("name", REPAIRS)
@pytest.mark.parametrize(("path", "message"), WRONG)
def test_a_malformed_member_passes_repair_unread_or_is_named(
    name: str, path: str, message: Message
) -> None:
    error = _error_of(PASSES[name], [USER, CALL, RESULT, message, UserMessage("x", run_id="r")])
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
        assert _error_of(function, [USER, odd, RESULT, UserMessage("x", run_id="r")]) is None, name


def _error_of(function: Pass, history: Iterable[Message]) -> HistoryError | None:
    try:
        function(history)
    except HistoryError as error:
        return error
    return None


def test_what_pairing_needs_repair_misses() -> None:
    """A false value in place of an empty one does no harm."""
    for path, message in WRONG:
        if path.startswith("toolCall") and getattr(message, "tool_calls", ()) is not None:
            error = _error_of(normalize_history, [USER, message])
            unread = path.endswith((".signature", ".unknown"))
            assert (error is None) == unread, message
            assert error is None or (1, path) == (error.index, error.path)


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


# Odd but sound


@every_pass
@pytest.mark.parametrize(
    "text", ["x" * 10_000, "\ud800", "\udfff" * 100, "\x00", "\u2028\r\n", "."], ids=range(6)
)
def test_any_text_is_an_id(function: Pass, text: str) -> None:
    """Its length is not the error's: that goes to a log."""
    history: list[Message] = [
        UserMessage(text, run_id=text, conversation_id=text),
        AssistantMessage(text, tool_calls=(ToolCall.of(text, text, text),)),
        ToolMessage(text, tool_call_id=text, tool_name=text),
        ToolMessage(text, tool_call_id=text + "lost", tool_name=text),
        UserMessage(text, parts=(Part.image_url(text),)),
    ]
    assert len(str(_error_of(function, history))) < 200


@functools.cache
def _deep() -> list[Message]:
    deep = "[" * 100_000 + "]" * 100_000
    stored = f'[{{"role":"user","content":"u","runId":"r","newer":{deep}}},'
    stored += f'{{"role":"assistant","toolCalls":[{{"id":"c","name":"f","args":{{"x":{deep}}}}}]}}]'
    return load_history(stored)


@every_pass
def test_deep_nesting_is_as_good_as_any(function: Pass) -> None:
    assert len(str(_error_of(function, _deep()))) < 200


def test_arguments_nested_too_deep_are_truncated_ones() -> None:
    deep = '{"x":' + "[" * 100_000 + "]" * 100_000 + "}"
    stored = f'[{{"role":"assistant","toolCalls":[{{"id":"c","name":"f","args":{deep}}}]}}]'
    history = load_history(stored)
    assert normalize_history(history)[1].truncated == ("c",)
    assert history == load_history(dump_history(history))


@every_pass
def test_an_empty_history_is_one(function: Pass) -> None:
    refused = {"fork", "rewind", "rewind to run", "edit", "drop turn"}
    if function in [PASSES[name] for name in refused]:
        with pytest.raises(HistoryError):
            function([])
    else:
        function([])


# Linear work, counted


class Reads(Sequence[Message]):
    """A history that counts how often a message is taken from it."""

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages
        self.reads = 0

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, place: Any) -> Any:
        self.reads += 1
        return self.messages[place]


def sound(size: int) -> list[Message]:
    """Exchanges with a tool call each."""
    history: list[Message] = []
    for n in range(size // 4):
        call = AssistantMessage(tool_calls=(ToolCall.of(f"c{n}", "f", "{}"),))
        tool = ToolMessage("r", tool_call_id=f"c{n}", tool_name="f")
        history += [UserMessage("q", run_id="r"), call, tool, AssistantMessage("a")]
    return history


def damaged(size: int) -> list[Message]:
    """The same, everything answered at the very end, backwards, and once too often."""
    history = sound(size)
    results = [message for message in history if isinstance(message, ToolMessage)]
    others = [message for message in history if not isinstance(message, ToolMessage)]
    return [*others, *results[::-1], *results[:10]]


def one_turn(size: int) -> list[Message]:
    """One turn with a very great many calls, answered backwards."""
    ids = [f"c{n}" for n in range(size // 2)]
    calls = tuple(ToolCall.of(call_id, "f", "{}") for call_id in ids)
    results = [ToolMessage("r", tool_call_id=call_id, run_id="r") for call_id in ids]
    return [UserMessage("q", run_id="r"), AssistantMessage(tool_calls=calls), *results[::-1]]


def reused(size: int) -> list[Message]:
    """One id for everything."""
    call = AssistantMessage(tool_calls=(ToolCall.of("c", "f", "{}"),) * 3, run_id="r")
    return [UserMessage("q", run_id="r"), *[call, RESULT] * (size // 2)]


@pytest.mark.parametrize("make", [sound, damaged, one_turn, reused])
@pytest.mark.parametrize("name", [name for name in PASSES if name != "budget"])
def test_a_history_ten_times_as_long_is_ten_times_thework(
    name: str, make: Callable[[int], list[Message]]
) -> None:
    small, large = make(200), make(2000)

    def attempt(history: list[Message]) -> int:
        return work(lambda: _error_of(PASSES[name], history))

    attempt(small)  # what is made once is made here
    assert attempt(large) <= 11 * attempt(small) + 100


@pytest.mark.parametrize("make", [sound, damaged, one_turn, reused])
@pytest.mark.parametrize("name", PASSES)
def test_each_message_is_read_once(name: str, make: Callable[[int], list[Message]]) -> None:
    history = Reads(make(400))
    _error_of(PASSES[name], history)
    assert history.reads <= len(history) + 1


@pytest.mark.parametrize("order", [slice(None, None, -1), slice(1, None, 2)], ids=["back", "gaps"])
def test_verifying_a_history_in_disorder_is_linear(order: slice) -> None:
    """Comparisons of seals are counted: each message looks at its neighbour, not at all others."""

    class Counted(str):
        __slots__ = ()
        looked = 0

        def __eq__(self, other: object) -> bool:
            Counted.looked += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

        def rpartition(self, separator: str, /) -> tuple[str, str, str]:
            first, dot, last = str.rpartition(self, separator)
            return Counted(first), dot, Counted(last)

    def looks(size: int) -> int:
        made = seal([UserMessage(str(n)) for n in range(size)], KEY)[order]
        Counted.looked = 0
        verify([replace(message, seal=Counted(message.seal)) for message in made], KEY)
        return Counted.looked

    assert looks(1000) <= 20 * looks(100)  # equal hashes cost a few more


def test_ten_times_the_messages_with_a_policy_are_ten_times_the_work() -> None:
    part = Part.image_url("http://user@b\u00fccher.example:80/a.png")

    def effort(size: int) -> int:
        history = [UserMessage(str(n), parts=(part, part)) for n in range(size)]
        return work(lambda: sanitize_history(history, block_private_hosts=True))

    effort(10)
    assert effort(1000) <= 11 * effort(100) + 100


@pytest.mark.parametrize("name", ["normalize", "sanitize", "trim nothing", "repair", "feed"])
def test_a_hundred_thousand_messages_pass(name: str) -> None:
    found = PASSES[name](sound(100_000))
    messages: Any = found[0] if isinstance(found, tuple) else found
    assert len(messages) == 100_000
    assert complaint(messages) == ""


@given(st.sampled_from([USER, CALL, RESULT]), st.data())
def test_any_member_of_any_type_is_named_or_passes(message: Message, data: st.DataObject) -> None:
    """Whatever Python puts into a message, only HistoryError leaves."""
    member = data.draw(st.sampled_from([info.name for info in fields(type(message))]))
    junk: list[Any] = [None, 5, 1.5, b"x", "", "x", (), (5,), ("x",), [], [None], {}, {"a": 1}]
    junk += [object(), Raw(b"1"), USER, Part("image"), ToolCall.of("a", "b", "c"), int, ...]
    value = data.draw(st.sampled_from(junk) | st.sampled_from(junk).map(lambda item: (item, item)))
    odd = replace(message, **{member: value})
    name = data.draw(st.sampled_from(list(PASSES)))
    _error_of(PASSES[name], [USER, odd, CALL, RESULT, odd])


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


# No iterable


@every_pass
@pytest.mark.parametrize("given", [None, 5, USER, object()], ids=["None", "5", "message", "object"])
def test_what_is_no_iterable_is_no_history(function: Pass, given: Any) -> None:
    with pytest.raises(HistoryError) as caught:
        DIRECTLY.get(function, function)(given)
    assert re.fullmatch(
        rf"history: expected an (asynchronous )?iterable of messages, not {type(given).__name__}",
        str(caught.value),
    )


def test_what_is_read_asynchronously_is_no_history_for_a_pass_that_is_not() -> None:
    async def arriving() -> AsyncIterator[Message]:
        yield USER

    with pytest.raises(HistoryError, match=r"iterable of messages, not async_generator$"):
        normalize_history(arriving())  # type: ignore[arg-type]
    with pytest.raises(HistoryError, match=r"asynchronous iterable of messages, not list$"):
        now(_collected(arepair([USER])))  # type: ignore[arg-type]


async def _collected(messages: AsyncIterator[Message]) -> list[Message]:
    return [message async for message in messages]


DIRECTLY: dict[Pass, Any] = {
    _arepair: lambda given: now(_collected(arepair(given))),
    _feed: lambda given: list(repair(given)),
}
"""Helpers of this file that read a history themselves."""


def test_an_iterable_by_the_old_protocol_is_one() -> None:
    class Old:
        def __getitem__(self, place: int) -> Message:
            return [USER, CALL, RESULT][place]

    assert normalize_history(Old())[0] == [USER, CALL, RESULT]  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [5, None, USER])
def test_parts_and_hosts_that_are_no_iterables_are_named(given: Any) -> None:
    with pytest.raises(TypeError, match=r"^allowed_hosts holds host names, not "):
        sanitize_history([USER], allowed_hosts=given or 7)
    with pytest.raises(TypeError, match=r"^parts must be a sequence of Part, not "):
        edit_user([USER], 0, "x", parts=given or 7)


# What every report is

REPORTS: list[Any] = [
    Change("moved", "c", "f", 3, 1),
    normalize_history([CALL, UserMessage("x"), RESULT, RESULT])[1],
    UnsafePart(1, "image", "file", "host"),
    InvalidPart(1, "image", "why"),
    sanitize_history([SystemMessage("s"), UserMessage("", parts=(Part.image_url("file:x"),))])[1],
    verify(seal([USER, CALL], KEY), KEY),
    Turn(0, CALL, (RESULT,), (1,)),
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_a_report_is_a_frozen_value_with_camel_case_json_that_reads_back(report: Any) -> None:
    cls = type(report)
    first = fields(cls)[0].name
    with pytest.raises(AttributeError, match="immutable"):
        setattr(report, first, getattr(report, first))
    assert hash(report) == hash(replace(report))
    data = msgspec.json.encode(report)
    assert report == msgspec.json.decode(data, type=cls)
    names = {info.name for info in fields(cls)}
    expected = {re.sub("_(.)", lambda found: found[1].upper(), name) for name in names}
    assert expected == set(json.loads(data))


def test_every_report_that_the_package_exports_is_among_them() -> None:
    exported = [getattr(history_package, name) for name in dir(history_package)]
    structs = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, Struct)}
    assert structs == set(map(type, REPORTS))
