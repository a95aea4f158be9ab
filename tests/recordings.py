"""Recorded provider exchanges (`tests/data/traffic`).

A selection of them is committed; the whole set is used where it lies beside the repository.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

Row = dict[str, Any]
"""One exchange: `api`, `host`, `path`, `status`, `kind`, `stream`, `request` and `response`."""

Place = tuple[Path, ...]
"""The files that a test reads its exchanges from."""

SELECTIONS = Path(__file__).parent / "data" / "traffic"
WHOLE = Path(__file__).parents[2] / "shared" / "traffic" / "exchanges.jsonl.gz"


def sources(*names: str) -> list[Any]:
    """The places of a test that runs over the selections `names`, and over everything."""
    whole = pytest.mark.skipif(
        not WHOLE.exists(), reason="the whole recordings are not beside the repository"
    )
    selection = tuple(SELECTIONS / f"{name}.jsonl.gz" for name in names)
    return [
        pytest.param(selection, id="selection"),
        pytest.param((WHOLE,), id="whole", marks=whole),
    ]


def recorded(place: Place) -> Iterator[Row]:
    """The exchanges of `place`; a file that is not there has none."""
    for file in place:
        if file.exists():
            with gzip.open(file, "rt") as lines:
                yield from map(json.loads, lines)


def body_in(row: Row) -> bytes:
    """The body of the answer, as bytes."""
    answer = row["response"]
    return (answer if isinstance(answer, str) else json.dumps(answer)).encode()
