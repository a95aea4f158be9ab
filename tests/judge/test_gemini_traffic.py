"""The judge of Gemini, judged by recorded traffic: it takes what Google took.

A selection of the recordings is committed; the whole set is used where it lies beside the
repository.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from golem.testing.judge import GeminiProvider, Violation
from golem.testing.judge.gemini_words import error_body

Row = dict[str, Any]

HERE = Path(__file__).parents[1] / "data" / "traffic" / "gemini.jsonl.gz"
WHOLE = Path(__file__).parents[3] / "shared" / "traffic" / "exchanges.jsonl.gz"
SOURCES = [
    pytest.param(HERE, id="selection"),
    pytest.param(
        WHOLE,
        id="whole",
        marks=pytest.mark.skipif(
            not WHOLE.exists(), reason="the whole recordings are not beside the repository"
        ),
    ),
]


@cache
def rows(place: Path) -> list[Row]:
    if not place.exists():
        return []
    with gzip.open(place, "rt") as lines:
        found: list[Row] = [json.loads(line) for line in lines]
    return [row for row in found if row["api"].startswith("gemini.") and row["request"]]


def provider_of(row: Row) -> GeminiProvider:
    dialect = "vertex" if "aiplatform" in row["host"] else "gemini"
    return GeminiProvider(dialect).at(row["path"].partition("?")[0])


def judged(row: Row) -> list[Violation]:
    request = row["request"]
    body = json.loads(request) if isinstance(request, str) else request
    return provider_of(row).judge(body, {})


@pytest.mark.parametrize("place", SOURCES)
def test_what_google_took_is_taken(place: Path) -> None:
    taken = [row for row in rows(place) if row["status"] == 200]
    refused = [(row["file"], list(map(str, found))) for row in taken if (found := judged(row))]
    assert refused == []
    assert len(taken) > 50


@pytest.mark.parametrize("place", SOURCES)
def test_every_recorded_address_is_one_that_is_served(place: Path) -> None:
    assert all(GeminiProvider().serves(row["path"].partition("?")[0]) for row in rows(place))


@pytest.mark.parametrize("place", SOURCES)
def test_a_wrong_key_is_refused_as_google_does(place: Path) -> None:
    """The one recorded refusal that no name of a model and no address elsewhere explains."""
    said = [json.loads(row["response"]) for row in rows(place) if is_about_the_key(row)]
    assert said == [GeminiProvider().refused_key("AIza-wrong").body]


def is_about_the_key(row: Row) -> bool:
    return row["status"] == 400 and "API_KEY_INVALID" in json.dumps(row["response"])


@pytest.mark.parametrize("place", SOURCES)
def test_errors_have_the_recorded_shape(place: Path) -> None:
    for row in rows(place):
        if row["status"] != 404:
            continue
        said = row["response"]
        told = said if isinstance(said, dict) else json.loads(said)
        assert told == error_body(told["error"]["message"], 404)
