"""The tools of one run: finds the tool of a call, runs it, says how it ended.

What an outcome means for the batch and the run is decided in ``batches`` and ``machine``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import anyio.to_thread

from golem import rawjson
from golem._run.commands import Canceled, Crashed, Failed, Outcome, Rejected, Returned
from golem.context import RunContext
from golem.errors import ModelRetry, ToolCanceled, ToolFailed
from golem.messages import ToolCall
from golem.model import ToolSpec
from golem.tools import InvalidArgumentsError, Tool, result_of

ARGUMENT_CORRECTIONS: Final = 1
"""How often, for each tool name, a run has the model correct a call that could not be run."""

AnyTool = Tool | Callable[..., Any]


class Toolbox:
    """The tools a run may call, by name. Plain typed functions become tools.

    Raises ValueError for two tools of one name, TypeError for a function without a schema.
    """

    def __init__(self, tools: Iterable[AnyTool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        for given in tools:
            made = given if isinstance(given, Tool) else Tool.from_function(given)
            if made.name in self._tools:
                raise ValueError(f"two tools are named {made.name!r}")
            self._tools[made.name] = made
        self.specs: Sequence[ToolSpec] = tuple(tool.spec for tool in self._tools.values())

    def prepare(self, call: ToolCall) -> Callable[[RunContext[Any]], Any] | Rejected | Crashed:
        """The call ready to be run, or why it cannot be: no tool runs here.

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
        return functools.partial(_invoke, found, arguments)

    async def run(
        self, call: ToolCall, ready: Callable[[RunContext[Any]], Any], context: RunContext[Any]
    ) -> Outcome:
        """Run a prepared call to its end. Cancellation passes through."""
        try:
            result = result_of(await ready(context))
        except ModelRetry as refusal:
            reason = rawjson.clean_text(refusal.reason)
            return Rejected(reason, _rejection(reason), self._tools[call.name].retries, True)
        except ToolFailed as failure:
            return Failed(rawjson.clean_text(failure.reason))
        except ToolCanceled as stop:
            return Canceled(rawjson.clean_text(stop.reason))
        except Exception as error:  # noqa: BLE001 - whatever the tool's author did not foresee
            return Crashed(error)
        return Returned(result.text, result.parts)


def _rejection(reason: str) -> str:
    return f"Your tool call was rejected: {reason}. Correct the arguments and call the tool again."


async def _invoke(tool: Tool, arguments: dict[str, Any], context: RunContext[Any]) -> Any:
    positional = (context,) if tool.takes_context else ()
    bound = functools.partial(tool.function, *positional, **arguments)
    if tool.is_async:
        return await bound()
    # The thread cannot be stopped; a cancelled run does not wait for it.
    # Boxed: a decorated async function gives a coroutine there, which trio would refuse.
    (value,) = await anyio.to_thread.run_sync(lambda: (bound(),), abandon_on_cancel=True)
    return await value if inspect.isawaitable(value) else value
