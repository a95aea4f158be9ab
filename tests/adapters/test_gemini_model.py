"""Making a `Gemini`: keys, tokens, addresses, places, settings, and what it shows of itself."""

from __future__ import annotations

import json
from importlib import metadata
from typing import Any

import pytest

import golem_adapters
from golem.messages import UserMessage
from golem.model import Model, Request, Settings
from golem.wire.http import HTTPCall
from golem_adapters import Gemini
from golem_adapters.gemini.dialect import AI_STUDIO, VERTEX

KEY = "AIza-secret-0123456789"
ASK = Request([UserMessage("hi")])
GOOGLE = "https://generativelanguage.googleapis.com/v1beta"


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (
        *("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL"),
        *("GOOGLE_VERTEX_BASE_URL", "GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"),
    ):
        monkeypatch.delenv(name, raising=False)


def call_of(model: Gemini, *, stream: bool = False, request: Request = ASK) -> HTTPCall:
    return model._counting.encode(request, stream=stream)


def headers_of(model: Gemini) -> dict[str, Any]:
    found: Any = model._counting.authorize(call_of(model), 0.0)
    return dict(found)


def test_a_key_is_taken_from_the_argument_then_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(ValueError, match="GEMINI_API_KEY or GOOGLE_API_KEY"):
        Gemini("m")
    monkeypatch.setenv("GOOGLE_API_KEY", f"{KEY}\n")
    assert headers_of(Gemini("m")) == {"x-goog-api-key": KEY}
    monkeypatch.setenv("GEMINI_API_KEY", "first")
    assert headers_of(Gemini("m")) == {"x-goog-api-key": "first"}
    assert headers_of(Gemini("m", api_key="mine")) == {"x-goog-api-key": "mine"}
    assert headers_of(Gemini("m", api_key="", base_url="http://localhost:1")) == {}


def test_a_token_goes_out_as_bearer_and_before_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    assert headers_of(Gemini("m", token="t-1")) == {"authorization": "Bearer t-1"}
    vertex = Gemini("m", project="p", token=lambda: "t-2")
    assert headers_of(vertex) == {"authorization": "Bearer t-2"}


@pytest.mark.parametrize(
    ("model", "options", "url"),
    [
        ("m", {}, f"{GOOGLE}/models/m"),
        ("models/m", {}, f"{GOOGLE}/models/m"),
        ("tunedModels/a b?", {}, f"{GOOGLE}/tunedModels/a%20b%3F"),
        ("m", {"api_version": "v1"}, f"{GOOGLE[:-4]}/models/m"),
        ("m", {"base_url": "https://h/v1alpha/"}, "https://h/v1alpha/models/m"),
        ("m", {"base_url": "https://h/gemini"}, "https://h/gemini/v1beta/models/m"),
    ],
)
def test_where_ai_studio_is_asked(model: str, options: dict[str, Any], url: str) -> None:
    made = Gemini(model, api_key=KEY, **options)
    assert call_of(made).url == f"{url}:generateContent"
    assert call_of(made, stream=True).url == f"{url}:streamGenerateContent?alt=sse"
    assert made._counting.count(ASK).url == f"{url}:countTokens"


def test_a_query_of_the_address_stays() -> None:
    model = Gemini("m", api_key=KEY, base_url="https://h/v1?a=b")
    assert call_of(model).url == "https://h/v1/models/m:generateContent?a=b"
    assert call_of(model, stream=True).url.endswith(":streamGenerateContent?a=b&alt=sse")


PLACE = "projects/p/locations"


@pytest.mark.parametrize(
    ("model", "options", "url"),
    [
        (
            "m",
            {"project": "p"},
            f"https://aiplatform.googleapis.com/v1beta1/{PLACE}/global/publishers/google/models/m",
        ),
        (
            "models/m",
            {"project": "p", "location": "us-central1"},
            "https://us-central1-aiplatform.googleapis.com/v1beta1/"
            f"{PLACE}/us-central1/publishers/google/models/m",
        ),
        (
            "publishers/other/models/m",
            {"project": "p"},
            f"https://aiplatform.googleapis.com/v1beta1/{PLACE}/global/publishers/other/models/m",
        ),
        (
            "endpoints/7",
            {"project": "p"},
            f"https://aiplatform.googleapis.com/v1beta1/{PLACE}/global/endpoints/7",
        ),
        (
            "projects/q/locations/l/endpoints/7",
            {"location": "l"},
            "https://l-aiplatform.googleapis.com/v1beta1/projects/q/locations/l/endpoints/7",
        ),
    ],
)
def test_where_vertex_is_asked(model: str, options: dict[str, Any], url: str) -> None:
    assert call_of(Gemini(model, token="t", **options)).url == f"{url}:generateContent"


