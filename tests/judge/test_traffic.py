"""The judges, judged by recorded traffic: they take what providers took, and say what they said.

A selection of the recordings is committed; the whole set is used where it lies beside the
repository. Only servers there are rules for count.
"""

from __future__ import annotations

import json
from functools import cache

import pytest

from golem.testing.judge import Violation, judge_chat, judge_responses
from tests.recordings import Place, Row, recorded, sources

SOURCES = sources("openai_chat", "openai_responses")
CHAT = {
    "api.openai.com": "openai",
    "api.groq.com": "groq",
    "api.mistral.ai": "mistral",
    "api.deepseek.com": "deepseek",
    "openrouter.ai": "openrouter",
    "api.z.ai": "zai",
    "generativelanguage.googleapis.com": "gemini-compat",
}
RESPONSES = {"api.openai.com": "openai", "api.deepseek.com": "deepseek"}
NOT_SHOWN = ("model", "downloading", "unsupported", "uploaded", "validation failed")
"""Words of refusals for what no request shows: what a model can, what an address leads to."""


@cache
def rows(place: Place) -> list[Row]:
    """The exchanges with servers that there are rules for."""
    hosts = {"openai.chat": CHAT, "openai.responses": RESPONSES}
    return [
        row
        for row in recorded(place)
        if row["host"] in hosts.get(row["api"], {}) and row["request"]
    ]


def judged(row: Row) -> list[Violation]:
    request = row["request"]
    body = json.loads(request) if isinstance(request, str) else request
    if row["api"] == "openai.chat":
        return judge_chat(body, dialect=CHAT[row["host"]])
    return judge_responses(body, dialect=RESPONSES[row["host"]])


@pytest.mark.parametrize("place", SOURCES)
def test_what_a_provider_took_is_taken(place: Place) -> None:
    taken = [row for row in rows(place) if row["status"] == 200]
    refused = [(row["host"], list(map(str, found))) for row in taken if (found := judged(row))]
    assert refused == []
    assert len(taken) > 50


@pytest.mark.parametrize("place", SOURCES)
def test_what_a_provider_refused_is_refused_in_its_words(place: Place) -> None:
    count = 0
    for row in rows(place):
        if row["status"] != 400:
            continue
        said = row["response"]
        said = json.loads(said) if isinstance(said, str) else said
        message = said.get("error", said)["message"]
        if any(words in message for words in NOT_SHOWN):
            continue
        assert message in [found.text for found in judged(row)]
        count += 1
    assert count
