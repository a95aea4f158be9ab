"""Reading and writing stored messages: the laws, the executable cases, the hostile documents."""

from __future__ import annotations

import enum
import json
import sys
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import msgspec
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
    SystemMessage,
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
    rawjson,
    repair,
    sanitize_history,
)
from golem.codec import encode_json
from golem.messages import MESSAGE_TYPES
from golem.rawjson import MAX_DEPTH
from golem.testing import ScriptedModel
from tests import cases
from tests.cases import Case
from tests.strategies import ARGS, HISTORIES, MESSAGES, ODD_TEXT, json_text

FIELD_ORDER = (
    *("role", "content", "parts", "toolCalls", "toolCallId", "toolName", "failed", "thinking"),
    *("native", "runId", "conversationId", "seal"),
)
STRUCTS: dict[str, tuple[type[Any], str]] = {
    **{role: (cls, f'{{"role":"{role}",%s}}') for role, cls in MESSAGE_TYPES.items()},
    "part": (Part, '{"role":"user","parts":[{"kind":"image",%s}]}'),
    "call": (ToolCall, '{"role":"assistant","toolCalls":[{"id":"c","name":"n","args":{},%s}]}'),
    "thinking": (Thinking, '{"role":"assistant","thinking":[{%s}]}'),
    "native": (Native, '{"role":"assistant","native":{"provider":"p",%s}}'),
}
"""Every stored struct, with a document in which a further member of it can be put."""

MEMBERS = [
    (name, field.encode_name)
    for name, (cls, _) in STRUCTS.items()
    for field in msgspec.structs.fields(cls)
    if field.name != "unknown"
]

FULL = [
    SystemMessage("be brief", run_id="r", conversation_id="c", seal="s"),
    UserMessage(
        "look \U0001f600",
        parts=(Part.image_url("https://e.example/a.png"), Part.document(b"\x00\x01", "text/plain")),
        unknown=UnknownMembers({"later": b'{"a":[1.0,"\\u00e9"]}'}),
    ),
    AssistantMessage(
        "I'll look",
        parts=(Part.audio(b"abc", "audio/wav"),),
        tool_calls=(
            ToolCall.of("c1", "look", '{"b": 1,\t"a":2}', "sig"),
            ToolCall.of("c2", "look", '{"cut":'),
        ),
        thinking=(Thinking("hm", "sig", provider="p", id="i"), Thinking(redacted="xx")),
        native=Native("p", (Raw(b'{"type": "x"}'), Raw(b"null"))),
    ),
    ToolMessage("seen", tool_call_id="c1", tool_name="look", failed=True),
]
DOCUMENT = dump_history(FULL)
PLAIN = dump_history([msgspec.structs.replace(FULL[1], unknown=UnknownMembers()), *FULL[2:]])


def refuse(token: str) -> NoReturn:
    raise AssertionError(f"not strict JSON: {token}")


def strict_json(data: bytes) -> Any:
    """The value with members in order and numbers as spelled; fails on NaN and infinities."""
    return json.loads(
        data.decode(),
        object_pairs_hook=list,
        parse_int=lambda text: ("number", text),
        parse_float=lambda text: ("number", text),
        parse_constant=refuse,
    )


def assert_json(data: bytes) -> None:
    try:
        strict_json(data)
    except RecursionError:
        rawjson.children(data)  # which is held against the standard library in its own tests


def assert_laws(messages: list[Message]) -> None:
    """What holds for everything `load_history` returns."""
    data = dump_history(messages)
    again = load_history(data)
    assert messages == again
    assert data == dump_history(again)
    assert [hash(message) for message in messages] == [hash(message) for message in again]
    assert_json(data)
    assert b"\n" not in data
    assert b"\r" not in data


def outcome(document: bytes | str) -> str:
    """`loaded` (and the laws hold) or the text of the HistoryError; anything else is a failure."""
    try:
        messages = load_history(document)
    except HistoryError as error:
        return said_with_its_place(error)
    assert_laws(messages)
    return "loaded"


def said_with_its_place(error: HistoryError) -> str:
    place = "history" if error.index is None else f"history[{error.index}]"
    assert str(error) == f"{place}{'.' * bool(error.path)}{error.path}: {error.reason}"
    return str(error)


# The laws


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


