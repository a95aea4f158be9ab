"""Token counts of Converse, in golem's one convention. Pure.

`inputTokens` counts only the part of the prompt that no cache had a hand in (`totalTokens` says
so); golem's count is the whole prompt.
"""

from __future__ import annotations

from typing import Any

from golem.usage import Usage
from golem_adapters._toolkit.lenient import whole


def usage_of(counts: dict[str, Any]) -> Usage:
    """What `counts` say; whatever is missing, null or no number counts as nothing."""
    read = _count(counts, "cacheReadInputTokens", "cacheReadInputTokenCount")
    written = _count(counts, "cacheWriteInputTokens", "cacheWriteInputTokenCount")
    return Usage(
        input_tokens=_count(counts, "inputTokens") + read + written,
        output_tokens=_count(counts, "outputTokens"),
        cache_read_tokens=read,
        cache_write_tokens=written,
    )


def _count(counts: dict[str, Any], *names: str) -> int:
    """The first of `names` that is a number."""
    found = (whole(counts.get(name)) for name in names)
    return max(next((number for number in found if number is not None), 0), 0)
