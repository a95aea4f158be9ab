"""Signature Version 4 against the values that AWS has published, and its own rules."""

from __future__ import annotations

import pytest

from golem_adapters.bedrock.sigv4 import AWSCredentials, signature_headers

EXAMPLE = AWSCredentials("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
SUITE_TIME = 1440938160.0  # 2015-08-30T12:36:00Z, the time of AWS's test suite


def signed(
    method: str = "GET",
    url: str = "https://example.amazonaws.com/",
    headers: dict[str, str] | None = None,
    body: bytes = b"",
    service: str = "service",
    credentials: AWSCredentials = EXAMPLE,
    now: float = SUITE_TIME,
) -> dict[str, str]:
    return signature_headers(
        method,
        url,
        headers or {},
        body,
        credentials=credentials,
        region="us-east-1",
        service=service,
        now=now,
    )


def signature(**request: object) -> str:
    return signed(**request)["authorization"].rpartition("=")[2]  # type: ignore[arg-type]


def test_vanilla_requests_of_the_published_suite_get_their_signatures() -> None:
    assert signed() == {
        "x-amz-date": "20150830T123600Z",
        "authorization": (
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request,"
            " SignedHeaders=host;x-amz-date, Signature="
            "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"
        ),
    }
    post = "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"
    assert post == signature(method="POST")


def test_parameters_are_signed_in_their_order_as_in_the_published_suite() -> None:
    expected = "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
    url = "https://example.amazonaws.com/?Param2=value2&Param1=value1"
    assert expected == signature(url=url)


def test_the_worked_example_of_the_documentation_gets_its_signature() -> None:
    expected = "5d672d79c15b13162d9279b0855cfba6789a8edb4c82c400e06b5924a6f2b5d7"
    assert expected == signature(
        url="https://iam.amazonaws.com/?Action=ListUsers&Version=2010-05-08",
        headers={"content-type": "application/x-www-form-urlencoded; charset=utf-8"},
        service="iam",
    )


ACCOUNT = "123456789012"
MODELS = {
    "us.amazon.nova-micro-v1%3A0": (
        EXAMPLE,
        "accept;content-type;host;x-amz-date",
        "fc8e0cf8d7be70b04c71d4ce5ca35b1f9580c4b1b219657a3a8b7c856c5579cb",
    ),
    f"arn%3Aaws%3Abedrock%3Aus-east-1%3A{ACCOUNT}%3Aapplication-inference-profile%2Fmi1dadi0g15f": (
        AWSCredentials("ASIAEXAMPLE", "secret/with+signs", "token/with+signs=="),
        "accept;content-type;host;x-amz-date;x-amz-security-token",
        "99613cc6f2aedd5cfa0f6882401541f6b96d36b8e539ffd66465a4cb76cd5bcd",
    ),
}


@pytest.mark.parametrize("model", MODELS)
def test_encoded_models_and_session_tokens_are_signed_as_botocore_signs_them(model: str) -> None:
    credentials, names, expected = MODELS[model]
    headers = signed(
        method="POST",
        url=f"https://bedrock-runtime.us-east-1.amazonaws.com/model/{model}/converse",
        headers={"content-type": "application/json", "accept": "application/json"},
        body=b'{"messages":[]}',
        service="bedrock",
        credentials=credentials,
    )
    assert f"SignedHeaders={names}, Signature={expected}" in headers["authorization"]
    assert credentials.session_token == headers.get("x-amz-security-token", "")


def test_the_schemes_own_port_and_a_user_are_no_part_of_the_host() -> None:
    plain = signed(url="https://h.example/x")
    assert plain == signed(url="https://h.example:443/x") == signed(url="https://u:p@H.example/x")
    assert plain != signed(url="https://h.example:80/x")


def test_blanks_and_case_of_headers_do_not_change_the_signature() -> None:
    assert signed(headers={"X-A": "  a   b "}) == signed(headers={"x-a": "a b"})


@pytest.mark.parametrize(
    "other",
    [
        {"body": b"x"},
        {"method": "PUT"},
        {"now": SUITE_TIME + 1},
        {"service": "bedrock"},
        {"headers": {"accept": "x"}},
        {"credentials": AWSCredentials("AKIDEXAMPLE", "other")},
        {"url": "https://example.amazonaws.com/%3A"},
    ],
)
def test_everything_that_goes_out_is_signed(other: dict[str, object]) -> None:
    assert signature() != signature(**other)


def test_credentials_show_no_secret() -> None:
    shown = repr(AWSCredentials("AKID", "the-secret", "the-token"))
    assert "AKID" in shown
    assert "the-secret" not in shown
    assert "the-token" not in shown
