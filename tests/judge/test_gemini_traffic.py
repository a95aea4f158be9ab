"""The judge of Gemini, judged by recorded traffic: it takes what Google took.

A selection of the recordings is committed; the whole set is used where it lies beside the
repository.
"""

from __future__ import annotations

import json
from functools import cache

import pytest

from golem.testing.judge import GeminiProvider, Violation
from golem.testing.judge.gemini_words import error_body
from tests.recordings import Place, Row, recorded, sources

SOURCES = sources("gemini")


@cache
def rows(place: Place) -> list[Row]:
    return [row for row in recorded(place) if row["api"].startswith("gemini.") and row["request"]]


def provider_of(row: Row) -> GeminiProvider:
    dialect = "vertex" if "aiplatform" in row["host"] else "gemini"
    return GeminiProvider(dialect).at(row["path"].partition("?")[0])


def judged(row: Row) -> list[Violation]:
    request = row["request"]
    body = json.loads(request) if isinstance(request, str) else request
    return provider_of(row).judge(body, {})


@pytest.mark.parametrize("place", SOURCES)
def test_what_google_took_is_taken(place: Place) -> None:
    taken = [row for row in rows(place) if row["status"] == 200]
    refused = [(row["file"], list(map(str, found))) for row in taken if (found := judged(row))]
    assert refused == []
    assert len(taken) > 50


@pytest.mark.parametrize("place", SOURCES)
def test_every_recorded_address_is_one_that_is_served(place: Place) -> None:
    assert all(GeminiProvider().serves(row["path"].partition("?")[0]) for row in rows(place))


@pytest.mark.parametrize("place", SOURCES)
def test_a_wrong_key_is_refused_as_google_does(place: Place) -> None:
    """The one recorded refusal that no name of a model and no address elsewhere explains."""
    said = [json.loads(row["response"]) for row in rows(place) if is_about_the_key(row)]
    assert said == [GeminiProvider().refused_key("AIza-wrong").body]


def is_about_the_key(row: Row) -> bool:
    return row["status"] == 400 and "API_KEY_INVALID" in json.dumps(row["response"])


@pytest.mark.parametrize("place", SOURCES)
def test_errors_have_the_recorded_shape(place: Place) -> None:
    for row in rows(place):
        if row["status"] != 404:
            continue
        said = row["response"]
        told = said if isinstance(said, dict) else json.loads(said)
        assert told == error_body(told["error"]["message"], 404)
