"""Reading and writing stored messages: bytes in, structs out, and back.

Two paths. The *strict* one is a single msgspec call and carries everything this version writes
itself. Only what it refuses takes the *tolerant* path, message by message and member by member:
members of a newer writer, explicit nulls, lone surrogates, base64 with line breaks, deep nesting.
Nothing but `HistoryError` leaves this module for a document at fault. What a message *is* stands
in ``golem.messages``.
"""

from __future__ import annotations

import base64
import binascii
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from golem import rawjson
from golem.errors import HistoryError
from golem.faults import messages_in, require_sound
from golem.glance import odd_places
from golem.messages import (
    MESSAGE_TYPES,
    AssistantMessage,
    Message,
    Native,
    Part,
    Thinking,
    ToolCall,
    UnknownMembers,
    one_line,
)

S = TypeVar("S", bound=Struct)

Document = bytes | bytearray | memoryview | str

_REFUSED: Final = (msgspec.MsgspecError, RecursionError, UnicodeError)
"""What the strict path raises for something the tolerant one may still read."""

_strict_history = msgspec.json.Decoder(list[Message])
_strict_message = msgspec.json.Decoder(Message)
_items = msgspec.json.Decoder(list[Raw])
_syntax = msgspec.json.Decoder(Raw)


def load_history(data: Document) -> list[Message]:
    """The messages of a stored history: a JSON array of messages, as bytes or text.

    Members this version does not know are kept on `unknown` and written back by `dump_history`;
    lone surrogates become U+FFFD. The argument texts of the calls are views of the document and
    keep it in memory: reload a message alone (`load_message(dump_message(m))`) to keep just one
    of a large document.

    Raises HistoryError, naming the message and the member, for anything that is no history, and
    TypeError for what is neither bytes nor text.
    """
    if type(data) is not bytes and isinstance(data, (bytearray, memoryview)):
        data = bytes(data)  # what the argument texts are views of must not change under them
    try:
        return _strict_history.decode(data)
    except _REFUSED:
        return list(_load_tolerantly(_as_bytes(data)))
    except TypeError:
        raise _no_document(data) from None


def load_message(data: Document) -> Message:
    """One stored message: a JSON object. Reads and raises as `load_history` does."""
    if type(data) is not bytes and isinstance(data, (bytearray, memoryview)):
        data = bytes(data)
    try:
        return _strict_message.decode(data)
    except _REFUSED:
        return _read_message(_as_bytes(data), None)
    except TypeError:
        raise _no_document(data) from None


def iter_history(lines: Iterable[bytes | str]) -> Iterator[Message]:
    """The messages of a JSON Lines source, one after the other, as an open file gives them.

    A line holds one message or an array of messages; blank lines are skipped. Memory is one
    line's. Raises HistoryError, naming the message and the line, when it reaches a bad one; the
    messages before it have been given out. Raises TypeError for anything else than lines: one
    text, no iterable, a line that is no text.
    """
    one_text = isinstance(lines, (bytes, bytearray, str))  # whose items are no lines
    if one_text or not isinstance(lines, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"lines are wanted, as an open file gives them, not {type(lines).__name__}")
    index = 0
    for number, line in enumerate(lines, 1):
        if not isinstance(line, (bytes, bytearray, str)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"line {number} is no text but {type(line).__name__}")
        if not line.strip():
            continue
        try:
            messages = _load_line(line)
        except HistoryError as error:
            index += error.index or 0
            reason = f"{error.reason} (line {number})"
            raise HistoryError(reason, index=index, path=error.path) from error
        yield from messages
        index += len(messages)


