"""Who is asking: decided before anything of a request's body is read.

With an `authenticate` it is the application that says. Without one only this machine is answered,
and pages of other sites that a browser on this machine shows are kept out.
"""

from __future__ import annotations

import inspect
import ipaddress
import re
from collections.abc import Awaitable, Callable, Collection, Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

from golem.web.http import Refusal, header, headers

Authenticate = Callable[[Mapping[str, Any]], Awaitable[str | None] | str | None]
"""Gives who is asking, by the ASGI scope (`golem.web.header` reads its headers); None: nobody."""

LOCAL_IDENTITY: Final = "local"
"""Who is asking where no `authenticate` is configured."""

_FORWARDED: Final = re.compile(
    rb"forwarded|via|cdn-loop|x-forwarded(?:-.+)?|x-(?:original|envoy)-.+|.+-ip(?:v6)?",
    re.IGNORECASE,
)
"""What a proxy says it is by: then the client's address is the proxy's."""


class Guard:
    """Says who is asking. `allowed_origins` are for pages served from elsewhere, without a path."""

    def __init__(self, authenticate: Authenticate | None, allowed_origins: Collection[str]) -> None:
        if isinstance(allowed_origins, str):
            raise TypeError("allowed_origins is a collection of origins, not a text")
        self._authenticate = authenticate
        self._origins = frozenset(origin.rstrip("/").lower() for origin in allowed_origins)

    async def identify(self, scope: Mapping[str, Any]) -> str:
        """The identity of who is asking. Raises Refusal (401, 403) where there is none.

        Raises TypeError for an identity that is no text, or empty: all ownership hangs on it.
        """
        if self._authenticate is None:
            self._check_local(scope)
            return LOCAL_IDENTITY
        found = self._authenticate(scope)
        identity: object = await found if inspect.isawaitable(found) else found
        if identity is None:
            raise Refusal(
                HTTPStatus.UNAUTHORIZED,
                "unauthenticated",
                "say who you are",
                headers={"www-authenticate": "Bearer"},
            )
        if not isinstance(identity, str) or not identity:
            raise TypeError(f"authenticate must give a text that names somebody, not {identity!r}")
        return identity

    def _check_local(self, scope: Mapping[str, Any]) -> None:
        client = scope.get("client")
        if not (client and is_loopback(str(client[0]))):
            raise _forbidden("only clients on this machine are answered: no authenticate is set")
        if any(_FORWARDED.fullmatch(name) for name, _ in scope.get("headers", ())):
            raise _forbidden(
                "a request that a proxy passed on may be anybody's: no authenticate is set"
            )
        # A name that resolves to this machine is not of this machine (DNS rebinding).
        hosts = headers(scope, "host")
        if len(hosts) != 1 or not is_local_host(hosts[0]):
            raise _forbidden("the host must be a name of this machine: no authenticate is set")
        if not self._is_own_page(scope, hosts[0]):
            raise _forbidden("pages of other origins are not answered: no authenticate is set")

    def _is_own_page(self, scope: Mapping[str, Any], host: str) -> bool:
        """Whether no page asks, one from here, or one that is allowed."""
        origin = header(scope, "origin").lower()
        if origin in self._origins:
            return True
        if origin:
            return origin == f"{scope.get('scheme', 'http')}://{host}".lower()
        return header(scope, "sec-fetch-site").lower() in ("", "same-origin", "none")


def _forbidden(message: str) -> Refusal:
    return Refusal(HTTPStatus.FORBIDDEN, "forbidden", message)


def is_loopback(address: str) -> bool:
    """Whether that is an IP address of this machine's own loopback."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(found, "ipv4_mapped", None)
    return bool((mapped or found).is_loopback)


def is_local_host(host: str) -> bool:
    """Whether a Host header, with or without a port, names the loopback."""
    try:
        parts = urlsplit(f"//{host}")
        name, _ = parts.hostname, parts.port
    except ValueError:
        return False
    if not name or parts.path or parts.query or parts.fragment or parts.username is not None:
        return False
    return name == "localhost" or name.endswith(".localhost") or is_loopback(name)
