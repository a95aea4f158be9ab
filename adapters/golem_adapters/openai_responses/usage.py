"""Token counts of Responses, in golem's one convention.

The input count includes what came from a cache and the output count includes reasoning. Detail
objects may be missing (llama.cpp), or anything. Pure.
"""

from __future__ import annotations

from typing import Any

from golem.usage import Usage
from golem_adapters._toolkit.lenient import members, whole


def usage_of(counts: dict[str, Any]) -> Usage:
    """What `counts` say; whatever is missing, null or no number counts as nothing."""
    input_details = members(counts.get("input_tokens_details"))
    output_details = members(counts.get("output_tokens_details"))
    return Usage(
        input_tokens=_count(counts.get("input_tokens")),
        output_tokens=_count(counts.get("output_tokens")),
        cache_read_tokens=_count(input_details.get("cached_tokens")),
        cache_write_tokens=_count(input_details.get("cache_write_tokens")),
        reasoning_tokens=_count(output_details.get("reasoning_tokens")),
    )


def _count(value: object) -> int:
    return max(whole(value) or 0, 0)