def dump_history(messages: Iterable[Message]) -> bytes:
    """The history as one line of JSON, the inverse of `load_history`.

    Known members come in the contract's order with defaults left out, unknown ones after them,
    to the byte. Line breaks between the tokens of embedded JSON become spaces.

    Raises HistoryError, naming the place, for something in `messages` that is no message or whose
    members no message may have: what is written can be read. Only the argument text of a call that
    was made of a `Raw` is taken at its word.
    """
    history = (
        cast("list[Message]", messages) if type(messages) is list else list(messages_in(messages))
    )
    odd = odd_places(history)
    for index in odd:
        _require_storable(history[index], index)
    try:
        return _line(_encoder.encode(history))
    except (_NotPlain, UnicodeError, TypeError):
        for index in odd:
            _require_json_members(history[index], index)
        return b"[%b]" % b",".join(_dump(message, index) for index, message in enumerate(history))


def dump_message(message: Message) -> bytes:
    """One message as one line of JSON, the inverse of `load_message`. Raises as it does."""
    try:
        if odd_places((message,)):
            _require_storable(message, 0)
            _require_json_members(message, 0)
    except HistoryError as error:
        raise HistoryError(error.reason, path=error.path) from None
    return _dump(message, None)


def encode_json(value: object) -> bytes:
    """Any value msgspec can encode as one line of JSON, messages anywhere in it included.

    Raises TypeError for what JSON cannot carry.
    """
    try:
        return _line(_encoder.encode(value))
    except (_NotPlain, UnicodeError):
        return _line(_encoder.encode(_plain(value)))


# Writing

_MESSAGE_CLASSES: Final = tuple(MESSAGE_TYPES.values())
_MESSAGES: Final = frozenset(_MESSAGE_CLASSES)


def _require_storable(message: Message, index: int) -> None:
    """Raise HistoryError unless a message is sound, and JSON what its maker gets back verbatim."""
    require_sound(message, index)
    native = message.native if isinstance(message, AssistantMessage) else None
    if native is not None:
        for place, item in enumerate(native.items):
            if not _is_json(item):
                path = f"native.items[{place}]"
                raise HistoryError("not valid JSON", index=index, path=path)


def _require_json_members(message: Message, index: int) -> None:
    for path, text in _unknown_in(message, ""):
        if not (_is_json(text) and rawjson.is_utf8(text)):
            raise HistoryError("not valid JSON", index=index, path=path)


def _unknown_in(struct: Struct, path: str) -> Iterator[tuple[str, bytes]]:
    """Path and text of every unknown member, at any depth."""
    dot = f"{path}." if path else ""
    for info in _fields(type(struct)):
        value: Any = getattr(struct, info.name)
        if isinstance(value, UnknownMembers):
            for name, text in value.items():
                yield f"{dot}{rawjson.clean_text(name[:64])}", text
        elif isinstance(value, Native):
            yield from _unknown_in(value, f"{dot}{info.encode_name}")
        elif isinstance(value, (tuple, list)):
            for number, item in enumerate(cast("Sequence[object]", value)):
                if isinstance(item, Struct):
                    yield from _unknown_in(item, f"{dot}{info.encode_name}[{number}]")


def _is_json(text: bytes | Raw) -> bool:
    """Whether `text` is one JSON value, which lone surrogates and deep nesting may stand in."""
    try:
        _syntax.decode(text)
    except _REFUSED:
        try:
            rawjson.children(bytes(text))
        except ValueError:
            return False
    return True


class _NotPlain(Exception):
    """A struct carries unknown members, which the encoder cannot splice in."""


def _write_odd(value: object) -> str | bytes:
    """What msgspec writes for a value of a type it does not know."""
    if isinstance(value, UnknownMembers):
        raise _NotPlain
    if isinstance(value, str):  # a subclass, which is as good: written as the text it is
        return str.__str__(value)
    if isinstance(value, bytes):
        return bytes(value)
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


_encoder = msgspec.json.Encoder(enc_hook=_write_odd)


def _dump(message: Message, index: int | None) -> bytes:
    try:
        return encode_json(message)
    except TypeError as error:
        raise HistoryError(str(error), index=index) from error


def _line(data: bytes) -> bytes:
    return one_line(data) if b"\n" in data or b"\r" in data else data


