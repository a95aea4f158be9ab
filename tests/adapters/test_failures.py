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
        ({"retry_after": "121"}, False, 121.0),
        ({"retry_after": "9" * 500}, False, 1e15),
        ({"retry_after": "9" * 500 + "s"}, False, 1e15),
        ({"retry_after": "1e999"}, False, 1e15),
        ({"retry_after_ms": "9" * 500}, False, 1e12),
        ({"retry_after": "-" + "9" * 500}, True, None),
        ({"retry_after": "inf"}, True, None),
        ({"retry_after": "-Infinity"}, True, None),
        ({"retry_after": "nan"}, True, None),
        ({"retry_after_ms": "121000", "x_should_retry": "true"}, False, 121.0),
        ({"retry_after": "30s"}, True, 30.0),
        ({"retry_after": "1m0.5s"}, True, 60.5),
        ({"retry_after": " 2 "}, True, 2.0),
        ({"retry_after": "Tuesday, 14-Nov-23 22:13:50 GMT"}, True, 30.0),
        ({"retry_after": "Tue Nov 14 22:13:50 2023"}, True, 30.0),
        ({"retry_after": "Tue, 14 Nov 2023 23:13:50 +0100"}, True, 30.0),
        ({"retry_after": "2023-11-14T22:13:50Z"}, True, 30.0),
        ({"retry_after": "Tue, 14 Nov 2023 23:13:50 GMT"}, False, 3630.0),
        ({"retry_after": "0"}, True, None),
        ({"retry_after": "-5"}, True, None),
        ({"retry_after": "tomorrow"}, True, None),
        ({"retry_after": "Tue, 99 Nov 2023 22:13:50 GMT"}, True, None),
    ],
)
def test_headers_tell_when(headers: dict[str, str], retryable: bool, wait: float | None) -> None:
    found = error(429, **headers)
    assert (retryable, wait) == (found.retryable, found.retry_after)


@pytest.mark.parametrize(
    ("limits", "wait"),
    [
        ({"reset_requests": "2ms", "remaining_requests": "0"}, 0.002),
        ({"reset_tokens": "17.4s", "remaining_tokens": "0", "reset_requests": "1s"}, 17.4),
        ({"reset_tokens": "1m30s", "remaining_tokens": "0"}, 90.0),
        ({"reset": "2", "remaining": "0"}, 2.0),
        ({"reset": "1700000030", "remaining": "0"}, 30.0),
        ({"reset": "1700000030000", "remaining": "0"}, 30.0),
        ({"reset": "2023-11-14T22:13:50Z", "remaining": "0"}, 30.0),
        ({"reset_tokens": "6m0s", "remaining_tokens": "0"}, None),
        ({"reset_tokens": "17s", "remaining_tokens": "200"}, None),
        ({"reset_tokens": "soon", "remaining_tokens": "0"}, None),
        ({"limit_tokens": "0"}, None),
    ],
)
def test_a_used_up_limit_tells_when_it_is_full_again(
    limits: dict[str, str], wait: float | None
) -> None:
    headers = {f"x_ratelimit_{name}": value for name, value in limits.items()}
    found = error(429, **headers)
    assert (found.retryable, found.retry_after) == (True, wait)
    assert error(500, **headers).retry_after is None
    assert error(429, retry_after="3", **headers).retry_after == 3.0


def test_a_body_tells_when_where_no_header_does() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}
    body = said(code=429, details=[{"@type": "x"}, info])
    assert error(429, body).retry_after == 34.4
    assert error(429, body, retry_after="1").retry_after == 1.0
    long = error(429, body.replace(b"34.4s", b"3600s"))
    assert (long.retryable, long.retry_after) == (False, 3600.0)
    passed_on = {"headers": {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1700000030000"}}
    assert error(429, said(code=429, metadata=passed_on)).retry_after == 30.0


def test_a_header_makes_any_status_retryable() -> None:
    assert error(400, x_should_retry="true").retryable


@pytest.mark.parametrize("code", ["exceeded_current_quota_error", "1113"])
def test_every_server_has_its_word_for_an_empty_account(code: str) -> None:
    assert not error(429, said(code=code)).retryable


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
        (b'{"code":"not-found","error":"no"}', "no", "not-found"),
        (b'{"error":"Unauthorized","message":"no"}', "no", "Unauthorized"),
        (b'{"error":"invalid_client","error_description":"no"}', "no", "invalid_client"),
        (b'{"message":"no","type":"t","param":"p","code":"c"}', "no", "c"),
        (b'{"code":"1001","msg":"no","success":false}', "no", "1001"),
        (
            b'{"object":"error","message":{"detail":[{"loc":["body"],"msg":"no"}]},"code":"3280"}',
            "no",
            "3280",
        ),
        (b'{"fault":{"faultstring":"no","detail":{"errorcode":"x"}}}', "no", None),
        (b'{"type":"about:blank","title":"no","status":400}', "no", "about:blank"),
        (b'{"errors":["no",{"message":"never"}]}', "never", None),
        (b'{"errors":["no"]}', "no", None),
        (b'"no"', "no", None),
        (b"5", "5", None),
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
    for name in ("mistral_correlation_id", "x_kong_request_id", "x_amzn_requestid", "cf_ray"):
        assert error(500, **{name: "r"}).request_id == "r"
    assert error(500, cf_ray="edge", x_request_id="r").request_id == "r"
    assert error(500, said(request_id="r")).request_id == "r"
    assert error(500, b'{"error":{"message":"no"},"request_id":"r"}').request_id == "r"


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
