"""The adapters of Anthropic and Bedrock pass what golem asks of every adapter."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from golem.testing.conformance import CHECKS, Check, Subject, failures
from golem.testing.conformance.requests import a_longer_conversation_begins_the_same
from golem.testing.judge import AnthropicJudge, BedrockJudge, Judge
from golem_adapters import Anthropic, AWSCredentials, Bedrock
from tests.adapters.conversing import MODELS


def anthropic(**options: Any) -> Subject:
    def at(judge: Judge) -> Anthropic:
        return Anthropic("m", base_url=judge.base_url, api_key=judge.key, **options)

    return Subject(at, AnthropicJudge)


def bedrock(model: str = "m", **options: Any) -> Subject:
    def at(judge: Judge) -> Bedrock:
        return Bedrock(model, base_url=judge.base_url, api_key=judge.key, **options)

    return Subject(at, BedrockJudge)


def signed() -> Subject:
    def at(judge: Judge) -> Bedrock:
        credentials = AWSCredentials(judge.key, "secret", "session token")
        at = {"base_url": judge.base_url, "region": "us-east-1"}
        return Bedrock("m", **at, credentials=credentials)

    return Subject(at, BedrockJudge)


SUBJECTS = {"anthropic": anthropic(), "bedrock": bedrock()}
OTHERS = {
    "anthropic, adaptive": anthropic(thinking="adaptive"),
    "anthropic, budget": anthropic(thinking=2048),
    "anthropic, cache": anthropic(cache="5m"),
    "bedrock, signed": signed(),
    "bedrock, cache": bedrock(cache="1h"),
    **{f"bedrock, {model}": bedrock(model) for model in MODELS},
}
every = partial(pytest.mark.parametrize, "check", ids=lambda check: check.__name__)


@every(CHECKS)
@pytest.mark.parametrize("name", SUBJECTS)
async def test_an_adapter_conforms(name: str, check: Check) -> None:
    await check(SUBJECTS[name])


@every([check for check in CHECKS if check not in failures.CHECKS])
@pytest.mark.parametrize("name", OTHERS)
async def test_every_way_of_asking_conforms(name: str, check: Check) -> None:
    """Failures are the same code for all of them."""
    if name == "anthropic, budget" and check is a_longer_conversation_begins_the_same:
        with pytest.raises(AssertionError, match="the member 'thinking'"):
            await check(OTHERS[name])  # it is off where the history does not allow it
    else:
        await check(OTHERS[name])
