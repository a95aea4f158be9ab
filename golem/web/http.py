"""HTTP as ASGI has it: a request's parts read within bounds, JSON answers, and refusals.

A `Refusal` is a clear 4xx or 5xx with a machine-readable report; it never leaves the app. Nothing
here knows what a run is.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl

import anyio
import msgspec

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON_HEADERS: Final = {
    "content-type": "application/json",
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
}


class Refusal(Exception):
    """The request is answered with an error.

    `code` is for programs, `message` for people: what was wrong and what would be right, nothing
    of the server's inside. `detail` is any JSON.
    """

    def __init__(
        self,
        status: HTTPStatus,
        code: str,
        message: str,
        *,
        detail: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message = status, code, message
        self.detail = detail
        self.headers = headers or {}

    def body(self) -> dict[str, object]:
        """``{"error": {"code", "type", "message", "detail"?}}``: OpenAI's clients read it too."""
        error: dict[str, object] = {
            "code": self.code,
            "type": "invalid_request_error" if self.status < 500 else "server_error",
            "message": self.message,
        }
        if self.detail is not None:
            error["detail"] = self.detail
        return {"error": error}


def not_found() -> Refusal:
    """The one answer for what there is not and for what is somebody else's."""
    return Refusal(HTTPStatus.NOT_FOUND, "not_found", "there is no such thing here")


class Disconnected(Exception):
    """The client has gone before its request was complete: nobody is there to be answered."""


def header(scope: Mapping[str, Any], name: str) -> str:
    """The value of a request's header, several joined by a comma; empty where there is none."""
    return ", ".join(headers(scope, name))


def headers(scope: Mapping[str, Any], name: str) -> list[str]:
    """Each value of that header, as text."""
    wanted = name.lower().encode("ascii")
    fields: Iterable[tuple[bytes, bytes]] = scope.get("headers", ())
    return [value.decode("latin-1").strip() for key, value in fields if key.lower() == wanted]


def path_of(scope: Mapping[str, Any]) -> str:
    """The path below where the app is mounted, without a slash at its end."""
    path, root = str(scope.get("path", "")), str(scope.get("root_path", "")).rstrip("/")
    if root and (path == root or path.startswith(f"{root}/")):
        path = path[len(root) :]
    return path.rstrip("/")


def query_of(scope: Mapping[str, Any]) -> dict[str, str]:
    """The query's parameters. Raises Refusal for one that is given twice, or no UTF-8."""
    raw: bytes = scope.get("query_string", b"")
    try:
        pairs = parse_qsl(
            raw.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=20
        )
    except (ValueError, UnicodeError):
        raise Refusal(HTTPStatus.BAD_REQUEST, "invalid_query", "the query cannot be read") from None
    query = dict(pairs)
    if len(query) != len(pairs):
        raise Refusal(
            HTTPStatus.BAD_REQUEST, "invalid_query", "a parameter of the query is given twice"
        )
    return query


def check_json_type(scope: Mapping[str, Any]) -> None:
    """Raise Refusal unless the body is said to be plain JSON.

    A page of another site cannot send that type without asking first (CORS), which is what keeps
    its forms away.
    """
    kind, _, parameters = header(scope, "content-type").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if kind.strip().lower() != "application/json" or charset not in ("", "charset=utf-8"):
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported_media_type",
            "the body must be JSON in UTF-8, with content-type: application/json",
        )
    if header(scope, "content-encoding").lower() not in ("", "identity"):
        raise Refusal(
            HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            "unsupported_encoding",
            "the body must not be compressed",
        )


async def read_body(
    scope: Mapping[str, Any], receive: Receive, *, max_bytes: int, seconds: float
) -> bytes:
    """The whole body, of at most so many bytes, within so many seconds.

    Raises Refusal beyond either, Disconnected where the client leaves.
    """
    too_large = Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too_large",
        f"the body may have {max_bytes} bytes",
        detail={"maxBytes": max_bytes},
        headers={"connection": "close"} if scope.get("http_version") == "1.1" else None,
    )
    said = header(scope, "content-length")
    if said.isascii() and said.isdigit() and (len(said) > 15 or int(said) > max_bytes):
        raise too_large
    pieces: list[bytes] = []
    size = 0
    with anyio.move_on_after(seconds):
        while True:
            event = await receive()
            if event["type"] == "http.disconnect":
                raise Disconnected
            pieces.append(event.get("body", b""))
            size += len(pieces[-1])
            if size > max_bytes:
                raise too_large
            if not event.get("more_body", False):
                return b"".join(pieces)
    raise Refusal(
        HTTPStatus.REQUEST_TIMEOUT,
        "too_slow",
        f"the body did not arrive within {seconds:g} s",
        headers={"connection": "close"} if scope.get("http_version") == "1.1" else None,
    )


async def answer(
    send: Send,
    status: int,
    value: object,
    fields: Mapping[str, str] | None = None,
) -> None:
    """Answer with JSON: any value msgspec can encode, or bytes that are JSON already."""
    body = value if isinstance(value, bytes) else msgspec.json.encode(value)
    given = {**JSON_HEADERS, "content-length": str(len(body)), **(fields or {})}
    if status == HTTPStatus.NO_CONTENT:
        body = b""
        given = {"cache-control": "no-store", **(fields or {})}
    await send({"type": "http.response.start", "status": status, "headers": encoded(given)})
    await send({"type": "http.response.body", "body": body})


def encoded(fields: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """Header fields as ASGI takes them."""
    return [(name.encode("ascii"), value.encode("latin-1")) for name, value in fields.items()]
