"""Errors of Bedrock: a refused request, or an exception inside a stream.

The type stands in the header ``x-amzn-errortype`` (``Type:http://…``) or in the body under
``__type`` (``namespace#Type``), the words under ``message`` or ``Message``. An exception frame
names its type; the status that the service's model gives it stands for it.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Final

from golem.errors import APIError
from golem.wire.eventstream import Frame
from golem_adapters._toolkit.failures import retry_advice, words_of
from golem_adapters._toolkit.lenient import members, read_json, text
from golem_adapters._toolkit.quoting import Secrets, api_error, blanked, named

STATUSES: Final[Mapping[str, int]] = {
    "AccessDeniedException": 403,
    "ConflictException": 400,
    "InternalServerException": 500,
    "ModelErrorException": 424,
    "ModelNotReadyException": 429,
    "ModelStreamErrorException": 424,
    "ModelTimeoutException": 408,
    "ResourceNotFoundException": 404,
    "ServiceQuotaExceededException": 400,
    "ServiceUnavailableException": 503,
    "ThrottlingException": 429,
    "ValidationException": 400,
}
"""The status of each type of error in the service's model."""


def http_error(
    status: int, headers: Mapping[str, str], body: bytes, *, now: float, secrets: Secrets
) -> APIError:
    """The error that an unsuccessful HTTP answer means."""
    kind, message = _complaint(body)
    kind = _type_name(headers.get("x-amzn-errortype", "")) or kind
    retryable, wait = retry_advice(_judged_by(kind, status), headers, now)
    return api_error(
        secrets,
        message or _words(kind, body, status, secrets),
        status=status,
        code=kind,
        retryable=retryable,
        wait=wait,
        request_id=request_id(headers),
    )


def frame_error(frame: Frame, headers: Mapping[str, str], *, secrets: Secrets) -> APIError:
    """The error that an exception or error frame of a stream means."""
    _, message = _complaint(frame.payload)
    message = message or frame.headers.get(":error-message", "")
    kind = _type_name(frame.name)
    return _error(kind[:1].upper() + kind[1:], message, headers, secrets)


def error_within(body: bytes, headers: Mapping[str, str], *, secrets: Secrets) -> APIError | None:
    """The error in a body whose HTTP status was a success; None where it is none."""
    kind, message = _complaint(body)
    return _error(kind, message, headers, secrets) if kind or message else None


def request_id(headers: Mapping[str, str]) -> str:
    """What AWS's support asks for."""
    return headers.get("x-amzn-requestid") or headers.get("x-amzn-request-id") or ""


def answer_id(headers: Mapping[str, str], secrets: Secrets) -> str:
    """The same for an answer, where it does not show a key; empty for none."""
    return named(secrets, request_id(headers)) or ""


def _words(kind: str, body: bytes, status: int, secrets: Secrets) -> str:
    """What is said where the provider has no message: its body, unless that was its own JSON."""
    return words_of(b"" if kind else body, status, functools.partial(blanked, secrets))


def _error(kind: str, message: str, headers: Mapping[str, str], secrets: Secrets) -> APIError:
    status = STATUSES.get(kind)
    retryable = status is not None and retry_advice(_judged_by(kind, status), {}, 0.0)[0]
    return api_error(
        secrets,
        message,
        status=status,
        code=kind,
        retryable=retryable,
        request_id=request_id(headers),
    )


def _judged_by(kind: str, status: int) -> int:
    """The status that says whether to try again: that of the type, whatever a gateway made of it.

    The documentation says to try a model's own errors again, which have a status of their own.
    """
    known = STATUSES.get(kind, status)
    return 503 if known == STATUSES["ModelErrorException"] else known


def _type_name(spelled: str) -> str:
    """A type without the namespace in front of it and the address behind it."""
    return spelled.partition(":")[0].rpartition("#")[2].strip()


def _complaint(body: bytes) -> tuple[str, str]:
    """The type and the words in a body, either empty where it says none."""
    try:
        said: dict[str, Any] = members(read_json(body))
    except ValueError:
        return "", ""
    said = members(said.get("Output")) or members(said.get("error")) or said
    kind = text(said.get("__type")) or text(said.get("code")) or text(said.get("type"))
    words = text(said.get("message")) or text(said.get("Message"))
    original = text(said.get("originalMessage"))
    if original and original not in words:
        words = f"{words}: {original}" if words else original
    return _type_name(kind), words
