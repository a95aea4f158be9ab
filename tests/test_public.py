"""The public names: what `golem` exports is this, no less and no more."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import golem


def test_the_public_names_are_exactly_what_the_package_exports() -> None:
    """Each is exported once, as itself, and resolves; nothing else is there but submodules."""
    source = Path(golem.__file__).read_text()
    exported = re.findall(r"^from golem\S* import (\w+) as \1$", source, re.MULTILINE)
    found = [name for name, value in vars(golem).items() if not isinstance(value, ModuleType)]
    assert sorted(exported) == sorted(name for name in found if not name.startswith("_"))
