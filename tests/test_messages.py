"""The message structs themselves: values that are frozen, compared, hashed, copied and checked."""

from __future__ import annotations

import copy
import pickle
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from msgspec import Raw

from golem import (
    AssistantMessage,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
    dump_message,
    load_message,
)
from golem.messages import MESSAGE_TYPES, NO_MEMBERS, PART_KINDS
from golem.rawjson import MAX_DEPTH
from tests import cases
from tests.cases import Case
from tests.strategies import ARGS, MESSAGES

STRUCTS = (*MESSAGE_TYPES.values(), Part, ToolCall, Thinking, Native)


# Values


@given(MESSAGES)
def test_a_message_survives_pickling_and_copying(message: Message) -> None:
    for made in (
        pickle.loads(pickle.dumps(message)),
        copy.copy(message),
        copy.deepcopy(message),
        msgspec.structs.replace(message),
    ):
        assert message == made
        assert hash(message) == hash(made)
        assert dump_message(message) == dump_message(made)
        assert type(message) is type(made)


def test_a_message_from_another_process_is_written_the_fast_way() -> None:
    """Nothing unknown is always the same object; the encoder knows it by that."""
    message = UserMessage("hi", parts=(Part.image_url("u"),))
    for made in (pickle.loads(pickle.dumps(message)), copy.deepcopy(message)):
        assert NO_MEMBERS is made.unknown
        assert NO_MEMBERS is made.parts[0].unknown
    assert UnknownMembers({"a": b"1"}) == pickle.loads(pickle.dumps(UnknownMembers({"a": b"1"})))


@given(MESSAGES, MESSAGES)
def test_messages_are_equal_exactly_when_they_are_stored_alike(one: Message, two: Message) -> None:
    assert (one == two) == (load_message(dump_message(one)) == load_message(dump_message(two)))
    if dump_message(one) == dump_message(two):
        assert one == two
        assert hash(one) == hash(two)


@pytest.mark.parametrize("cls", STRUCTS)
def test_what_is_stored_is_frozen(cls: type[Any]) -> None:
    required = [""] * (len(cls.__struct_fields__) - len(cls.__struct_defaults__))
    value = cls(*required) if cls in (Part, ToolCall, Thinking, Native) else cls()
    for name in (*cls.__struct_fields__, "anything"):
        with pytest.raises(AttributeError):
            setattr(value, name, None)


def test_messages_of_different_roles_are_not_equal() -> None:
    made = [cls("x") for cls in MESSAGE_TYPES.values()]
    assert len(set(made)) == 4


def test_a_message_tells_in_its_repr_what_is_not_default() -> None:
    assert repr(UserMessage("hi")) == "UserMessage(content='hi')"
    call = ToolCall.of("c", "n", '{"a":1}', "sig")
    assert repr(call) == """ToolCall.of('c', 'n', '{"a":1}', signature='sig')"""
    assert call == eval(repr(call), {"ToolCall": ToolCall})


def test_every_role_carries_identity_and_seal() -> None:
    for cls in MESSAGE_TYPES.values():
        message = cls(run_id="r", conversation_id="c", seal="s")
        assert message == load_message(dump_message(message))
        assert (message.run_id, message.conversation_id, message.seal) == ("r", "c", "s")


def test_unknown_members_are_an_immutable_mapping() -> None:
    given = {"a": b"1"}
    members = UnknownMembers(given)
    given["a"] = b"2"
    assert dict(members) == {"a": b"1"}
    assert UnknownMembers({"a": b"1"}) == members
    assert hash(UnknownMembers({"a": b"1"})) == hash(members)
    assert UnknownMembers({"a": b"1 "}) != members
    assert not UnknownMembers()
    for change in ("__setitem__", "__delitem__", "update", "pop"):
        assert not hasattr(members, change)
    with pytest.raises(AttributeError):
        members.more = 1  # type: ignore[attr-defined]


