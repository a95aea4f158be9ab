"""Making a `Bedrock`: credentials, regions, addresses, settings, and what it shows of itself."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import metadata
from typing import Any

import httpx
import pytest

import golem_adapters
from golem.errors import UnsupportedContentError
from golem.messages import UserMessage
from golem.model import Model, Request, Settings
from golem.wire.http import HTTPCall
from golem_adapters import AWSCredentials, Bedrock
from golem_adapters.bedrock.dialect import CLAUDE

MODEL = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
ASK = Request([UserMessage("hi")])
KEYS = AWSCredentials("AKIDEXAMPLE", "secret-0123456789")
VARIABLES = (
    *("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_BEARER_TOKEN_BEDROCK", "AWS_ACCESS_KEY_ID"),
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL"),
    "AWS_ENDPOINT_URL_BEDROCK_RUNTIME",
)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


def call_of(model: Bedrock, request: Request = ASK, *, stream: bool = False) -> HTTPCall:
    return model._counting.encode(request, stream=stream)


def headers_of(model: Bedrock) -> dict[str, str]:
    found: Any = model._counting.authorize(call_of(model), 1440938160.0)
    return dict(found)


# --- credentials


def test_a_key_is_a_bearer_token(monkeypatch: pytest.MonkeyPatch) -> None:
    bearer = {"authorization": "Bearer abc"}
    assert headers_of(Bedrock(MODEL, region="us-east-1", api_key="abc\n")) == bearer
    assert headers_of(Bedrock(MODEL, region="us-east-1", token=lambda: "abc")) == bearer
    monkeypatch.setenv("AWS_BEARER_TOKEN_BEDROCK", "abc")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    assert headers_of(Bedrock(MODEL, region="us-east-1")) == bearer
    signed = headers_of(Bedrock(MODEL, region="us-east-1", credentials=KEYS))
    assert signed["authorization"].startswith("AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/")


def test_the_environments_credentials_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret\n")
    monkeypatch.setenv("AWS_SESSION_TOKEN", "token")
    found = headers_of(Bedrock(MODEL, region="eu-west-1"))
    assert found["x-amz-security-token"] == "token"
    assert "/20150830/eu-west-1/bedrock/aws4_request" in found["authorization"]
    given = AWSCredentials("AKID", "secret", "token")
    assert found == headers_of(Bedrock(MODEL, region="eu-west-1", credentials=given))


def test_credentials_may_come_from_a_function() -> None:
    static = headers_of(Bedrock(MODEL, region="us-east-1", credentials=KEYS))
    assert static == headers_of(Bedrock(MODEL, region="us-east-1", credentials=lambda: KEYS))


async def test_credentials_may_come_from_an_async_function() -> None:
    async def fetch() -> AWSCredentials:
        return KEYS

    model = Bedrock(MODEL, region="us-east-1", credentials=fetch)
    found: Any = model._counting.authorize(call_of(model), 1440938160.0)
    assert await found == headers_of(Bedrock(MODEL, region="us-east-1", credentials=KEYS))


async def test_what_is_given_for_credentials_and_is_none_is_named_and_not_quoted() -> None:
    """Such as another library's, which a function hands on."""
    others: Any = ("AKIDEXAMPLE", "secret-key-0123456789")
    says = "credentials must be AWSCredentials, or give them, not tuple"
    with pytest.raises(TypeError, match=f"^{says}$"):
        Bedrock(MODEL, region="us-east-1", credentials=others)
    with pytest.raises(TypeError, match=f"^{says}$"):
        headers_of(Bedrock(MODEL, region="us-east-1", credentials=lambda: others))

    async def fetch() -> Any:
        return others

    model = Bedrock(MODEL, region="us-east-1", credentials=fetch)
    found: Any = model._wire.authorize(call_of(model), 0.0)
    with pytest.raises(TypeError, match=f"^{says}$"):
        await found


def test_an_unusable_key_is_named_as_it_was_given() -> None:
    with pytest.raises(ValueError, match=r"^api_key holds"):
        Bedrock(MODEL, region="us-east-1", api_key="a\nb")
    with pytest.raises(ValueError, match=r"^token holds"):
        Bedrock(MODEL, region="us-east-1", token="a\nb")


def test_without_credentials_it_says_what_it_needs() -> None:
    with pytest.raises(ValueError, match="AWS_BEARER_TOKEN_BEDROCK, or AWS_ACCESS_KEY_ID and"):
        Bedrock(MODEL, region="us-east-1")
    assert headers_of(Bedrock(MODEL, base_url="http://localhost:1")) == {}


@pytest.mark.parametrize(
    "credentials",
    [
        AWSCredentials("", "s"),
        AWSCredentials("a", " "),
        AWSCredentials("a\nb", "s"),
        AWSCredentials("a", "s", "é"),
    ],
)
def test_unusable_credentials_are_refused_without_being_quoted(credentials: AWSCredentials) -> None:
    with pytest.raises(ValueError, match=r"access key|session_token|access_key_id") as caught:
        Bedrock(MODEL, region="us-east-1", credentials=credentials)
    assert "é" not in str(caught.value)


def test_half_of_the_environments_credentials_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    with pytest.raises(ValueError, match="no credentials"):
        Bedrock(MODEL, region="us-east-1")


# --- regions, addresses


