"""The judges, judged by recorded traffic: they take what providers took, and say what they said.

A selection of the recordings is committed; the whole set is used where it lies beside the
repository. Only servers there are rules for count.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from golem.testing.judge import Violation, judge_chat, judge_responses

Row = dict[str, Any]

DATA = Path(__file__).parents[1] / "data" / "traffic"
WHOLE = Path(__file__).parents[3] / "shared" / "traffic" / "exchanges.jsonl.gz"
SOURCES = [
    pytest.param(
        (DATA / "openai_chat.jsonl.gz", DATA / "openai_responses.jsonl.gz"), id="selection"
    ),
    pytest.param(
        (WHOLE,),
        id="whole",
        marks=pytest.mark.skipif(
            not WHOLE.exists(), reason="the whole recordings are not beside the repository"
        ),
    ),
]
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
def rows(places: tuple[Path, ...]) -> list[Row]:
    """The exchanges with servers that there are rules for."""
    found: list[Row] = []
    for place in places:
        with gzip.open(place, "rt") as lines:
            found += [json.loads(line) for line in lines]
    hosts = {"openai.chat": CHAT, "openai.responses": RESPONSES}
    return [row for row in found if row["host"] in hosts.get(row["api"], {}) and row["request"]]


def judged(row: Row) -> list[Violation]:
    request = row["request"]
    body = json.loads(request) if isinstance(request, str) else request
    if row["api"] == "openai.chat":
        return judge_chat(body, dialect=CHAT[row["host"]])
    return judge_responses(body, dialect=RESPONSES[row["host"]])


@pytest.mark.parametrize("places", SOURCES)
def test_what_a_provider_took_is_taken(places: tuple[Path, ...]) -> None:
    taken = [row for row in rows(places) if row["status"] == 200]
    refused = [(row["host"], list(map(str, found))) for row in taken if (found := judged(row))]
    assert refused == []
    assert len(taken) > 50


@pytest.mark.parametrize("places", SOURCES)
def test_what_a_provider_refused_is_refused_in_its_words(places: tuple[Path, ...]) -> None:
    count = 0
    for row in rows(places):
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
