"""Public tools for testing agents without a provider; golem's own suite uses them.

A `ScriptedModel` is a fake at the port: it answers from a script, streams what it answers in
fragments, fails where told to, and records every request.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from typing import Final

import anyio.lowlevel
from msgspec import Struct

from golem.messages import AssistantMessage, Thinking, ToolCall
from golem.model import (
    Delta,
    FinishReason,
    Request,
    Response,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from golem.usage import Usage

NO_USAGE: Final = Usage()


class Fragments(Struct, frozen=True):
    """A scripted answer in exactly these pieces.

    An exception among them is raised there: the stream dies with what came before it given out.
    `response` ends a stream that does not die; without it the pieces are put together.
    """

    items: Sequence[Delta | Exception]
    response: Response | None = None


Scripted = str | AssistantMessage | Response | Fragments | Exception


class ScriptedModel:
    """A model that answers from a script, one item for each request.

    An item is a text, a message, a whole `Response`, `Fragments`, or an exception to raise.
    `requests` holds what was asked so far. `usage` is what every answer that brings none of its
    own is said to have consumed.

    Raises AssertionError for a request beyond the script's end.
    """

    def __init__(self, script: Iterable[Scripted], *, usage: Usage = NO_USAGE) -> None:
        self.requests: list[Request] = []
        self._script = list(script)
        self._usage = usage

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self._script)} answers, {len(self.requests)} requests)"

    async def generate(self, request: Request) -> Response:
        """The next answer of the script, whole."""
        item = self._take(request)
        await anyio.lowlevel.checkpoint()
        if isinstance(item, Fragments):
            for piece in item.items:
                if isinstance(piece, Exception):
                    raise piece
        return self._response(item)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Response, None]:
        """The next answer of the script, in fragments and then whole."""
        item = self._take(request)
        await anyio.lowlevel.checkpoint()
        if isinstance(item, Fragments):
            for piece in item.items:
                await anyio.lowlevel.checkpoint()
                if isinstance(piece, Exception):
                    raise piece
                yield piece
        else:
            for delta in fragments(self._response(item).message):
                await anyio.lowlevel.checkpoint()
                yield delta
        yield self._response(item)

    def _take(self, request: Request) -> Scripted:
        self.requests.append(request)
        if len(self.requests) > len(self._script):
            raise AssertionError(f"the script has no answer for request {len(self.requests)}")
        item = self._script[len(self.requests) - 1]
        if isinstance(item, Exception):
            raise item
        return item

    def _response(self, item: Scripted) -> Response:
        if isinstance(item, Response):
            return item
        if isinstance(item, str):
            return Response(AssistantMessage(item), self._usage)
        if isinstance(item, Fragments):
            deltas = [piece for piece in item.items if not isinstance(piece, Exception)]
            return item.response or self._response(assemble(deltas))
        if isinstance(item, AssistantMessage):
            reason: FinishReason = "tool_call" if item.tool_calls else "stop"
            return Response(item, self._usage, reason)
        raise item


def fragments(message: AssistantMessage, size: int = 8) -> list[Delta]:
    """A message as the deltas a provider might stream: thinking, text, then the calls."""
    pieces: list[Delta] = []
    for block in message.thinking:
        pieces += [ThinkingDelta(piece) for piece in _chunks(block.text, size)]
    pieces += [TextDelta(piece) for piece in _chunks(message.content, size)]
    for index, call in enumerate(message.tool_calls):
        pieces.append(ToolCallDelta(index, call.id, call.name))
        pieces += [ToolCallDelta(index, args=piece) for piece in _chunks(call.args, size)]
    return pieces


def assemble(deltas: Iterable[Delta]) -> AssistantMessage:
    """The message that a stream of deltas amounts to; the inverse of `fragments`."""
    text, thinking = "", ""
    calls: dict[int, list[str]] = {}
    for delta in deltas:
        if isinstance(delta, TextDelta):
            text += delta.text
        elif isinstance(delta, ThinkingDelta):
            thinking += delta.text
        else:
            call = calls.setdefault(delta.index, ["", "", ""])
            call[0] = call[0] or delta.id
            call[1] = call[1] or delta.name
            call[2] += delta.args
    return AssistantMessage(
        text,
        thinking=(Thinking(thinking),) if thinking else (),
        tool_calls=tuple(ToolCall.of(*call) for _, call in sorted(calls.items())),
    )


def _chunks(text: str, size: int) -> list[str]:
    return [text[start : start + size] for start in range(0, len(text), size)]
