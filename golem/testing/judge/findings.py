"""What a rule found, and how to look at a body that may hold anything. Pure.

The walks over a request (`chat_rules`, `responses_rules`) say what is wrong and where;
`openai_words` has how OpenAI's family puts it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterator
from typing import Any, TypeGuard

from msgspec import Struct

JSON = dict[str, Any]
"""A decoded JSON object."""


class Violation(Struct, frozen=True):
    """One rule that a request breaks.

    `rule` is the judge's name for it, `place` where in the body it is
    (``messages[2].tool_calls[0].id``, ``""``: the body itself), `text` the provider's own words,
    `body` and `status` the answer it gives.
    """

    rule: str
    place: str
    text: str
    body: JSON
    status: int = 400

    def __str__(self) -> str:
        return f"{self.rule} at {self.place or 'the body'}: {self.text}"


# --- reading a body that may hold anything


def is_object(value: object) -> TypeGuard[JSON]:
    """Whether `value` is a decoded JSON object."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeGuard[list[Any]]:
    """Whether `value` is a decoded JSON array."""
    return isinstance(value, list)


def members(value: object) -> JSON:
    """`value` if it is an object, else one without members."""
    return value if is_object(value) else {}


def elements(value: object) -> list[Any]:
    """`value` if it is an array, else an empty one."""
    return value if is_array(value) else []


def one_of(value: object, words: Collection[str]) -> TypeGuard[str]:
    """Whether `value` is one of these words, whatever else it may be."""
    return isinstance(value, str) and value in words


def is_json_object(text: str) -> bool:
    """Whether `text` is strict JSON, and an object."""
    try:
        return isinstance(json.loads(text, parse_constant=_no_constant), dict)
    except (ValueError, RecursionError):
        return False


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def strings(value: object) -> Iterator[str]:
    """Every string in `value`, names of members included, without recursion."""
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif is_object(item):
            waiting.extend(item)
            waiting.extend(item.values())
        elif is_array(item):
            waiting.extend(item)


def half_characters(value: object) -> bool:
    """Whether half of a surrogate pair stands in some text of `value`, which no UTF-8 holds."""
    try:
        for text in strings(value):
            text.encode()
    except UnicodeEncodeError:
        return True
    return False


def endless_numbers(value: object) -> bool:
    """Whether some number in `value` is past the range of a double, as ``1e999`` is."""
    waiting: list[object] = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, float) and not math.isfinite(item):
            return True
        if is_object(item):
            waiting.extend(item.values())
        elif is_array(item):
            waiting.extend(item)
    return False


def says_json(value: object) -> bool:
    """Whether the word JSON stands in some text of `value`."""
    return any("json" in text.lower() for text in strings(value))
