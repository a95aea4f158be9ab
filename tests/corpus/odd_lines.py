"""Lines of a corpus for Hypothesis: as golem writes them, as others do, and broken ones."""

from __future__ import annotations

import json

from hypothesis import strategies as st

from golem import AssistantMessage, Message, ToolCall, ToolMessage, UserMessage, dump_history
from golem.testing.strategies import ANY_HISTORY, ARGS, HOSTILE_HISTORY
from tests.strategies import HISTORIES, json_text, mutated

_BLANKS = st.sampled_from(["", "", "", " ", "\t", "\r", " \n "])
_STRINGS = st.sampled_from(
    [
        '""',
        '"a"',
        '"a"',
        '"b"',
        '"\\u0061"',
        '"caf\u00e9"',
        '"\\ud800"',
        '"\\ud83d\\ude00"',
        '"\x00"',
    ]
)
_NO_STRINGS = st.sampled_from(["5", "-0.0", "1e400", "true", "[]", '["a"]', "{}", '{"a":"b"}'])
_ROLES = st.sampled_from(
    ['"user"', '"assistant"', '"assistant"', '"tool"', '"tool"', '"system"', '"us\\u0065r"', "1"]
)
_ARGS = st.sampled_from(
    ["{}", "{}", '{"a":1}', '{"a":1,"a":2}', '{"a":"caf\u00e9"}', '{"a":"\\ud800"}', '{"a":', "{]"]
    + ['"{}"', '"{\\"a\\":1"', '""', "null", "[1]", "5", '{"a":NaN}', "{\n}", '{"a":"\x01"}']
    + ['{"a":' * depth + "1" + "}" * depth for depth in (255, 256, 257, 400)]
)
_OTHERS = json_text(lone_surrogates=True)

_SPELLINGS = {
    "role": ['"role"', '"role"', '"rol\\u0065"'],
    "toolCallId": ['"toolCallId"', '"toolCallId"', '"toolCall\\u0049d"'],
    "toolCalls": ['"toolCalls"'],
}


@st.composite
def _object(draw: st.DrawFn, members: dict[str, st.SearchStrategy[str]], odd: bool) -> str:
    """An object that has about these members, each once, seldom twice or null."""
    names = [name for name in members if draw(st.integers(0, 9)) or not odd]
    if odd and names and not draw(st.integers(0, 9)):
        names.append(draw(st.sampled_from(names)))
    spelled: list[str] = []
    for name in names:
        key = draw(st.sampled_from(_SPELLINGS.get(name, [f'"{name}"'])))
        value = "null" if odd and not draw(st.integers(0, 15)) else draw(members[name])
        spelled.append(f"{key}{draw(_BLANKS)}:{draw(_BLANKS)}{value}")
    if odd and not draw(st.integers(0, 9)):
        spelled.append(f'"newer":{draw(_OTHERS)}')
    return "{" + ",".join(spelled) + draw(_BLANKS) + "}"


@st.composite
def _message(draw: st.DrawFn, odd: bool) -> str:
    role = draw(_ROLES) if odd else draw(st.sampled_from(['"user"', '"assistant"', '"tool"']))
    members: dict[str, st.SearchStrategy[str]] = {"role": st.just(role)}
    members["content"] = _STRINGS | _NO_STRINGS if odd else st.just('"x"')
    if role == '"assistant"' and draw(st.booleans()):
        call = _object({"id": _STRINGS, "name": _STRINGS, "args": _ARGS}, odd)
        calls = st.lists(call, max_size=2).map(lambda found: f"[{','.join(found)}]")
        members["toolCalls"] = calls
    if role == '"tool"':
        members |= {"toolCallId": _STRINGS, "toolName": _STRINGS}
    if odd and not draw(st.integers(0, 5)):
        members[draw(st.sampled_from(["parts", "thinking", "native", "failed", "runId"]))] = (
            st.sampled_from(['[{"kind":"image","url":"file:///x"}]', "[]", "true", '""', "{}"])
        )
    return draw(_object(members, odd))


@st.composite
def _array(draw: st.DrawFn) -> str:
    odd = draw(st.booleans())
    messages = draw(st.lists(_message(odd), max_size=5))
    blank = draw(_BLANKS)
    return f"{blank}[{','.join(messages)}]{blank}"