def test_members_are_equal_when_they_are_written_alike() -> None:
    """Line breaks between tokens are spaces once stored, so they make no difference before."""
    assert UnknownMembers({"a": b"[\n1]"}) == UnknownMembers({"a": b"[ 1]"})
    assert ToolCall.of("c", "n", '{"a":\n1}') == ToolCall.of("c", "n", '{"a": 1}')
    assert ToolCall.of("c", "n", '{"a":\n') != ToolCall.of("c", "n", '{"a": ')
    assert Native("p", (Raw(b"[\r1]"),)) == Native("p", (Raw(b"[ 1]"),))
    assert ToolCall.of("c", "n", "{}") != "c"


@pytest.mark.parametrize("text", [b'{"a":"\xff"}', b'{"a":1}\xc3', b"{}\xf0\x9f\x98", b'"\xff"'])
def test_the_raw_arguments_of_a_call_have_to_be_utf_8_to_the_end(text: bytes) -> None:
    with pytest.raises(UnicodeDecodeError):
        ToolCall("c", "n", Raw(text))


def test_native_items_have_to_be_utf_8() -> None:
    with pytest.raises(ValueError, match="UTF-8"):
        Native("p", (Raw(b'"\xff"'),))


# Arguments


@given(ARGS)
def test_argument_text_is_kept_but_for_blanks_around_an_object(text: str) -> None:
    call = ToolCall.of("c", "n", text)
    clean = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    blanks = " \t\n\r"
    assert call.args == (clean if call.truncated and clean.strip(blanks) else clean.strip(blanks))
    assert call == ToolCall.of("c", "n", call.args)


def test_white_space_of_other_alphabets_is_not_trimmed() -> None:
    """JSON knows four blanks; `str.strip` would also take U+001F and U+00A0."""
    for odd in ("\x1f", "\x0c", "\xa0", "\u2028", "\ufeff"):
        assert ToolCall.of("c", "n", odd + "{}").truncated


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("{}", {}),
        ('{"a":1,"a":2}', {"a": 2}),
        ('{"a":1.0,"b":[null,true,"x"]}', {"a": 1.0, "b": [None, True, "x"]}),
        ('{"a":"\\ud800","b":"\\ud83d\\ude00"}', {"a": "\ufffd", "b": "\U0001f600"}),
        ('{"a":12345678901234567890123}', {"a": 12345678901234567890123}),
    ],
)
def test_arguments_are_decoded(text: str, value: dict[str, Any]) -> None:
    assert value == ToolCall.of("c", "n", text).arguments()


def test_arguments_are_decoded_as_any_type() -> None:
    class Where(msgspec.Struct):
        city: str

    call = ToolCall.of("c", "n", '{"city":"Paris"}')
    assert Where("Paris") == call.arguments(Where)
    assert call.arguments(dict[str, str]) == {"city": "Paris"}
    with pytest.raises(ValueError, match=r"arguments of call 'c' \(n\): .*int"):
        call.arguments(dict[str, int])


@pytest.mark.parametrize("text", ["", "{", "5", "null", "[]", '"{}"', "{}{}", '{"a":NaN}'])
def test_arguments_that_are_no_object_are_an_error_that_names_the_call(text: str) -> None:
    call = ToolCall.of("c", "look", text)
    assert call.truncated
    with pytest.raises(ValueError, match=r"arguments of call 'c' \(look\) are not a JSON object"):
        call.arguments()


@pytest.mark.parametrize("text", ['{"a":1e999}', '{"a":%s}' % ("9" * 10_000)])
def test_a_number_python_cannot_hold_is_an_error_that_names_the_call(text: str) -> None:
    call = ToolCall.of("c", "n", text)
    assert not call.truncated
    with pytest.raises(ValueError, match="arguments of call 'c'"):
        call.arguments()


