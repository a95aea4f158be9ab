"""Errors: what the provider says, whether to try again and when, and no secret in it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.errors import APIError, ProtocolError
from golem.model import Request
from golem_adapters.openai.dialect import dialect_named
from golem_adapters.openai.failures import http_error
from golem_adapters.openai.response import decode_response

NOW = 1_700_000_000.0


def error(status: int, body: bytes = b"", secret: str = "", **headers: str) -> APIError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return http_error(status, names, body, now=NOW, secret=secret)


def said(**members: Any) -> bytes:
    return json.dumps({"error": {"message": "no", **members}}).encode()


@pytest.mark.parametrize(
    ("status", "retryable"),
    [
        *((status, False) for status in (400, 401, 403, 404, 422)),
        *((status, True) for status in (408, 409, 429, 500, 502, 503, 504, 529)),
    ],
)
def test_the_status_tells_whether_to_try_again(status: int, retryable: bool) -> None:
    assert retryable == error(status).retryable


@pytest.mark.parametrize(
    ("headers", "retryable", "wait"),
    [
        ({"x_should_retry": "false"}, False, None),
        ({"retry_after": "3"}, True, 3.0),
        ({"retry_after": "0.5"}, True, 0.5),
        ({"retry_after_ms": "250", "retry_after": "3"}, True, 0.25),
        ({"retry_after_ms": "soon", "retry_after": "3"}, True, 3.0),
        ({"retry_after": "Tue, 14 Nov 2023 22:13:50 GMT"}, True, 30.0),
        ({"retry_after": "Tue, 14 Nov 2023 22:13:00 GMT"}, True, None),
        ({"retry_after": "120"}, True, 120.0),
        ({"retry_after": "121"}, False, None),
        ({"retry_after": "0"}, True, None),
        ({"retry_after": "-5"}, True, None),
        ({"retry_after": "nan"}, True, None),
        ({"retry_after": "inf"}, True, None),
        ({"retry_after": "tomorrow"}, True, None),
        ({"retry_after": "Tue, 99 Nov 2023 22:13:50 GMT"}, True, None),
    ],
)
def test_headers_tell_when(headers: dict[str, str], retryable: bool, wait: float | None) -> None:
    found = error(429, **headers)
    assert (retryable, wait) == (found.retryable, found.retry_after)


def test_a_header_makes_any_status_retryable() -> None:
    assert error(400, x_should_retry="true").retryable


@pytest.mark.parametrize("member", ["code", "type"])
def test_no_waiting_fills_an_empty_account(member: str) -> None:
    found = error(
        429, said(**{member: "insufficient_quota"}), retry_after="1", x_should_retry="true"
    )
    assert (found.retryable, found.retry_after) == (False, None)


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (said(code="c", type="t"), "no", "c"),
        (said(code=None, type="t"), "no", "t"),
        (said(code=429), "no", "429"),
        (b'{"error":"no"}', "no", None),
        (b'{"object":"error","message":"no","type":"invalid","code":1500}', "no", "1500"),
        (b'{"detail":"no"}', "no", None),
        (b'{"detail":[{"loc":["body"],"msg":"no"},{"msg":"never"}]}', "no; never", None),
        (b'{"message":{"message":"no"}}', "no", None),
        (b'[{"error":{"message":"no","code":400,"status":"X"}}]', "no", "400"),
        (said(metadata={"raw": "upstream is down"}, code=502), "no: upstream is down", "502"),
        (b'{"error":{}}', "Bad Request", None),
        (b'{"error":{"message":"half \\ud83d"}}', "half \ufffd", None),
        (b"upstream connect error", "upstream connect error", None),
        (b"<style>a{}</style><h1>No &amp; no</h1>", "No & no", None),
        (b"", "Bad Request", None),
    ],
)
def test_the_providers_own_words_are_found(body: bytes, message: str, code: str | None) -> None:
    found = error(400, body)
    assert (message, code) == (found.message, found.code)


def test_a_long_page_is_cut() -> None:
    assert len(error(500, b"x" * 100_000).message) < 600


def test_a_status_without_standard_words_has_some_too() -> None:
    assert error(599).message


def test_the_request_id_is_kept() -> None:
    assert error(500, x_request_id="r").request_id == "r"
    assert error(500, apim_request_id="r").request_id == "r"
    assert error(500).request_id is None


def test_a_key_that_the_server_quotes_is_blanked() -> None:
    secret = "sk-0123456789"
    found = error(401, said(message=f"bad {secret}", code=secret), secret)
    assert secret not in repr(found) + str(found) + str(vars(found))


# --- errors inside a plain answer


def plain(body: bytes) -> Any:
    return decode_response(
        body, request=Request(()), dialect=dialect_named("openai"), headers={}, secret=""
    )


def test_an_error_object_in_a_successful_answer_is_an_error() -> None:
    with pytest.raises(APIError) as caught:
        plain(b'{"error":{"message":"Provider returned error","code":502}}')
    assert (caught.value.status, caught.value.retryable) == (502, True)


def test_what_stands_beside_the_error_is_evidence() -> None:
    body = b'{"choices":[{"message":{"content":"Hi"},"finish_reason":"error"}]}'
    with pytest.raises(APIError) as caught:
        plain(body)
    assert caught.value.partial is not None
    assert caught.value.partial.content == "Hi"


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"{}", b"null", b"[]", b'{"choices":[]}', b"{", b"5"]
)
def test_a_body_without_an_answer_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        plain(body)
