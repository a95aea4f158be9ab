"""What an installed golem says about itself."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

import golem
import golem_adapters

ROOT = Path(__file__).parents[2]


def test_the_distribution_brings_both_packages_with_their_types() -> None:
    for package in (golem, golem_adapters):
        assert package.__file__ is not None
        assert Path(package.__file__).with_name("py.typed").exists()


def test_the_adapters_are_found_by_name() -> None:
    points = metadata.entry_points(group="golem.models")
    assert points["openai"].load() is golem_adapters.OpenAI


def test_the_changelog_tells_of_the_installed_version() -> None:
    version = metadata.version("golem-agents")
    assert f"## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