@pytest.mark.parametrize(
    "text", [rb'"\ud800"', b"[" * 2000 + b"]" * 2000, b"{}", b'"\xc3\xa9"'], ids=range(4)
)
def test_json_that_a_decoder_refuses_is_written_nonetheless(text: bytes) -> None:
    message = AssistantMessage(
        native=Native("p", (Raw(text),)), unknown=UnknownMembers({"newer": text})
    )
    assert load_message(dump_message(message)) == message
    assert load_history(dump_history([message])) == [message]


@pytest.mark.parametrize("given", [5, None, UserMessage("u")])
def test_what_is_no_iterable_is_no_history_and_no_lines(given: Any) -> None:
    with pytest.raises(HistoryError, match="expected an iterable of messages, not "):
        dump_history(given)
    with pytest.raises(TypeError, match=r"^lines are wanted, as an open file gives them, not "):
        list(iter_history(given))
    with pytest.raises(TypeError, match=r"^line 2 is no text but "):
        list(iter_history([b"", given]))


@pytest.mark.parametrize("given", [5, None, [UserMessage("u")]])
def test_what_is_neither_bytes_nor_text_is_no_document(given: Any) -> None:
    for load in (load_history, load_message):
        with pytest.raises(TypeError, match=r"^JSON is wanted, as bytes or text, not "):
            load(given)


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


# What is written


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


@pytest.mark.parametrize(
    ("stored", "args"),
    [
        ("5", "5"),
        ("-1.50e+3", "-1.50e+3"),
        ("true", "true"),
        ("null", ""),
        ("[1,\n2]", "[1,\n2]"),
        ('"x"', "x"),
        ('""', ""),
        ('"{\\"a\\":1}"', '{"a":1}'),
        ('"\\ud83d\\ude00 \\ud83d"', "\U0001f600 \ufffd"),
        ('{ "a" : [ ] }', '{ "a" : [ ] }'),
    ],
)
def test_every_stored_spelling_of_arguments_is_read(stored: str, args: str) -> None:
    document = f'[{{"role":"assistant","toolCalls":[{{"id":"c","name":"n","args": {stored} }}]}}]'
    message = load_history(document)[0]
    assert isinstance(message, AssistantMessage)
    assert args == message.tool_calls[0].args
    assert_laws([message])


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


@pytest.mark.parametrize("absent", ["id", "name", "args"])
@pytest.mark.parametrize("null", [True, False])
def test_a_call_without_id_name_or_arguments_has_empty_ones(absent: str, null: bool) -> None:
    members = {"id": "c", "name": "n", "args": {}}
    members = (
        {**members, absent: None} if null else {k: v for k, v in members.items() if k != absent}
    )
    message = load_message(json.dumps({"role": "assistant", "toolCalls": [members]}))
    assert isinstance(message, AssistantMessage)
    call = message.tool_calls[0]
    assert {"id": call.id, "name": call.name, "args": call.args}[absent] == ""


@pytest.mark.parametrize(
    ("stored", "data"),
    [
        ("AQID", b"\1\2\3"),
        ("AQ\\nID", b"\1\2\3"),
        ("AQ\\r\\nID\\n", b"\1\2\3"),
        ("AQ==", b"\1"),
        ("A\\u0051==", b"\1"),
        ("", b""),
        ("+/+/", b"\xfb\xff\xbf"),
    ],
)
def test_inline_data_is_standard_base64(stored: str, data: bytes) -> None:
    message = load_message(f'{{"role":"user","parts":[{{"kind":"image","data":"{stored}"}}]}}')
    assert UserMessage(parts=(Part("image", data=data),)) == message


@pytest.mark.parametrize(
    "bad", ["***", "_-8=", "AQ", "AQI", "A", "AQ=D", "=", "AQ= =", "\\u00e9AAA"]
)
def test_anything_else_is_an_error_with_its_path(bad: str) -> None:
    document = f'[{{"role":"user","parts":[{{"kind":"image","data":"{bad}"}}]}}]'
    assert outcome(document) == "history[0].parts[0].data: not standard base64"


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


# What is read


