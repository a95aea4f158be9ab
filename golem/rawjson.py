"""JSON text that has to survive to the byte: is it an object, which members does it have.

Ordinary decoding belongs to msgspec. Here is only what a decoder does not offer: one strict
scan, without recursion, that tells where the children of a value begin and end, so that they
can be kept as they were written; and the treatment of lone surrogates, which are legal in JSON
text and illegal in UTF-8. Nothing here knows what a message is.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

MAX_DEPTH = 256
"""Deepest nesting of a value that golem embeds as JSON (contract §1 asks for at least 100).

It keeps every decoder golem relies on clear of the interpreter's recursion limit (1,000 less
the caller's own stack), so that the answer never depends on where it is asked.
"""

BLANKS = b" \t\n\r"
"""JSON's white space; `bytes.strip()` alone would also take U+001F and friends."""

_TOKEN = re.compile(
    rb"[ \t\n\r]*+(?:"
    rb"(?P<open>[{\[])|(?P<close>[}\]])|(?P<mark>[,:])"
    rb'|(?P<string>"[^"\\\x00-\x1f]*+(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*+)*+")'
    rb"|(?P<scalar>true|false|null|-?(?:0|[1-9][0-9]*+)(?:\.[0-9]++)?(?:[eE][+-]?[0-9]++)?)"
    rb")"
)
_CLOSER = {ord("{"): b"}", ord("["): b"]"}

_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a pair: stays
    rb"|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_SUSPECT_ESCAPE = re.compile(rb"\\u[dD][89a-fA-F]")

_syntax = msgspec.json.Decoder(msgspec.Raw)


class Child(NamedTuple):
    """One member or element of a scanned value: ``data[start:end]`` is its exact text."""

    key: str | None
    start: int
    end: int


def children(data: bytes) -> list[Child]:
    """The members of the JSON object (or elements of the array) that is `data`, in order.

    Strict JSON (RFC 8259): no NaN, comments, trailing commas or raw control characters; lone
    surrogate escapes are accepted, any depth is. A scalar has no children. Repeated keys are all
    there. Linear in the length, no recursion.

    Raises ValueError with the byte offset where `data` stops being one JSON value.
    """
    found: list[Child] = []
    stack = bytearray()
    expect = "value"
    key: str | None = None
    start = position = 0
    match = _TOKEN.match
    while expect != "end":
        token = match(data, position)
        if token is None:
            raise ValueError(f"not valid JSON at byte {position}")
        kind = token.lastgroup
        begin, position = token.span(kind or 0)
        if kind == "open" and "value" in expect:
            if len(stack) == 1:
                start = begin
            stack.append(data[begin])
            expect = "key or close" if data[begin] == 0x7B else "value or close"
            continue
        if kind == "close" and "close" in expect and _CLOSER[stack[-1]] == token[kind]:
            stack.pop()
        elif kind == "mark":
            if token[kind] == b":" and expect == "colon":
                expect = "value"
            elif token[kind] == b"," and expect == "comma or close":
                expect = "key" if stack[-1] == 0x7B else "value"
            else:
                raise ValueError(f"not valid JSON at byte {begin}")
            continue
        elif kind == "string" and "key" in expect:
            if len(stack) == 1:
                key = text(token[kind])
            expect = "colon"
            continue
        elif kind in ("string", "scalar") and "value" in expect:
            if len(stack) == 1:
                start = begin
        else:
            raise ValueError(f"not valid JSON at byte {begin}")
        # A value has just ended.
        if len(stack) == 1:
            found.append(Child(key, start, position))
        expect = "comma or close" if stack else "end"
    if data[position:].strip(BLANKS):
        raise ValueError(f"not valid JSON at byte {position}: text after the value")
    return found


def canonical(data: bytes) -> bytes:
    """Valid JSON in one spelling: no white space, every string escaped in the same way.

    Numbers, the order of members and repeated members stay as they are: this undoes what another
    JSON library does to a document that it writes back, not what an editor does.

    Raises ValueError where the text stops being JSON tokens.
    """
    pieces: list[bytes] = []
    position = 0
    while token := _TOKEN.match(data, position):
        position = token.end()
        kind = token.lastgroup or ""
        piece = token[kind]
        pieces.append(_one_spelling(piece) if kind == "string" else piece)
    if data[position:].strip(BLANKS):
        raise ValueError(f"not valid JSON at byte {position}")
    return b"".join(pieces)


def _one_spelling(string: bytes) -> bytes:
    """A JSON string literal, escaped in one way; a lone surrogate is not the U+FFFD it reads as."""
    if without_lone_surrogates(string) == string:
        return msgspec.json.encode(text(string))
    written = bytearray(b'"')
    position = 1
    for found in _ESCAPE.finditer(string):
        if found["lone"]:
            written += msgspec.json.encode(text(b'"%b"' % string[position : found.start()]))[1:-1]
            written += found[0].lower()
            position = found.end()
    written += msgspec.json.encode(text(b'"' + string[position:]))[1:]
    return bytes(written)


def depth(data: bytes) -> int:
    """How deep the brackets of valid JSON are nested; strings do not count."""
    deepest = level = position = 0
    while token := _TOKEN.match(data, position):
        position = token.end()
        if token.lastgroup == "open":
            level += 1
            deepest = max(deepest, level)
        elif token.lastgroup == "close":
            level -= 1
    return deepest


def is_object(data: bytes) -> bool:
    """Whether `data`, without white space around it, is a JSON object golem may embed.

    Strict JSON in valid UTF-8, nested at most `MAX_DEPTH` deep; lone surrogate escapes count as
    valid (contract §1).
    """
    if data[:1] != b"{" or data[-1:] != b"}":
        return False
    if not data.isascii() and not is_utf8(data):
        return False
    brackets = data.count(b"{") + data.count(b"[")
    if brackets > MAX_DEPTH and depth(data) > MAX_DEPTH:
        return False
    try:
        _syntax.decode(data)
    except (msgspec.DecodeError, RecursionError):
        # Not the last word: it refuses lone surrogate escapes, and any depth on a deep stack.
        try:
            children(data)
        except ValueError:
            return False
    return True


def is_utf8(data: bytes) -> bool:
    """Whether `data` decodes as UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def text(string: bytes) -> str:
    """The text of a JSON string literal, lone surrogates as U+FFFD.

    Raises msgspec.DecodeError where `string` is not one valid JSON string.
    """
    return msgspec.json.decode(without_lone_surrogates(string), type=str)


def without_lone_surrogates(data: bytes) -> bytes:
    r"""JSON text of the same length with every lone surrogate escape as ``\ufffd``."""
    if not _SUSPECT_ESCAPE.search(data):
        return data
    return _ESCAPE.sub(lambda m: rb"\ufffd" if m["lone"] else m[0], data)


def clean_text(value: str) -> str:
    """`value` with every lone surrogate as U+FFFD: what golem does where text enters.

    Two halves side by side are the character they spell: a provider may have split it over two
    fragments, a writer may have encoded UTF-16 half by half.
    """
    if value.isascii():
        return value
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return value
