"""The tools of one run: finds the tool of a call, runs it, says how it ended.

What an outcome means for the batch and the run is decided in ``batches`` and ``machine``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, TypeVar, cast

import anyio
import anyio.to_thread

from golem import rawjson
from golem._run.commands import (
    Canceled,
    Crashed,
    Deferred,
    Failed,
    Outcome,
    Rejected,
    Returned,
)
from golem.context import RunContext
from golem.errors import ModelRetry, ToolCanceled, ToolDeferred, ToolFailed
from golem.messages import ToolCall
from golem.model import ToolSpec
from golem.tools import InvalidArgumentsError, Tool, result_of

ARGUMENT_CORRECTIONS: Final = 1
"""How often, for each tool name, a run has the model correct a call that could not be run."""

AnyTool = Tool | Callable[..., Any]
T = TypeVar("T")


class Toolbox:
    """The tools a run may call, by name. Plain typed functions become tools.

    Raises ValueError for two tools of one name, TypeError for a function without a schema, and
    for a tool where several are wanted.
    """

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        if not isinstance(tools, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"tools must be a list of tools, not {type(tools).__name__}")
        self._tools: dict[str, Tool] = {}
        for given in tools:
            made = given if isinstance(given, Tool) else Tool.from_function(given)
            if made.name in self._tools:
                raise ValueError(f"two tools are named {made.name!r}")
            self._tools[made.name] = made
        self.specs: Sequence[ToolSpec] = tuple(tool.spec for tool in self._tools.values())

    def __contains__(self, name: str) -> bool:
        return name in self._tools

    def is_sequential(self, call: ToolCall) -> bool:
        """Whether nothing may run beside this call."""
        found = self._tools.get(call.name)
        return found is not None and found.sequential

    def prepare(self, call: ToolCall, *, approved: bool) -> Ready | Outcome:
        """The call ready to be run, or what has become of it already: no tool runs here.

        Crashed only where a type's own validation raises what is no complaint about its values.
        """
        found = self._tools.get(call.name)
        if found is None:
            available = ", ".join(self._tools) or "none"
            text = f"There is no tool named {call.name}. Available: {available}."
            return Rejected(f"unknown tool {call.name!r}", text, ARGUMENT_CORRECTIONS, False)
        try:
            arguments = found.bind(call.args)
        except InvalidArgumentsError as error:
            reason = str(error)
            return Rejected(reason, _rejection(reason), ARGUMENT_CORRECTIONS, False)
        except Exception as error:  # noqa: BLE001 - the code of an argument's type
            return Crashed(error)
        if found.requires_approval and not approved:
            return Deferred("approval", "")
        return Ready(found, arguments)


class Ready:
    """A call with its tool and its arguments bound.

    `in_thread`: a worker thread is at it, or may be, and nothing can stop that one.
    """

    def __init__(self, tool: Tool, arguments: dict[str, Any]) -> None:
        self.in_thread = False
        self._tool = tool
        self._arguments = arguments

    async def run(self, context: RunContext[Any], limit: float | None) -> Outcome:
        """Run it to its end, or to its timeout (the tool's own, else `limit`), in seconds.

        Cancellation passes through.
        """
        seconds = self._tool.timeout if self._tool.timeout is not None else limit
        if seconds is None:  # no scope: it would cost more than the rest of the call
            return await self._outcome(context)
        outcome: Outcome | None = None
        with anyio.move_on_after(seconds) as scope:
            outcome = await self._outcome(context)
        if scope.cancel_called and (outcome is None or isinstance(outcome, Crashed)):
            late = TimeoutError(f"the tool timeout of {seconds:g} s is over")
            late.__cause__ = None if outcome is None else outcome.error
            return Crashed(late, abandoned=self.in_thread)
        assert outcome is not None  # noqa: S101 - it was not late
        return outcome

    async def _outcome(self, context: RunContext[Any]) -> Outcome:
        try:
            result = result_of(await self._invoke(context))
        except Exception as error:  # noqa: BLE001 - whatever the tool's author did not foresee
            return self._said(_alone(error)) or Crashed(error)
        return Returned(result.text, result.parts)

    def _said(self, error: Exception) -> Outcome | None:
        """What the tool says has become of its call; None where it just broke."""
        match error:
            case ModelRetry():
                reason = rawjson.clean_text(error.reason)
                return Rejected(reason, _rejection(reason), self._tool.retries, True)
            case ToolFailed():
                return Failed(rawjson.clean_text(error.reason))
            case ToolDeferred():
                return Deferred(error.kind, rawjson.clean_text(error.reason))
            case ToolCanceled():
                return Canceled(rawjson.clean_text(error.reason))
            case _:
                return None

    async def _invoke(self, context: RunContext[Any]) -> Any:
        tool = self._tool
        positional = (context,) if tool.takes_context else ()
        if tool.is_async:
            return await tool.function(*positional, **self._arguments)
        bound = functools.partial(tool.function, *positional, **self._arguments)
        (value,) = await self._in_thread(bound)
        return await value if inspect.isawaitable(value) else value

    async def _in_thread(self, function: Callable[[], T]) -> tuple[T]:
        """What the function gives in a worker thread; one that is cancelled is left to itself.

        As many run at once as the backend's own limiter allows. The token is held here, not by the
        thread: trio's thread would keep it, and once 40 hang no other would ever begin.
        """

        def call() -> tuple[T]:
            # Boxed: a decorated async function gives a coroutine there, which trio would refuse.
            try:
                return (function(),)
            finally:
                self.in_thread = False

        limiter, token = anyio.to_thread.current_default_thread_limiter(), object()
        await limiter.acquire_on_behalf_of(token)
        self.in_thread = True
        try:
            return await anyio.to_thread.run_sync(
                call, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
            )
        finally:
            limiter.release_on_behalf_of(token)


def _alone(error: Exception) -> Exception:
    """The one error in a group: what a task group inside a tool makes of it."""
    alone = error
    while isinstance(alone, ExceptionGroup):
        members = cast("ExceptionGroup[Exception]", alone).exceptions
        if len(members) != 1:
            return error
        (alone,) = members
    return alone


def _rejection(reason: str) -> str:
    return f"Your tool call was rejected: {reason}. Correct the arguments and call the tool again."