def test_decoding_arguments_never_ends_in_a_recursion_error() -> None:
    def under(frames: int, work: Callable[[], Any]) -> Any:
        return work() if frames <= 0 else under(frames - 1, work)

    frame, used = sys._getframe(), 0
    while frame := frame.f_back:  # type: ignore[assignment]
        used += 1
    call = ToolCall.of("c", "n", '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH)
    assert not call.truncated
    call.arguments()
    try:
        under(sys.getrecursionlimit() - used - 100, call.arguments)
    except ValueError as error:
        assert "arguments of call 'c'" in str(error)  # noqa: PT017 (either answer will do)


def test_arguments_are_replaced_by_text() -> None:
    call = ToolCall.of("c", "n", "{}")
    assert msgspec.structs.replace(call, raw=' {"a":1}').args == '{"a":1}'
    assert msgspec.structs.replace(call, raw="{").args == "{"
    renamed = msgspec.structs.replace(call, name="m")
    assert (renamed.name, renamed.args) == ("m", "{}")


@pytest.mark.parametrize("args", [{"a": 1}, None, b"{}", 5])
def test_arguments_that_are_no_text_are_a_type_error(args: Any) -> None:
    """Who has a dict has lost the model's own text; nothing is guessed."""
    with pytest.raises(TypeError, match="text"):
        ToolCall.of("c", "n", args)


# What a run may send


@pytest.mark.parametrize("case", cases.vectors("validate_part"), ids=cases.name_of)
def test_part_vector(case: Case) -> None:
    _validated(cases.part(case["input"]["part"]), case)


@pytest.mark.parametrize("case", cases.vectors("validate_thinking"), ids=cases.name_of)
def test_thinking_vector(case: Case) -> None:
    _validated(cases.thinking(case["input"]["thinking"]), case)


def _validated(value: Part | Thinking, case: Case) -> None:
    expected = case["expected"]
    assert {"valid", "error"} >= expected.keys()
    assert expected["valid"] != ("error" in expected)
    if expected["valid"]:
        value.validate()
    else:
        with pytest.raises(ValueError, match=r"\w"):
            value.validate()


MEDIA = "image/png"


@pytest.mark.parametrize(
    ("part", "valid"),
    [
        *((Part(kind, url="u"), True) for kind in sorted(PART_KINDS)),
        *((Part(kind, data=b"x", media_type=MEDIA), True) for kind in sorted(PART_KINDS)),
        (Part("image", url="u", media_type=MEDIA), True),
        (Part("image"), False),
        (Part("image", data=b"", media_type=MEDIA), False),
        (Part("image", data=b"x"), False),
        (Part("image", url="u", data=b"x", media_type=MEDIA), False),
        (Part("IMAGE", url="u"), False),
        (Part("", url="u"), False),
    ],
)
def test_a_part_is_a_known_kind_with_one_source(part: Part, valid: bool) -> None:
    if valid:
        part.validate()
    else:
        with pytest.raises(ValueError, match="part"):
            part.validate()


@pytest.mark.parametrize("kind", sorted(PART_KINDS))
def test_each_kind_of_part_has_its_constructors(kind: str) -> None:
    by_url, inline = getattr(Part, f"{kind}_url"), getattr(Part, kind)
    assert Part(kind, url="u") == by_url("u")
    assert Part(kind, url="u", media_type="m") == by_url("u", "m")
    assert Part(kind, data=b"x", media_type="m") == inline(b"x", "m")


@pytest.mark.parametrize(
    ("thinking", "valid"),
    [
        (Thinking("t"), True),
        (Thinking("t", "s"), True),
        (Thinking(redacted="r"), True),
        (Thinking(signature="s"), True),
        (Thinking(), False),
        (Thinking(provider="p", id="i"), False),
        (Thinking("t", redacted="r"), False),
        (Thinking(signature="s", redacted="r"), False),
    ],
)
def test_a_thought_is_text_or_redacted_or_a_signature_alone(
    thinking: Thinking, valid: bool
) -> None:
    if valid:
        thinking.validate()
    else:
        with pytest.raises(ValueError, match="thinking"):
            thinking.validate()


def test_the_roles_are_the_four_of_the_contract() -> None:
    assert {
        "system": SystemMessage,
        "user": UserMessage,
        "assistant": AssistantMessage,
        "tool": ToolMessage,
    } == MESSAGE_TYPES