def test_an_unknown_or_missing_role_names_the_place() -> None:
    good = b'{"role":"user"}'
    for bad, reason in (
        (b'{"role":"developer","content":"x"}', 'history[3]: unknown role "developer"'),
        (b'{"content":"x"}', "history[3]: missing role"),
        (b"{}", "history[3]: missing role"),
        (b'{"role":""}', 'history[3]: unknown role ""'),
        (b'{"role":"User"}', 'history[3]: unknown role "User"'),
        (b'{"role":null}', "history[3].role: expected a string, not null"),
        (b'{"role":["user"]}', "history[3].role: expected a string, not an array"),
        (b'{"role":1}', "history[3].role: expected a string, not a scalar"),
        (b"null", "history[3]: expected an object, not null"),
        (b"[]", "history[3]: expected an object, not an array"),
        (b'"user"', "history[3]: expected an object, not a string"),
        (
            b'{"role":"user","later":1,"content":5}',
            "history[3].content: expected a string, not a scalar",
        ),
    ):
        assert reason == outcome(b"[%b]" % b",".join([good, good, good, bad, good]))


def test_an_error_of_one_message_has_no_index() -> None:
    with pytest.raises(HistoryError, match=r'^history: unknown role "developer"$') as caught:
        load_message(b'{"role":"developer"}')
    assert caught.value.index is None


def test_a_very_long_role_makes_no_very_long_error() -> None:
    assert len(outcome(json.dumps([{"role": "x" * 1_000_000}]))) < 300


def test_a_history_of_null_is_empty() -> None:
    """The Go library writes a slice that was never filled so; it stands for no messages."""
    assert load_history(b"null") == load_history(" null\n") == []


@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_null_is_the_default_and_an_error_where_there_is_none(name: str, member: str) -> None:
    cls, document = STRUCTS[name]
    field = next(f for f in msgspec.structs.fields(cls) if f.encode_name == member)
    if field.required and cls is not ToolCall:
        assert outcome(f"[{document}]" % f'"{member}":null').endswith(f": missing {member}")
        return
    with_null = load_message(document % f'"{member}":null')
    without = load_message((document % "").replace(",}", "}"))
    if field.required:  # of a call: the null came last and counts
        assert isinstance(with_null, AssistantMessage)
        assert getattr(with_null.tool_calls[0], {"raw": "args"}.get(field.name, field.name)) == ""
    else:
        assert without == with_null


@pytest.mark.parametrize("value", ["null", "true", "5", "1.5", '"x"', "[]", "{}", "[1]", "[null]"])
@pytest.mark.parametrize(("name", "member"), MEMBERS)
def test_a_member_of_the_wrong_type_is_an_error_with_its_path(
    name: str, member: str, value: str
) -> None:
    document = STRUCTS[name][1] % f'"{member}":{value}'
    said = outcome(f'[{{"role":"user"}},{document}]')
    assert said == "loaded" or (said.startswith("history[1].") and member in said)


def test_the_last_of_several_members_of_one_name_counts() -> None:
    for document in (
        '{"role":"user","content":"x","content":"y"}',
        '{"content":"x","role":"tool","toolCallId":"c","role":"user","content":"y"}',
    ):
        message = load_message(document)
        assert isinstance(message, UserMessage)
        assert message.content == "y"
    message = load_message('{"role":"user","later":1,"later":[2]}')
    assert UnknownMembers({"later": b"[2]"}) == message.unknown


def test_member_names_may_be_spelled_with_escapes() -> None:
    message = load_message(r'{"rol\u0065":"us\u0065r","cont\u0065nt":"x","l\u0061ter":1}')
    assert UserMessage("x", unknown=UnknownMembers({"later": b"1"})) == message


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview, lambda data: data.decode()])
def test_a_document_may_be_bytes_in_any_holder_or_text(kind: Callable[[bytes], Any]) -> None:
    assert load_history(kind(DOCUMENT)) == FULL
    assert FULL[2:] == load_history(kind(dump_history(FULL[2:])))
    assert FULL[1] == load_message(kind(dump_message(FULL[1])))


def test_messages_do_not_change_with_the_buffer_they_were_read_from() -> None:
    buffer = bytearray(PLAIN)
    message = bytearray(dump_message(FULL[2]))
    loaded, alone = load_history(buffer), load_message(message)
    buffer[:] = b"x" * len(buffer)
    message.clear()
    assert load_history(PLAIN) == loaded
    assert FULL[2] == alone


