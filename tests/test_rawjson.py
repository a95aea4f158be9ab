"""JSON text that is kept as it is: the strict scan, and what becomes of lone surrogates."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import pairwise
from typing import Any, NoReturn

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from golem import rawjson
from tests.strategies import ODD_TEXT, TEXT, json_objects, json_text, mutated

MAX = rawjson.MAX_DEPTH


# An oracle: the standard library, made strict


class Members(list[Any]):
    """The members of an object in order, repeated ones included."""


def _refuse(token: str) -> NoReturn:
    raise ValueError(token)


def parse(data: bytes) -> Any:
    """The value of `data` with every member and every number's spelling; ValueError if not JSON."""
    return json.loads(
        data.decode(),
        parse_constant=_refuse,
        parse_int=lambda text: ("number", text),
        parse_float=lambda text: ("number", text),
        object_pairs_hook=Members,
    )


def nesting(value: Any) -> int:
    if isinstance(value, Members):
        return 1 + max((nesting(member) for _, member in value), default=0)
    return 1 + max(map(nesting, value), default=0) if isinstance(value, list) else 0


def is_object(data: bytes) -> bool:
    try:
        value = parse(data)
    except ValueError:
        return False
    return isinstance(value, Members) and data == data.strip(rawjson.BLANKS)


ANY_TEXT = st.one_of(
    mutated(json_objects(lone_surrogates=True)),
    mutated(json_text(lone_surrogates=True)),
    st.binary(max_size=20),
    st.text(alphabet='{}[]:,"\\ \n019.-+eEutnfd8', max_size=10).map(str.encode),
)


@given(ANY_TEXT)
def test_an_object_is_what_a_strict_parser_takes_for_one(data: bytes) -> None:
    assert is_object(data) == rawjson.is_object(data)


@given(ANY_TEXT)
def test_children_exist_for_what_a_strict_parser_takes(data: bytes) -> None:
    try:
        value = parse(data)
    except UnicodeDecodeError:
        return  # `children` leaves encodings to its callers
    except ValueError:
        with pytest.raises(ValueError, match="not valid JSON at byte"):
            rawjson.children(data)
        return
    found = rawjson.children(data)
    texts = [data[child.start : child.end] for child in found]
    keys = [child.key for child in found]
    if isinstance(value, Members):
        clean = [rawjson.clean_text(key) for key, _ in value]
        assert clean == keys
        assert [member for _, member in value] == [parse(text) for text in texts]
    elif isinstance(value, list):
        assert value == [parse(text) for text in texts]
        assert {None} >= set(keys)
    else:
        assert found == []
    for text in texts:
        assert text == text.strip(rawjson.BLANKS)
    for one, other in pairwise(found):
        assert one.end < other.start


@given(json_text(lone_surrogates=True))
def test_depth_counts_brackets_and_nothing_in_strings(text: str) -> None:
    assert nesting(parse(text.encode())) == rawjson.depth(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "{", "}", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a":1,}', "{,}", '{"a" 1}'),
        *("{'a':1}", "{a:1}", "{1:2}", '{"a":01}', '{"a":+1}', '{"a":.5}', '{"a":1.}', '{"a":-}'),
        *('{"a":1e}', '{"a":0x1}', '{"a":1_0}', '{"a":NaN}', '{"a":-Infinity}', '{"a":tru}'),
        *('{"a":True}', '{"a":1}x', '{"a":1}{}', '{"a":1}\x00', '\x1f{"a":1}', '\ufeff{"a":1}'),
        *('{"a":1/*x*/}', '{"a":"\n"}', '{"a":"\x1f"}', '{"a":"\\x"}', '{"a":"\\u12g4"}'),
        *('{"a":"\\u123"}', '{"a":"\\', '{"a":[1,]}', '{"a":[1}', '{"a":(1)}', '{\x0c"a":1}'),
        *('{\u00a0"a":1}', '{"a":"\\ud800\\"}', "[]", "null", '"{}"', "5", '{"a":\u0661}'),
    ],
)
def test_what_is_no_object(text: str) -> None:
    assert not rawjson.is_object(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        *("{}", "{ }", '{"a":1}', '{"a":1,"a":2}', '{"":{}}', '{"a":1e999}', '{"a":-0}'),
        *('{"a":12345678901234567890123}', '{"a":"\\ud800"}', '{"\\udfff":"\\ud83d\\u0041"}'),
        *('{"a":"\x7f\u2028"}', '{\n"a"\r:\t1 }', '{"a":"{[\\"]}"}', f'{{"a":{"9" * 10_000}}}'),
    ],
)
def test_what_is_an_object(text: str) -> None:
    assert rawjson.is_object(text.encode())


