"""What to say of an exchange that failed: a broken connection, a redirect, too large an answer.

Pure, and with no HTTP client in it: a client's errors are told by their class names, because the
clients that golem takes (httpx, httpx2) have the same names in trees of their own. Nothing that a
server said is quoted unless it is plainly what it should be: it may hold what it was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from golem.errors import APIError, ProtocolError, ProviderError, TransportError
from golem.messages import AssistantMessage

_FAILURES: Final[Mapping[str, tuple[str, bool]]] = {
    "ConnectTimeout": ("{host} could not be reached in time", True),
    "ReadTimeout": ("{host} sent nothing for too long", True),
    "WriteTimeout": ("{host} did not take the request in time", True),
    "PoolTimeout": ("no connection to {host} became free in time", True),
    "TimeoutException": ("{host} did not answer in time", True),
    "ProxyError": ("the proxy refused the connection to {host}", True),
    "ConnectError": ("no connection to {host}", True),
    "ReadError": ("the connection to {host} was lost while reading", True),
    "WriteError": ("the connection to {host} was lost while writing", True),
    "RemoteProtocolError": ("{host} broke off its answer", True),
    "LocalProtocolError": ("the request to {host} is not valid HTTP", False),
    "UnsupportedProtocol": ("the URL of {host} is not an HTTP one", False),
    "InvalidURL": ("the URL of {host} is not valid", False),
    "DecodingError": ("the answer of {host} is compressed wrongly", True),
    "NetworkError": ("the connection to {host} failed", True),
    "HTTPError": ("the exchange with {host} failed", True),
}
"""What to say, and whether trying again may help; `translated` takes the most specific one."""

_HOST: Final = re.compile(r"[a-z0-9._-]{1,253}|[0-9a-f:.]{2,45}")
"""A host's name, as long as DNS allows, or an address; in lower case, as `urlsplit` gives it."""

_SHORTEST_SECRET: Final = 8
"""Shorter keys are placeholders ("none", "ollama"), and may well be part of a host's name."""

_BLANK: Final = "[key]"

_PUBLIC: Final = frozenset({"x-amz-date"})
"""Headers of a proof that are no secret, and stand in what a server says of it."""


def translated(error: Exception, host: str) -> TransportError:
    """The golem error for an error of the HTTP client; the caller chains it.

    Says what happened and to which host, in words of its own: the client's text may quote a
    header, and with it the key.
    """
    for cls in type(error).__mro__:
        if cls.__name__ in _FAILURES:
            reason, retryable = _FAILURES[cls.__name__]
            break
    else:
        reason, retryable = "the exchange with {host} failed", True
    return TransportError(reason.format(host=host), retryable=retryable)


def unsendable(host: str) -> TransportError:
    """The error for a request that the client cannot write: its address or a header is none."""
    return TransportError(f"the request to {host} is not valid HTTP", retryable=False)


def is_redirect_fault(error: Exception) -> bool:
    """Whether a client that was sending failed at an address: that of a redirect.

    httpx's kind reads it although it is not to follow any, and says so, finds the URL invalid,
    or lets the ValueError of a parser through. The request's own was read before.
    """
    named = type(error).__name__ == "InvalidURL" or "location header" in str(error).lower()
    return named or isinstance(error, ValueError)


def redirected(location: str, secrets: Iterable[str], status: int | None = None) -> APIError:
    """The error for an answer with a 3xx status: never followed, and never retryable.

    `location` is where it points, as the server wrote it; `secrets` are what the request carried.
    """
    target = _shown_host(location, secrets)
    if target:
        reason = f"the server redirects to {target}; give its final address as base_url"
    elif location:
        reason = "the server redirects to an address that cannot be shown; check base_url"
    elif status is None or status in _MOVED:
        reason = "the server redirects without a usable address; check base_url"
    else:
        phrase = HTTPStatus(status).phrase if status in set(HTTPStatus) else "Unknown"
        reason = f"the server answered {status} {phrase}, which answers no request; check base_url"
    return APIError(reason, status=status, code="redirect")


_MOVED: Final = frozenset({301, 302, 303, 307, 308})


def _shown_host(location: str, secrets: Iterable[str]) -> str:
    """The host in `location`; a relative one leads to another place; empty: none to be shown."""
    try:
        parts = urlsplit(location)
        host, _ = parts.hostname, parts.port
    except ValueError:  # brackets that do not close, a port that is no number
        return ""
    if not host:
        return "another place" if parts.path.strip() and not parts.scheme else ""
    hidden = (secret.lower() for secret in secrets if len(secret) >= _SHORTEST_SECRET)
    return host if _HOST.fullmatch(host) and not any(word in host for word in hidden) else ""


def too_large(limit: int, partial: AssistantMessage | None = None) -> ProtocolError:
    """The error for an answer of more than `limit` bytes."""
    return ProtocolError(f"the answer is larger than {limit} bytes", partial=partial)


# --- secrets


def secrets_in(credentials: Mapping[str, str]) -> list[str]:
    """What no error may quote of what `credentials`, the headers of a request, carry."""
    found = [v.removeprefix("Bearer ") for n, v in credentials.items() if n.lower() not in _PUBLIC]
    return [secret for secret in found if len(secret) >= _SHORTEST_SECRET]


def blanked(body: bytes, secrets: Iterable[str]) -> bytes:
    """An error's `body` without the `secrets` that its request carried."""
    for secret in secrets:
        body = body.replace(secret.encode(), _BLANK.encode())
    return body


class concealing:  # noqa: N801 - used as the function it is to its caller
    """Let no error that is raised inside quote `secrets`, those of its own request.

    A dialect knows what was sent last. Where each request has a token of its own, that may be
    another request's by the time that this one's answer is read.
    """

    __slots__ = ("_secrets",)

    def __init__(self, secrets: Sequence[str]) -> None:
        self._secrets = secrets

    def __enter__(self) -> None:
        """Nothing is raised yet."""

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, ProviderError):
            conceal(error, self._secrets)


def conceal(error: ProviderError, secrets: Iterable[str]) -> None:
    """Blank `secrets` in all that `error` says."""
    for secret in secrets:
        error.args = tuple(_without(secret, words) for words in error.args)
        if isinstance(error, APIError):
            error.message = _without(secret, error.message)
            error.code = _without(secret, error.code)
            error.request_id = _without(secret, error.request_id)


def _without(secret: str, words: Any) -> Any:
    return words.replace(secret, _BLANK) if isinstance(words, str) else words