@pytest.mark.parametrize(
    "escaped",
    [
        '[{"role":"user","content":"%s"}]',
        '[{"role":"user","%s":1}]',
        '[{"role":"user","later":["%s"]}]',
        '[{"role":"user","later":{"%s":1}}]',
        '[{"role":"user","parts":[{"kind":"%s"}]}]',
        '[{"role":"user","parts":[{"kind":"image","%s":1}]}]',
        '[{"role":"tool","toolCallId":"%s"}]',
        '[{"role":"assistant","toolCalls":[{"id":"%s","name":"n","args":{}}]}]',
        '[{"role":"assistant","toolCalls":[{"id":"","name":"n","args":{"%s":"%s"}}]}]',
        '[{"role":"assistant","toolCalls":[{"id":"","name":"n","args":"%s"}]}]',
        '[{"role":"assistant","toolCalls":[{"id":"","name":"n","args":["%s"]}]}]',
        '[{"role":"assistant","thinking":[{"text":"%s"}]}]',
        '[{"role":"assistant","native":{"provider":"p","items":[{"%s":"%s"}]}}]',
        '[{"role":"user"},{"role":"user","runId":"%s"},{"role":"user"}]',
    ],
)
@pytest.mark.parametrize("half", [r"\ud800", r"\uDFFF", "\ud83d", r"a\ude00\ud83d", r"\\\ud800"])
def test_a_lone_surrogate_anywhere_never_kills_a_conversation(escaped: str, half: str) -> None:
    document = escaped.replace("%s", half)
    assert outcome(document) == "loaded"
    assert outcome(document.encode("utf-8", "surrogatepass")) == "loaded"


def test_surrogate_halves_side_by_side_are_the_character() -> None:
    for content in (r"\ud83d\ude00", "\ud83d\ude00"):
        document = f'{{"role":"user","content":"{content}"}}'
        assert UserMessage("\U0001f600") == load_message(document)
        assert UserMessage("\U0001f600") == load_message(document.encode("utf-8", "surrogatepass"))


# JSON Lines


def test_blank_lines_are_skipped_and_a_line_may_hold_several_messages() -> None:
    lines = [b"\n", DOCUMENT + b"\r\n", b"  \n", b"[]", dump_message(FULL[0])]
    assert [*FULL, FULL[0]] == list(iter_history(lines))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b'{"role":"user"', "history[5]: not valid JSON at byte 14 (line 4)"),
        (b'{"role":"x"}', 'history[5]: unknown role "x" (line 4)'),
        (b'[{"role":"user"},{"role":"x"}]', 'history[6]: unknown role "x" (line 4)'),
        (
            b'{"role":"user","content":1}',
            "history[5].content: expected a string, not a scalar (line 4)",
        ),
        (b"\xff", "history[5]: not UTF-8 at byte 0 (line 4)"),
    ],
)
def test_a_bad_line_is_named_after_the_good_ones_were_given_out(bad: bytes, said: str) -> None:
    """A process that was killed while it wrote leaves a cut last line behind."""
    given: list[Message] = []
    with pytest.raises(HistoryError) as caught:
        given.extend(iter_history([DOCUMENT, b"", dump_message(FULL[0]), bad]))
    for message in iter_history([DOCUMENT, dump_message(FULL[0])]):
        given.append(message)
    assert said == str(caught.value)


def test_lines_are_read_one_at_a_time() -> None:
    read: list[int] = []

    def source() -> Iterator[bytes]:
        for index, message in enumerate(FULL):
            read.append(index)
            yield dump_message(message)

    assert [len(read) for _ in iter_history(source())] == [1, 2, 3, 4]


@pytest.mark.parametrize("whole", [DOCUMENT, DOCUMENT.decode(), bytearray(DOCUMENT)])
def test_one_text_instead_of_lines_is_a_type_error(whole: Any) -> None:
    with pytest.raises(TypeError, match="lines"):
        list(iter_history(whole))


# Hostile documents


@pytest.mark.parametrize("document", [DOCUMENT, PLAIN])
def test_every_cut_of_a_document_is_a_history_error(document: bytes) -> None:
    for cut in range(len(document)):
        assert outcome(document[:cut]).startswith("history: not ")
    assert outcome(document) == "loaded"


@pytest.mark.parametrize("document", [DOCUMENT, PLAIN])
@pytest.mark.parametrize("byte", b'\x00\x1f"\\{}[],:5nu\xff\xed\xc3 ')
def test_every_damaged_byte_is_read_or_refused_with_a_place(document: bytes, byte: int) -> None:
    for place in range(len(document)):
        damaged = bytearray(document)
        damaged[place] = byte
        outcome(bytes(damaged))


