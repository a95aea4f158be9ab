"""Giving out an answer while it comes: what goes into deltas, and when. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from golem.messages import ToolCall
from golem.model import Delta, FinishReason, ToolCallDelta
from golem_adapters._toolkit.pieces import ArgumentText


class ToldCall:
    """A tool call of which deltas were given out; `name` is the tool's own."""

    __slots__ = ("args", "id", "index", "name")

    def __init__(self, index: int, id: str, name: str) -> None:
        self.index = index
        self.id = id
        self.name = name
        self.args = ArgumentText()

    def begin(self, deltas: list[Delta]) -> None:
        """Give out that the call begins."""
        deltas.append(ToolCallDelta(self.index, self.id, self.name))

    def add(self, piece: str, deltas: list[Delta]) -> None:
        """Give out a piece of the arguments, but for white space around all of them."""
        tell_args(self.index, self.args.taken(piece), deltas)

    def end(self, deltas: list[Delta]) -> None:
        """Give out what a completed call without argument text has."""
        if not self.args.text:
            self.add("{}", deltas)

    def call(self) -> ToolCall:
        """The call as far as it was told."""
        return ToolCall.of(self.id, self.name, self.args.text)


def tell_args(index: int, args: str, deltas: list[Delta]) -> None:
    """Give out argument text of the call `index`, with its beginning if that was told just now."""
    if not args:
        return
    last = deltas[-1] if deltas else None
    if type(last) is ToolCallDelta and last.index == index and not last.args:
        deltas[-1] = ToolCallDelta(index, last.id, last.name, args)
    else:
        deltas.append(ToolCallDelta(index, args=args))


def finish_reason(known: Mapping[str, FinishReason], said: str, *, called: bool) -> FinishReason:
    """What the provider's word for the end means; an answer with calls ends with them.

    It does where the word says that it is whole, and where there is none.
    """
    reason: FinishReason = known.get(said, "other")
    if called:
        return "tool_call" if reason == "stop" or not said else reason
    return "stop" if reason == "tool_call" else reason
