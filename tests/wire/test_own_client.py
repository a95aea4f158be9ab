"""golem's own client writes what httpx's would: it only does so faster."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from golem.wire import http
from tests.wire.server import answering, response, serving

pytestmark = pytest.mark.anyio

URLS = (
    "http://h/v1",
    "https://h:8443/v1/chat?api-version=1&x=%20",
    "http://h:80/",
    "http://user:pw@h/v1",
    "http://[::1]:8080/v1",
    "http://bücher.example/ä b",
)
REQUESTS: tuple[dict[str, Any], ...] = (
    {"method": "POST", "content": b"{}", "headers": {"content-type": "application/json"}},
    {"method": "POST", "content": b"", "headers": {}},
    {"method": "GET", "content": b"", "headers": {"x-one": "1"}},
    {"method": "DELETE", "content": b"{}", "headers": {}},
    {"method": "post", "content": b"", "headers": {}},
    {"method": "POST", "content": b"{}", "headers": {"Accept": "text/event-stream", "Host": "g"}},
)
LIMITS = (10.0, 600.0, None, None)


@pytest.mark.parametrize("url", URLS)
@pytest.mark.parametrize("given", REQUESTS)
async def test_a_request_is_what_httpx_makes_of_it(url: str, given: dict[str, Any]) -> None:
    own = http._OwnClient()
    stock = httpx.AsyncClient(headers={"accept-encoding": "gzip, deflate"})
    ours, theirs = (
        client.build_request(url=url, extensions={"x": 1}, timeout=LIMITS, **given)
        for client in (own, stock)
    )
    assert (ours.method, ours.url, ours.headers) == (theirs.method, theirs.url, theirs.headers)
    assert ours.extensions == theirs.extensions
    assert await ours.aread() == theirs.content == given["content"]
    await own.aclose()
    await stock.aclose()


async def test_of_two_spellings_of_a_name_the_last_is_sent() -> None:
    own = http._OwnClient()
    given = {"Authorization": "of the call", "authorization": "of the credentials"}
    sent = own.build_request(
        "POST", "http://h/v1", headers=given, content=b"", extensions={}, timeout=LIMITS
    )
    assert sent.headers.get_list("authorization") == ["of the credentials"]
    await own.aclose()


@pytest.mark.parametrize("url", ["http://xn--/v1", "http://h:port/v1", "http://h\x00/v1"])
async def test_an_address_that_is_none_is_one_every_time(url: str) -> None:
    own = http._OwnClient()
    for _ in range(2):
        with pytest.raises((httpx.InvalidURL, ValueError)):
            own.build_request("POST", url, headers={}, content=b"", extensions={}, timeout=LIMITS)
    await own.aclose()


@pytest.mark.parametrize("url", ["http:///v1", "http://", "h/v1", "/v1", ""])
async def test_an_address_without_scheme_or_host_is_asked_for_nothing(url: str) -> None:
    own = http._OwnClient()
    with pytest.raises(httpx.UnsupportedProtocol):
        own.build_request("POST", url, headers={}, content=b"", extensions={}, timeout=LIMITS)
    await own.aclose()


async def test_no_cookie_stays_with_a_client() -> None:
    own = http._OwnClient()
    async with serving(answering(response(b"{}", headers="set-cookie: a=b; path=/\r\n"))) as server:
        sent = own.build_request(
            "POST", server.url, headers={}, content=b"", extensions={}, timeout=LIMITS
        )
        answer = await own.send(sent)
        assert answer.headers["set-cookie"] == "a=b; path=/"
        assert not own._client.cookies
        await own.aclose()