def _plain(value: Any) -> Any:
    """What the encoder can write for a value that carries unknown members or surrogates."""
    if isinstance(value, str):
        return rawjson.clean_text(value)
    if isinstance(value, Struct):
        return _plain_struct(value)
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in cast("Iterable[Any]", value)]
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {_plain(key): _plain(item) for key, item in members.items()}
    return value


def _plain_struct(value: Struct) -> dict[str, Any]:
    config = value.__struct_config__
    members: dict[str, Any] = {}
    if config.tag_field is not None:
        members[config.tag_field] = config.tag
    for info in _fields(type(value)):
        content = getattr(value, info.name)
        if isinstance(content, UnknownMembers):
            members.update(_plain_unknown(content, type(value)))
        elif not config.omit_defaults or info.required or content != info.default:
            members[info.encode_name] = _plain(content)
    return members


def _plain_unknown(unknown: UnknownMembers, cls: type[Struct]) -> dict[str, Raw]:
    """The unknown members to write. One that goes by a known name would speak for the field."""
    known = {cls.__struct_config__.tag_field}
    known.update(info.encode_name for info in _fields(cls) if info.name != "unknown")
    return {
        rawjson.clean_text(name): Raw(text) for name, text in unknown.items() if name not in known
    }


@functools.cache
def _fields(cls: type[Struct]) -> tuple[msgspec.structs.FieldInfo, ...]:
    return msgspec.structs.fields(cls)


# Reading what the strict path refused

Read = Callable[[bytes, str], Any]
"""Reads the text of one member's value; the string is the member's path, for errors."""


def _load_line(line: bytes | str) -> list[Message]:
    first = line.lstrip()[:1]
    return load_history(line) if first in ("[", b"[") else [load_message(line)]


def _load_tolerantly(data: bytes) -> Iterator[Message]:
    if data.strip(rawjson.BLANKS) == b"null":  # how the Go library stores an empty history
        return
    for index, item in enumerate(_split(data)):
        try:
            yield _strict_message.decode(item)
        except _REFUSED:
            yield _read_message(item, index)


def _no_document(data: object) -> TypeError:
    return TypeError(f"JSON is wanted, as bytes or text, not {type(data).__name__}")


def _as_bytes(data: Document) -> bytes:
    """The document as valid UTF-8. Surrogates may have been encoded as if they were characters."""
    if not isinstance(data, str):
        try:
            data = str(data, "utf-8", "surrogatepass")
        except UnicodeDecodeError as error:
            raise HistoryError(f"not UTF-8 at byte {error.start}") from error
    return rawjson.clean_text(data).encode()


def _split(data: bytes) -> Iterator[bytes]:
    """The exact texts of the elements of the JSON array `data`."""
    masked = rawjson.without_lone_surrogates(data)
    try:
        items = _items.decode(masked)
    except (msgspec.DecodeError, RecursionError):  # too deep for it, or not an array
        yield from (data[child.start : child.end] for child in _children(data, b"[", ""))
        return
    position = masked.index(b"[") + 1
    for item in items:  # masking keeps lengths, so the places are those of `data`
        while masked[position] in b", \t\n\r":
            position += 1
        yield data[position : position + len(item)]
        position += len(item)


_KINDS: Final = {b"{": "an object", b"[": "an array", b'"': "a string", b"n": "null"}


def _children(data: bytes, opener: bytes, path: str) -> list[rawjson.Child]:
    try:
        found = rawjson.children(data)
    except ValueError as error:
        raise HistoryError(str(error), path=path) from error
    given = data.lstrip(rawjson.BLANKS)[:1]
    if given != opener:
        raise _mismatch(_KINDS[opener], data, path)
    return found


def _mismatch(expected: str, data: bytes, path: str) -> HistoryError:
    given = data.lstrip(rawjson.BLANKS)[:1]
    return HistoryError(f"expected {expected}, not {_KINDS.get(given, 'a scalar')}", path=path)


