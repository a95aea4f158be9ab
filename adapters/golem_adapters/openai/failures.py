"""Errors of Chat Completions servers: a refused request, or an error inside a 200 answer.

The common shape is ``{"error": {"message", "type", "code"}}``. Mistral's and Cerebras's are flat,
xAI's is a text with a code beside it, some send a bare string, FastAPI a `detail`, Google a list of
one, gateways HTML or nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from golem.errors import APIError
from golem_adapters._toolkit.failures import retry_advice, words_of
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
from golem_adapters._toolkit.quoting import api_error, blanked, named
from golem_adapters._toolkit.waits import wait_in

_EXHAUSTED: Final = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "exceeded_current_quota_error",  # Moonshot
        "1113",  # z.ai: the balance is used up
    }
)
"""Codes of a 429 that waiting does not cure; the official SDK retries them in vain. Inside a stream
the status is left out: the 429 that is documented for them stands for it."""

_TOO_MANY: Final = 429

_PASSING: Final = (
    *("overloaded", "rate_limit", "server_error", "internal", "timeout", "unavailable"),
    *("too_many_requests", "insufficient_system_resource"),
)
"""Words in the code of an error without a status (inside a stream) that will pass."""

_REQUEST_IDS: Final = (
    "x-request-id",
    "apim-request-id",  # Azure's front
    "mistral-correlation-id",
    "x-kong-request-id",
    "request-id",
    "x-amzn-requestid",
    "cf-ray",  # the front of several hosts that name nothing themselves
)
_MESSAGES: Final = ("message", "detail", "msg", "error_description", "faultstring", "title")


class _Complaint(NamedTuple):
    """What a body says; `wait` in seconds, `headers` those of another server it speaks for."""

    message: str
    code: str = ""
    kind: str = ""
    status: int | None = None
    request_id: str = ""
    wait: float | None = None
    headers: Mapping[str, str] = MappingProxyType({})


def http_error(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, secret: str
) -> APIError:
    """The error that an unsuccessful HTTP answer means."""
    try:
        said = _complaint(read_json(body))
    except ValueError:
        said = _Complaint(words_of(body, status, functools.partial(blanked, secret)))
    retryable, wait = retry_advice(status, {**said.headers, **headers}, now, told=said.wait)
    if _exhausted(said):
        retryable, wait = False, None
    return api_error(
        secret,
        said.message,
        status=status,
        code=said.code or said.kind,
        retryable=retryable,
        wait=wait,
        request_id=request_id(headers) or said.request_id,
    )


def error_within(value: Any, headers: Mapping[str, str], *, secret: str) -> APIError:
    """The error that stands inside an answer whose HTTP status was a success."""
    said = _complaint(value)
    status = said.status
    if _exhausted(said):
        status, retryable, wait = status or _TOO_MANY, False, None
    elif status is not None:
        retryable, wait = retry_advice(status, {}, 0.0, told=said.wait)
    else:
        words = f"{said.code} {said.kind}".lower()
        retryable, wait = any(word in words for word in _PASSING), None
    return api_error(
        secret,
        said.message,
        status=status,
        code=said.code or said.kind,
        retryable=retryable,
        wait=wait,
        request_id=request_id(headers) or said.request_id,
    )


def request_id(headers: Mapping[str, str]) -> str:
    """What the server's support asks for."""
    return next((headers[name] for name in _REQUEST_IDS if headers.get(name)), "")


def answer_id(headers: Mapping[str, str], secret: str) -> str:
    """The same for an answer, where it does not show the key; empty for none."""
    return named(secret, request_id(headers)) or ""


def _exhausted(said: _Complaint) -> bool:
    return not _EXHAUSTED.isdisjoint((said.code, said.kind))


def _complaint(value: Any) -> _Complaint:
    wrapped = elements(value)
    if wrapped:
        value = wrapped[0]
    outer = members(value)
    named = outer.get("error") or outer.get("fault") or outer.get("errors")
    said = members(named) or outer
    message = next(filter(None, (_words(said.get(name)) for name in _MESSAGES)), "")
    code = _words(said.get("code"))
    if not is_object(named):  # a text, with what there is to say about it beside it, or nothing
        words = _words(named if outer else value)
        message, code = message or words, code or (words if message else "")
    metadata = members(said.get("metadata"))
    raw = text(metadata.get("raw"))
    if raw:
        message = f"{message}: {raw}" if message else raw
    statuses = map(_status, (said.get("status_code"), said.get("status"), code))
    return _Complaint(
        message,
        code,
        _words(said.get("type")),
        next((found for found in statuses if found is not None), None),
        text(said.get("request_id")) or text(outer.get("request_id")),
        _wait(said),
        _strings(metadata.get("headers")),
    )


def _wait(said: Mapping[str, Any]) -> float | None:
    """The wait in Google's details of an error."""
    delays = (text(detail.get("retryDelay")) for detail in objects(said.get("details")))
    return next((wait for delay in delays if (wait := wait_in(delay, 0.0)) is not None), None)


def _strings(value: Any) -> dict[str, str]:
    """The texts of an object, under their names in lower case, as header names are."""
    named = members(value).items()
    return {name.lower(): words for name, given in named if (words := _words(given))}


def _words(value: object) -> str:
    """Whatever stands where a text is expected, as text; nothing for null."""
    if isinstance(value, str):
        return text(value)
    if is_object(value):  # Mistral: FastAPI's in place of a message
        inner = (value.get(name) for name in _MESSAGES)
        return next(filter(None, (text(said) or _listed(said) for said in inner)), "")
    if is_array(value):
        return _listed(value)
    return "" if value is None or isinstance(value, bool) else str(value)


def _listed(value: object) -> str:
    """FastAPI's words: one entry for each field that does not validate."""
    named = (text(item.get("msg")) or text(item.get("message")) for item in objects(value))
    return "; ".join(filter(None, named)) or "; ".join(filter(None, map(text, elements(value))))


def _status(value: object) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    number = whole(value)
    return number if number is not None and 400 <= number < 600 else None
