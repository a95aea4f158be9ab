"""Where a server is and how a request proves who sends it: addresses, keys, tokens.

Pure, but for what a caller's own token function does. Nothing secret is in any error's text.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from hashlib import blake2b
from typing import Final, Protocol, TypeVar
from urllib.parse import urlsplit, urlunsplit

R = TypeVar("R")

Token = str | Callable[[], str | Awaitable[str]]
"""A bearer token, or a function that gives the one to use now, plain or async."""

_BEARER: Final = "authorization"
_LONGEST_VALUE: Final = 256
"""Characters; longer headers are cut or refused by some servers and proxies."""


class Credentials:
    """What proves a request's sender: a key in a header, or a bearer token.

    `header` is the key's; ``authorization`` carries it as a Bearer token, others as it is. A
    `token` goes before the key. `secret` is the last one sent, for keeping it out of errors.
    """

    __slots__ = ("_header", "_source", "secret")

    def __init__(self, header: str, key: str = "", *, token: Token | None = None) -> None:
        self._header = _BEARER if token is not None else header
        self._source = token if callable(token) else None
        self.secret = checked(token, "token") if isinstance(token, str) else key

    def headers(self) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        """The headers for the next request; to be awaited where the token's function is async."""
        if self._source is None:
            return self._shown()
        token = self._source()
        return self._awaited(token) if isinstance(token, Awaitable) else self._fresh(token)

    async def _awaited(self, token: Awaitable[str]) -> Mapping[str, str]:
        return self._fresh(await token)

    def _fresh(self, token: str) -> Mapping[str, str]:
        self.secret = checked(token, "token")
        return self._shown()

    def _shown(self) -> Mapping[str, str]:
        if not self.secret:
            return {}
        return {self._header: f"Bearer {self.secret}" if self._header == _BEARER else self.secret}


def found_key(given: str | None, variables: Iterable[str], server: str, *, needed: bool) -> str:
    """The key to send, empty for none: the one given, else the first of `variables` that is set.

    Raises ValueError, naming the variables, where a key is `needed` and there is none.
    """
    names = tuple(variables)
    if given is None:
        found = (os.environ.get(name, "") for name in names)
        given = next((key for key in found if key.strip()), "")
    key = checked(given, "api_key")
    if not key and needed and names:
        raise ValueError(f"no API key for {server}: give api_key=… or set {' or '.join(names)}")
    return key


class Served(Protocol):
    """What an adapter's record of a server says of where it is and whom it lets in."""

    @property
    def name(self) -> str:
        """The server's, for errors."""
        ...

    @property
    def base_url(self) -> str:
        """Where it is when the caller does not say; empty: the caller has to."""
        ...

    @property
    def base_url_variable(self) -> str:
        """The environment variable that replaces `base_url`; empty: there is none."""
        ...

    @property
    def key_variables(self) -> tuple[str, ...]:
        """Environment variables that hold the key, first found wins; none: it needs no key."""
        ...

    @property
    def key_header(self) -> str:
        """The header of the key."""
        ...


def record_named(name: str | R, records: Mapping[str, R], kind: type[R]) -> R:
    """The one of `records` for `name`, or the record itself; a ValueError lists the known names."""
    if isinstance(name, kind):
        return name
    try:
        return records[str(name)]
    except KeyError:
        known = ", ".join(sorted(records))
        raise ValueError(f"unknown dialect {name!r}; known are {known}") from None


def found_server(
    record: Served, base_url: str | None, api_key: str | None, token: Token | None = None
) -> tuple[str, Credentials]:
    """The address of a server, and what it is shown: as given, else from the environment.

    Raises ValueError where there is neither key nor token and no address was given: then it is
    the provider's own, which needs one.
    """
    url = base_url or os.environ.get(record.base_url_variable) or ""
    key = ""
    if token is None:
        key = found_key(api_key, record.key_variables, record.name, needed=not url)
    return address(url or record.base_url), Credentials(record.key_header, key, token=token)


def model_name(given: str) -> str:
    """The name of the model, or deployment; ValueError for an empty one, TypeError for no text."""
    if not _text(given, "the model's name").strip():
        raise ValueError("the model needs a name")
    return given


def checked(secret: str, name: str) -> str:
    """A key, or another option that goes into a header, without the line break that a file leaves.

    Raises ValueError, not quoting it, where no HTTP header can carry it, and TypeError for what
    is no text.
    """
    secret = _text(secret, name).strip()
    if not secret.isascii() or not secret.isprintable():
        raise ValueError(f"{name} holds characters that no HTTP header can carry")
    return secret


def _text(given: object, name: str) -> str:
    if not isinstance(given, str):
        raise TypeError(f"{name} must be a text, not {type(given).__name__}")
    return given


def header_value(text: str) -> str:
    """`text` where a header can carry it, else a name made from it, always the same."""
    if 0 < len(text) <= _LONGEST_VALUE and text.isascii() and text.isprintable():
        return text
    return blake2b(text.encode("utf-8", "replace"), digest_size=16).hexdigest()


def address(base_url: str) -> str:
    """`base_url` without a slash at its end; ValueError unless it is an http(s) address."""
    try:
        parts = urlsplit(_text(base_url, "base_url"))
        valid = parts.scheme in ("http", "https") and parts.hostname and (parts.port or 1) > 0
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"base_url must be an http(s) address, not {shown(base_url)!r}")
    return base_url.rstrip("/")


def beneath(base_url: str, path: str) -> str:
    """The address of `path` under `base_url`, whose query (an api-version) stays behind it."""
    parts = urlsplit(base_url)
    return urlunsplit((parts.scheme, parts.netloc, parts.path.rstrip("/") + path, parts.query, ""))


def shown(url: str) -> str:
    """`url` without user, password, query and fragment."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2]
        return urlunsplit((parts.scheme, host, parts.path, "", ""))
    except ValueError:
        return "…"
