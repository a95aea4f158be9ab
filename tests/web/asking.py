"""Requests to an app without a server between: for what is answered at once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx

from golem.web.asgi import header

LOCAL = ("127.0.0.1", 50_000)
JSON = {"content-type": "application/json"}


def client(
    app: Any, *, host: str = "localhost:8000", peer: tuple[str, int] | None = LOCAL, **headers: str
) -> httpx.AsyncClient:
    """A client of the app that seems to come from `peer`."""
    transport = httpx.ASGITransport(app=app, client=peer)  # type: ignore[arg-type]
    return httpx.AsyncClient(
        transport=transport, base_url=f"http://{host}", headers={"host": host, **headers}
    )


def events(response: httpx.Response) -> list[dict[str, Any]]:
    """The events of a stream that has ended; the report at its head is not among them."""
    assert response.status_code == 200, response.text
    found: list[dict[str, Any]] = []
    for block in response.text.split("\n\n"):
        lines = block.split("\n")
        data = [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]
        if data and not any(line.startswith("event: ") for line in lines):
            found.append(json.loads("\n".join(data)))
    return found


def error(response: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The report of a refusal, which must be this one."""
    assert (response.status_code, response.json()["error"]["code"]) == (status, code), response.text
    assert response.headers["content-type"] == "application/json"
    assert "Traceback" not in response.text
    found: dict[str, Any] = response.json()["error"]
    assert found["message"]
    return found


def by_name(scope: Mapping[str, Any]) -> str | None:
    """Who says a name is that one."""
    return header(scope, "x-name") or None
