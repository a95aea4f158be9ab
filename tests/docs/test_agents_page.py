"""The guide to agents names every option that there is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from golem.options import AgentOptions, RunOptions

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"


@pytest.mark.parametrize(
    ("table", "options", "others"),
    [
        ("| of an agent |", AgentOptions.__optional_keys__, {"output_type", "decoder"}),
        ("| of a run |", RunOptions.__optional_keys__, set[str]()),
    ],
    ids=["agent", "run"],
)
def test_every_option_is_in_the_table(
    table: str, options: frozenset[str], others: set[str]
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    rows = text.split(table)[1].split("\n\n")[0].splitlines()[2:]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    above = {"instructions", "settings"} if "agent" in table else {"parts"}  # the page's sections
    assert named | above == options | others
