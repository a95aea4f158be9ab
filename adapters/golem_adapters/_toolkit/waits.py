"""How long a provider says to wait, in all the spellings there are. Pure: the time is an argument.

`retry-after-ms` and `retry-after` are instructions. `x-ratelimit-reset-…` only tells when a limit
is full again, which is later than when the next request passes: it counts where the limit is used
up and nothing else was said, and never as a reason to give up.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

LONGEST_WAIT: Final = 120.0
"""Seconds. A longer wait is no pause in a request but an answer: the caller has to know."""

_UNITS: Final[Mapping[str, float]] = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|[smhd]))+")
_STEP: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhd])")
_LARGEST: Final = 1e15
"""Seconds. What more digits say is as final, and a number that JSON can spell."""

_RESET: Final = "x-ratelimit-reset"
_REMAINING: Final = "x-ratelimit-remaining"
_EPOCH: Final = 1e9
"""A number this large is a moment, not a time span: seconds since 1970, or milliseconds."""
_EPOCH_MS: Final = 1e11


def told_wait(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds that `headers` ask to wait, negative for a moment that is past; None: nothing."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    return wait_in(headers.get("retry-after", ""), now)


def wait_in(text: str, now: float) -> float | None:
    """The seconds that `text` means: a number, a duration (``1m2.5s``) or a date."""
    text = text.strip()
    number = _number(text)
    if number is not None:
        return number
    if _DURATION.fullmatch(text):
        steps = (float(count) * _UNITS[unit] for count, unit in _STEP.findall(text))
        return min(sum(steps), _LARGEST)
    moment = _moment(text)
    return None if moment is None else moment - now


def reset_wait(headers: Mapping[str, str], now: float) -> float | None:
    """The seconds until every used-up limit is full again, where that is a wait at all."""
    waits = [wait for wait in _resets(headers, now) if 0 < wait <= LONGEST_WAIT]
    return max(waits, default=None)


def _resets(headers: Mapping[str, str], now: float) -> Iterator[float]:
    for name, value in headers.items():
        if not name.startswith(_RESET):
            continue
        left = _number(headers.get(_REMAINING + name.removeprefix(_RESET), ""))
        wait = wait_in(value, now)
        if wait is None or (left is not None and left > 0):
            continue
        if wait >= _EPOCH_MS:
            wait /= 1000
        yield wait - now if wait >= _EPOCH else wait


def _moment(text: str) -> float | None:
    """Seconds since 1970 of an HTTP date in any of its forms, or of an ISO 8601 one."""
    for read in (parsedate_to_datetime, datetime.fromisoformat):
        try:
            moment = read(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
        except (ValueError, TypeError, OverflowError):
            continue
    return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    if math.isnan(number) or "inf" in text.lower():
        return None
    return max(-_LARGEST, min(number, _LARGEST))
