"""The committed support matrix is what the adapters say today."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

DOCS = Path(__file__).parents[2] / "docs"


def generator() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_support", DOCS / "generate_support.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_committed_matrix_is_current() -> None:
    current: str = generator().generate()
    committed = (DOCS / "providers" / "support.md").read_text("utf-8")
    assert committed == current, "run docs/generate_support.py"
