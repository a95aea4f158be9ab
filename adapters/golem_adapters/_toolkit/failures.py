"""Reading what a provider says when it refuses: whether to try again, when, and in what words.

The retry rules are the union of what the providers' own SDKs do (`x-should-retry`,
`retry-after-ms`, `retry-after`, the retryable statuses). Pure: the time is an argument.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import Final

MAX_RETRY_AFTER: Final = 120.0
"""Seconds. A longer wait is no pause in a request but an answer: the caller has to know."""

_RETRYABLE: Final = frozenset({408, 409, 429})
_LONGEST_TEXT: Final = 500
_TAG: Final = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def retry_advice(status: int, headers: Mapping[str, str], now: float) -> tuple[bool, float | None]:
    """Whether a request that got `status` may be sent again, and after how many seconds."""
    wait = _retry_after(headers, now)
    if wait is not None and wait > MAX_RETRY_AFTER:
        return False, None
    advised = headers.get("x-should-retry", "").strip().lower()
    if advised in ("true", "false"):
        retryable = advised == "true"
    else:
        retryable = status in _RETRYABLE or status >= 500
    return retryable, wait if retryable and wait is not None and wait > 0 else None


def _retry_after(headers: Mapping[str, str], now: float) -> float | None:
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    text = headers.get("retry-after", "")
    seconds = _number(text)
    if seconds is not None or not text:
        return seconds
    try:
        return parsedate_to_datetime(text).timestamp() - now
    except (ValueError, TypeError, OverflowError):
        return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def words_of(body: bytes, status: int | None) -> str:
    """What a body that is not the provider's JSON says: a gateway's page, plain text, nothing."""
    text = body[: 64 * 1024].decode("utf-8", "replace")
    words = " ".join(html.unescape(_TAG.sub(" ", text)).split())
    if len(words) > _LONGEST_TEXT:
        words = words[:_LONGEST_TEXT] + "…"
    return words or phrase(status)


def phrase(status: int | None) -> str:
    """The standard words for a status, for an error that says nothing itself."""
    try:
        return HTTPStatus(status or 0).phrase
    except ValueError:
        return "the provider gave no reason"
