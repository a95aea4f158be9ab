"""Errors of Messages servers: what they say, whether to try again and when, no secret in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.errors import APIError, ProtocolError
from golem_adapters.anthropic.failures import STATUSES, error_within, http_error
from golem_adapters.anthropic.response import decode_count

NOW = 1_700_000_000.0


def error(status: int, body: bytes = b"", secret: str = "", **headers: str) -> APIError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return http_error(status, names, body, now=NOW, secret=secret)


def said(kind: str, **members: Any) -> bytes:
    return json.dumps(
        {"type": "error", "error": {"type": kind, "message": "no", **members}}
    ).encode()


RETRYABLE = {
    *("conflict_error", "rate_limit_error", "api_error", "timeout_error", "overloaded_error"),
}


@pytest.mark.parametrize(("kind", "status"), STATUSES.items())
def test_every_type_has_its_status_code_and_retryability(kind: str, status: int) -> None:
    value = json.loads(said(kind))
    for found in (error(status, said(kind)), error_within(value, {}, secret="")):
        assert (found.status, found.code, found.message) == (status, kind, "no")
        assert found.retryable is (kind in RETRYABLE)


@pytest.mark.parametrize(
    ("headers", "retryable", "wait"),
    [
        ({"retry_after": "3"}, True, 3.0),
        ({"retry_after_ms": "250", "retry_after": "3"}, True, 0.25),
        ({"x_should_retry": "false"}, False, None),
        ({"retry_after": "121"}, False, 121.0),
    ],
)
def test_headers_tell_when(headers: dict[str, str], retryable: bool, wait: float | None) -> None:
    found = error(529, said("overloaded_error"), **headers)
    assert (retryable, wait) == (found.retryable, found.retry_after)


@pytest.mark.parametrize("code", ["enforced_spend_limit_reached", "contract_spend_limit_reached"])
def test_a_spent_limit_is_tried_again_only_where_the_server_says_when(code: str) -> None:
    body = said("rate_limit_error", details={"error_code": code})
    assert (error(429, body).retryable, error(429, body).code) == (False, code)
    assert error(429, body, retry_after="5").retryable
    assert not error_within(json.loads(body), {}, secret="").retryable


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (said("invalid_request_error"), "no", "invalid_request_error"),
        (b'{"error":{"code":400,"message":"too long","type":"exceed"}}', "too long", "exceed"),
        (b'{"error":"words"}', "words", None),
        (b'{"type":"error","message":"flat"}', "flat", None),
        (b'{"detail":"x"}', "x", None),
        (b"<html><title>Bad</title>gateway</html>", "Bad gateway", None),
        (b"", "Bad Request", None),
        (b"[1]", "Bad Request", None),
    ],
)
def test_bodies_of_every_kind(body: bytes, message: str, code: str | None) -> None:
    found = error(400, body)
    assert (found.message, found.code, found.status) == (message, code, 400)


def test_the_request_id_is_in_a_header_or_in_the_body() -> None:
    body = b'{"type":"error","error":{"type":"api_error","message":"no"},"request_id":"req_2"}'
    assert error(500, body, request_id="req_1").request_id == "req_1"
    assert error(500, body).request_id == "req_2"
    assert error(500).request_id is None


def test_an_error_within_may_have_a_number_of_its_own() -> None:
    found = error_within({"error": {"code": 503, "message": "busy"}}, {}, secret="")
    assert (found.status, found.retryable) == (503, True)
    assert error_within({"error": {"type": "of the future"}}, {}, secret="").status is None


def test_the_key_is_never_quoted() -> None:
    body = said("authentication_error", message="bad sk-ant-0123456789")
    assert error(401, body, secret="sk-ant-0123456789").message == "bad [key]"


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{}", b'{"input_tokens":"x"}', b'{"input_tokens":-1}']
)
def test_a_count_without_a_number_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="count"):
        decode_count(body, headers={}, secret="")


def test_an_error_in_place_of_a_count() -> None:
    with pytest.raises(APIError, match="500 api_error: no"):
        decode_count(said("api_error"), headers={}, secret="")
