"""How OpenAI and the servers like it put what is wrong with a request. Pure.

OpenAI says it inside ``{"error": …}``, Mistral flat, FastAPI servers as `detail`. The texts are
the providers' own where they are on record.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

from golem.testing.judge.findings import JSON, Violation, strings

CREATED: Final = 1_767_225_600
"""When every answer was made: the same in all of them, so that answers can be compared."""

BodyShape = Literal["openai", "mistral"]
"""How a server writes an error."""

INVALID_REQUEST: Final = "invalid_request_error"

UNREADABLE: Final = (
    "We could not parse the JSON body of your request. (HINT: This likely means you aren't using"
    " your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was"
    " not valid JSON. If you have trouble figuring out how to fix this, please contact us through"
    " our help center at help.openai.com.)"
)


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


# --- whole answers


def failed(message: str, status: int, code: str | None = None, shape: BodyShape = "openai") -> JSON:
    """The body of an error answer with this status."""
    if code == "insufficient_quota":
        kind = code
    elif status == 429:
        kind = "requests"
    else:
        kind = INVALID_REQUEST if status < 500 else "server_error"
    return error_body(message, kind=kind, code=code, shape=shape)


def refused_key(key: str, server: str) -> Violation:
    """The answer to a wrong key, or to none: a 401 in the words of `server`."""
    body = _refused_key(key, server)
    text = str(body.get("detail") or body["error"]["message"])
    return Violation("key", "", text, body, 401)


def _refused_key(key: str, server: str) -> JSON:
    shown = f"{key[:8]}*****{key[-4:]}" if len(key) > 12 else "*" * len(key)
    if server == "mistral":
        return {"detail": "Unauthorized"}
    if server == "azure":
        text = (
            "Access denied due to invalid subscription key or wrong API endpoint. Make sure to"
            " provide a valid key for an active subscription and use a correct regional API"
            " endpoint for your resource."
        )
        return {"error": {"code": "401", "message": text}}
    if server == "deepseek":
        text = f"Authentication Fails, Your api key: ****{key[-4:]} is invalid"
        return error_body(text, kind="authentication_error", code="invalid_request_error")
    if not key:
        text = (
            "You didn't provide an API key. You need to provide your API key in an Authorization"
            " header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY)."
        )
        return error_body(text)
    text = (
        f"Incorrect API key provided: {shown}. You can find your API key at"
        " https://platform.openai.com/account/api-keys."
    )
    return error_body(text, code="invalid_api_key")


def carriable(body: object, findings: Findings) -> None:
    """No half of a surrogate pair anywhere: no UTF-8 holds it, and providers refuse the body."""
    for text in strings(body):
        try:
            text.encode()
        except UnicodeEncodeError:
            findings.add("valid_utf8", "", UNREADABLE, param="")
            return
