"""The judges of Messages and Converse, judged by recorded traffic.

They take what the providers took, and say what they said of what they refused. A selection of the
recordings is committed; the whole set is used where it lies beside the repository.
"""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import pytest

from golem.testing.judge import AnthropicProvider, BedrockProvider, Provider, Violation
from tests.recordings import Place, Row, recorded, sources

PROVIDERS: dict[str, Provider] = {
    "anthropic.messages": AnthropicProvider(),
    "anthropic.count_tokens": AnthropicProvider(),
    "bedrock.converse": BedrockProvider(),
    "bedrock.converse-stream": BedrockProvider(),
    "bedrock.count-tokens": BedrockProvider(),
}
SOURCES = sources("anthropic_messages", "bedrock_converse")
NOT_SHOWN = ("model: ", "doesn't support counting tokens", "expected tags: 'bash_20250124'")
"""Words of refusals for what no request shows: which models there are, which of them are counted
for, and (the last) what is wrong with a body of another API, which is counted in its stead."""


@cache
def rows(place: Place) -> list[tuple[Row, Any]]:
    """The exchanges with their decoded bodies, but for those that the recorder cut."""
    return [
        (row, body)
        for row in recorded(place)
        if row["api"] in PROVIDERS and (body := decoded(row["request"])) is not None
    ]


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


@pytest.mark.parametrize("place", SOURCES)
def test_what_a_provider_took_is_taken(place: Place) -> None:
    taken = [(row, body) for row, body in rows(place) if row["status"] == 200]
    refused = [(row["file"], list(map(str, judged(row, body)))) for row, body in taken]
    assert [found for found in refused if found[1]] == []
    assert len(taken) > 30


@pytest.mark.parametrize("place", SOURCES)
def test_what_a_provider_refused_is_refused_in_its_words(place: Place) -> None:
    count = 0
    for row, body in rows(place):
        if row["status"] == 200:
            continue
        said = decoded(row["response"])
        message = said.get("error", said)["message"]
        if any(words in message for words in NOT_SHOWN):
            continue
        assert message in [found.text for found in judged(row, body)]
        count += 1
    assert count
