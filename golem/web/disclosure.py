"""What a browser is told of an error: the application's words and golem's, never a library's.

What a provider, a driver or a tool's own code raises may name hosts, keys in addresses, rows of a
table. By default a client reads at which stage it happened and of which class the error was.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from golem.events import ModelFinished, RunFailed, ToolFinished

Told = ModelFinished | ToolFinished | RunFailed
"""The events that carry the text of an error."""

Describe = Callable[[Told], str]
"""Words for the error of an event, for whoever reads the stream."""

_OWN_WORDS: Final = frozenset({"", "UsageLimitError", "ModelRetry"})
"""Classes of errors whose text golem wrote, or the application for its model and its users."""


def guarded(event: Told) -> str:
    """The error without foreign words: golem's own text, or only where it happened and its class.

    An error that the model is told of as well (`ToolFinished.result`) is given as it is.
    """
    if event.error_type in _OWN_WORDS or (isinstance(event, ToolFinished) and event.result):
        return event.error
    if isinstance(event, ModelFinished):
        return f"the model could not answer ({event.error_type})"
    if isinstance(event, ToolFinished):
        return f"the tool failed ({event.error_type})"
    return f"the run failed at the {event.stage} stage ({event.error_type})"


def verbatim(event: Told) -> str:
    """The error's own text, for clients that may read what the server's log says."""
    return event.error
