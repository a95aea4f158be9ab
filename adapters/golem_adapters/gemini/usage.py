"""Token counts of Gemini, in golem's one convention.

Gemini counts what tools of the server put into the prompt beside it, and thoughts beside the
answer; golem's two totals hold both. Pure.
"""

from __future__ import annotations

from typing import Any, Final

from golem.usage import Usage
from golem_adapters._toolkit.lenient import whole

_COUNTS: Final = (
    "promptTokenCount",
    "toolUsePromptTokenCount",
    "candidatesTokenCount",
    "thoughtsTokenCount",
    "cachedContentTokenCount",
)
"""The counts that golem reads; others do not pile up over a stream."""


def usage_of(counts: dict[str, Any]) -> Usage:
    """What `counts` say; whatever is missing, null or no number counts as nothing."""
    thoughts = _count(counts, "thoughtsTokenCount")
    return Usage(
        input_tokens=_count(counts, "promptTokenCount") + _count(counts, "toolUsePromptTokenCount"),
        output_tokens=_count(counts, "candidatesTokenCount") + thoughts,
        cache_read_tokens=_count(counts, "cachedContentTokenCount"),
        reasoning_tokens=thoughts,
    )


def later(counts: dict[str, Any], update: dict[str, Any]) -> dict[str, Any]:
    """`counts` of a stream so far with those of its next chunk, which are totals, over them.

    The last chunk does not repeat all of them.
    """
    known = {name: update[name] for name in _COUNTS if update.get(name) is not None}
    return {**counts, **known}


def _count(counts: dict[str, Any], name: str) -> int:
    return max(whole(counts.get(name)) or 0, 0)
