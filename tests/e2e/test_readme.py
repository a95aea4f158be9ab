"""The README's quick start against a real model."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import golem_adapters
from local_model import MODEL

from .proxy import Proxy, texts

pytestmark = pytest.mark.e2e

README = Path(__file__).parents[2] / "README.md"


def test_the_quick_start_holds_its_conversation(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    block = re.search(r"^```python\n(.*?)^```", README.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert block is not None
    local = partial(golem_adapters.OpenAI, base_url=proxy.base_url, temperature=0.0, max_tokens=60)
    monkeypatch.setitem(vars(golem_adapters), "OpenAI", lambda name: local(MODEL))
    namespace: dict[str, Any] = {"__name__": "__main__"}
    exec(block[1], namespace)
    assert capsys.readouterr().out
    said = texts(proxy.bodies[-1])
    assert ("user", "What is the weather in Paris?") in said
    assert ("user", "And in Rome?") in said
