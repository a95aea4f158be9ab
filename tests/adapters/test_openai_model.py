"""Making an `OpenAI`: keys, addresses, settings, and what it shows of itself."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from typing import Any

import pytest

import golem_adapters
from golem.messages import UserMessage
from golem.model import Request, Settings
from golem_adapters import OpenAI, OpenAIResponses
from golem_adapters.openai.dialect import DIALECTS, OPENAI

KEY = "sk-secret-0123456789"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for dialect in DIALECTS.values():
        for name in (*dialect.key_variables, dialect.base_url_variable):
            if name:
                monkeypatch.delenv(name, raising=False)


def key_of(model: OpenAI) -> str:
    call = model._served.encode(Request([UserMessage("hi")]), stream=False)
    return model._served.authorize(call, 0.0).get("authorization", "")


def test_a_key_is_taken_from_the_argument_then_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f" {KEY}\n")
    assert key_of(OpenAI("m")) == f"Bearer {KEY}"
    assert key_of(OpenAI("m", api_key="mine")) == "Bearer mine"
    assert key_of(OpenAI("m", api_key="", base_url="http://localhost:1/v1")) == ""


def test_an_empty_key_is_a_missing_one_and_a_model_has_a_name() -> None:
    for blank in ("", " \n"):
        with pytest.raises(ValueError, match="no API key for openai"):
            OpenAI("m", api_key=blank)
        with pytest.raises(ValueError, match="needs a name"):
            OpenAI(blank, api_key=KEY)


def test_each_dialect_has_its_own_variable_and_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)
    model = OpenAI("m", dialect="groq")
    assert key_of(model) == f"Bearer {KEY}"
    assert model.base_url == "https://api.groq.com/openai/v1"


@pytest.mark.parametrize(
    ("dialect", "variable", "address"),
    [
        ("xai", "XAI_API_KEY", "https://api.x.ai/v1"),
        ("together", "TOGETHER_API_KEY", "https://api.together.xyz/v1"),
        ("fireworks", "FIREWORKS_API_KEY", "https://api.fireworks.ai/inference/v1"),
        ("cerebras", "CEREBRAS_API_KEY", "https://api.cerebras.ai/v1"),
    ],
)
def test_a_hosted_server_is_known_by_name_alone(
    dialect: str, variable: str, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, KEY)
    model = OpenAI("m", dialect=dialect)
    assert (key_of(model), model.base_url) == (f"Bearer {KEY}", address)


def test_every_server_of_the_family_has_a_dialect() -> None:
    servers = "groq mistral openrouter deepseek xai together fireworks cerebras z.ai kimi"
    for name in [*servers.split(), "ollama", "vllm", "llama.cpp", "openai", "azure"]:
        assert OpenAI("m", dialect=name, base_url="http://h/v1", api_key="k").dialect.name


def test_a_cache_key_goes_out_as_a_header_where_the_server_has_it_there() -> None:
    def sent(key: str) -> dict[str, str]:
        model = OpenAI("m", dialect="xai", api_key=KEY, prompt_cache_key=key)
        return dict(model._served.encode(Request([UserMessage("hi")]), stream=False).headers)

    assert sent("c1")["x-grok-conv-id"] == "c1"
    odd = sent("Gespr\u00e4ch\r\n1")["x-grok-conv-id"]
    assert odd.isalnum()
    assert odd == sent("Gespr\u00e4ch\r\n1")["x-grok-conv-id"]
    assert "x-grok-conv-id" not in sent("")


def test_a_missing_key_is_an_error_at_once_unless_an_address_is_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="OPENAI_API_KEY"):
        OpenAI("m")
    assert key_of(OpenAI("m", base_url="http://localhost:1/v1")) == ""
    assert key_of(OpenAI("m", dialect="ollama")) == ""
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:2/v1")
    assert OpenAI("m").base_url == "http://localhost:2/v1"
    assert OpenAI("m", base_url="http://localhost:1/v1/").base_url == "http://localhost:1/v1"


@pytest.mark.parametrize("key", ["sk\nx", "sk-é", "a\x00b"])
def test_a_key_that_no_header_can_carry_is_refused_unseen(key: str) -> None:
    with pytest.raises(ValueError, match="api_key holds characters") as caught:
        OpenAI("m", api_key=key)
    assert key not in str(caught.value)


@pytest.mark.parametrize("model", [OpenAI, OpenAIResponses])
@pytest.mark.parametrize("option", ["organization", "project", "api_key"])
@pytest.mark.parametrize("value", ["é", "a\r\nx-injected: 1", "a\nb", "a\x00b", "\U0001f600"])
def test_an_option_that_no_header_can_carry_is_refused_by_name(
    model: Any, option: str, value: str
) -> None:
    with pytest.raises(ValueError, match=f"{option} holds characters that no HTTP header"):
        model("m", **{"api_key": KEY, option: value})


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"api_key": 5}, "api_key"),
        ({"organization": 5}, "organization"),
        ({"project": b"p"}, "project"),
        ({"base_url": 5}, "base_url"),
        ({"model": 5}, "the model's name"),
        ({"stop": 5}, r"settings\.stop"),
        ({"reasoning_effort": 5}, r"settings\.reasoning_effort"),
        ({"parallel_tool_calls": "yes"}, r"settings\.parallel_tool_calls"),
        ({"prompt_cache_key": 5}, r"settings\.prompt_cache_key"),
    ],
)
def test_an_option_of_another_type_is_refused_by_name(options: dict[str, Any], name: str) -> None:
    with pytest.raises(TypeError, match=name):
        OpenAI(**{"model": "m", "api_key": KEY, **options})


@pytest.mark.parametrize(
    "url", ["localhost:1", "ftp://h/v1", "http://", "http://h:x/", "//h", "http://["]
)
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ValueError, match="base_url"):
        OpenAI("m", base_url=url)


def test_an_address_without_a_place_of_its_own_is_required() -> None:
    with pytest.raises(ValueError, match="base_url"):
        OpenAI("m", api_key=KEY, dialect="azure")


def test_unknown_dialects_and_keywords_are_refused_by_name() -> None:
    with pytest.raises(ValueError, match=r"unknown dialect 'nope'; known are .*groq"):
        OpenAI("m", api_key=KEY, dialect="nope")
    options: dict[str, Any] = {"temprature": 1}
    with pytest.raises(TypeError, match="temprature"):
        OpenAI("m", api_key=KEY, **options)
    with pytest.raises(ValueError, match="timeout"):
        OpenAI("m", api_key=KEY, timeout=0)


def test_a_dialect_may_be_a_record_of_ones_own() -> None:
    mine = replace(OPENAI, name="mine", max_tokens="max_tokens")
    model = OpenAI("m", api_key=KEY, dialect=mine, max_tokens=3)
    assert b'"max_tokens":3' in model._served.encode(Request(()), stream=False).body


def test_settings_are_keywords() -> None:
    model = OpenAI("m", api_key=KEY, temperature=0.5, stop="END", extra_body={"a": 1})
    assert model.settings == Settings(temperature=0.5, stop=("END",), extra_body={"a": 1})
    assert model.model == "m"


def test_a_model_shows_where_it_is_and_nothing_secret() -> None:
    model = OpenAI("m", api_key=KEY, base_url="https://user:pw@h.example/v1?token=t#f")
    assert repr(model) == "OpenAI('m', base_url='https://h.example/v1')"
    assert KEY not in repr(model._served) + str(model.settings)


def test_the_query_of_an_address_stays_behind_the_path() -> None:
    model = OpenAI("m", api_key=KEY, base_url="https://h/openai/v1/?api-version=1")
    call = model._served.encode(Request(()), stream=False)
    assert call.url == "https://h/openai/v1/chat/completions?api-version=1"


@pytest.mark.parametrize(("dialect", "native"), [("openai", True), ("deepseek", False)])
def test_a_model_tells_whether_its_server_enforces_a_schema(dialect: str, native: bool) -> None:
    assert OpenAI("m", api_key=KEY, dialect=dialect).native_output is native


def test_a_model_cannot_be_changed() -> None:
    model: Any = OpenAI("m", api_key=KEY)
    with pytest.raises(AttributeError):
        model.model = "other"
    with pytest.raises(AttributeError):
        model.anything = 1


def test_azure_takes_its_key_in_a_header_of_its_own() -> None:
    model = OpenAI(
        "m", api_key=KEY, dialect="azure", base_url="https://r.openai.azure.com/openai/v1"
    )
    call = model._served.encode(Request(()), stream=False)
    assert model._served.authorize(call, 0.0) == {"api-key": KEY}
    assert call.url == "https://r.openai.azure.com/openai/v1/chat/completions"


def test_the_package_exports_its_models_and_loads_them_late() -> None:
    models = ["Anthropic", "AzureOpenAI", "Bedrock", "Gemini", "OpenAI", "OpenAIResponses"]
    assert golem_adapters.__all__ == ["AWSCredentials", *models]
    assert set(golem_adapters.__all__) <= set(dir(golem_adapters))
    with pytest.raises(AttributeError, match="Nope"):
        _ = golem_adapters.Nope
    program = (
        "import sys, golem, golem_adapters;"
        "assert 'httpx' not in sys.modules, 'golem alone needs no HTTP';"
        "from golem_adapters.openai import dialect, request, response, stream;"
        "assert not {'httpx', 'anyio'} & set(sys.modules) - set(golem_loaded), 'pure files';"
    ).replace("set(golem_loaded)", "({'anyio'} if 'golem.agent' in sys.modules else set())")
    subprocess.run([sys.executable, "-c", program], check=True)
