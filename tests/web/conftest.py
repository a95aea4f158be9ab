"""The judges of the protocols, in one Node process for the whole session, and served apps."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator

import pytest

from golem.web.asgi import App
from tests.web.judging import Judge
from tests.web.serving import Client, Serve, served


@pytest.fixture(scope="session")
def judge() -> Iterator[Judge]:
    """The readers from npm; fails, and says why, where they cannot be had."""
    with Judge() as running:
        yield running


@pytest.fixture
def serve(server: str) -> Serve:
    """Serves an app with the server of the test."""

    @contextlib.asynccontextmanager
    async def serving(app: App) -> AsyncIterator[Client]:
        async with served(app, server) as port:
            yield Client(port)

    return serving
