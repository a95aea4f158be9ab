"""How Anthropic puts what is wrong with a request. Pure.

``{"type": "error", "error": {"type", "message"}, "request_id"}``. Its validation names the place in
dots and by the block's type (``messages.1.content.0.tool_use.id: String should match …``); the
texts are the provider's own where they are on record (§1.3 of the wire formats and the reports
that it names).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from golem.testing.judge.findings import JSON, Violation

INVALID_REQUEST: Final = "invalid_request_error"
REQUEST_ID: Final = "req_011CVEA3SF7rnb3DuBZytqQa"
"""In every error's body: the same in all of them, so that answers can be compared."""

UNREADABLE: Final = "The request body is not valid JSON: expected value: line 1 column 1 (char 0)"
SURROGATE: Final = "The request body is not valid JSON: no low surrogate in string"
NUMBER: Final = "The request body is not valid JSON: number out of range"

TYPES: Final[Mapping[int, str]] = {
    400: INVALID_REQUEST,
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""The type of an error by its status; every other is an ``api_error``."""


class Findings:
    """Collects the violations of one request, in Anthropic's words."""

    def __init__(self) -> None:
        self.found: list[Violation] = []

    def add(self, rule: str, place: str, text: str, *, bare: bool = False) -> None:
        """Note a violation; the provider names the place in front, unless the text is `bare`."""
        words = text if bare or not place else f"{place}: {text}"
        self.found.append(Violation(rule, place, words, failed(words, 400)))

    # --- what the validation says about any member

    def missing(self, place: str) -> None:
        """A required member is not there."""
        self.add("required_member", place, "Field required")

    def unknown(self, place: str) -> None:
        """A member that the provider does not know."""
        self.add("unknown_member", place, "Extra inputs are not permitted")

    def wrong_type(self, place: str, wanted: str) -> None:
        """A member of another type than ``a valid string``, ``a valid list`` or the like."""
        self.add("member_type", place, f"Input should be {wanted}")

    def wrong_value(self, rule: str, place: str, known: tuple[str, ...]) -> None:
        """A member that holds none of the words that the provider knows."""
        *most, last = (f"'{word}'" for word in known)
        words = f"{', '.join(most)} or {last}" if most else last
        self.add(rule, place, f"Input should be {words}")

    def pattern(self, rule: str, place: str, pattern: str) -> None:
        """A text with characters that are not allowed, or too many of them."""
        self.add(rule, place, f"String should match pattern '{pattern}'")


def failed(message: str, status: int, kind: str | None = None) -> JSON:
    """The body of an error answer with this status."""
    error = {"type": kind or TYPES.get(status, "api_error"), "message": message}
    return {"type": "error", "error": error, "request_id": REQUEST_ID}


def refused_key(key: str) -> Violation:
    """The answer to a wrong key, or to none."""
    text = "invalid x-api-key" if key else "x-api-key header is required"
    return Violation("key", "", text, failed(text, 401), 401)
