"""Answers and events as structs, and what stays raw in them, however a server spells it. Pure.

Decoding is strict and fast first. What does not fit is decoded once more by the forgiving
standard decoder and put into the same structs, member by member, by the adapter. Raw members
(blocks, items, parts) are kept to the byte, as far as they can be: they may have to go back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Raw

from golem import rawjson
from golem_adapters._toolkit.lenient import NOTHING, members, read_json, written

T = TypeVar("T")

MISFITS: Final = (msgspec.DecodeError, RecursionError)
"""What the strict decoder raises for what the forgiving one may still read."""


def forgiven(
    data: bytes,
    value: dict[str, Any],
    decoder: msgspec.json.Decoder[T],
    tolerated: Callable[[dict[str, Any]], T],
) -> T:
    """The struct for `value`, which the strict `decoder` refused to read from `data`.

    Where half characters were all that it minded, raw members stay as they came; else
    `tolerated` takes what fits.
    """
    try:
        return decoder.decode(rawjson.without_lone_surrogates(data))
    except MISFITS:
        return tolerated(value)


def verbatim_object(raw: Raw) -> tuple[bytes, dict[str, Any]]:
    """The JSON in `raw`, as UTF-8, and its members.

    Without members where it is no object, or nested past every use.
    """
    data = bytes(raw)
    try:
        return data, members(msgspec.json.decode(data))
    except MISFITS:
        pass
    try:
        found = members(read_json(data))  # a number past every range, bad UTF-8
    except ValueError:
        return data, {}
    return (data if rawjson.is_utf8(data) else bytes(written(found))), found


def argument_text(value: Raw) -> str:
    """The verbatim text of arguments; a string there is the text of what is no object."""
    data = bytes(value)
    if data == bytes(NOTHING):
        return ""
    return rawjson.text(data) if data[:1] == b'"' else data.decode()


def argument_json(text: str) -> Raw:
    """Argument text as JSON: an object as it is written, anything else as a string."""
    data = text.encode()
    return Raw(data) if rawjson.is_object(data) else written(text)
