"""The loop of scripts: one asyncio loop a thread, kept from one `run_sync` to the next."""

from __future__ import annotations

import atexit
import threading
from typing import TYPE_CHECKING

import sniffio

from golem.carrying import running_loop

if TYPE_CHECKING:
    import asyncio  # loaded by the first loop, not with golem


def inside_loop() -> bool:
    """Whether this thread is running an event loop, asyncio's or another's."""
    if running_loop() is not None:
        return True
    try:
        sniffio.current_async_library()
    except sniffio.AsyncLibraryNotFoundError:
        return False
    return True


class _Loop:
    """The loop of one thread, closed when the thread ends and drops it."""

    def __init__(self) -> None:
        import asyncio

        self.runner = asyncio.Runner()

    def __del__(self) -> None:
        self.runner.close()


_threads = threading.local()


def runner() -> asyncio.Runner:
    """This thread's loop: clients that belong to a loop survive from run to run."""
    loop: _Loop | None = getattr(_threads, "loop", None)
    if loop is None:
        loop = _threads.loop = _Loop()
        if threading.current_thread() is threading.main_thread():
            atexit.register(loop.runner.close)  # while everything that closing needs is there
    return loop.runner
