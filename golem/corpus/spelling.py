"""What readers of a line may disagree about, however valid it is."""

from __future__ import annotations

import json
from typing import Any

from golem import rawjson


def is_plain(line: bytes) -> bool:
    """Whether every reader of `line` sees in it what golem does.

    The text has to say the same once it is cleaned, and to name no member twice: some readers take
    the first, and golem the last.
    """
    if not rawjson.is_utf8(line) or rawjson.without_lone_surrogates(line) != line:
        return False
    try:
        json.loads(line, object_pairs_hook=_without_repeats)
    except (ValueError, RecursionError):
        return False
    return True


def _without_repeats(members: list[tuple[str, Any]]) -> None:
    """Raise ValueError for a name that stands there twice."""
    if len({name for name, _ in members}) < len(members):
        raise ValueError("repeated member")
