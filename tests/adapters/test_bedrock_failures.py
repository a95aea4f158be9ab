"""Errors of Bedrock: types, statuses, words, whether to try again, and no secret in any."""

from __future__ import annotations

import json

import pytest

from golem.errors import APIError, ProtocolError
from golem_adapters.bedrock.failures import STATUSES, http_error
from golem_adapters.bedrock.response import decode_count

TOKEN = "session-token-0123456789"


def error(status: int, body: bytes = b"", **headers: str) -> APIError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return http_error(status, names, body, now=0.0, secrets=("", "secret-key-0123456789", TOKEN))


RETRIED = {
    "InternalServerException",
    "ModelErrorException",
    "ModelNotReadyException",
    "ModelStreamErrorException",
    "ModelTimeoutException",
    "ServiceUnavailableException",
    "ThrottlingException",
}


@pytest.mark.parametrize("kind", STATUSES)
@pytest.mark.parametrize("spelling", ["{}:http://internal.amazon.com/coral/x/", "{}"])
def test_every_type_has_its_status_and_retryability(kind: str, spelling: str) -> None:
    found = error(STATUSES[kind], b'{"message":"m"}', x_amzn_errortype=spelling.format(kind))
    assert (found.code, found.message, found.retryable) == (kind, "m", kind in RETRIED)


@pytest.mark.parametrize(
    ("body", "code", "message"),
    [
        (
            b'{"__type":"com.amazon.coral.service#AccessDeniedException","Message":"no"}',
            "AccessDeniedException",
            "no",
        ),
        (
            b'{"__type":"UnrecognizedClientException","message":"no"}',
            "UnrecognizedClientException",
            "no",
        ),
        (
            b'{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}',
            "UnknownOperationException",
            "Forbidden",
        ),
        (b'{"message":"a","originalMessage":"b"}', None, "a: b"),
        (
            b'{"error":{"message":"no","type":"invalid_request_error"}}',
            "invalid_request_error",
            "no",
        ),
        (b"<html><h1>403</h1> Forbidden</html>", None, "403 Forbidden"),
        (b"", None, "Forbidden"),
        (b"[]", None, "[]"),
    ],
)
def test_bodies_of_every_kind(body: bytes, code: str | None, message: str) -> None:
    found = error(403, body)
    assert (found.code, found.message) == (code, message)


def test_the_header_goes_before_the_body_and_the_request_has_an_id() -> None:
    body = b'{"__type":"A","message":"m"}'
    found = error(400, body, x_amzn_errortype="B", x_amzn_requestid="r-1")
    assert (found.code, found.request_id) == ("B", "r-1")
    assert error(400).request_id is None


@pytest.mark.parametrize("kind", sorted(RETRIED))
def test_a_type_counts_more_than_the_status_that_a_gateway_gives_it(kind: str) -> None:
    assert error(400, b'{"message":"m"}', x_amzn_errortype=kind).retryable
    assert error(400, json.dumps({"__type": f"x#{kind}"}).encode()).retryable
    long = error(424, b"{}", x_amzn_errortype=kind, retry_after="3600")
    assert (long.retryable, long.retry_after) == (False, 3600.0)


def test_only_a_models_own_errors_have_the_status_424() -> None:
    assert error(424, b'{"message":"m"}').retryable
    assert not error(500, b"{}", x_amzn_errortype="ValidationException").retryable


def test_a_wait_is_read_and_a_long_one_is_no_pause() -> None:
    assert error(429, retry_after="3").retry_after == 3.0
    assert not error(429, retry_after="3600").retryable


def test_no_secret_is_quoted() -> None:
    words = f"The Canonical String should have been 'x-amz-security-token:{TOKEN}'"
    body = json.dumps({"message": words, "__type": TOKEN}).encode()
    found = error(403, body, x_amzn_errortype="InvalidSignatureException")
    assert "security-token:[key]" in found.message
    assert TOKEN not in str(found) + repr(found)
    assert TOKEN not in str(error(403, TOKEN.encode()))


@pytest.mark.parametrize(
    "body", [b"x", b"{}", b'{"inputTokens":-1}', b'{"inputTokens":"1"}', b"[]"]
)
def test_a_count_without_a_number_is_a_protocol_error(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_count(body, headers={}, secrets=())


def test_an_error_in_place_of_a_count() -> None:
    with pytest.raises(APIError, match="no counting"):
        decode_count(b'{"message":"no counting"}', headers={}, secrets=())
