"""Who asks: nobody reads what is another's, and without names only this machine is answered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from golem.web.asgi import app
from tests.web.agents import agent_for
from tests.web.asking import by_name, client, error, events

PATHS = ["", "/events", "/messages", "/stop", "/resume"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("policy", ["cancel", "detach"])
async def test_somebody_elses_run_is_as_an_unknown_one(path: str, policy: Any) -> None:
    served = app(agent_for, authenticate=by_name, on_disconnect=policy)
    async with client(served) as ask:
        alice, mallory = {"x-name": "alice"}, {"x-name": "mallory"}
        told = events(await ask.post("/runs", json={"prompt": "delete"}, headers=alice))
        run_id = told[0]["runId"]
        method = "POST" if path in ("/stop", "/resume") else "GET"
        body = {"json": {"approvals": {"c-delete": True}}} if path == "/resume" else {"json": {}}
        args = body if method == "POST" else {}
        foreign = await ask.request(method, f"/runs/{run_id}{path}", headers=mallory, **args)
        unknown = await ask.request(method, f"/runs/nothing{path}", headers=mallory, **args)
        assert (foreign.status_code, foreign.content) == (unknown.status_code, unknown.content)
        error(foreign, 404, "not_found")
        own = await ask.request(method, f"/runs/{run_id}{path}", headers=alice, **args)
        assert own.status_code == 200


async def test_somebody_elses_conversation_is_not_joined() -> None:
    served = app(agent_for, authenticate=by_name)
    async with client(served) as ask:
        alice, mallory = {"x-name": "alice"}, {"x-name": "mallory"}
        body: dict[str, Any] = {"prompt": "hi", "conversationId": "mine"}
        assert (await ask.post("/runs", json=body, headers=alice)).status_code == 200
        assert (await ask.post("/runs", json=body, headers=alice)).status_code == 200
        error(await ask.post("/runs", json=body, headers=mallory), 404, "not_found")
        stamped = {"role": "user", "content": "x", "conversationId": "mine"}
        body = {"prompt": "hi", "history": [stamped]}
        error(await ask.post("/runs", json=body, headers=mallory), 404, "not_found")


async def test_who_is_nobody_is_refused_before_anything_is_read() -> None:
    async def receive() -> Any:
        raise AssertionError("the body was read")

    sent: list[Any] = []

    async def send(event: Any) -> None:
        sent.append(event)

    for path in ("/runs", "/nothing", "/runs/x/stop"):
        scope = {"type": "http", "method": "POST", "path": path, "headers": [], "client": None}
        await app(agent_for, authenticate=by_name)(scope, receive, send)
        await app(agent_for)(scope, receive, send)
        assert [event["status"] for event in sent[::2]] == [401, 403]
        sent.clear()


async def test_an_identity_that_is_not_found_in_time_is_nobodys() -> None:
    async def never(scope: Any) -> str:
        await anyio.sleep_forever()
        return "alice"

    async with client(app(agent_for, authenticate=never, body_timeout=0.05)) as ask:
        error(await ask.post("/runs", json={"prompt": "hi"}), 503, "authenticate_timeout")


async def test_an_identity_may_be_found_asynchronously() -> None:
    async def authenticate(scope: Mapping[str, Any]) -> str | None:
        await anyio.lowlevel.checkpoint()
        return by_name(scope)

    async with client(app(agent_for, authenticate=authenticate)) as ask:
        error(await ask.post("/runs", json={"prompt": "hi"}), 401, "unauthenticated")
        own = await ask.post("/runs", json={"prompt": "hi"}, headers={"x-name": "me"})
        assert own.status_code == 200


@pytest.mark.parametrize("given", [b"bytes", 7, ""])
async def test_an_identity_that_is_no_text_serves_nobody(
    given: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async with client(app(agent_for, authenticate=lambda scope: given)) as ask:
        error(await ask.post("/runs", json={"prompt": "hi"}), 500, "internal")
    assert "authenticate must give a text" in caplog.text


@pytest.mark.parametrize(
    "peer", [("10.0.0.1", 1), ("2001:db8::1", 1), ("", 0), ("localhost", 1), ("127.0.0.1.evil", 1)]
)
async def test_without_authenticate_only_this_machine_is_answered(peer: tuple[str, int]) -> None:
    async with client(app(agent_for), peer=peer) as ask:
        error(await ask.get("/runs/x"), 403, "forbidden")


@pytest.mark.parametrize("peer", ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"])
async def test_this_machine_has_many_addresses(peer: str) -> None:
    async with client(app(agent_for), peer=(peer, 1)) as ask:
        error(await ask.get("/runs/x"), 404, "not_found")


@pytest.mark.parametrize(
    "headers",
    [
        {"x-forwarded-for": "10.0.0.1"},
        {"forwarded": "for=10.0.0.1"},
        {"via": "1.1 proxy"},
        {"x-real-ip": "127.0.0.1"},
        {"x-forwarded-proto": "https"},
        {"x-original-host": "localhost"},
        {"cf-connecting-ip": "10.0.0.1"},
        {"true-client-ip": "10.0.0.1"},
        {"host": "evil.example"},
        {"host": "localhost.evil.example"},
        {"host": "127.0.0.1@evil.example"},
        {"host": "localhost:80:80"},
        {"host": "localhost/evil.example"},
        {"host": ""},
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://localhost:3000"},
        {"origin": "https://localhost:8000"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ],
    ids=repr,
)
@pytest.mark.parametrize("method", ["GET", "POST"])
async def test_without_authenticate_pages_of_others_and_proxies_are_kept_out(
    method: str, headers: dict[str, str]
) -> None:
    async with client(app(agent_for)) as ask:
        error(await ask.request(method, "/runs/x/stop", headers=headers), 403, "forbidden")


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "localhost"},
        {"host": "127.0.0.1:8000", "origin": "http://127.0.0.1:8000"},
        {"host": "[::1]:8000", "origin": "http://[::1]:8000"},
        {"host": "LOCALHOST:8000", "origin": "http://localhost:8000"},
        {"host": "app.localhost"},
        {"origin": "http://localhost:5173", "sec-fetch-site": "same-site"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "none"},
    ],
    ids=repr,
)
async def test_own_pages_and_allowed_ones_are_answered(headers: dict[str, str]) -> None:
    served = app(agent_for, allowed_origins=["http://localhost:5173/"])
    async with client(served) as ask:
        assert (await ask.post("/runs", json={"prompt": "hi"}, headers=headers)).status_code == 200
