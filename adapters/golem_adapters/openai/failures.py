"""Errors of Chat Completions servers: a refused request, or an error inside a 200 answer.

The common shape is ``{"error": {"message", "type", "code"}}``; Mistral's is flat, some send a
bare string, FastAPI a `detail`, gateways HTML or nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from golem.errors import APIError
from golem_adapters._toolkit.failures import phrase, retry_advice, words_of
from golem_adapters._toolkit.lenient import (
    elements,
    is_array,
    is_object,
    members,
    objects,
    read_json,
    text,
    whole,
)

_EXHAUSTED: Final = frozenset({"insufficient_quota", "billing_hard_limit_reached"})
"""Codes of a 429 that waiting does not cure; the official SDK retries them in vain."""

_PASSING: Final = ("overloaded", "rate_limit", "server_error", "timeout", "unavailable")
"""Words in the code of an error without a status (inside a stream) that will pass."""

_SHORTEST_SECRET: Final = 8
"""Shorter keys are placeholders ("none", "ollama"); blanking them would garble the text."""


class _Complaint(NamedTuple):
    message: str
    code: str
    kind: str
    status: int | None


def http_error(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, secret: str
) -> APIError:
    """The error that an unsuccessful HTTP answer means."""
    try:
        said = _complaint(read_json(body))
    except ValueError:
        said = _Complaint(words_of(body, status), "", "", None)
    retryable, wait = retry_advice(status, headers, now)
    if {said.code, said.kind} & _EXHAUSTED:
        retryable, wait = False, None
    return APIError(
        blanked(secret, said.message or phrase(status)),
        status=status,
        code=blanked(secret, said.code or said.kind) or None,
        retryable=retryable,
        retry_after=wait,
        request_id=request_id(headers) or None,
    )


def error_within(value: Any, headers: Mapping[str, str], *, secret: str) -> APIError:
    """The error that stands inside an answer whose HTTP status was a success."""
    said = _complaint(value)
    if said.status is not None:
        retryable, _ = retry_advice(said.status, {}, 0.0)
    else:
        words = f"{said.code} {said.kind}".lower()
        retryable = any(word in words for word in _PASSING)
    return APIError(
        blanked(secret, said.message or phrase(said.status)),
        status=said.status,
        code=blanked(secret, said.code or said.kind) or None,
        retryable=retryable and not {said.code, said.kind} & _EXHAUSTED,
        request_id=request_id(headers) or None,
    )


def request_id(headers: Mapping[str, str]) -> str:
    """What the server's support asks for."""
    for name in ("x-request-id", "apim-request-id", "mistral-correlation-id", "x-kong-request-id"):
        if headers.get(name):
            return headers[name]
    return ""


def _complaint(value: Any) -> _Complaint:
    wrapped = elements(value)
    if wrapped:
        value = wrapped[0]
    said = members(value).get("error") or value
    if not is_object(said):
        return _Complaint(_words(said), "", "", None)
    message = _words(said.get("message")) or _words(said.get("detail"))
    raw = text(members(said.get("metadata")).get("raw"))
    if raw:
        message = f"{message}: {raw}" if message else raw
    code = _words(said.get("code"))
    statuses = map(_status, (said.get("status_code"), said.get("status"), code))
    status = next((found for found in statuses if found is not None), None)
    return _Complaint(message, code, _words(said.get("type")), status)


def _words(value: object) -> str:
    """Whatever stands where a text is expected, as text; nothing for null."""
    if isinstance(value, str):
        return text(value)
    if is_array(value):  # FastAPI: one entry for each field that does not validate
        return "; ".join(text(item.get("msg")) for item in objects(value))
    if is_object(value):
        return text(value.get("message"))
    return "" if value is None or isinstance(value, bool) else str(value)


def _status(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    number = whole(value)
    return number if number is not None and 400 <= number < 600 else None


def excerpt(data: bytes, secret: str) -> str:
    """The beginning of `data`, for an error's text."""
    words = data[:80].decode("utf-8", "replace") + ("…" if len(data) > 80 else "")
    return repr(blanked(secret, words))


def blanked(secret: str, words: str) -> str:
    """`words` with the key blanked: servers (and debug proxies) quote what they were sent."""
    if len(secret) < _SHORTEST_SECRET:
        return words
    return words.replace(secret, "[key]")
