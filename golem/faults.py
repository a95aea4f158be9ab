"""What is wrong inside a history, named with its place.

Structs do not check what Python puts into them. What ``golem.glance`` has not found sound is
looked at here, member by member.
"""

from __future__ import annotations

from collections.abc import (
    AsyncIterable,
    Callable,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import contextmanager
from typing import Any, Final, cast

from msgspec import Raw, Struct
from msgspec.structs import FieldInfo, fields

from golem.errors import HistoryError
from golem.glance import odd_places
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
    UnknownMembers,
    UserMessage,
    not_a_message,
)

_MESSAGES: Final = frozenset(MESSAGE_TYPES.values())
_RAW: Final = frozenset({Raw})
_NONE: Final = ()
"""What a message without parts, calls or thinking has: there is but one empty tuple."""
_STORED: Final[tuple[type, ...]] = (str, bytes, bytearray)
_ITEMS: Final = {"parts": Part, "tool_calls": ToolCall, "thinking": Thinking, "items": Raw}
_SPECIAL: Final[dict[str, tuple[type, ...]]] = {
    "raw": (Raw, str),
    "native": (Native, type(None)),
    "data": (bytes, bytearray, memoryview),
}


def messages_in(history: Iterable[Message]) -> Iterable[Message]:
    """`history` as it is, once it is sure that it can be read one message after the other.

    Raises HistoryError, saying what was given, for anything else: one message, None, something
    asynchronous, a stored history. What an iterable of the caller's raises itself passes as it is.
    """
    given = type(history)
    if given is list or given is tuple:
        return history
    if issubclass(given, _STORED):  # whose items are no messages
        raise HistoryError(
            f"expected an iterable of messages, not {given.__name__}; load_history reads JSON"
        )
    if not _can_be_read(given, "__iter__", "__getitem__"):
        raise HistoryError(f"expected an iterable of messages, not {given.__name__}")
    return history


def messages_arriving_in(history: AsyncIterable[Message]) -> AsyncIterable[Message]:
    """`messages_in` for what is read asynchronously."""
    if not _can_be_read(type(history), "__aiter__"):
        given = type(history).__name__
        raise HistoryError(f"expected an asynchronous iterable of messages, not {given}")
    return history


def _can_be_read(given: type, *ways: str) -> bool:
    return any(getattr(given, way, None) is not None for way in ways)


def checked(history: Iterable[Message]) -> list[Message]:
    """The messages of `history`, all of them sound.

    Raises HistoryError, naming the place, for something that is no message, or the first member
    that is of another type than the contract's; and for what is no iterable.
    """
    messages = list(messages_in(history))
    check(messages)
    return messages


def check(messages: list[Message] | tuple[Message, ...]) -> None:
    """Raise what `checked` raises."""
    for index in odd_places(messages):
        require_sound(messages[index], index)


def require_sound(message: Any, index: int) -> None:
    """Raise what `checked` raises for this message."""
    if not _is_plain(message) and (fault := fault_of(message, index)):
        raise fault


def _is_plain(message: Any) -> bool:
    """Whether a message has exactly the types that the codec gives it, all the way down.

    No verdict where it is false: a list in place of a tuple, or a subclass of str, does no harm.
    """
    role = type(message)  # pyright: ignore[reportUnknownVariableType]
    if not (
        role in _MESSAGES
        and type(message.content) is str
        and type(message.run_id) is str
        and type(message.conversation_id) is str
        and type(message.seal) is str
        and (message.unknown is NO_MEMBERS or _are_plain_members(message.unknown))
    ):
        return False
    if role is AssistantMessage:
        return _is_plain_answer(message)
    if role is SystemMessage:
        return True
    if message.parts is not _NONE and not _are(message.parts, _is_plain_part):
        return False
    return role is UserMessage or (
        type(message.failed) is bool
        and type(message.tool_call_id) is str
        and type(message.tool_name) is str
    )


def _is_plain_answer(message: Any) -> bool:
    parts, calls, thinking = message.parts, message.tool_calls, message.thinking
    return (
        (calls is _NONE or _are(calls, _is_plain_call))
        and (thinking is _NONE or _are(thinking, _is_plain_block))
        and (parts is _NONE or _are(parts, _is_plain_part))
        and (message.native is None or _is_plain_native(message.native))
    )


def _are(items: Any, plain: Callable[[Any], bool]) -> bool:
    return type(items) is tuple and all(map(plain, cast("tuple[object, ...]", items)))


def _is_plain_call(call: Any) -> bool:
    return (
        type(call) is ToolCall
        and type(call.id) is str
        and type(call.name) is str
        and type(call.signature) is str
        and (call.unknown is NO_MEMBERS or _are_plain_members(call.unknown))
    )


def _is_plain_block(block: Any) -> bool:
    return (
        type(block) is Thinking
        and type(block.text) is str
        and type(block.signature) is str
        and type(block.redacted) is str
        and type(block.provider) is str
        and type(block.id) is str
        and (block.unknown is NO_MEMBERS or _are_plain_members(block.unknown))
    )


def _is_plain_part(part: Any) -> bool:
    return (
        type(part) is Part
        and type(part.kind) is str
        and type(part.url) is str
        and type(part.data) is bytes
        and type(part.media_type) is str
        and (part.unknown is NO_MEMBERS or _are_plain_members(part.unknown))
    )


def _is_plain_native(native: Any) -> bool:
    return (
        type(native) is Native
        and type(native.provider) is str
        and type(native.items) is tuple
        and _RAW.issuperset(map(type, native.items))
        and (native.unknown is NO_MEMBERS or _are_plain_members(native.unknown))
    )


def _are_plain_members(unknown: Any) -> bool:
    return type(unknown) is UnknownMembers and all(
        type(name) is str and type(text) is bytes for name, text in unknown.items()
    )


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
