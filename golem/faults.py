"""What is wrong inside a history, named with its place.

Structs do not check what Python puts into them, so every pass over a history begins here.
Messages of exactly the types that the codec gives them, which is practically all there are, cost
a few comparisons each; only what differs from them is looked at member by member.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

from msgspec import Raw, Struct
from msgspec.structs import FieldInfo, astuple, fields

from golem.errors import HistoryError
from golem.messages import (
    MESSAGE_TYPES,
    NO_MEMBERS,
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
    not_a_message,
)

_MESSAGES: Final = frozenset(MESSAGE_TYPES.values())
_NONE: Final = ()
"""What a message without parts, calls or thinking has: there is but one empty tuple."""
_ITEMS: Final = {"parts": Part, "tool_calls": ToolCall, "thinking": Thinking, "items": Raw}
_SPECIAL: Final[dict[str, tuple[type, ...]]] = {
    "raw": (Raw, str),
    "native": (Native, type(None)),
    "data": (bytes, bytearray, memoryview),
}


def checked(history: Iterable[Message]) -> list[Message]:
    """The messages of `history`, all of them sound.

    Raises HistoryError, naming the place, for something that is no message, or the first member
    that is of another type than the contract's.
    """
    messages = list(history)
    check(messages)
    return messages


def check(messages: Iterable[Any], start: int = 0) -> None:
    """Raise what `checked` raises; `start` is the place of the first message.

    Spelled out by role: one place that reads four types of struct costs twice as much.
    """
    for index, message in enumerate(messages, start):
        role = type(message)  # pyright: ignore[reportUnknownVariableType]
        if role is UserMessage:
            if (
                type(message.content)
                is type(message.run_id)
                is type(message.conversation_id)
                is type(message.seal)
                is str
            ) and (message.unknown is NO_MEMBERS and message.parts is _NONE):
                continue
        elif role is ToolMessage:
            if (
                type(message.content)
                is type(message.tool_call_id)
                is type(message.tool_name)
                is type(message.run_id)
                is type(message.conversation_id)
                is type(message.seal)
                is str
            ) and (
                type(message.failed) is bool
                and message.unknown is NO_MEMBERS
                and message.parts is _NONE
            ):
                continue
        elif role is AssistantMessage and (
            type(message.content)
            is type(message.run_id)
            is type(message.conversation_id)
            is type(message.seal)
            is str
        ):
            calls: tuple[Any, ...] = message.tool_calls
            if (
                message.unknown is NO_MEMBERS
                and message.parts is _NONE
                and message.thinking is _NONE
                and message.native is None
                and (calls is _NONE or (type(calls) is tuple and _are_plain_calls(calls)))
            ):
                continue
        if not _is_plain(message) and (fault := fault_of(message, index)):
            raise fault


def _are_plain_calls(calls: tuple[Any, ...]) -> bool:
    """Whether calls have the types that the codec gives them; their text was checked when made."""
    for call in calls:
        if type(call) is not ToolCall or call.unknown is not NO_MEMBERS:
            return False
        if not (type(call.id) is type(call.name) is type(call.signature) is str):
            return False
    return True


def _is_plain(message: Any) -> bool:
    """Whether a message has exactly the types that the codec gives it, all the way down.

    No verdict where it is false: a list in place of a tuple, or a subclass of str, does no harm.
    """
    role = type(message)  # pyright: ignore[reportUnknownVariableType]
    if role not in _MESSAGES or not _has_shape(message):
        return False
    if role is not AssistantMessage:
        return role is SystemMessage or _are_plain(message.parts, Part)
    native = message.native
    return (
        _are_plain(message.parts, Part)
        and _are_plain(message.tool_calls, ToolCall)
        and _are_plain(message.thinking, Thinking)
        and (native is None or _is_plain_native(native))
    )


def _is_plain_native(native: Native) -> bool:
    return _has_shape(native) and all(type(item) is Raw for item in native.items)


def _are_plain(items: tuple[Any, ...], expected: type[Struct]) -> bool:
    return all(type(item) is expected and _has_shape(item) for item in items)


def _has_shape(struct: Any) -> bool:
    unknown = struct.unknown
    return tuple(map(type, astuple(struct))) in _SHAPES[type(struct)] and (
        unknown is NO_MEMBERS
        or all(type(name) is str and type(text) is bytes for name, text in unknown.items())
    )


def _shapes(*examples: Struct) -> frozenset[tuple[type, ...]]:
    return frozenset(tuple(map(type, astuple(example))) for example in examples)


_SHAPES: Final[Mapping[type[Struct], frozenset[tuple[type, ...]]]] = {
    SystemMessage: _shapes(SystemMessage()),
    UserMessage: _shapes(UserMessage()),
    AssistantMessage: _shapes(AssistantMessage(), AssistantMessage(native=Native(""))),
    ToolMessage: _shapes(ToolMessage()),
    Part: _shapes(Part("")),
    ToolCall: _shapes(ToolCall.of("", "", ""), ToolCall.of("", "", "{}")),
    Thinking: _shapes(Thinking()),
    Native: _shapes(Native("")),
}
"""The types of the members of each struct, in order."""


@contextmanager
def named_faults(messages: Sequence[object]) -> Generator[None]:
    """Turn what a pass raises over a malformed message into a HistoryError that names the place.

    For steps that come before any check. Where no message is at fault the exception is a bug, and
    passes as it is.
    """
    try:
        yield
    except (AttributeError, TypeError) as error:
        fault = next(filter(None, map(fault_of, messages, range(len(messages)))), None)
        if fault is None:
            raise
        raise fault from error


def fault_of(message: object, index: int) -> HistoryError | None:
    """The first member of a message whose type is not the contract's, as an error."""
    if type(message) not in _MESSAGES:
        return not_a_message(message, index)
    for path, expected, given in _wrong(cast("Struct", message), ""):
        reason = f"expected {expected}, not {type(given).__name__}"
        return HistoryError(reason, index=index, path=path)
    return None


def _wrong(struct: Struct, path: str) -> Iterator[tuple[str, str, object]]:
    """Path, expected type and value of each member that is of another type."""
    for info in fields(type(struct)):
        value: Any = getattr(struct, info.name)
        place = f"{path}.{info.encode_name}" if path else info.encode_name
        expected = _expected(info)
        if not isinstance(value, expected):
            yield place, expected[0].__name__, value
        elif info.name in _ITEMS:
            for position, item in enumerate(cast("Sequence[object]", value)):
                yield from _wrong_item(item, _ITEMS[info.name], f"{place}[{position}]")
        elif isinstance(value, Native):
            yield from _wrong(value, place)
        elif isinstance(value, UnknownMembers):
            yield from _wrong_member(value, place)


def _wrong_item(item: object, expected: type, path: str) -> Iterator[tuple[str, str, object]]:
    if not isinstance(item, expected):
        yield path, expected.__name__, item
    elif isinstance(item, Struct):
        yield from _wrong(item, path)


def _wrong_member(unknown: UnknownMembers, path: str) -> Iterator[tuple[str, str, object]]:
    for name, text in cast("Mapping[object, object]", unknown).items():
        if not isinstance(name, str):
            yield path, "str", name
        elif not isinstance(text, bytes):
            yield path, "bytes", text


def _expected(info: FieldInfo) -> tuple[type, ...]:
    if special := _SPECIAL.get(info.name):
        return special
    if info.name in _ITEMS:
        return tuple, list
    default: object = info.default
    return (str if info.required else type(default),)
