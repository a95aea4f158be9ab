"""Who has been cancelled: told apart where foreign code hides a cancellation, or makes one up.

A scope's cancellation (anyio's, trio's) is a state and strikes again at the next checkpoint. A
native one of asyncio, ``Task.cancel`` or ``asyncio.timeout``, strikes once: where a client or a
tool makes an error of its own of it, only the task's count of requests still tells.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import ParamSpec, TypeVar

import anyio
import anyio.lowlevel

from golem.carrying import asyncio_task, cancelled_errors

P = ParamSpec("P")
T = TypeVar("T")


class StrayCancelledError(Exception):
    """Code of the application raised CancelledError, though nobody has cancelled the run."""


def cancel_counter() -> Callable[[], int]:
    """Tells how many cancellations this task has been asked for and has not given back.

    Those of a scope that is around the caller count too until it is left; always 0 on trio.
    """
    task = asyncio_task()
    return int if task is None else task.cancelling


def cancel_requests() -> int:
    """What a `cancel_counter` of the current task would tell now."""
    return cancel_counter()()


async def pass_cancellation(before: int) -> None:
    """Raise the backend's own exception if the caller is cancelled.

    `before`: the `cancel_requests` there were when the code was entered that may have hidden one.
    """
    await anyio.lowlevel.checkpoint_if_cancelled()
    if cancel_requests() > before:
        raise cancelled_errors()[0]  # who counts requests is asyncio


def cancelled_by_scope() -> bool:
    """Whether a scope around the caller is cancelled."""
    return anyio.current_effective_deadline() == float("-inf")


def is_stray(error: BaseException) -> bool:
    """Whether it is a CancelledError that whoever raised it has made, or got from elsewhere.

    As one does who awaits a task that somebody else has cancelled.
    """
    if not isinstance(error, cancelled_errors()):
        return False
    return not (cancelled_by_scope() or cancel_requests())


async def told(function: Callable[P, Awaitable[T]], *args: P.args, **named: P.kwargs) -> T:
    """What code of the application gives; its stray CancelledError is an error like any other.

    Raises StrayCancelledError, and TypeError for a function that is not async. Not for models and
    tools: what they are cancelled by ends the run.
    """
    try:
        given = function(*args, **named)
        if not hasattr(given, "__await__"):
            raise TypeError(f"it has to be async, and gave {type(given).__name__}")
        return await given
    except cancelled_errors() as error:
        if not is_stray(error):
            raise
        reason = "CancelledError was raised, and nobody had cancelled the run"
        raise StrayCancelledError(reason) from error