@given(st.binary(max_size=30) | json_text(lone_surrogates=True).map(str.encode))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    outcome(data)
    outcome(b'[{"role":"user","later":' + data + b"}]")
    outcome(b'[{"role":"assistant","toolCalls":[{"id":"","name":"","args":' + data + b"}]}]")
    outcome(b'[{"role":"assistant","native":{"provider":"","items":[' + data + b"]}}]")


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (b"", "history: not valid JSON at byte 0"),
        (b" \n", "history: not valid JSON at byte 0"),
        (b"nul", "history: not valid JSON at byte 0"),
        (b"5", "history: expected an array, not a scalar"),
        (b'"[]"', "history: expected an array, not a string"),
        (b"{}", "history: expected an array, not an object"),
        (b'{"role":"user"}', "history: expected an array, not an object"),
        (b"NaN", "history: not valid JSON at byte 0"),
        (b"[] []", "history: not valid JSON at byte 2: text after the value"),
        (b"[]\x00", "history: not valid JSON at byte 2: text after the value"),
        (b"\xef\xbb\xbf[]", "history: not valid JSON at byte 0"),
        ("[]".encode("utf-16"), "history: not UTF-8 at byte 0"),
        ('["é"]'.encode("latin-1"), "history: not UTF-8 at byte 2"),
        (b'[{"role":"user",}]', "history: not valid JSON at byte 16"),
    ],
)
def test_what_is_no_history_says_why(document: bytes, said: str) -> None:
    assert said == outcome(document)


VALUES = {
    "deep arrays": "[" * 20_000 + "]" * 20_000,
    "deep objects": '{"a":' * 10_000 + "1" + "}" * 10_000,
    "deep and cut": "[" * 100_000,
    "a bit deep": "[" * 1_100 + "]" * 1_100,
    "long number": "9" * 200_000,
    "huge number": "1e99999",
    "long text": f'"{"x" * 1_000_000}"',
    "long odd text": '"' + "\\ud800" * 50_000 + '"',
    "many members": "{" + ",".join(f'"{i}":{i}' for i in range(5_000)) + "}",
    "one member often": "{" + ",".join(['"a":1'] * 5_000) + "}",
    "many items": f"[{'1,' * 20_000}1]",
}


@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
@pytest.mark.parametrize(
    "document",
    [
        "%s",
        "[%s]",
        '[{"role":%s}]',
        '[{"role":"user","content":%s}]',
        '[{"role":"user","later":%s}]',
        '[{"role":"user","parts":%s}]',
        '[{"role":"user","parts":[{"kind":"x","later":%s}]}]',
        '[{"role":"user","parts":[{"kind":"x","data":%s}]}]',
        '[{"role":"tool","toolCallId":%s}]',
        '[{"role":"assistant","toolCalls":[{"id":%s,"name":"","args":{}}]}]',
        '[{"role":"assistant","toolCalls":[{"id":"","name":"","args":%s}]}]',
        '[{"role":"assistant","toolCalls":[{"id":"","name":"","args":{"a":%s}}]}]',
        '[{"role":"assistant","native":{"provider":"","items":[%s]}}]',
        '[{"role":"assistant","native":%s}]',
    ],
)
def test_monsters_are_read_or_refused(document: str, value: str) -> None:
    said = outcome(document.replace("%s", value))
    assert len(said) < 500


def under(frames: int, work: Callable[[], Any]) -> Any:
    return work() if frames <= 0 else under(frames - 1, work)


def frames_left() -> int:
    frame, used = sys._getframe(), 0
    while frame := frame.f_back:  # type: ignore[assignment]
        used += 1
    return sys.getrecursionlimit() - used


@pytest.mark.parametrize("depth", [1, 50, 100, MAX_DEPTH - 2, MAX_DEPTH, 5_000])
@pytest.mark.parametrize(
    "document",
    [
        '[{"role":"user","later":%s}]',
        '[{"role":"assistant","toolCalls":[{"id":"","name":"","args":{"a":%s}}]}]',
        '[{"role":"assistant","native":{"provider":"","items":[%s]}}]',
        '[{"role":"tool"},{"role":"user","content":%s}]',
    ],
)
def test_what_is_read_does_not_depend_on_the_stack(document: str, depth: int) -> None:
    """Fifty frames are enough, however the document is nested."""
    text = document.replace("%s", "[" * depth + "]" * depth)

    def read() -> list[Message] | str:
        try:
            return load_history(text)
        except HistoryError as error:
            return str(error)

    expected = read()
    for room in (600, 200, 50):
        assert expected == under(frames_left() - room, read)


