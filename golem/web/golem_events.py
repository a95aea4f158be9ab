"""golem's own events as a stream: each one's JSON in a frame of its own."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from msgspec.structs import replace

from golem.events import (
    ModelFinished,
    RunFailed,
    RunFinished,
    RunPaused,
    RunStopped,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
    ToolFinished,
    encode_event,
)
from golem.messages import Message, SystemMessage
from golem.result import Partial, Result
from golem.web.disclosure import Describe, guarded
from golem.web.frames import AnyEvent, Encoder, Frame

NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})

_EDITED: Final = frozenset(
    {ModelFinished, ToolFinished, RunFailed, RunFinished, RunPaused, RunStopped}
)

_DELTAS: Final = frozenset({TextDelta, ThinkingDelta, ToolCallDelta})
"""Most of a stream, and plain: the encoder alone writes them as `encode_event` does."""

_encode: Final = msgspec.json.Encoder().encode


def golem_events(*, describe: Describe = guarded) -> Encoder:
    """An encoder of golem's own events: read them with `golem.events.decode_event`.

    Two things stay at the server: the instructions (system messages in the transcript of the
    terminal event), and the text of foreign errors, for which `describe` has the words.
    """
    return GolemEvents(describe)


class GolemEvents:
    """See `golem_events`."""

    def __init__(self, describe: Describe) -> None:
        self._describe = describe

    headers = NO_HEADERS

    def feed(self, event: AnyEvent) -> list[Frame]:
        """One frame: the event."""
        if type(event) in _DELTAS:
            try:
                return [Frame(_encode(event))]
            except UnicodeError:  # lone surrogates, in events that golem has not made
                return [Frame(encode_event(event))]
        if type(event) in _EDITED:
            event = for_client(event, self._describe)
        return [Frame(encode_event(event))]

    def close(self) -> list[Frame]:
        """Nothing: that the terminal event is missing says it."""
        return []


def for_client(event: AnyEvent, describe: Describe = guarded) -> AnyEvent:
    """The event without instructions and with `describe`'s words for its error."""
    if isinstance(event, (ModelFinished, ToolFinished)):
        return replace(event, error=describe(event)) if event.error else event
    if isinstance(event, RunFailed):
        return replace(event, error=describe(event), partial=_partial(event.partial))
    if isinstance(event, RunStopped):
        return replace(event, partial=_partial(event.partial))
    if isinstance(event, (RunFinished, RunPaused)):
        result: Result[object] = event.result
        shown = _without_instructions(result.messages)
        return replace(event, result=replace(result, messages=shown))
    return event


def _partial(partial: Partial | None) -> Partial | None:
    if partial is None:
        return None
    return replace(partial, messages=_without_instructions(partial.messages))


def _without_instructions(messages: list[Message]) -> list[Message]:
    return [message for message in messages if not isinstance(message, SystemMessage)]