def test_the_region_is_given_or_the_environments_or_an_arns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    arn = "arn:aws:bedrock:ap-south-1:1:inference-profile/apac.anthropic.claude-sonnet-4-5-v1:0"
    with pytest.raises(ValueError, match="AWS_REGION"):
        Bedrock(MODEL, api_key="k")
    assert Bedrock(arn, api_key="k").region == "ap-south-1"
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-3")
    assert Bedrock(arn, api_key="k").region == "eu-west-3"
    monkeypatch.setenv("AWS_REGION", "eu-west-2")
    assert Bedrock(MODEL, api_key="k").region == "eu-west-2"
    model = Bedrock(MODEL, api_key="k", region="us-gov-west-1")
    assert model.base_url == "https://bedrock-runtime.us-gov-west-1.amazonaws.com"
    china = Bedrock(MODEL, api_key="k", region="cn-north-1")
    assert china.base_url == "https://bedrock-runtime.cn-north-1.amazonaws.com.cn"


@pytest.mark.parametrize("region", ["evil.example/", "us-east-1@x", "us_east_1", "US-EAST-1", "x"])
def test_a_region_cannot_be_another_host(region: str) -> None:
    with pytest.raises(ValueError, match="not an AWS region"):
        Bedrock(MODEL, api_key="k", region=region)


def test_the_address_may_be_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        call_of(Bedrock("m", base_url="http://localhost:1/aws/")).url
        == "http://localhost:1/aws/model/m/converse"
    )
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://localhost:2")
    assert Bedrock("m").base_url == "http://localhost:2"
    monkeypatch.setenv("AWS_ENDPOINT_URL_BEDROCK_RUNTIME", "http://localhost:3")
    assert Bedrock("m").base_url == "http://localhost:3"
    with pytest.raises(ValueError, match="signing needs a region"):
        Bedrock("m", credentials=KEYS)
    with pytest.raises(ValueError, match="http"):
        Bedrock("m", base_url="ftp://x")


@pytest.mark.parametrize(
    ("model", "path"),
    [
        (MODEL, "us.anthropic.claude-sonnet-4-5-20250929-v1%3A0"),
        (
            "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/mi1dadi0g15f",
            "arn%3Aaws%3Abedrock%3Aus-east-1%3A123456789012%3Aapplication-inference-profile%2Fmi1dadi0g15f",
        ),
        ("a b/é", "a%20b%2F%C3%A9"),
    ],
)
def test_a_model_is_one_segment_of_the_path_and_goes_out_as_it_is_signed(
    model: str, path: str
) -> None:
    call = call_of(Bedrock(model, api_key="k", region="us-east-1"), stream=True)
    assert (
        call.url == f"https://bedrock-runtime.us-east-1.amazonaws.com/model/{path}/converse-stream"
    )
    assert call.headers["accept"] == "application/vnd.amazon.eventstream"
    request = httpx.Request("POST", call.url)
    assert request.url.raw_path.decode() == f"/model/{path}/converse-stream"
    assert request.headers["host"] == "bedrock-runtime.us-east-1.amazonaws.com"


# --- options


def test_settings_are_keywords_that_a_request_overrides() -> None:
    model = Bedrock(MODEL, base_url="http://localhost:1", max_tokens=5, stop="x", temperature=0.1)
    assert model.settings == Settings(max_tokens=5, stop=("x",), temperature=0.1)
    body = json.loads(
        call_of(model, Request([UserMessage("hi")], settings=Settings(max_tokens=9))).body
    )
    assert body["inferenceConfig"] == {"maxTokens": 9, "temperature": 0.1, "stopSequences": ["x"]}
    with pytest.raises(UnsupportedContentError, match="seed"):
        call_of(model, Request([UserMessage("hi")], settings=Settings(seed=1)))


def test_options_are_checked_by_name() -> None:
    url = "http://localhost:1"
    with pytest.raises(ValueError, match="'5m' or '1h'"):
        Bedrock(MODEL, base_url=url, cache="2h")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="bedrock-llama has no prompt caches"):
        Bedrock("meta.llama3-2-1b-instruct-v1:0", base_url=url, cache="5m")
    with pytest.raises(ValueError, match="needs a name"):
        Bedrock(" ", base_url=url)
    with pytest.raises(ValueError, match="timeout"):
        Bedrock(MODEL, base_url=url, timeout=0)


def test_the_family_is_the_names_or_told() -> None:
    url, profile = (
        "http://localhost:1",
        "arn:aws:bedrock:us-east-1:1:application-inference-profile/x",
    )
    assert Bedrock(MODEL, base_url=url).native_output
    assert Bedrock(profile, base_url=url).dialect.name == "bedrock"
    assert Bedrock(profile, base_url=url, dialect=MODEL).dialect.name == "bedrock-claude"
    mine = replace(CLAUDE, name="mine")
    assert Bedrock(profile, base_url=url, dialect=mine).dialect is mine


def test_a_model_shows_where_it_is_and_nothing_secret() -> None:
    model = Bedrock("m", base_url="http://user:pass@localhost:1/?k=v", api_key="abc-secret-key")
    assert repr(model) == "Bedrock('m', base_url='http://localhost:1/')"
    assert isinstance(model, Model)


def test_it_is_found_by_name() -> None:
    (entry,) = metadata.entry_points(group="golem.models", name="bedrock")
    assert entry.value == "golem_adapters:Bedrock"
    assert golem_adapters.Bedrock is Bedrock
