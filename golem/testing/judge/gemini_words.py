"""How Google puts what is wrong with a Gemini request. Pure.

All errors have the one shape of Google's APIs. What the parser of the request finds is named by
field, in the proto's own spelling; what the rules find is a sentence. The texts are the
provider's own where they are on record, in recordings and in public reports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from golem.testing.judge.findings import JSON, Violation

LEARN_SIGNATURES: Final = (
    "Please refer to https://ai.google.dev/gemini-api/docs/thought-signatures for more details."
)
_TYPE: Final = "type.googleapis.com/google.rpc."
_STATUSES: Final[Mapping[int, str]] = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    503: "UNAVAILABLE",
    504: "DEADLINE_EXCEEDED",
}
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def snake(name: str) -> str:
    """A name as the proto spells it: ``functionCall`` is ``function_call``."""
    return _HUMP.sub("_", name).lower()


def camel(name: str) -> str:
    """A name as JSON spells it: ``function_call`` is ``functionCall``."""
    head, *rest = name.split("_")
    return head + "".join(word[:1].upper() + word[1:] for word in rest)


class Findings:
    """Collects the violations of one request."""

    def __init__(self) -> None:
        self.found: list[Violation] = []

    def add(self, rule: str, place: str, text: str, *details: JSON) -> None:
        """Note a violation of a rule about whole requests."""
        body = error_body(text, 400, *details)
        self.found.append(Violation(rule, place, text, body))

    def field(self, rule: str, place: str, text: str) -> None:
        """Note what the parser says of a field; `place` is in JSON's spelling."""
        named = {"field": spelled(place)} if place else {}
        violation = {**named, "description": text}
        detail = {"@type": f"{_TYPE}BadRequest", "fieldViolations": [violation]}
        self.add(rule, place, text, detail)

    # --- what the parser says of any field

    def unknown(self, place: str, name: str) -> None:
        """A member that the message does not have."""
        where = f" at '{spelled(place)}'" if place else ""
        text = f'Invalid JSON payload received. Unknown name "{name}"{where}: Cannot find field.'
        self.field("unknown_member", place, text)

    def wrong_type(self, place: str, wanted: str, value: object) -> None:
        """A member of another type than the message has there."""
        text = f"Invalid value at '{spelled(place)}' ({wanted}), {_shown(value)}"
        self.field("member_type", place, text)

    def not_repeating(self, place: str) -> None:
        """A list where there is one value."""
        text = (
            f"Invalid JSON payload received. Unknown name \"\" at '{spelled(place)}': Proto field"
            " is not repeating, cannot start list."
        )
        self.field("member_type", place, text)

    # --- what the rules say of a field

    def request(self, rule: str, place: str, text: str) -> None:
        """Note what a rule says of one field of the request."""
        self.add(rule, place, f"* GenerateContentRequest.{spelled(place)}: {text}\n")


def spelled(place: str) -> str:
    """A place in a body as the proto spells it."""
    return ".".join(map(snake, place.split(".")))


def _shown(value: object) -> str:
    return f'"{value[:80]}"' if isinstance(value, str) else str(value)[:80]


# --- whole answers


def error_body(text: str, status: int, *details: JSON, code: str | None = None) -> JSON:
    """The body of an error answer."""
    said: JSON = {"code": status, "message": text, "status": code or status_word(status)}
    if details:
        said["details"] = list(details)
    return {"error": said}


def status_word(status: int) -> str:
    """Google's own word for an HTTP status."""
    return _STATUSES.get(status, "INVALID_ARGUMENT" if status < 500 else "INTERNAL")


def retry_info(seconds: str) -> JSON:
    """The detail that says how long to wait."""
    return {"@type": f"{_TYPE}RetryInfo", "retryDelay": f"{seconds}s"}


def refused_key(key: str, *, vertex: bool) -> Violation:
    """The answer to a wrong key or token, or to none."""
    if vertex:
        text = (
            "Request had invalid authentication credentials. Expected OAuth 2 access token, login"
            " cookie or other valid authentication credential. See"
            " https://developers.google.com/identity/sign-in/web/devconsole-project."
        )
        return _refused(text, 401, _error_info("ACCESS_TOKEN_TYPE_UNSUPPORTED", {}))
    if not key:
        text = (
            "Method doesn't allow unregistered callers (callers without established identity)."
            " Please use API Key or other form of API consumer identity to call this API."
        )
        return _refused(text, 403)
    text = "API key not valid. Please pass a valid API key."
    service = {"service": "generativelanguage.googleapis.com"}
    local = {"@type": f"{_TYPE}LocalizedMessage", "locale": "en-US", "message": text}
    return _refused(text, 400, _error_info("API_KEY_INVALID", service), local)


def _refused(text: str, status: int, *details: JSON) -> Violation:
    return Violation("key", "", text, error_body(text, status, *details), status)


def _error_info(reason: str, metadata: Mapping[str, Any]) -> JSON:
    return {
        "@type": f"{_TYPE}ErrorInfo",
        "reason": reason,
        "domain": "googleapis.com",
        "metadata": dict(metadata),
    }
