"""Random JSON text and random messages for Hypothesis: as odd as the contract allows."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st
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
)

TEXT = st.text(max_size=12) | st.sampled_from(
    ["\x00", "\x7f", "\u2028\u2029", "\ufeff", "a\nb\r\n", "</script>", "\U0001f600", '"\\', "NaN"]
)
"""Text that UTF-8 can carry."""

HALVES = st.sampled_from(["\ud83d", "\ude00", "\ud800", "\udfff", "\udc80"])
ODD_TEXT = st.lists(TEXT | HALVES, max_size=4).map("".join)
"""Text with surrogates in it, alone and in pairs."""


# JSON text, spelled in every legal way

_BLANK = st.sampled_from(["", "", "", " ", "\n", "\t", "\r\n", "  "])
_NUMBER = st.sampled_from(
    ["0", "-0", "1", "12345678901234567890123", "1.0", "1e2", "1E+2", "-1.5e-300", "1e999", "0.10"]
)
_ESCAPES = st.sampled_from(
    ["\\n", "\\/", "\\\\", '\\"', "\\u0000", "\\u0041", "\\ud83d\\ude00", "\\u00e9", "\\b\\f\\r\\t"]
)
_LONE = st.sampled_from(["\\ud800", "\\uDC00", "\\ud83d\\u0041", "\\ude00\\ud83d", "\\\\\\ud800"])
_PLAIN = st.text(
    st.characters(codec="utf-8", exclude_characters='"\\', min_codepoint=0x20), max_size=4
)


def _strings(pieces: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(pieces, max_size=3).map(lambda found: f'"{"".join(found)}"')


def _join(draw: st.DrawFn, opener: str, items: list[str], closer: str) -> str:
    spaced = [f"{draw(_BLANK)}{item}{draw(_BLANK)}" for item in items]
    return opener + (",".join(spaced) or draw(_BLANK)) + closer


@st.composite
def _arrays(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    return _join(draw, "[", draw(st.lists(inner, max_size=3)), "]")


@st.composite
def _objects(draw: st.DrawFn, inner: st.SearchStrategy[str], names: st.SearchStrategy[str]) -> str:
    names = st.sampled_from(['"a"', '"a"', '""']) | names  # duplicates on purpose
    members = [
        f"{draw(names)}{draw(_BLANK)}:{draw(_BLANK)}{draw(inner)}"
        for _ in range(draw(st.integers(0, 3)))
    ]
    return _join(draw, "{", members, "}")


def json_text(*, lone_surrogates: bool = False) -> st.SearchStrategy[str]:
    """Any JSON value as text, with odd spacing, duplicate keys and every spelling of a string."""
    strings = _strings(_PLAIN | _ESCAPES | _LONE if lone_surrogates else _PLAIN | _ESCAPES)
    scalars = st.sampled_from(["true", "false", "null"]) | _NUMBER | strings
    return st.recursive(
        scalars, lambda inner: _arrays(inner) | _objects(inner, strings), max_leaves=6
    )


def json_objects(*, lone_surrogates: bool = False) -> st.SearchStrategy[str]:
    """A JSON object as text."""
    strings = _strings(_PLAIN | _ESCAPES | _LONE if lone_surrogates else _PLAIN | _ESCAPES)
    return _objects(json_text(lone_surrogates=lone_surrogates), strings)


# Messages

_BROKEN = st.sampled_from(
    ["", "{", '{"a":', '{"a":"\n"}', "5", "null", "[1,\n2]", '"x"', '{"a":NaN}', "{}{}", "\ufeff{}"]
)
_NEST = st.integers(1, 400).map(lambda n: '{"a":' * n + "1" + "}" * n)
ARGS = json_objects() | json_objects(lone_surrogates=True) | _BROKEN | _NEST | ODD_TEXT
"""Argument text of every kind: objects, cut off, scalars, empty, nested too deep."""

_VALUES = json_text() | json_text(lone_surrogates=True)


def unknown_members(known: tuple[str, ...]) -> st.SearchStrategy[UnknownMembers]:
    """Members that `known` does not name."""
    names = TEXT.filter(lambda name: name not in known)
    values = _VALUES.map(str.encode)
    some = st.dictionaries(names, values, min_size=1, max_size=2).map(UnknownMembers)
    return st.just(UnknownMembers()) | some


def _struct(cls: type[Any], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    known = ("role", *cls.__struct_encode_fields__)
    optional = {**fields, "unknown": unknown_members(known)}
    required = {name: optional.pop(name) for name in ("kind", "provider") if name in _needed(cls)}
    return st.fixed_dictionaries(required, optional=optional).map(lambda given: cls(**given))


def _needed(cls: type[Any]) -> tuple[str, ...]:
    return {Part: ("kind",), Native: ("provider",)}.get(cls, ())


PARTS = _struct(
    Part,
    kind=st.sampled_from(["image", "document", "audio", "video", "hologram", ""]),
    url=TEXT,
    data=st.binary(max_size=6),
    media_type=TEXT,
)
THINKING = _struct(Thinking, text=TEXT, signature=TEXT, redacted=TEXT, provider=TEXT, id=TEXT)
NATIVE = _struct(
    Native,
    provider=TEXT,
    items=st.lists(_VALUES.map(lambda text: Raw(text.encode())), max_size=2).map(tuple),
)
CALLS = st.builds(
    ToolCall, TEXT, TEXT, ARGS, TEXT, unknown_members(ToolCall.__struct_encode_fields__)
)

_COMMON = {"content": TEXT, "run_id": TEXT, "conversation_id": TEXT, "seal": TEXT}
_PARTS = st.lists(PARTS, max_size=2).map(tuple)

MESSAGES: st.SearchStrategy[Message] = st.one_of(
    _struct(SystemMessage, **_COMMON),
    _struct(UserMessage, **_COMMON, parts=_PARTS),
    _struct(
        AssistantMessage,
        **_COMMON,
        parts=_PARTS,
        tool_calls=st.lists(CALLS, max_size=2).map(tuple),
        thinking=st.lists(THINKING, max_size=2).map(tuple),
        native=NATIVE | st.none(),
    ),
    _struct(
        ToolMessage,
        **_COMMON,
        parts=_PARTS,
        tool_call_id=TEXT,
        tool_name=TEXT,
        failed=st.booleans(),
    ),
)
"""Any message that can be stored, unknown members at every depth included."""

HISTORIES = st.lists(MESSAGES, max_size=4)


@st.composite
def mutated(draw: st.DrawFn, texts: st.SearchStrategy[str]) -> bytes:
    """JSON text with a few bytes replaced, inserted or removed; often still valid."""
    data = bytearray(draw(texts).encode())
    alphabet = st.sampled_from(b'{}[]:,"\\ \n\r\t\x00\x1f\x0c019.-+eEutnfNI/\x7f\xc3\xed\xff')
    for _ in range(draw(st.integers(0, 3))):
        place = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["insert", "replace", "remove"])):
            case "insert":
                data.insert(place, draw(alphabet))
            case "replace":
                data[place : place + 1] = bytes([draw(alphabet)])
            case _:
                del data[place : place + 1]
    return bytes(data)


def dumped(value: object) -> str:
    """JSON as the standard library spells it."""
    return json.dumps(value, ensure_ascii=False)
