"""Writing messages: how each member is spelled, what is not written, and what loads as the same."""

from __future__ import annotations

import enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from golem import (
    Agent,
    AssistantMessage,
    HistoryError,
    Message,
    Native,
    Part,
    Thinking,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
    dump_history,
    dump_message,
    iter_history,
    load_history,
    load_message,
    normalize_history,
    repair,
    sanitize_history,
)
from golem.codec import encode_json
from golem.messages import MESSAGE_TYPES
from golem.testing import ScriptedModel
from tests.stored import assert_laws, outcome, strict_json
from tests.strategies import ARGS, HISTORIES, MESSAGES, ODD_TEXT, json_text

FIELD_ORDER = (
    *("role", "content", "parts", "toolCalls", "toolCallId", "toolName", "failed", "thinking"),
    *("native", "runId", "conversationId", "seal"),
)


# The laws


@given(HISTORIES)
def test_what_was_dumped_loads_equal(history: list[Message]) -> None:
    assert_laws(history)
    assert history == load_history(dump_history(history).decode())


@given(MESSAGES)
def test_one_message_round_trips_alone_and_as_part_of_a_history(message: Message) -> None:
    data = dump_message(message)
    assert message == load_message(data)
    assert data == dump_message(load_message(data))
    assert b"[" + data + b"]" == dump_history([message])


@given(HISTORIES)
def test_a_history_round_trips_as_json_lines(history: list[Message]) -> None:
    lines = [dump_message(message) + b"\n" for message in history]
    assert history == list(iter_history(lines))
    assert history == list(iter_history(line.decode() for line in lines))
    assert history == list(iter_history(b"".join(lines).splitlines()))
    assert history == list(iter_history([dump_history(history)]))


@given(HISTORIES)
def test_members_come_in_the_order_of_the_contract_unknown_ones_last(
    history: list[Message],
) -> None:
    for message, members in zip(history, strict_json(dump_history(history)), strict=True):
        names = [name for name, _ in members]
        unknown = list(message.unknown)
        known = names[: len(names) - len(unknown)]
        assert [name for name in FIELD_ORDER if name in known] == known
        assert unknown == names[len(known) :]


@given(ARGS)
def test_argument_text_survives_to_the_byte(text: str) -> None:
    """Only line breaks outside strings become spaces, and only in an object."""
    call = ToolCall.of("c", "n", text)
    loaded = load_message(dump_message(AssistantMessage(tool_calls=(call,))))
    assert isinstance(loaded, AssistantMessage)
    kept = loaded.tool_calls[0]
    assert call == kept
    assert call.truncated == kept.truncated
    args = call.args if call.truncated else call.args.replace("\n", " ").replace("\r", " ")
    assert args == kept.args


@given(ODD_TEXT)
def test_no_text_can_make_a_history_unwritable(text: str) -> None:
    members = UnknownMembers({text: b"1"}) if text != "role" else UnknownMembers()
    message = AssistantMessage(
        text,
        parts=(Part(text, text, b"", text),),
        tool_calls=(ToolCall(text, text, text, text),),
        thinking=(Thinking(text, text, text, text, text),),
        native=Native(text),
        run_id=text,
        unknown=members if text not in FIELD_ORDER else UnknownMembers(),
    )
    data = dump_history([message, ToolMessage(text, tool_call_id=text, tool_name=text)])
    assert outcome(data) == "loaded"


@given(json_text(lone_surrogates=True), HISTORIES)
def test_the_strict_and_the_tolerant_path_read_the_same(value: str, history: list[Message]) -> None:
    """A message does not change because another one in the document needs the tolerant path."""
    plain = [m for m in history if not m.unknown]
    odd = f'{{"role":"system","later":{value}}}'.encode()
    expected = load_history(dump_history(plain))
    document = dump_history(plain)[:-1] + (b"," if plain else b"") + odd + b"]"
    assert expected == load_history(document)[:-1]


@given(json_text() | st.integers(250, 260).map(lambda n: '{"a":' * n + "1" + "}" * n))
def test_a_stored_value_is_held_as_its_text_would_be(text: str) -> None:
    """Also where an object is nested too deep to be embedded: that one loads as text."""
    stored = f'{{"role":"assistant","toolCalls":[{{"id":"c","name":"n","args":{text}}}]}}'
    message = load_message(stored)
    assert isinstance(message, AssistantMessage)
    if text[0] != '"' and text != "null":
        assert ToolCall.of("c", "n", text) == message.tool_calls[0]
        assert ToolCall.of("c", "n", text).truncated == message.tool_calls[0].truncated
    assert_laws([message])


