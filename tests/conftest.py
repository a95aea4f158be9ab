"""Shared fixtures: every async test runs on asyncio and on trio."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.run import virtual_time

# What these assert is worth an explanation too.
pytest.register_assert_rewrite(
    "tests.history.bounding",
    "tests.history.fetching",
    "tests.judge.aging",
    "tests.run.conversation_laws",
    "tests.run.stopping",
    "tests.run.support",
    "tests.stored",
)

# A busy machine makes single examples slow, which is not what the laws are about.
settings.register_profile("golem", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("fuzz", settings.get_profile("golem"), max_examples=20_000)
settings.load_profile("golem")


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str | tuple[str, dict[str, Any]]:
    """The backend of an async test, with options if it has any; synchronous tests never see it."""
    backend: str = request.param
    mark = request.node.get_closest_marker("virtual_time")
    if mark is None or mark.args == (False,):
        return backend
    return backend, virtual_time.options(backend)
