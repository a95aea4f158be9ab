"""The judges of the protocols: their own readers, in one Node process for the whole session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.judging import Judge


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """The readers from npm; fails, and says why, where they cannot be had."""
    with Judge() as running:
        yield running
