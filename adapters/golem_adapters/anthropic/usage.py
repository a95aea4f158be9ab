"""Token counts of Messages, in golem's one convention.

Anthropic counts only the part of the prompt that no cache had a hand in as `input_tokens`;
golem's count is the whole prompt. Pure.
"""

from __future__ import annotations

from typing import Any, Final

from golem.usage import Usage
from golem_adapters._toolkit.lenient import members, whole

_COUNTS: Final = (
    "input_tokens",
    "output_tokens",
    "output_tokens_details",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
    "cache_creation",
)
"""The counts that golem reads; others do not pile up over a stream."""


def usage_of(counts: dict[str, Any]) -> Usage:
    """What `counts` say; whatever is missing, null or no number counts as nothing."""
    read = _count(counts.get("cache_read_input_tokens"))
    written = _written(counts)
    return Usage(
        input_tokens=_count(counts.get("input_tokens")) + read + written,
        output_tokens=_count(counts.get("output_tokens")),
        cache_read_tokens=read,
        cache_write_tokens=written,
        reasoning_tokens=_count(
            members(counts.get("output_tokens_details")).get("thinking_tokens")
        ),
    )


def later(counts: dict[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """`counts` of a stream's beginning with those of its end, which are totals, over them."""
    known = {name: update[name] for name in _COUNTS if update.get(name) is not None}
    return {**counts, **known}


def _written(counts: dict[str, Any]) -> int:
    if (total := whole(counts.get("cache_creation_input_tokens"))) is not None:
        return max(total, 0)
    return sum(map(_count, members(counts.get("cache_creation")).values()))


def _count(value: object) -> int:
    return max(whole(value) or 0, 0)
