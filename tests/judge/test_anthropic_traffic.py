"""The judges of Messages and Converse, judged by recorded traffic.

They take what the providers took, and say what they said of what they refused. A selection of the
recordings is committed; the whole set is used where it lies beside the repository.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from typing import Any

import pytest

from golem.testing.judge import AnthropicProvider, BedrockProvider, Provider, Violation
from tests.judge.test_traffic import DATA, SOURCES, WHOLE, Row

PROVIDERS: dict[str, Provider] = {
    "anthropic.messages": AnthropicProvider(),
    "anthropic.count_tokens": AnthropicProvider(),
    "bedrock.converse": BedrockProvider(),
    "bedrock.converse-stream": BedrockProvider(),
    "bedrock.count-tokens": BedrockProvider(),
}
PLACES = [
    pytest.param(
        (DATA / "anthropic_messages.jsonl.gz", DATA / "bedrock_converse.jsonl.gz"), id="selection"
    ),
    pytest.param((WHOLE,), id="whole", marks=SOURCES[1].marks),
]
NOT_SHOWN = ("model: ", "doesn't support counting tokens", "expected tags: 'bash_20250124'")
"""Words of refusals for what no request shows: which models there are, which of them are counted
for, and (the last) what is wrong with a body of another API, which is counted in its stead."""


@cache
def rows(places: tuple[Any, ...]) -> list[tuple[Row, Any]]:
    """The exchanges with their decoded bodies, but for those that the recorder cut."""
    found: list[tuple[Row, Any]] = []
    for place in places:
        with gzip.open(place, "rt") as lines:
            for row in map(json.loads, lines):
                if row["api"] in PROVIDERS and (body := decoded(row["request"])) is not None:
                    found.append((row, body))
    return found


def decoded(request: Any) -> Any:
    try:
        return json.loads(request) if isinstance(request, str) else request
    except ValueError:
        return None


def judged(row: Row, body: Any) -> list[Violation]:
    provider = PROVIDERS[row["api"]]
    assert provider.serves(row["path"])
    headers = {"anthropic-version": "2023-06-01"}
    return provider.judge_request(row["path"], headers, body, {})


@pytest.mark.parametrize("places", PLACES)
def test_what_a_provider_took_is_taken(places: tuple[Any, ...]) -> None:
    taken = [(row, body) for row, body in rows(places) if row["status"] == 200]
    refused = [(row["file"], list(map(str, judged(row, body)))) for row, body in taken]
    assert [found for found in refused if found[1]] == []
    assert len(taken) > 30


@pytest.mark.parametrize("places", PLACES)
def test_what_a_provider_refused_is_refused_in_its_words(places: tuple[Any, ...]) -> None:
    count = 0
    for row, body in rows(places):
        if row["status"] == 200:
            continue
        said = decoded(row["response"])
        message = said.get("error", said)["message"]
        if any(words in message for words in NOT_SHOWN):
            continue
        assert message in [found.text for found in judged(row, body)]
        count += 1
    assert count