@pytest.mark.parametrize(
    "bad", [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80", b"\xc3"]
)
def test_an_object_is_utf_8_in_keys_and_values(bad: bytes) -> None:
    assert not rawjson.is_object(b'{"a":"' + bad + b'"}')
    assert not rawjson.is_object(b'{"' + bad + b'":1}')


# The depth bound


def nested(depth: int, opener: str = '{"a":', closer: str = "}") -> bytes:
    """An object nested exactly `depth` deep, the outermost object included."""
    return f'{{"a":{opener * (depth - 1)}1{closer * (depth - 1)}}}'.encode()


def under(frames: int, work: Callable[[], Any]) -> Any:
    """`work` with this many frames less to the interpreter's recursion limit."""
    return work() if frames <= 0 else under(frames - 1, work)


def frames_left() -> int:
    frame, used = sys._getframe(), 0
    while frame := frame.f_back:  # type: ignore[assignment]
        used += 1
    return sys.getrecursionlimit() - used


@pytest.mark.parametrize(("opener", "closer"), [('{"a":', "}"), ("[", "]"), ('[{"a":[', "]}]")])
def test_nesting_is_allowed_to_the_documented_bound_and_not_beyond(
    opener: str, closer: str
) -> None:
    assert MAX >= 100
    per = len(closer)
    assert rawjson.is_object(nested(1 + (MAX - 1) // per, opener, closer))
    assert not rawjson.is_object(nested(2 + (MAX - 1) // per, opener, closer))


def test_brackets_in_strings_and_beside_each_other_are_not_nesting() -> None:
    assert rawjson.is_object(b'{"a":"%b"}' % (b"[" * 1_000))
    assert rawjson.is_object(b'{"a":[%b[]]}' % (b"[]," * 1_000))


@pytest.mark.parametrize("depth", [1, 100, MAX - 1, MAX, MAX + 1, 900, 1_100, 100_000])
def test_the_answer_does_not_depend_on_the_stack_it_is_asked_on(depth: int) -> None:
    data = nested(depth, "[", "]")
    for room in (500, 200, 50):
        answer = under(frames_left() - room, lambda: rawjson.is_object(data))
        assert (depth <= MAX) == answer


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[" * 50_000 + "}" * 50_000])
def test_runaway_nesting_is_refused_without_recursion(text: str) -> None:
    assert not rawjson.is_object(b'{"a":' + text.encode() + b"}")
    with pytest.raises(ValueError, match="not valid JSON"):
        rawjson.children(text.encode())


def test_children_of_any_depth_are_found() -> None:
    data = b'{"a":1,"b":%b}' % (b"[" * 100_000 + b"]" * 100_000)
    assert [child.key for child in rawjson.children(data)] == ["a", "b"]
    assert rawjson.depth(data) == 100_001


def test_children_names_the_byte_where_json_ends() -> None:
    for text, place in ((b'{"a":tru}', 5), (b"[1,,2]", 3), (b"[1] x", 3), (b"", 0), (b"[1}", 2)):
        with pytest.raises(ValueError, match=f"at byte {place}"):
            rawjson.children(text)


def test_a_key_that_is_not_utf_8_is_a_value_error() -> None:
    with pytest.raises(ValueError, match=r"(?i)utf-8"):
        rawjson.children(b'{"\xff":1}')


# Surrogates


@given(ODD_TEXT)
@example("\ud83d\ude00")
@example("\ude00\ud83d")
@example("\ud83d\ud83d\ude00x")
def test_clean_text_joins_pairs_and_replaces_lone_halves(text: str) -> None:
    """A pair is the character it spells: a provider may split one over two fragments."""
    cleaned = rawjson.clean_text(text)
    assert _cleaned(json.loads(json.dumps(text))) == cleaned  # escapes are read in pairs
    assert cleaned.encode().decode() == cleaned
    assert rawjson.clean_text(cleaned) is cleaned


@given(TEXT)
def test_clean_text_returns_clean_text_itself(text: str) -> None:
    assert rawjson.clean_text(text) is text


@given(json_text(lone_surrogates=True))
def test_masking_lone_escapes_keeps_the_length_and_everything_else(text: str) -> None:
    data = text.encode()
    masked = rawjson.without_lone_surrogates(data)
    assert len(data) == len(masked)
    assert masked == rawjson.without_lone_surrogates(masked)
    msgspec.json.decode(masked, type=msgspec.Raw)  # which refuses lone surrogates
    expected = json.loads(text, object_pairs_hook=Members)
    assert _cleaned(expected) == json.loads(masked, object_pairs_hook=Members)


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in value)
    if isinstance(value, Members):
        return Members((_cleaned(key), _cleaned(member)) for key, member in value)
    return [_cleaned(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"\ud83d\ude00", "\U0001f600"),
        (r"\ud83d", "\ufffd"),
        (r"\ude00", "\ufffd"),
        (r"\ude00\ud83d", "\ufffd\ufffd"),
        (r"\ud83d\ud83d\ude00", "\ufffd\U0001f600"),
        (r"\ud83dA", "\ufffdA"),
        (r"\\ud83d", r"\ud83d"),
        (r"\\\ud83d", "\\\ufffd"),
        (r"\uD83D\uDE00", "\U0001f600"),
        (r"\ud83d\n\ude00", "\ufffd\n\ufffd"),
    ],
)
def test_the_text_of_a_string_literal(escaped: str, text: str) -> None:
    assert text == rawjson.text(f'"{escaped}"'.encode())


@pytest.mark.parametrize("data", [b"", b"5", b'"', b'"\n"', b'"\\x"', b'"a" "b"'])
def test_no_string_literal_is_a_decode_error(data: bytes) -> None:
    with pytest.raises(msgspec.DecodeError):
        rawjson.text(data)
