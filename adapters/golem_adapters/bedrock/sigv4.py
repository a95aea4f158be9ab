"""AWS Signature Version 4: the headers that prove who sends a request. Pure.

The rules are AWS's ("Create a signed AWS API request"): the request in one canonical spelling,
its SHA-256 in a text with time and scope, signed with a key made for that day, region and
service. A path is encoded once more than it goes out, as every service but S3 has it.
"""

from __future__ import annotations

import hmac
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from time import gmtime, strftime
from typing import Final
from urllib.parse import quote, unquote, urlsplit

_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_BLANKS: Final = re.compile(r"\s+")
_PORTS: Final[Mapping[str, int]] = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class AWSCredentials:
    """What AWS knows a caller by; temporary ones have a session token. The repr shows no secret."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(default="", repr=False)


def signature_headers(
    method: str,
    url: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    credentials: AWSCredentials,
    region: str,
    service: str,
    now: float,
) -> dict[str, str]:
    """The headers to add to a request, which must then go out with `headers` and `body` as given.

    `now` is in seconds since the epoch; AWS takes a request for some minutes around it.
    """
    time = strftime("%Y%m%dT%H%M%SZ", gmtime(now))
    added = {"x-amz-date": time}
    if credentials.session_token:
        added["x-amz-security-token"] = credentials.session_token
    signed = {name.lower(): _BLANKS.sub(" ", value).strip() for name, value in headers.items()}
    signed.update(added, host=_host(url))
    names = ";".join(sorted(signed))
    lines = [f"{name}:{signed[name]}" for name in sorted(signed)]
    parts = [method, _path(url), _query(url), *lines, "", names, sha256(body).hexdigest()]
    request = sha256("\n".join(parts).encode()).hexdigest()
    scope = f"{time[:8]}/{region}/{service}/aws4_request"
    key = f"AWS4{credentials.secret_access_key}".encode()
    for piece in (*scope.split("/"), "\n".join((_ALGORITHM, time, scope, request))):
        key = hmac.digest(key, piece.encode(), "sha256")
    credential = f"Credential={credentials.access_key_id}/{scope}"
    added["authorization"] = (
        f"{_ALGORITHM} {credential}, SignedHeaders={names}, Signature={key.hex()}"
    )
    return added


def _host(url: str) -> str:
    """The ``host`` header that goes out: without the scheme's own port."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return host.removesuffix(f":{_PORTS.get(parts.scheme, 0)}")


def _path(url: str) -> str:
    return quote(urlsplit(url).path or "/", safe="/~")


def _query(url: str) -> str:
    """The parameters in order, spelled the one way that AWS knows."""
    pairs = (part.partition("=") for part in urlsplit(url).query.split("&") if part)
    spelled = [(_spelled(name), _spelled(value)) for name, _, value in pairs]
    return "&".join(f"{name}={value}" for name, value in sorted(spelled))


def _spelled(text: str) -> str:
    return quote(unquote(text), safe="~")
