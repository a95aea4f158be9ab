"""Token counts of model calls, one convention for every provider (contract §4.8)."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct


class Usage(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    """What one or several model calls consumed, in tokens; add them up with ``+``.

    The cached and the reasoning counts are *of which*: they are inside the two totals.
    """

    input_tokens: Annotated[int, Meta(description="the whole prompt, cached part included")] = 0
    output_tokens: Annotated[int, Meta(description="the whole answer, reasoning included")] = 0
    cache_read_tokens: Annotated[int, Meta(description="of the prompt: read from a cache")] = 0
    cache_write_tokens: Annotated[int, Meta(description="of the prompt: written to a cache")] = 0
    reasoning_tokens: Annotated[int, Meta(description="of the answer: spent on reasoning")] = 0

    @property
    def total_tokens(self) -> int:
        """Prompt and answer together."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cache_read_tokens + other.cache_read_tokens,
            self.cache_write_tokens + other.cache_write_tokens,
            self.reasoning_tokens + other.reasoning_tokens,
        )

    def __bool__(self) -> bool:
        return self != _NOTHING


_NOTHING = Usage()
