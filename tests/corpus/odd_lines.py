"""Lines of a corpus for Hypothesis: as golem writes them, as others do, and broken ones."""

from __future__ import annotations

from hypothesis import strategies as st

from golem import dump_history
from golem.testing.strategies import ANY_HISTORY, HOSTILE_HISTORY
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
    members["content"] = _STRINGS if odd else st.just('"x"')
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


def _dumped(text: bytes) -> str:
    return text.decode()


_OURS = (HISTORIES | ANY_HISTORY | HOSTILE_HISTORY).map(dump_history)
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
    _OURS | _TEXTS | mutated(_OURS.map(_dumped)) | mutated(_array()) | _BROKEN,
    st.sampled_from([b"", b"\n", b"\r\n"]),
).map(b"".join)
"""A line with its line break, if it has one."""