def test_the_tolerant_path_is_linear() -> None:
    def document(n: int) -> bytes:
        message = b'{"role":"user","content":"\\ud800","later":{"a":[1,{"b":"x"}]},"parts":null}'
        return b"[" + b",".join([message] * n) + b"]"

    def steps(data: bytes) -> int:
        count = 0

        def profile(*_: object) -> None:
            nonlocal count
            count += 1

        sys.setprofile(profile)
        try:
            load_history(data)
        finally:
            sys.setprofile(None)
        return count

    assert steps(document(1_000)) < 12 * steps(document(100))


# The executable cases


@pytest.mark.parametrize("case", cases.vectors("json_roundtrip"), ids=cases.name_of)
def test_round_trip_vector(case: Case) -> None:
    """Values compare, not bytes: the Go encoder escapes and compacts what we keep as it is."""
    expected = case["expected"]
    assert {"json", "fixedPoint", "decoded", "error"} >= expected.keys()
    document = case["input"]["json"]
    if "error" in expected:
        with pytest.raises(HistoryError):
            load_history(document)
        return
    history = load_history(document)
    data = dump_history(history)
    assert strict_json(expected["json"].encode()) == strict_json(data)
    assert expected["fixedPoint"] == (data == dump_history(load_history(data)))
    assert _values(cases.messages(expected["decoded"])) == _values(history)


def _values(history: list[Message]) -> list[Any]:
    """Messages as values, arguments decoded, so that only their meaning is compared."""
    values: list[Any] = json.loads(dump_history(history))
    return values


ENCODED: list[Case] = [
    *cases.vectors("json_encode"),
    {
        "name": "golem/what-the-go-library-cannot-write",
        "input": {
            "messages": [
                {"role": "user", "content": "go"},
                {"role": "assistant", "toolCalls": [{"id": "c", "name": "n", "argsRaw": '{"a":'}]},
                {"role": "tool", "toolCallId": "c", "toolName": "n", "failed": True},
            ]
        },
        "expected": {
            "json": '[{"role":"user","content":"go"},{"role":"assistant","toolCalls":[{"id":"c",'
            '"name":"n","args":"{\\"a\\":"}]},{"role":"tool","toolCallId":"c","toolName":"n",'
            '"failed":true}]'
        },
    },
]


@pytest.mark.parametrize("case", ENCODED, ids=cases.name_of)
def test_encode_vector(case: Case) -> None:
    """What the Go library writes, we write; what it cannot (a call cut off), we can (FIX)."""
    expected = case["expected"]
    assert {"json", "error"} >= expected.keys()
    history = cases.messages(case["input"]["messages"])
    if "error" in expected:
        assert any(c.truncated for m in history for c in getattr(m, "tool_calls", ()))
        assert_laws(history)
        return
    assert strict_json(expected["json"].encode()) == strict_json(dump_history(history))


@pytest.mark.parametrize("case", cases.field_reports("json"), ids=cases.name_of)
def test_field_report(case: Case) -> None:
    """A stored conversation that could not be written or read again can be."""
    history = cases.messages(case["messages"])
    data = dump_history(history)
    for name, wanted in case["expect"].items():
        assert wanted
        CHECKS[name](history, data)  # an unknown expectation is an error


def _equal(history: list[Message], data: bytes) -> None:
    assert history == load_history(data)


def _stable(history: list[Message], data: bytes) -> None:
    once = load_history(data)
    assert once == load_history(dump_history(once))
    assert data == dump_history(once)


def _utf_8(history: list[Message], data: bytes) -> None:
    assert data == data.decode().encode()


def _no_control(history: list[Message], data: bytes) -> None:
    assert all(byte >= 0x20 for byte in data)


def _strict(history: list[Message], data: bytes) -> None:
    strict_json(data)


def _nothing(history: list[Message], data: bytes) -> None:
    """Reaching this is the check."""


CHECKS: dict[str, Callable[[list[Message], bytes], None]] = {
    "roundTripEqual": _equal,
    "roundTripStable": _stable,
    "encodesUtf8": _utf_8,
    "noRawControl": _no_control,
    "strictJson": _strict,
    "orError": _nothing,  # allows more than we need
    "noException": _nothing,
    "loads": _equal,
    "unknownFieldsIgnoredOrKept": _equal,
}
