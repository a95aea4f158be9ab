"""Reading messages: places of mistakes, every spelling of a member, and lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from golem import (
    AssistantMessage,
    HistoryError,
    Message,
    Native,
    Part,
    Thinking,
    ToolCall,
    UnknownMembers,
    UserMessage,
    dump_history,
    dump_message,
    iter_history,
    load_history,
    load_message,
)
from golem.messages import MESSAGE_TYPES
from tests.stored import DOCUMENT, FULL, PLAIN, assert_laws, outcome

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


# What is read


@pytest.mark.parametrize("given", [5, None, [UserMessage("u")]])
def test_what_is_neither_bytes_nor_text_is_no_document(given: Any) -> None:
    for load in (load_history, load_message):
        with pytest.raises(TypeError, match=r"^JSON is wanted, as bytes or text, not "):
            load(given)


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


# Arguments and inline data


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
