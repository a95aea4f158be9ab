"""The end-to-end lane: a real server with a real model, behind a proxy that sees the wire."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from local_model import local_model, missing

from .proxy import Proxy


@pytest.fixture(scope="session")
def base_url() -> Iterator[str]:
    """The local model server, started once; skips where it is not installed."""
    if reason := missing():
        pytest.skip(reason)
    with local_model() as url:
        yield url


@pytest.fixture
def proxy(base_url: str) -> Iterator[Proxy]:
    """A recording proxy in front of the local model server."""
    with Proxy(base_url) as running:
        yield running
