"""What is wrong inside a history that a pass has stumbled over.

Structs do not check what Python puts into them, and a check of every member in every pass would
cost more than the passes do. So they run unchecked, and only what fails is looked at closely.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, cast

from msgspec import Raw, Struct
from msgspec.structs import FieldInfo, fields

from golem.errors import HistoryError
from golem.messages import (
    MESSAGE_TYPES,
    Native,
    Part,
    Thinking,
    ToolCall,
    not_a_message,
)

_MESSAGES: Final = tuple(MESSAGE_TYPES.values())
_ITEMS: Final = {"parts": Part, "tool_calls": ToolCall, "thinking": Thinking, "items": Raw}
_SPECIAL: Final[dict[str, tuple[type, ...]]] = {
    "raw": (Raw, str),
    "native": (Native, type(None)),
}


@contextmanager
def named_faults(messages: Sequence[object]) -> Generator[None]:
    """Turn what a pass raises over a malformed message into a HistoryError that names the place.

    Where no message is at fault the exception is a bug, and passes as it is.
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
            for position, item in enumerate(cast("tuple[object, ...]", value)):
                yield from _wrong_item(item, _ITEMS[info.name], f"{place}[{position}]")
        elif isinstance(value, Native):
            yield from _wrong(value, place)


def _wrong_item(item: object, expected: type, path: str) -> Iterator[tuple[str, str, object]]:
    if not isinstance(item, expected):
        yield path, expected.__name__, item
    elif isinstance(item, Struct):
        yield from _wrong(item, path)


def _expected(info: FieldInfo) -> tuple[type, ...]:
    if special := _SPECIAL.get(info.name):
        return special
    default: object = info.default
    return (str if info.required else type(default),)
