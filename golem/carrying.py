"""Which task this is, and which runs it carries out: what a task inherits from who started it.

A run is carried out by who pulls its events; its tools and observers run in that pull. Whoever is
called there can tell by `inside`. So can a task that was started there, and may outlive the pull.
"""

from __future__ import annotations

import sys
import weakref
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio  # dear to load: who runs on it has loaded it

Pull = tuple[object, int]
"""A stream, or a run that is none, and which of its pulls this is, by number."""


inside: Final[ContextVar[tuple[Pull, ...]]] = ContextVar("golem_inside", default=())
"""The pulls that the current task, or who started it, is carrying out; outermost first."""

calling: Final[ContextVar[weakref.ref[Any] | None]] = ContextVar("golem_calling", default=None)
"""The task that the innermost tool of a run was called in."""


def current_task() -> Any:
    """The task itself. anyio's own answer costs more than all the rest of a pull."""
    task = asyncio_task()
    # A trio that is a guest of asyncio's loop runs in no task of that.
    return sys.modules["trio"].lowlevel.current_task() if task is None else task


def asyncio_task() -> asyncio.Task[Any] | None:
    """The current task of asyncio; None on trio. Several times as fast as to ask sniffio."""
    loaded: Any = sys.modules.get("asyncio")
    # Where the function is not there (yet: another thread is loading it), nobody runs on asyncio.
    ask = getattr(loaded, "_get_running_loop", None)
    if ask is None or (loop := ask()) is None:
        return None
    task: asyncio.Task[Any] | None = loaded.current_task(loop)
    return task


def running_loop() -> asyncio.AbstractEventLoop | None:
    """The running loop of asyncio, if this thread is in one."""
    # Where the function is not there (yet: another thread is loading it), nobody runs on asyncio.
    ask = getattr(sys.modules.get("asyncio"), "_get_running_loop", None)
    return None if ask is None else ask()


def cancelled_errors() -> tuple[type[BaseException], ...]:
    """CancelledError of asyncio, for ``except`` and isinstance; none where that is not loaded."""
    error = getattr(sys.modules.get("asyncio"), "CancelledError", None)
    return () if error is None else (error,)


def started_by_a_tool() -> bool:
    """Whether a tool, or what it calls, has started this task: it is not the tool's own."""
    tool = calling.get()
    return tool is not None and tool() is not current_task()


def is_over(task: weakref.ref[Any]) -> bool:
    """Whether that task will never do anything again."""
    found = task()
    if found is None:
        return True
    if hasattr(found, "done"):  # asyncio's
        return bool(found.done())
    return found.coro.cr_frame is None  # trio's
