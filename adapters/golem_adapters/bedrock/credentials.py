"""Where the proof of a Bedrock request comes from: AWS credentials, or a bearer key.

Pure, but for what a caller's own function does and the environment at construction.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

from golem_adapters._toolkit.endpoint import Credentials, Token, checked
from golem_adapters.bedrock.sigv4 import AWSCredentials, signature_headers

Source = AWSCredentials | Callable[[], AWSCredentials | Awaitable[AWSCredentials]]
"""Credentials, or a function, plain or async, that gives the ones to use now."""

SERVICE: Final = "bedrock"
KEY_VARIABLE: Final = "AWS_BEARER_TOKEN_BEDROCK"
_VARIABLES: Final = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")


class Signer:
    """Signs requests for `region` with credentials from `source`.

    `secrets` are those last used, for keeping them out of errors: AWS answers a signature that
    does not fit with the request that it signed itself, session token and all.
    """

    __slots__ = ("_region", "_source", "secrets")

    def __init__(self, source: Source, region: str) -> None:
        self._source = source
        self._region = region
        self.secrets: tuple[str, ...] = ()
        if not callable(source):
            self._use(source)

    def headers(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, now: float
    ) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        """The headers that sign this request; to be awaited where the source is async."""
        sign = partial(
            signature_headers,
            *(method, url, headers, body),
            region=self._region,
            service=SERVICE,
            now=now,
        )
        found = self._source if isinstance(self._source, AWSCredentials) else self._source()
        if isinstance(found, Awaitable):
            return self._awaited(found, sign)
        return sign(credentials=self._use(found))

    async def _awaited(
        self, found: Awaitable[AWSCredentials], sign: Callable[..., Mapping[str, str]]
    ) -> Mapping[str, str]:
        return sign(credentials=self._use(await found))

    def _use(self, given: object) -> AWSCredentials:
        """`given`, without blanks around them, remembered as secrets."""
        if not isinstance(given, AWSCredentials):
            kind = type(given).__name__
            raise TypeError(f"credentials must be AWSCredentials, or give them, not {kind}")
        found = AWSCredentials(
            checked(given.access_key_id, "access_key_id"),
            checked(given.secret_access_key, "secret_access_key"),
            checked(given.session_token, "session_token"),
        )
        if not found.access_key_id or not found.secret_access_key:
            raise ValueError("AWS credentials need an access key id and a secret access key")
        self.secrets = (found.secret_access_key, found.session_token)
        return found


class Bearer:
    """Sends a Bedrock API key, or what a function gives, as a Bearer token."""

    __slots__ = ("_credentials",)

    def __init__(self, token: Token) -> None:
        self._credentials = Credentials("authorization", token=token)

    @property
    def secrets(self) -> tuple[str, ...]:
        """The key that was last sent."""
        return (self._credentials.secret,)

    def headers(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, now: float
    ) -> Mapping[str, str] | Awaitable[Mapping[str, str]]:
        """The header for any request; to be awaited where the function is async."""
        return self._credentials.headers()


class Nobody:
    """Sends nothing: for a server of one's own that asks for nothing."""

    __slots__ = ()
    secrets: tuple[str, ...] = ()

    def headers(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes, now: float
    ) -> Mapping[str, str]:
        """No headers."""
        return {}


Proof = Signer | Bearer | Nobody


def proof_of(
    api_key: str | None, token: Token | None, credentials: Source | None, region: str, *, own: bool
) -> Proof:
    """What proves a request's sender: what was given, else what the environment has.

    Given credentials go before a given `token` or `api_key`; in the environment the bearer key
    goes first, as in AWS's own clients. Raises ValueError where nothing is found, unless the
    server is the caller's `own`, or where there is nothing to sign for.
    """
    if credentials is not None:
        return Signer(credentials, _needed(region))
    if api_key is None:
        api_key = os.environ.get(KEY_VARIABLE) or None
    else:
        api_key = checked(api_key, "api_key")
    bearer = token if token is not None else api_key
    if bearer is not None and (callable(bearer) or bearer.strip()):
        return Bearer(bearer)
    found = AWSCredentials(*(os.environ.get(name, "") for name in _VARIABLES))
    if found.access_key_id.strip() and found.secret_access_key.strip():
        return Signer(found, _needed(region))
    if own:
        return Nobody()
    names = f"{KEY_VARIABLE}, or {_VARIABLES[0]} and {_VARIABLES[1]}"
    raise ValueError(f"no credentials for Bedrock: give api_key=… or credentials=…, or set {names}")


def _needed(region: str) -> str:
    if not region:
        raise ValueError("signing needs a region: give region=… or set AWS_REGION")
    return region
