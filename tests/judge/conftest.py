"""Every test that takes an `api` runs over each, unless it says over which."""

from __future__ import annotations

import pytest

from tests.judge.support import API, APIS


@pytest.fixture(params=sorted(APIS))
def api(request: pytest.FixtureRequest) -> API:
    """One API after the other."""
    return APIS[request.param]
