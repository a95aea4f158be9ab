"""Which task this is, and which runs it carries out: what a task inherits from who started it.

A run is carried out by who pulls its events; its tools and observers run in that pull. Whoever is
called there can tell by `inside`. So can a task that was started there, and may outlive the pull.
"""

from __future__ import annotations

import asyncio
import sys
import weakref
from contextvars import ContextVar
from typing import Any, Final, NamedTuple

import sniffio


class Pull(NamedTuple):
    """One of the pulls of a stream, by number."""

    stream: object
    number: int


inside: Final[ContextVar[tuple[Pull, ...]]] = ContextVar("golem_inside", default=())
"""The pulls that the current task, or who started it, is carrying out; outermost first."""

calling: Final[ContextVar[weakref.ref[Any] | None]] = ContextVar("golem_calling", default=None)
"""The task that the innermost tool of a run was called in."""


def current_task() -> Any:
    """The task itself. anyio's own answer costs more than all the rest of a pull."""
    if sniffio.current_async_library() == "trio":
        return sys.modules["trio"].lowlevel.current_task()
    return asyncio.current_task()


def started_by_a_tool() -> bool:
    """Whether a tool, or what it calls, has started this task: it is not the tool's own."""
    tool = calling.get()
    return tool is not None and tool() is not current_task()


def is_over(task: weakref.ref[Any]) -> bool:
    """Whether that task will never do anything again."""
    found = task()
    if found is None:
        return True
    if isinstance(found, asyncio.Future):
        return found.done()
    return found.coro.cr_frame is None  # trio's
