"""Errors of Messages servers: a refused request, or an error inside a 200 answer.

The shape is ``{"type": "error", "error": {"type", "message", "details"?: {"error_code"}},
"request_id"}``; compatible servers send OpenAI's, gateways HTML or nothing. An error inside a
stream has no HTTP status of its own: the one that is documented for its type stands for it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from golem.errors import APIError
from golem_adapters._toolkit.failures import retry_advice, words_of
from golem_adapters._toolkit.lenient import is_object, members, read_json, text, whole
from golem_adapters._toolkit.quoting import api_error, blanked, named

STATUSES: Final[Mapping[str, int]] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The status of each type of error, for one that comes without."""

_EXHAUSTED: Final = frozenset({"enforced_spend_limit_reached", "contract_spend_limit_reached"})
"""Codes of a 429 that only money cures, where no retry-after says when it will pass."""


class _Complaint(NamedTuple):
    message: str
    kind: str
    code: str
    status: int | None
    request_id: str


def http_error(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, secret: str
) -> APIError:
    """The error that an unsuccessful HTTP answer means."""
    try:
        said = _complaint(read_json(body))
    except ValueError:
        said = _Complaint(
            words_of(body, status, functools.partial(blanked, secret)), "", "", None, ""
        )
    retryable, wait = retry_advice(status, headers, now)
    if said.code in _EXHAUSTED and wait is None:
        retryable = False
    return _error(said, status, headers, secret, retryable=retryable, wait=wait)


def error_within(value: Any, headers: Mapping[str, str], *, secret: str) -> APIError:
    """The error that stands inside an answer whose HTTP status was a success."""
    said = _complaint(value)
    status = said.status or STATUSES.get(said.kind)
    retryable = status is not None and retry_advice(status, {}, 0.0)[0]
    retryable = retryable and said.code not in _EXHAUSTED
    return _error(said, status, headers, secret, retryable=retryable, wait=None)


def request_id(headers: Mapping[str, str]) -> str:
    """What the server's support asks for."""
    return headers.get("request-id") or headers.get("x-request-id") or ""


def answer_id(headers: Mapping[str, str], secret: str) -> str:
    """The same for an answer, where it does not show the key; empty for none."""
    return named(secret, request_id(headers)) or ""


def _error(
    said: _Complaint,
    status: int | None,
    headers: Mapping[str, str],
    secret: str,
    *,
    retryable: bool,
    wait: float | None,
) -> APIError:
    return api_error(
        secret,
        said.message,
        status=status,
        code=said.code or said.kind,
        retryable=retryable,
        wait=wait,
        request_id=request_id(headers) or said.request_id,
    )


def _complaint(value: Any) -> _Complaint:
    body = members(value)
    said = body.get("error") or value
    if not is_object(said):
        return _Complaint(text(said), "", "", None, "")
    code = text(members(said.get("details")).get("error_code")) or text(said.get("error_code"))
    number = whole(said.get("code"))
    kind = text(said.get("type")) or text(said.get("code"))
    if said is value and kind == "error":
        kind = ""  # an error without its object
    message = text(said.get("message")) or text(said.get("detail"))
    status = number if number is not None and 400 <= number < 600 else None
    return _Complaint(message, kind, code, status, text(body.get("request_id")))