def test_vertex_needs_a_project_and_a_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with pytest.raises(ValueError, match="no token for Vertex"):
        Gemini("m", project="p")
    with pytest.raises(ValueError, match="GOOGLE_CLOUD_PROJECT"):
        Gemini("m", location="l", token="t")
    with pytest.raises(ValueError, match="'p/q' cannot be a project"):
        Gemini("m", project="p/q", token="t")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "env")
    monkeypatch.setenv("GOOGLE_CLOUD_LOCATION", "eu-x")
    assert "/projects/env/locations/eu-x/" in call_of(Gemini("m", dialect="vertex", token="t")).url
    express = Gemini("m", dialect="vertex", api_key=KEY)
    assert headers_of(express) == {"x-goog-api-key": KEY}


def test_the_environment_may_say_where_the_server_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", "https://proxy.example")
    assert Gemini("m").base_url == "https://proxy.example"
    monkeypatch.setenv("GOOGLE_VERTEX_BASE_URL", "https://vertex.example")
    assert Gemini("m", project="p").base_url == "https://vertex.example"
    assert Gemini("m", base_url="https://mine.example").base_url == "https://mine.example"


@pytest.mark.parametrize(
    ("thinking", "sent"),
    [
        (0, {"thinkingBudget": 0}),
        (-1, {"thinkingBudget": -1}),
        ("low", {"thinkingLevel": "LOW"}),
        ({"thinkingBudget": 5, "x": 1}, {"thinkingBudget": 5, "x": 1}),
    ],
)
def test_thinking_in_every_form(thinking: Any, sent: dict[str, Any]) -> None:
    body = json.loads(call_of(Gemini("m", api_key=KEY, thinking=thinking)).body)
    assert body["generationConfig"]["thinkingConfig"] == sent
    told = Gemini("m", api_key=KEY, thinking=thinking, include_thoughts=True)
    config = json.loads(call_of(told).body)["generationConfig"]["thinkingConfig"]
    assert config == {**sent, "includeThoughts": True}


@pytest.mark.parametrize("thinking", [-2, True, " ", 1.5])
def test_thinking_that_cannot_be_is_refused(thinking: Any) -> None:
    with pytest.raises(ValueError, match="thinking is a level"):
        Gemini("m", api_key=KEY, thinking=thinking)


def test_other_options_are_checked_by_name() -> None:
    with pytest.raises(ValueError, match=r"unknown dialect 'nope'; known are gemini, vertex"):
        Gemini("m", api_key=KEY, dialect="nope")
    options: dict[str, Any] = {"temprature": 1}
    with pytest.raises(TypeError, match="temprature"):
        Gemini("m", api_key=KEY, **options)
    with pytest.raises(ValueError, match="needs a name"):
        Gemini(" ", api_key=KEY)
    with pytest.raises(ValueError, match="'v1/x' cannot be a version"):
        Gemini("m", api_key=KEY, api_version="v1/x")


def test_settings_are_keywords_that_a_request_overrides() -> None:
    model = Gemini("m", api_key=KEY, max_tokens=5, stop="END", seed=1, extra_body={"a": 1})
    assert model.settings == Settings(max_tokens=5, stop=("END",), seed=1, extra_body={"a": 1})
    settings = Settings(max_tokens=6, extra_body={"b": 2})
    request = Request([UserMessage("hi")], settings=settings)
    body = json.loads(call_of(model, request=request).body)
    assert body["generationConfig"] == {"maxOutputTokens": 6, "seed": 1, "stopSequences": ["END"]}
    assert (body["a"], body["b"]) == (1, 2)


@pytest.mark.parametrize(
    ("name", "native"),
    [
        ("gemini-3-flash-preview", True),
        ("gemini-3.6-flash", True),
        ("gemini-flash-latest", True),
        ("publishers/google/models/gemini-4-pro", True),
        ("gemini-2.5-flash", False),
        ("models/gemini-2.0-flash", False),
        ("gemma-2-9b", False),
    ],
)
def test_what_a_model_takes_is_told_by_its_generation(name: str, native: bool) -> None:
    assert Gemini(name, api_key=KEY).native_output is native


def test_a_model_shows_where_it_is_and_nothing_secret() -> None:
    model = Gemini("m", api_key=KEY, base_url="https://user:pw@h.example/v1?token=t")
    assert repr(model) == "Gemini('m', base_url='https://h.example/v1')"
    assert (model.model, model.dialect) == ("m", AI_STUDIO)
    assert Gemini("m", project="p", token=KEY).dialect == VERTEX
    assert KEY not in str(call_of(model))
    assert isinstance(model, Model)


def test_it_is_found_by_name() -> None:
    assert golem_adapters.Gemini is Gemini
    points = metadata.entry_points(group="golem.models")
    assert "gemini" not in points.names or points["gemini"].load() is Gemini
