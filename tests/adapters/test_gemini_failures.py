"""Errors of Gemini: what they say, whether to try again and when, no secret in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.errors import APIError, ProtocolError
from golem_adapters.gemini.failures import STATUSES, error_within, http_error
from golem_adapters.gemini.response import decode_count

NOW = 1_700_000_000.0


def error(status: int, body: bytes = b"", secret: str = "", **headers: str) -> APIError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return http_error(status, names, body, now=NOW, secret=secret)


def said(code: str, *details: dict[str, Any], **members: Any) -> bytes:
    body = {"message": "no", "status": code, "details": list(details), **members}
    return json.dumps({"error": body}).encode()


def retry(delay: Any) -> dict[str, Any]:
    return {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}


RETRYABLE = {408, 429, 500, 502, 503, 504}


@pytest.mark.parametrize(("code", "status"), STATUSES.items())
def test_every_code_has_its_status_and_retryability(code: str, status: int) -> None:
    for found in (error(status, said(code)), error_within(json.loads(said(code)), {}, secret="")):
        assert (found.status, found.code, found.message) == (status, code, "no")
        assert found.retryable is (status in RETRYABLE)


@pytest.mark.parametrize(
    ("delay", "retryable", "wait"),
    [
        ("34.4s", True, 34.4),
        ("5s", True, 5.0),
        ("0s", True, None),
        ("121s", False, 121.0),
        ("soon", True, None),
        (7, True, None),
        ("-1s", True, None),
    ],
)
def test_the_details_tell_when(delay: Any, retryable: bool, wait: float | None) -> None:
    body = said("RESOURCE_EXHAUSTED", {"@type": "other"}, retry(delay))
    for found in (error(429, body), error_within(json.loads(body), {}, secret="")):
        assert (retryable, wait) == (found.retryable, found.retry_after)


def test_a_gateways_header_tells_when_too() -> None:
    body = said("UNAVAILABLE", retry("9s"))
    assert error(503, body, retry_after="3").retry_after == 3.0
    assert not error(503, body, retry_after="121").retryable
    assert not error(400, said("INVALID_ARGUMENT", retry("9s"))).retryable


@pytest.mark.parametrize(
    ("body", "message", "code"),
    [
        (said("INVALID_ARGUMENT"), "no", "INVALID_ARGUMENT"),
        (b"[" + said("INVALID_ARGUMENT") + b"]", "no", "INVALID_ARGUMENT"),
        (b'{"error":{"code":400,"message":"x"}}', "x", None),
        (b'{"error":"invalid_grant","error_description":"expired"}', "expired", None),
        (b'{"error":"words"}', "words", None),
        (b"<html><title>Bad</title>gateway</html>", "Bad gateway", None),
        (b"", "Bad Request", None),
        (b"[1]", "Bad Request", None),
        (b"[]", "Bad Request", None),
    ],
)
def test_bodies_of_every_kind(body: bytes, message: str, code: str | None) -> None:
    found = error(400, body)
    assert (found.message, found.code, found.status) == (message, code, 400)


def test_the_request_id_is_a_gateways_header_or_in_the_details() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RequestInfo", "requestId": "r-2"}
    assert error(500, said("INTERNAL", info), x_request_id="r-1").request_id == "r-1"
    assert error(500, said("INTERNAL", info)).request_id == "r-2"
    assert error(500).request_id is None


def test_the_key_is_never_quoted() -> None:
    body = said("INVALID_ARGUMENT", message="bad AIza-0123456789")
    assert error(400, body, secret="AIza-0123456789").message == "bad [key]"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b'{"totalTokens":"x"}', b'{"totalTokens":-1}'])
def test_a_count_without_a_number_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError, match="count"):
        decode_count(body, headers={}, secret="")


def test_an_error_in_place_of_a_count() -> None:
    with pytest.raises(APIError, match="500 INTERNAL: no"):
        decode_count(said("INTERNAL"), headers={}, secret="")
