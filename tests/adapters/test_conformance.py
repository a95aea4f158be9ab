"""Every adapter passes what golem asks of every adapter, on both backends."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from golem.testing.conformance import CHECKS, Check, Subject, failures
from golem.testing.judge import ChatJudge, Judge, ResponsesJudge
from golem_adapters import AzureOpenAI, OpenAI, OpenAIResponses


def model(adapter: Any, judge: Judge, **options: Any) -> Any:
    return adapter("m", base_url=judge.base_url, api_key=judge.key, **options)


def chat(dialect: str, *lacks: Any) -> Subject:
    return Subject(
        partial(model, OpenAI, dialect=dialect),
        partial(ChatJudge, dialect=dialect),
        frozenset(lacks),
    )


def responses(dialect: str) -> Subject:
    return Subject(
        partial(model, OpenAIResponses, dialect=dialect), partial(ResponsesJudge, dialect=dialect)
    )


def azure(**options: Any) -> Subject:
    def at(judge: Judge) -> AzureOpenAI:
        return AzureOpenAI("m", base_url=judge.origin, api_key=judge.key, **options)

    return Subject(at, partial(ChatJudge, dialect="azure"), frozenset({"thinking"}))


SUBJECTS = {
    "openai": chat("openai", "thinking"),
    "azure": azure(),
    "azure classic": azure(api_version="2024-10-21"),
    "openai-responses": responses("openai"),
}
REASONING = ("groq", "mistral", "deepseek", "openrouter", "ollama", "vllm", "llama.cpp", "zai")
DIALECTS = {
    **{name: chat(name) for name in (*REASONING, "moonshot")},
    "gemini-compat": chat("gemini-compat", "thinking"),
    "azure responses": responses("azure"),
    "deepseek responses": responses("deepseek"),
}

every = partial(pytest.mark.parametrize, "check", ids=lambda check: check.__name__)


@every(CHECKS)
@pytest.mark.parametrize("name", SUBJECTS)
async def test_an_adapter_conforms(name: str, check: Check) -> None:
    await check(SUBJECTS[name])


@every([check for check in CHECKS if check not in failures.CHECKS])
@pytest.mark.parametrize("name", DIALECTS)
async def test_every_dialect_conforms(name: str, check: Check) -> None:
    """Failures are the same code for all of them."""
    await check(DIALECTS[name])
