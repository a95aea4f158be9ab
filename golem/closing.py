"""Closing foreign iterators: at once, shielded, and never in place of what went wrong before."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final, TypeVar

import anyio

T = TypeVar("T")

CLEANUP_SECONDS: Final = 5.0
"""How long cleaning up after a cancellation may take, shielded from it."""

_log = logging.getLogger("golem")


async def closable(items: AsyncIterator[T]) -> AsyncGenerator[T, None]:
    """Any async iterator as one that is closed with this, where it can be.

    What goes wrong in closing is logged: it must neither take the place of a cancellation nor
    fail a turn that is complete.
    """
    try:
        async for item in items:
            yield item
    finally:
        close = getattr(items, "aclose", None)
        if close is not None:
            with anyio.move_on_after(CLEANUP_SECONDS, shield=True):
                try:
                    await close()
                except Exception:  # noqa: BLE001 - whatever a foreign connection raises
                    _log.exception("the stream of a model could not be closed")
