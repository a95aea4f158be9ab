"""Reading JSON that may hold anything anywhere: what fits is taken, what does not is nothing.

For the tolerant paths only; the ordinary ones decode into structs.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeGuard

from msgspec import Raw

from golem import rawjson

_LARGEST_WHOLE: Final = 2**53
"""Past it numbers in JSON are no longer exact. No count, place or status comes near."""

NOTHING: Final = Raw(b"null")
"""What stands for a JSON value that cannot be written."""


def read_json(data: bytes) -> Any:
    """Any JSON, however careless: a BOM, bad UTF-8, control characters, NaN. Raises ValueError."""
    try:
        words = data.decode("utf-8-sig", "replace")
        return json.loads(words, strict=False, parse_int=_integer)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _integer(text: str) -> float:
    """A whole number; one with more digits than Python reads is infinite, and JSON all the same."""
    try:
        return int(text)
    except ValueError:
        return float(text)


def is_object(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether `value` is a decoded JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether `value` is a decoded JSON array."""
    return isinstance(value, list)


def is_mapping(value: object) -> TypeGuard[Mapping[str, Any]]:
    """Whether `value` is what a program passes for an object: a dict, or a read-only view."""
    return isinstance(value, Mapping)


def is_listing(value: object) -> TypeGuard[Sequence[Any]]:
    """Whether `value` is what a program passes for an array."""
    return isinstance(value, (list, tuple))


def members(value: object) -> dict[str, Any]:
    """`value` if it is an object, else one without members."""
    return value if is_object(value) else {}


def elements(value: object) -> list[Any]:
    """`value` if it is an array, else an empty one."""
    return value if is_array(value) else []


def objects(value: object) -> list[dict[str, Any]]:
    """The objects among the elements of `value`."""
    return [item for item in elements(value) if is_object(item)]


def count_of(value: object) -> int:
    """How many values `value` holds, itself among them."""
    count, waiting = 0, [value]
    while waiting:
        item = waiting.pop()
        count += 1
        waiting.extend(item.values() if is_object(item) else elements(item))
    return count


def text(value: object) -> str:
    """`value` if it is a string, lone surrogates as U+FFFD, else an empty one."""
    return rawjson.clean_text(value) if isinstance(value, str) else ""


def clean(value: Any) -> Any:
    """`value` with every lone surrogate in it, at any depth, as U+FFFD."""
    if isinstance(value, str):
        return rawjson.clean_text(value)
    if is_mapping(value):
        return {clean(name): clean(member) for name, member in value.items()}
    return [clean(item) for item in value] if is_listing(value) else value


def whole(value: object) -> int | None:
    """`value` if it is a whole number, however it is spelled, that every JSON reader can hold."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if abs(value) <= _LARGEST_WHOLE else None


def written(value: Any) -> Raw:
    """`value` as JSON; what JSON cannot spell is null."""
    try:
        return Raw(json.dumps(clean(_finite(value)), separators=(",", ":")).encode())
    except RecursionError:
        return NOTHING


def _finite(value: Any) -> Any:
    """`value` with null for every number that JSON cannot spell."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_object(value):
        return {name: _finite(member) for name, member in value.items()}
    return list(map(_finite, elements(value))) if is_array(value) else value