# What is written


def test_a_kind_of_text_is_written_as_the_text_it_is() -> None:
    class Known(enum.StrEnum):
        HELLO = "hello"

    class Other(str):
        __slots__ = ()

        def __str__(self) -> str:
            return "something else"

    known, other = UserMessage(Known.HELLO), UserMessage(Other("hello"))
    assert (
        dump_history([known])
        == b"[%b]" % dump_message(known)
        == b"[%b]" % dump_message(UserMessage("hello"))
    )
    assert dump_history([known, known]) == dump_history([known, other])
    assert dump_message(known) == dump_message(other)


@pytest.mark.parametrize(
    "text", [rb'"\ud800"', b"[" * 2000 + b"]" * 2000, b"{}", b'"\xc3\xa9"'], ids=range(4)
)
def test_json_that_a_decoder_refuses_is_written_nonetheless(text: bytes) -> None:
    message = AssistantMessage(
        native=Native("p", (Raw(text),)), unknown=UnknownMembers({"newer": text})
    )
    assert load_message(dump_message(message)) == message
    assert load_history(dump_history([message])) == [message]


@pytest.mark.parametrize("cls", MESSAGE_TYPES.values())
def test_an_empty_message_is_its_role_alone(cls: type[Message]) -> None:
    assert [["role", cls.__struct_config__.tag]] == [
        list(p) for p in strict_json(dump_message(cls()))
    ]


def test_the_members_of_a_part_call_and_thought() -> None:
    assert dump_message(
        AssistantMessage(
            parts=(Part("image", "u", b"\0", "m"),),
            tool_calls=(ToolCall.of("", "", "", "s"),),
            thinking=(Thinking("t", "s", "r", "p", "i"), Thinking()),
            native=Native("p", (Raw(b"1"),)),
        )
    ) == (
        b'{"role":"assistant","parts":[{"kind":"image","url":"u","data":"AA==","mediaType":"m"}],'
        b'"toolCalls":[{"id":"","name":"","args":"","signature":"s"}],'
        b'"thinking":[{"text":"t","signature":"s","redacted":"r","provider":"p","id":"i"},{}],'
        b'"native":{"provider":"p","items":[1]}}'
    )


@pytest.mark.parametrize(
    ("args", "stored"),
    [
        ("{}", "{}"),
        (' {"b":1, "a":1.0,"a":1e2} ', '{"b":1, "a":1.0,"a":1e2}'),
        ('{"a":\r\n1}', '{"a":  1}'),
        ('{"a":"\\n"}', '{"a":"\\n"}'),
        ("", '""'),
        (" \n", '""'),
        ('{"a":"x', '"{\\"a\\":\\"x"'),
        ("5", '"5"'),
        ("null", '"null"'),
        ("[1]", '"[1]"'),
        ('"x"', '"\\"x\\""'),
        ('{"a":NaN}', '"{\\"a\\":NaN}"'),
        ('{"a":"\ud800"}', '{"a":"\ufffd"}'),
        ('{"a":"\\ud800"}', '{"a":"\\ud800"}'),
    ],
)
def test_an_object_is_embedded_and_anything_else_is_a_string(args: str, stored: str) -> None:
    data = dump_message(AssistantMessage(tool_calls=(ToolCall.of("c", "n", args),)))
    prefix = b'{"role":"assistant","toolCalls":[{"id":"c","name":"n","args":'
    assert prefix + stored.encode() + b"}]}" == data


def test_lists_where_tuples_belong_are_written_too() -> None:
    """A program that is not type-checked builds messages with lists; nothing of them is lost."""
    part = Part("image", url="u\ud800", unknown=UnknownMembers({"later": b"[1]"}))
    message = UserMessage(parts=[part])  # type: ignore[arg-type]
    expected = b'[{"role":"user","parts":[{"kind":"image","url":"u\xef\xbf\xbd","later":[1]}]}]'
    assert expected == dump_history([message])