@st.composite
def _begun_well(draw: st.DrawFn) -> list[Message]:
    """Turns in which nothing is wrong, and behind them what may use their ids again."""
    history: list[Message] = []
    stamps = {"run_id": draw(st.sampled_from(["", "r"])), "seal": draw(st.sampled_from(["", "s"]))}
    for _ in range(draw(st.integers(1, 3))):
        ids = draw(st.lists(st.sampled_from(["a", "b", "c", "caf\u00e9"]), max_size=3))
        calls = tuple(ToolCall.of(call_id, "look", '{"at": "caf\u00e9"}') for call_id in ids)
        history.append(AssistantMessage("\u2028", tool_calls=calls, **stamps))
        history += [ToolMessage("seen", tool_call_id=call_id, **stamps) for call_id in ids]
        history += draw(st.sampled_from([[], [UserMessage("And?", **stamps)]]))
    return history + draw(_ANY)


@st.composite
def _cut_off_late(draw: st.DrawFn) -> list[Message]:
    """Answered turns of which the arguments of one call may be anything."""
    args = ["{}"] * draw(st.integers(1, 4))
    args[draw(st.integers(0, len(args) - 1))] = draw(ARGS)
    history: list[Message] = []
    for place, text in enumerate(args):
        history.append(AssistantMessage(tool_calls=(ToolCall.of(f"{place}", "look", text),)))
        history.append(ToolMessage("seen", tool_call_id=f"{place}"))
    return history


@st.composite
def _respelled(draw: st.DrawFn) -> bytes:
    """A history as another library writes it: other escapes, white space, order of members."""
    value = json.loads(dump_history(draw(_ANY | _begun_well() | _cut_off_late())))
    text = json.dumps(
        value,
        ensure_ascii=draw(st.booleans()),
        sort_keys=draw(st.booleans()),
        indent=draw(st.sampled_from([None, None, 0, 1])),
    )
    return text.encode("utf-8", "surrogatepass")


@st.composite
def _spoiled(draw: st.DrawFn, texts: st.SearchStrategy[bytes]) -> bytes:
    """Text that ends too early, or with something in it that does not belong there."""
    text = draw(texts)
    place = draw(st.integers(0, len(text)))
    kept = text[place:] if draw(st.integers(0, 3)) else b""
    return text[:place] + draw(_FOREIGN) + kept


def _dumped(text: bytes) -> str:
    return text.decode()


_ANY = HISTORIES | ANY_HISTORY | HOSTILE_HISTORY
_FOREIGN = st.sampled_from(
    [
        *(b"", b"\xff", b"\xc3", b"\xc0\x80", b"\xed\xa0\x80", "caf\u00e9".encode()),
        *(b"\xef\xbb\xbf", b"\x00", b"\x1f", b"\n", b"\\", b'\\"', b"\\ud800", b"\\u00", b"NaN"),
        *(b"1", b",", b"null", b'"', b"[", b"}", b',"x":1', b'"a":'),
    ]
)
_OURS = (_ANY | _begun_well() | _cut_off_late()).map(dump_history)
_BROKEN = st.sampled_from(
    [
        *(b"", b" ", b"\x0c", b"null", b"[]", b"{}", b"\x00", b"\xef\xbb\xbf[]", b"5"),
        *(b'[{"role":"user"}', b'[{"role":"user","content":"\xff"}]', b'[{"role":"developer"}]'),
        b'[{"role":"user","content":"\xed\xa0\x80"}]',
        *(b"[" * 2000 + b"]" * 2000, b'[{"role":"user","x":' + b"[" * 2000 + b"]" * 2000 + b"}]"),
    ]
)
_TEXTS = _array().map(lambda text: text.encode())

LINES = st.tuples(
    _OURS
    | _respelled()
    | _TEXTS
    | _spoiled(_OURS | _respelled())
    | mutated(_OURS.map(_dumped))
    | mutated(_array())
    | _BROKEN,
    st.sampled_from([b"", b"\n", b"\r\n"]),
).map(b"".join)
"""A line with its line break, if it has one."""


@st.composite
def corpora(draw: st.DrawFn) -> bytes:
    """A few such lines behind each other, where one without a break runs into the next."""
    return b"".join(draw(LINES) for _ in range(draw(st.integers(0, 6))))
