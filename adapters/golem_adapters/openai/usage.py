"""Token counts of Chat Completions servers, in golem's one convention.

The prompt count includes what came from a cache and the completion count includes reasoning,
on every server seen. Only where the details stand differs, and no two of those places mean
different things, so all of them are read for every server. Pure.
"""

from __future__ import annotations

from typing import Any, Final

from golem.usage import Usage
from golem_adapters._toolkit.lenient import members, whole

_CACHE_READ: Final = ("prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens")
"""DeepSeek's, Mistral's and the Hugging Face router's places for cached tokens."""


def usage_of(counts: dict[str, Any]) -> Usage:
    """What `counts` say; whatever is missing, null or no number counts as nothing."""
    prompt = members(counts.get("prompt_tokens_details"))
    completion = members(counts.get("completion_tokens_details"))
    cached = _count(prompt.get("cached_tokens"))
    return Usage(
        input_tokens=_count(counts.get("prompt_tokens")),
        output_tokens=_count(counts.get("completion_tokens")),
        cache_read_tokens=cached or max(_count(counts.get(name)) for name in _CACHE_READ),
        cache_write_tokens=_count(prompt.get("cache_write_tokens")),
        reasoning_tokens=_count(completion.get("reasoning_tokens")),
    )


def _count(value: object) -> int:
    return 0 if value is None else max(whole(value) or 0, 0)
