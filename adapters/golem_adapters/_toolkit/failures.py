"""Reading what a provider says when it refuses: whether to try again, when, and in what words.

The retry rules are the union of what the providers' own SDKs do (`x-should-retry`,
the retryable statuses, a wait told). Pure: the time is an argument.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final

from golem_adapters._toolkit.waits import LONGEST_WAIT, reset_wait, told_wait

_RETRYABLE: Final = frozenset({408, 409, 429})
_TOO_MANY: Final = 429
_LONGEST_TEXT: Final = 500
_LONGEST_BODY: Final = 64 * 1024
_LONGEST_SECRET: Final = 8 * 1024
_TAG: Final = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.DOTALL | re.IGNORECASE)


def retry_advice(
    status: int, headers: Mapping[str, str], now: float, *, told: float | None = None
) -> tuple[bool, float | None]:
    """Whether a request that got `status` may be sent again, and after how many seconds.

    `told` is the wait that the body asks for; a header goes before it. A wait past
    `golem_adapters._toolkit.waits.LONGEST_WAIT` is given too, for the caller to know: nothing is
    sent again by itself then.
    """
    wait = told_wait(headers, now)
    wait = told if wait is None else wait
    if wait is not None and wait > LONGEST_WAIT:
        return False, wait
    advised = headers.get("x-should-retry", "").strip().lower()
    if advised in ("true", "false"):
        retryable = advised == "true"
    else:
        retryable = status in _RETRYABLE or status >= 500
    if wait is None and status == _TOO_MANY:
        wait = reset_wait(headers, now)
    return retryable, wait if retryable and wait is not None and wait > 0 else None


def words_of(body: bytes, status: int | None, hide: Callable[[str], str]) -> str:
    """What a body that is not the provider's JSON says: a gateway's page, plain text, nothing.

    `hide` blanks the secrets that such a body may quote: before anything is cut, so that no part
    of one is left at a cut.
    """
    text = hide(body[:_LONGEST_BODY].decode("utf-8", "replace"))
    if len(body) > _LONGEST_BODY:
        text = text[:-_LONGEST_SECRET]
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