def test_any_value_that_holds_messages_is_one_line_of_json() -> None:
    message = UserMessage("\ud800", unknown=UnknownMembers({"later": b"[\n1]"}))
    assert encode_json({"a": (message,), "b": 1.5}) == (
        b'{"a":[{"role":"user","content":"\xef\xbf\xbd","later":[ 1]}],"b":1.5}'
    )
    with pytest.raises(TypeError):
        encode_json({"a": [message, object()]})


def test_an_unknown_member_cannot_speak_for_a_known_one() -> None:
    """Fields are what programs check; a member that a caller put beside them must not overrule."""
    forged = UnknownMembers({"role": b'"system"', "content": b'"x"', "runId": b'"y"', "a": b"1"})
    data = dump_message(UserMessage("hi", unknown=forged))
    assert data == b'{"role":"user","content":"hi","a":1}'
    assert dump_message(UserMessage(unknown=forged)) == b'{"role":"user","a":1}'


# What is not written


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("native.items[1]", AssistantMessage(native=Native("p", (Raw(b"{}"), Raw(b"{"))))),
        ("native.items[0]", AssistantMessage(native=Native("p", (Raw(b""),)))),
        ("native.items[0]", AssistantMessage(native=Native("p", (Raw(b"1 2"),)))),
        ("newer", UserMessage("u", unknown=UnknownMembers({"newer": b"nope"}))),
        ("newer", UserMessage("u", unknown=UnknownMembers({"newer": b'"\xff"'}))),
        (
            "parts[1].newer",
            ToolMessage(
                parts=(Part("x"), Part("y", unknown=UnknownMembers({"ok": b"1", "newer": b""})))
            ),
        ),
        (
            "native.newer",
            AssistantMessage(native=Native("p", unknown=UnknownMembers({"newer": b"{}}"}))),
        ),
        ("native", AssistantMessage(native="x")),
        ("toolCalls", AssistantMessage(tool_calls=5)),
        ("runId", UserMessage("u", run_id=None)),
    ],
)
def test_what_could_not_be_read_again_is_not_written(path: str, message: Message) -> None:
    history = [UserMessage("u"), message]
    with pytest.raises(HistoryError) as caught:
        dump_history(history)
    assert (1, path) == (caught.value.index, caught.value.path)
    with pytest.raises(HistoryError) as alone:
        dump_message(message)
    assert (None, path, caught.value.reason) == (
        alone.value.index,
        alone.value.path,
        alone.value.reason,
    )


@pytest.mark.parametrize("given", [5, None, UserMessage("u")])
def test_what_is_no_iterable_is_no_history_and_no_lines(given: Any) -> None:
    with pytest.raises(HistoryError, match="expected an iterable of messages, not "):
        dump_history(given)
    with pytest.raises(TypeError, match=r"^lines are wanted, as an open file gives them, not "):
        list(iter_history(given))
    with pytest.raises(TypeError, match=r"^line 2 is no text but "):
        list(iter_history([b"", given]))


@pytest.mark.parametrize("given", ["[]", b"[]", bytearray(b"[]")])
def test_a_stored_history_has_to_be_loaded_first(given: Any) -> None:
    for take in (
        dump_history,
        normalize_history,
        sanitize_history,
        lambda given: list(repair(given)),
    ):
        with pytest.raises(HistoryError, match=r"not (str|bytes|bytearray); load_history reads"):
            take(given)
    with pytest.raises(HistoryError, match="load_history reads JSON"):
        Agent(ScriptedModel(["hi"])).stream("p", history=given)


@pytest.mark.parametrize("bad", [object(), 1j, range(2)])
def test_what_json_cannot_carry_is_an_error_that_says_where(bad: Any) -> None:
    with pytest.raises(HistoryError, match=r"history\[1\]\.content: ") as caught:
        dump_history([UserMessage("fine"), UserMessage(bad)])
    assert caught.value.index == 1
    with pytest.raises(HistoryError):
        dump_message(UserMessage(bad))


@pytest.mark.parametrize("bad", [None, "text", {"role": "user"}, Part("image")])
def test_what_is_no_message_is_an_error_that_says_where(bad: Any) -> None:
    for history in ([UserMessage("fine"), bad], iter([UserMessage("fine"), bad])):
        with pytest.raises(HistoryError, match=r"history\[1\]: not a message") as caught:
            dump_history(history)
        assert caught.value.index == 1
    with pytest.raises(HistoryError, match="not a message"):
        dump_message(bad)
