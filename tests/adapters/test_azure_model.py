"""Making an `AzureOpenAI` and an `OpenAIResponses`: keys, addresses, and what they show."""

from __future__ import annotations

from typing import Any

import pytest

from golem.model import Model, Settings
from golem_adapters import AzureOpenAI, OpenAIResponses
from golem_adapters.azure.model import surface
from golem_adapters.openai_responses.dialect import DIALECTS, OPENAI

KEY = "sk-secret-0123456789"
RESOURCE = "https://r.openai.azure.com"
VARIABLES = [
    *("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_BASE_URL", "AZURE_OPENAI_ENDPOINT"),
    *("OPENAI_API_KEY", "OPENAI_BASE_URL", "DEEPSEEK_API_KEY", "OPENROUTER_API_KEY"),
]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("given", "version", "address"),
    [
        (RESOURCE, None, f"{RESOURCE}/openai/v1"),
        (f"{RESOURCE}/openai/", None, f"{RESOURCE}/openai/v1"),
        (f"{RESOURCE}/openai/v1", None, f"{RESOURCE}/openai/v1"),
        (
            f"{RESOURCE}/openai/v1?api-version=preview",
            None,
            f"{RESOURCE}/openai/v1?api-version=preview",
        ),
        (RESOURCE, "v", f"{RESOURCE}/openai/deployments/d%2F1?api-version=v"),
        (
            f"{RESOURCE}/openai/deployments/x",
            "v",
            f"{RESOURCE}/openai/deployments/x?api-version=v",
        ),
        (f"{RESOURCE}/proxy/v1", None, f"{RESOURCE}/proxy/v1"),
    ],
)
def test_an_address_is_completed_for_the_surface(
    given: str, version: str | None, address: str
) -> None:
    assert address == surface(given, "d/1", version)


def test_azure_needs_an_address_and_a_key_or_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    assert AzureOpenAI("d", base_url=RESOURCE).model == "d"  # a gateway's, which needs none
    with pytest.raises(ValueError, match="AZURE_OPENAI_BASE_URL or AZURE_OPENAI_ENDPOINT"):
        AzureOpenAI("d", api_key=KEY)
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"{RESOURCE}/")
    with pytest.raises(ValueError, match="AZURE_OPENAI_API_KEY"):
        AzureOpenAI("d")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", KEY)
    assert AzureOpenAI("d").base_url == f"{RESOURCE}/openai/v1"
    assert AzureOpenAI("d", token="t").model == "d"


def test_azure_shows_where_it_is_and_nothing_secret() -> None:
    url = "https://user:pw@r.openai.azure.com?code=secret"
    model = AzureOpenAI("d", base_url=url, api_key=KEY, api_version="v", temperature=0.5)
    assert repr(model) == f"AzureOpenAI('d', base_url='{RESOURCE}/openai/deployments/d')"
    assert model.settings == Settings(temperature=0.5)
    assert model.native_output
    assert model.dialect.name == "azure"
    assert isinstance(model, Model)


def test_responses_takes_its_key_as_openai_does(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        OpenAIResponses("m")
    assert (
        OpenAIResponses("m", base_url="http://localhost:1/v1").base_url == "http://localhost:1/v1"
    )
    assert OpenAIResponses("m", token="t").base_url == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:2/v1")
    assert OpenAIResponses("m").base_url == "http://localhost:2/v1"


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_every_dialect_of_responses_makes_a_model(name: str) -> None:
    model = OpenAIResponses("m", dialect=name, api_key=KEY, base_url="http://h/v1")
    assert model.dialect is DIALECTS[name]
    assert model.native_output is (model.dialect.structured_output == "json_schema")
    assert repr(model) == "OpenAIResponses('m', base_url='http://h/v1')"
    assert isinstance(model, Model)


def test_an_unknown_dialect_and_an_unknown_setting_are_refused_by_name() -> None:
    options: dict[str, Any] = {"seed": 1}
    with pytest.raises(ValueError, match="unknown dialect 'nope'; known are azure, deepseek"):
        OpenAIResponses("m", api_key=KEY, dialect="nope")
    with pytest.raises(TypeError, match="seed"):
        OpenAIResponses("m", api_key=KEY, **options)
    assert OpenAIResponses("m", api_key=KEY, dialect=OPENAI).settings == Settings()