def _read_message(data: bytes, index: int | None) -> Message:
    try:
        members = _children(data, b"{", "")
        role = next((data[m.start : m.end] for m in reversed(members) if m.key == "role"), None)
        if role is None:
            raise HistoryError("missing role")
        cls = MESSAGE_TYPES.get(_text(role, "role"))
        if cls is None:
            shown = role.decode() if len(role) <= 64 else role[:64].decode(errors="ignore") + "…"
            raise HistoryError(f"unknown role {shown}")
        return _struct(cls, data, members, "")
    except HistoryError as error:
        raise HistoryError(error.reason, index=index, path=error.path) from error


def _struct(cls: type[S], data: bytes, members: list[rawjson.Child], path: str) -> S:
    """`cls` from the members of a JSON object: known ones read, unknown ones kept.

    Of several members of one name the last counts; null is the default.
    """
    readers = _readers(cls)
    values: dict[str, Any] = {}
    unknown: dict[str, bytes] = {}
    for key, start, end in members:
        name, value = key or "", data[start:end]
        if name not in readers:
            unknown[name] = value
            continue
        attribute, read = readers[name]
        values.pop(attribute, None)
        if value != b"null":
            values[attribute] = read(value, f"{path}.{name}" if path else name)
    if issubclass(cls, _MESSAGE_CLASSES):
        del unknown["role"]
    return _make(cls, values, unknown, path)


def _make(cls: type[S], values: dict[str, Any], unknown: dict[str, bytes], path: str) -> S:
    if unknown:
        values["unknown"] = UnknownMembers(unknown)
    for info in _fields(cls):
        if info.required and info.name not in values:
            if not issubclass(cls, ToolCall):
                raise HistoryError(f"missing {info.encode_name}", path=path)
            values[info.name] = ""  # the Go spelling of an absent id, name or argument text
    return cls(**values)


def _text(data: bytes, path: str) -> str:
    if data[:1] != b'"':
        raise _mismatch("a string", data, path)
    try:
        return rawjson.text(data)
    except msgspec.DecodeError as error:
        raise HistoryError(str(error), path=path) from error


def _flag(data: bytes, path: str) -> bool:
    if data not in (b"true", b"false"):
        raise _mismatch("true or false", data, path)
    return data == b"true"


def _base64(data: bytes, path: str) -> bytes:
    text = _text(data, path).replace("\n", "").replace("\r", "")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise HistoryError("not standard base64", path=path) from error


def _verbatim(data: bytes, path: str) -> Raw:
    return Raw(data)


def _tuple_of(read: Read) -> Read:
    def read_tuple(data: bytes, path: str) -> tuple[Any, ...]:
        found = _children(data, b"[", path)
        return tuple(
            read(data[start:end], f"{path}[{i}]") for i, (_, start, end) in enumerate(found)
        )

    return read_tuple


def _object_of(cls: type[Struct]) -> Read:
    def read_object(data: bytes, path: str) -> Struct:
        return _struct(cls, data, _children(data, b"{", path), path)

    return read_object


_BY_ATTRIBUTE: Final[dict[str, Read]] = {
    "data": _base64,
    "failed": _flag,
    "raw": _verbatim,
    "parts": _tuple_of(_object_of(Part)),
    "tool_calls": _tuple_of(_object_of(ToolCall)),
    "thinking": _tuple_of(_object_of(Thinking)),
    "native": _object_of(Native),
    "items": _tuple_of(_verbatim),
}
"""How to read each attribute that is not text."""


@functools.cache
def _readers(cls: type[Struct]) -> dict[str, tuple[str, Read]]:
    """JSON name to attribute and reader, for the members `cls` knows."""
    return {
        info.encode_name: (info.name, _BY_ATTRIBUTE.get(info.name, _text))
        for info in _fields(cls)
        if info.name != "unknown"
    }
