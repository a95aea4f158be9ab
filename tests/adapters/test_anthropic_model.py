"""Making an `Anthropic`: keys, addresses, settings, and what it shows of itself."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import metadata
from typing import Any

import pytest

import golem_adapters
from golem.errors import UnsupportedContentError
from golem.messages import UserMessage
from golem.model import Model, Request, Settings
from golem.wire.http import HTTPCall
from golem_adapters import Anthropic
from golem_adapters.anthropic.dialect import ANTHROPIC, DIALECTS

KEY = "sk-ant-secret-0123456789"
ASK = Request([UserMessage("hi")])


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for dialect in DIALECTS.values():
        for name in (*dialect.key_variables, dialect.base_url_variable):
            if name:
                monkeypatch.delenv(name, raising=False)


def call_of(model: Anthropic, request: Request = ASK) -> HTTPCall:
    return model._counting.encode(request, stream=False)


def headers_of(model: Anthropic) -> dict[str, Any]:
    found: Any = model._counting.authorize(call_of(model), 0.0)
    return dict(found)


def test_a_key_is_taken_from_the_argument_then_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="ANTHROPIC_API_KEY"):
        Anthropic("m")
    monkeypatch.setenv("ANTHROPIC_API_KEY", f"{KEY}\n")
    assert headers_of(Anthropic("m")) == {"x-api-key": KEY}
    assert headers_of(Anthropic("m", api_key="mine")) == {"x-api-key": "mine"}
    assert headers_of(Anthropic("m", api_key="", base_url="http://localhost:1")) == {}


def test_a_token_goes_out_as_bearer_and_before_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    assert headers_of(Anthropic("m", token="t-1")) == {"authorization": "Bearer t-1"}
    assert headers_of(Anthropic("m", token=lambda: "t-2")) == {"authorization": "Bearer t-2"}


@pytest.mark.parametrize(
    ("base_url", "url"),
    [
        ("https://h", "https://h/v1/messages"),
        ("https://h/v1/", "https://h/v1/messages"),
        ("https://h/anthropic", "https://h/anthropic/v1/messages"),
        ("https://h/v1?key=a", "https://h/v1/messages?key=a"),
    ],
)
def test_an_address_may_have_the_version_or_not(base_url: str, url: str) -> None:
    model = Anthropic("m", api_key=KEY, base_url=base_url)
    assert call_of(model).url == url
    assert model._counting.count(ASK).url == url.replace("messages", "messages/count_tokens")


def test_the_address_is_the_dialects_unless_given(monkeypatch: pytest.MonkeyPatch) -> None:
    assert Anthropic("m", api_key=KEY).base_url == "https://api.anthropic.com"
    assert Anthropic("m", dialect="ollama").base_url == "http://localhost:11434"
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "https://proxy.example/anthropic")
    assert Anthropic("m").base_url == "https://proxy.example/anthropic"


def test_the_version_of_the_api_is_a_header() -> None:
    def version(model: Anthropic, request: Request = ASK) -> str:
        return call_of(model, request).headers["anthropic-version"]

    assert version(Anthropic("m", api_key=KEY)) == "2026-10-21"
    assert version(Anthropic("m", api_key=KEY, temperature=0.0)) == "2023-06-01"
    assert version(Anthropic("m", api_key=KEY, api_version="2023-06-01")) == "2023-06-01"
    assert version(Anthropic("m", dialect="llama.cpp", temperature=0.0)) == "2023-06-01"
    newest = Anthropic("m", api_key=KEY, api_version="2026-10-21")
    warm = Request([UserMessage("hi")], settings=Settings(temperature=1.0))
    assert version(Anthropic("m", api_key=KEY), warm) == "2023-06-01"
    with pytest.raises(UnsupportedContentError, match="temperature"):
        version(newest, warm)
    assert newest._counting.count(ASK).headers["anthropic-version"] == "2026-10-21"


def test_betas_and_workspace_are_headers() -> None:
    headers = call_of(Anthropic("m", api_key=KEY, betas=["a", "b"], workspace="w")).headers
    assert headers["anthropic-beta"] == "a,b"
    assert headers["anthropic-workspace-id"] == "w"
    assert call_of(Anthropic("m", api_key=KEY, betas="a")).headers["anthropic-beta"] == "a"
    assert KEY not in str(headers)


@pytest.mark.parametrize(
    ("thinking", "sent"),
    [
        ("adaptive", {"type": "adaptive"}),
        ("between_tools", {"type": "between_tools"}),
        ("disabled", {"type": "disabled"}),
        (2048, {"type": "enabled", "budget_tokens": 2048}),
        (
            {"type": "adaptive", "display": "omitted"},
            {"type": "adaptive", "display": "omitted"},
        ),
    ],
)
def test_thinking_in_every_form(thinking: Any, sent: dict[str, Any]) -> None:
    model = Anthropic("m", api_key=KEY, thinking=thinking)
    assert json.loads(call_of(model).body)["thinking"] == sent


@pytest.mark.parametrize("thinking", ["enabled", 1023, True, {"budget_tokens": 2048}])
def test_thinking_that_cannot_be_is_refused(thinking: Any) -> None:
    with pytest.raises(ValueError, match="thinking"):
        Anthropic("m", api_key=KEY, thinking=thinking)


def test_other_options_are_checked_by_name() -> None:
    cache: Any = "1d"
    with pytest.raises(ValueError, match="'5m' or '1h', not '1d'"):
        Anthropic("m", api_key=KEY, cache=cache)
    with pytest.raises(ValueError, match=r"unknown dialect 'nope'; known are anthropic"):
        Anthropic("m", api_key=KEY, dialect="nope")
    options: dict[str, Any] = {"temprature": 1}
    with pytest.raises(TypeError, match="temprature"):
        Anthropic("m", api_key=KEY, **options)
    with pytest.raises(ValueError, match="needs a name"):
        Anthropic(" ", api_key=KEY)
    with pytest.raises(ValueError, match="api_version holds"):
        Anthropic("m", api_key=KEY, api_version="2\n3")


def test_settings_are_keywords_that_a_request_overrides() -> None:
    model = Anthropic("m", api_key=KEY, max_tokens=5, stop="END", extra_body={"a": 1})
    assert model.settings == Settings(max_tokens=5, stop=("END",), extra_body={"a": 1})
    settings = Settings(max_tokens=6, extra_body={"b": 2})
    body = json.loads(call_of(model, Request([UserMessage("hi")], settings=settings)).body)
    assert (body["max_tokens"], body["a"], body["b"]) == (6, 1, 2)
    assert body["stop_sequences"] == ["END"]


def test_a_dialect_may_be_a_record_of_ones_own() -> None:
    mine = replace(ANTHROPIC, name="mine", key_header="authorization", structured_output=False)
    model = Anthropic("m", api_key=KEY, dialect=mine)
    assert headers_of(model) == {"authorization": f"Bearer {KEY}"}
    assert not model.native_output
    assert Anthropic("m", api_key=KEY).native_output


def test_a_model_shows_where_it_is_and_nothing_secret() -> None:
    model = Anthropic("m", api_key=KEY, base_url="https://user:pw@h.example/v1?token=t")
    assert repr(model) == "Anthropic('m', base_url='https://h.example/v1')"
    assert (model.model, model.dialect) == ("m", ANTHROPIC)
    assert isinstance(model, Model)


def test_it_is_found_by_name() -> None:
    assert golem_adapters.Anthropic is Anthropic
    points = metadata.entry_points(group="golem.models")
    assert "anthropic" not in points.names or points["anthropic"].load() is Anthropic
