"""Errors of Gemini: a refused request, an error inside a 200 answer, a blocked prompt.

The shape is ``{"error": {"code", "message", "status", "details"}}``, of Google's common error
model, sometimes inside a list; gateways send HTML or nothing. When to try again is in the
details, not in a header.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from golem.errors import APIError
from golem_adapters._toolkit.failures import retry_advice, words_of
from golem_adapters._toolkit.lenient import (
    elements,
    is_object,
    members,
    objects,
    read_json,
    text,
    whole,
)
from golem_adapters._toolkit.quoting import api_error, blanked, named
from golem_adapters._toolkit.waits import LONGEST_WAIT

STATUSES: Final[Mapping[str, int]] = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ABORTED": 409,
    "ALREADY_EXISTS": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "INTERNAL": 500,
    "UNKNOWN": 500,
    "DATA_LOSS": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
"""The HTTP status of each of Google's codes, for an error that comes without."""

_RETRYABLE: Final = frozenset({408, 429, 500, 502, 503, 504})
_SECONDS: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)s")


class _Complaint(NamedTuple):
    message: str
    code: str
    status: int | None
    delay: float | None
    request_id: str


def http_error(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, secret: str
) -> APIError:
    """The error that an unsuccessful HTTP answer means."""
    try:
        said = _complaint(read_json(body))
    except ValueError:
        said = _Complaint(
            words_of(body, status, functools.partial(blanked, secret)), "", None, None, ""
        )
    retryable, wait = retry_advice(status, headers, now, told=said.delay)
    return _error(said, status, headers, secret, retryable=retryable, wait=wait)


def error_within(value: Any, headers: Mapping[str, str], *, secret: str) -> APIError:
    """The error that stands inside an answer whose HTTP status was a success."""
    said = _complaint(value)
    status = said.status or STATUSES.get(said.code)
    wait = said.delay
    retryable = wait is None or wait <= LONGEST_WAIT
    return _error(said, status, headers, secret, retryable=retryable, wait=wait)


def blocked(reason: str, message: str, request_id: str) -> APIError:
    """The error for a prompt that the server refuses to answer; asking again does not help."""
    words = f"the prompt was blocked: {reason}"
    return APIError(
        f"{words}: {message}" if message else words, code=reason, request_id=request_id or None
    )


def request_id(headers: Mapping[str, str]) -> str:
    """What a gateway's support asks for; Google itself has the answer's own id for it."""
    return headers.get("x-request-id") or headers.get("x-goog-request-id") or ""


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
    retryable = retryable and status in _RETRYABLE
    too_long = wait is not None and wait > LONGEST_WAIT
    return api_error(
        secret,
        said.message,
        status=status,
        code=said.code,
        retryable=retryable,
        wait=wait if retryable or too_long else None,
        request_id=request_id(headers) or said.request_id,
    )


def _complaint(value: Any) -> _Complaint:
    wrapped = elements(value)
    body = members(wrapped[0] if wrapped else value)
    said = body.get("error") or body
    if not is_object(said):
        message = text(body.get("error_description")) or text(said)
        return _Complaint(message, "", None, None, "")
    details = objects(said.get("details"))
    number = whole(said.get("code"))
    return _Complaint(
        text(said.get("message")),
        text(said.get("status")) or text(said.get("code")),
        number if number is not None and 400 <= number < 600 else None,
        next(filter(None, map(_delay, details)), None),
        next(filter(None, (text(detail.get("requestId")) for detail in details)), ""),
    )


def _delay(detail: dict[str, Any]) -> float | None:
    """The seconds of a ``google.rpc.RetryInfo``, which other details do not have."""
    found = _SECONDS.fullmatch(text(detail.get("retryDelay")))
    return float(found[1]) if found else None
