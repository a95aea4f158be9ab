"""A model's streamed answer in batches: as many fragments at once as have come at once.

A model may have, beside `stream`, a method ``batches`` that gives them so: each batch is waited for
once, which is most of what a fragment costs.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

from golem.closing import closable
from golem.model import Delta, Model, Request, Response

Batches = AsyncIterator[Sequence[Delta] | Response]


def batches_of(model: Model, request: Request) -> Batches:
    """The model's own batches, or those of one fragment each."""
    own = getattr(model, "batches", None)
    found: Batches = _one_by_one(model.stream(request)) if own is None else own(request)
    return found


async def _one_by_one(
    items: AsyncIterator[Delta | Response],
) -> AsyncGenerator[Sequence[Delta] | Response, None]:
    async with aclosing(closable(items)) as answer:
        async for item in answer:
            yield item if isinstance(item, Response) else (item,)
