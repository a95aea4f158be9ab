"""What a rule found: a violation, with the answer that the provider gives to it. Pure.

The walks over a request (`chat_rules`, `responses_rules`) say what is wrong and where; here is
how a provider puts it: OpenAI inside ``{"error": …}``, Mistral flat, FastAPI servers as `detail`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, Literal, TypeGuard

from msgspec import Struct

JSON = dict[str, Any]
"""A decoded JSON object."""

BodyShape = Literal["openai", "mistral"]
"""How a provider writes an error."""

INVALID_REQUEST: Final = "invalid_request_error"


class Violation(Struct, frozen=True):
    """One rule that a request breaks.

    `rule` is the judge's name for it, `place` where in the body it is
    (``messages[2].tool_calls[0].id``, ``""``: the body itself), `text` the provider's own words,
    `status` and `body` the answer it gives.
    """

    rule: str
    place: str
    text: str
    body: JSON
    status: int = 400

    def __str__(self) -> str:
        return f"{self.rule} at {self.place or 'the body'}: {self.text}"


class Findings:
    """Collects the violations of one request, worded as one provider does."""

    def __init__(self, shape: BodyShape = "openai") -> None:
        self.found: list[Violation] = []
        self._shape: BodyShape = shape

    def add(
        self,
        rule: str,
        place: str,
        text: str,
        *,
        code: str | None = None,
        kind: str = INVALID_REQUEST,
        param: str | None = None,
        status: int = 400,
    ) -> None:
        """Note a violation; `param` is what the provider names, by default the place."""
        named = (place if param is None else param) or None
        if self._shape == "mistral":
            named = None  # it never says where
        body = error_body(text, kind=kind, code=code, param=named, shape=self._shape)
        self.found.append(Violation(rule, place, text, body, status))

    # --- what OpenAI's validation says about any member

    def missing(self, place: str) -> None:
        """A required member is not there."""
        text = f"Missing required parameter: '{place}'."
        self.add("required_member", place, text, code="missing_required_parameter")

    def unknown(self, place: str) -> None:
        """A member that the provider does not know."""
        self.add(
            "unknown_member", place, f"Unknown parameter: '{place}'.", code="unknown_parameter"
        )

    def wrong_type(self, place: str, wanted: str, value: object) -> None:
        """A member of another type than the provider wants."""
        text = (
            f"Invalid type for '{place}': expected {wanted}, but got {_type_name(value)} instead."
        )
        self.add("member_type", place, text, code="invalid_type")

    def wrong_value(self, rule: str, place: str, value: object, supported: tuple[str, ...]) -> None:
        """A member that holds none of the words that the provider knows."""
        *most, last = (f"'{word}'" for word in supported)
        words = f"{', '.join(most)}, and {last}" if most else last
        text = f"Invalid value: '{value}'. Supported values are: {words}."
        self.add(rule, place, text, code="invalid_value")

    def pattern(self, rule: str, place: str, pattern: str) -> None:
        """A text with characters that are not allowed."""
        text = (
            f"Invalid '{place}': string does not match pattern."
            f" Expected a string that matches the pattern '{pattern}'."
        )
        self.add(rule, place, text, code="invalid_value")

    def length(self, rule: str, place: str, value: str, longest: int) -> None:
        """A text that is too long, or empty."""
        if value:
            text = f"string too long. Expected a string with maximum length {longest}, but got a"
            text += f" string with length {len(value)} instead."
            code = "string_above_max_length"
        else:
            text = "empty string. Expected a string with minimum length 1, but got an empty string"
            text += " instead."
            code = "empty_string"
        self.add(rule, place, f"Invalid '{place}': {text}", code=code)

    def empty_array(self, place: str) -> None:
        """An array that has to hold something."""
        text = (
            f"Invalid '{place}': empty array. Expected an array with minimum length 1,"
            " but got an empty array instead."
        )
        self.add("empty_array", place, text, code="empty_array")


def error_body(
    text: str,
    *,
    kind: str = INVALID_REQUEST,
    code: str | None = None,
    param: str | None = None,
    shape: BodyShape = "openai",
) -> JSON:
    """The body of an error answer."""
    if shape == "mistral":
        return {"object": "error", "message": text, "type": kind, "param": param, "code": code}
    return {"error": {"message": text, "type": kind, "param": param, "code": code}}


_TYPE_NAMES: Final[Mapping[str, str]] = {
    "dict": "an object",
    "list": "an array",
    "str": "a string",
    "bool": "a boolean",
    "int": "an integer",
    "float": "a decimal",
    "NoneType": "null",
}


def _type_name(value: object) -> str:
    name = type(value).__name__
    return _TYPE_NAMES.get(name, name)


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


def says_json(value: object) -> bool:
    """Whether the word JSON stands in some text of `value`."""
    return any("json" in text.lower() for text in strings(value))


def carriable(body: object, findings: Findings) -> None:
    """No half of a surrogate pair anywhere: no UTF-8 holds it, and providers refuse the body."""
    for text in strings(body):
        try:
            text.encode()
        except UnicodeEncodeError:
            findings.add("valid_utf8", "", UNREADABLE, param="")
            return


UNREADABLE: Final = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using"
    " your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was"
    " not valid JSON. If you have trouble figuring out how to fix this, please contact us through"
    " our help center at help.openai.com.)"
)
