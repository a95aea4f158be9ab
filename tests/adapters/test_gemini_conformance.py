"""The Gemini adapter passes what golem asks of every adapter, at both servers."""

from __future__ import annotations

from functools import partial

import pytest

from golem.testing.conformance import CHECKS, Check, Subject, failures
from golem.testing.judge import GeminiJudge, Judge
from golem_adapters import Gemini


def studio(model: str) -> Subject:
    def at(judge: Judge) -> Gemini:
        return Gemini(model, base_url=judge.base_url, api_key=judge.key)

    return Subject(at, GeminiJudge)


def vertex(model: str) -> Subject:
    def at(judge: Judge) -> Gemini:
        return Gemini(model, base_url=judge.origin, project="p", location="l", token=judge.key)

    return Subject(at, partial(GeminiJudge, dialect="vertex"))


SUBJECTS = {"studio": studio("gemini-3-flash"), "vertex": vertex("gemini-3-pro")}
OLDER = {"studio": studio("gemini-2.5-flash"), "vertex": vertex("gemini-2.5-pro")}

every = partial(pytest.mark.parametrize, "check", ids=lambda check: check.__name__)


@every(CHECKS)
@pytest.mark.parametrize("name", SUBJECTS)
async def test_gemini_conforms(name: str, check: Check) -> None:
    await check(SUBJECTS[name])


@every([check for check in CHECKS if check not in failures.CHECKS])
@pytest.mark.parametrize("name", OLDER)
async def test_older_models_conform(name: str, check: Check) -> None:
    """Failures are the same code for all of them."""
    await check(OLDER[name])
