"""Models that answer from a script or from a function, stream what they answer, and fail.

Fakes at the port: they stream every answer in fragments, fail where they are told to, and record
every request.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from typing import Final

import anyio
import anyio.lowlevel
from msgspec import Struct
from msgspec.structs import replace

from golem.errors import TransportError
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


class Hang(Struct, frozen=True):
    """Nothing more comes, and the connection stays open."""


HANG: Final = Hang()


class Fragments(Struct, frozen=True):
    """An answer in exactly these pieces.

    An exception among them is raised there: the stream dies with what came before it given out.
    At a `HANG` it waits for ever. `response` ends a stream that does neither; without it the
    pieces are put together.
    """

    items: Sequence[Delta | Exception | Hang]
    response: Response | None = None


Scripted = str | AssistantMessage | Response | Fragments | Exception
"""An answer: a text, a message, a whole response, pieces of one, or an exception to raise."""


class FunctionModel:
    """A model that is a function of the request, sync or async; it gives what a script may hold.

    `requests` holds what was asked so far. `usage` is what every answer that brings none of its
    own is said to have consumed.
    """

    def __init__(
        self,
        function: Callable[[Request], Scripted | Awaitable[Scripted]],
        *,
        usage: Usage = NO_USAGE,
    ) -> None:
        self.requests: list[Request] = []
        self._function = function
        self._usage = usage

    def __repr__(self) -> str:
        return f"FunctionModel({len(self.requests)} requests)"

    async def generate(self, request: Request) -> Response:
        """The function's answer, whole."""
        item = await self._take(request)
        await anyio.lowlevel.checkpoint()
        if isinstance(item, Fragments):
            for piece in item.items:
                await _fail_at(piece)
        return self._response(item)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Response, None]:
        """The function's answer, in fragments and then whole."""
        item = await self._take(request)
        await anyio.lowlevel.checkpoint()
        whole = item if isinstance(item, Fragments) else None
        for piece in whole.items if whole else fragments(self._response(item).message):
            await anyio.lowlevel.checkpoint()
            if (delta := await _fail_at(piece)) is not None:
                yield delta
        yield self._response(item)

    async def _take(self, request: Request) -> Scripted:
        self.requests.append(request)
        found = self._function(request)
        item: Scripted = await found if inspect.isawaitable(found) else found
        if isinstance(item, Exception):
            raise item
        return item

    def _response(self, item: Scripted) -> Response:
        if isinstance(item, Response):
            return item
        if isinstance(item, str):
            return Response(AssistantMessage(item), self._usage)
        if isinstance(item, Fragments):
            deltas = [piece for piece in item.items if not isinstance(piece, (Exception, Hang))]
            return item.response or self._response(assemble(deltas))
        if isinstance(item, AssistantMessage):
            reason: FinishReason = "tool_call" if item.tool_calls else "stop"
            return Response(item, self._usage, reason)
        raise item


class ScriptedModel(FunctionModel):
    """A model that answers from a script, one item for each request.

    An item is a text, a message, a whole `Response`, `Fragments`, or an exception to raise.
    `requests` holds what was asked so far. `usage` is what every answer that brings none of its
    own is said to have consumed.

    Raises AssertionError for a request beyond the script's end, and TypeError for one answer where
    a list of them is wanted.
    """

    def __init__(self, script: Iterable[Scripted], *, usage: Usage = NO_USAGE) -> None:
        if isinstance(script, (str, Fragments)):  # whose items are no answers
            raise TypeError(f"a script is a list of answers, not {type(script).__name__}")
        super().__init__(self._next, usage=usage)
        self._script = list(script)

    def __repr__(self) -> str:
        return f"ScriptedModel({len(self._script)} answers, {len(self.requests)} requests)"

    def _next(self, request: Request) -> Scripted:
        del request  # whatever was asked
        if len(self.requests) > len(self._script):
            raise AssertionError(f"the script has no answer for request {len(self.requests)}")
        return self._script[len(self.requests) - 1]


async def _fail_at(piece: Delta | Exception | Hang) -> Delta | None:
    if isinstance(piece, Exception):
        raise piece
    if isinstance(piece, Hang):
        await anyio.sleep_forever()
        return None
    return piece


# Failures


def dies(answer: str | AssistantMessage, after: int, error: Exception | None = None) -> Fragments:
    """The answer, whose stream dies after so many fragments: a `TransportError`, unless told."""
    cut = error if error is not None else TransportError("the connection was lost (injected)")
    return Fragments([*_pieces(answer)[:after], cut])


def hangs(answer: str | AssistantMessage, after: int = 0) -> Fragments:
    """The answer, whose stream hangs after so many fragments."""
    return Fragments([*_pieces(answer)[:after], HANG])


def cut_args(answer: AssistantMessage, length: int) -> Response:
    """The answer, cut off (``length``) so that its last call has only so much argument text."""
    *calls, last = answer.tool_calls
    cut = ToolCall.of(last.id, last.name, last.args[:length])
    return Response(replace(answer, tool_calls=(*calls, cut)), finish_reason="length")


def _pieces(answer: str | AssistantMessage) -> list[Delta]:
    return fragments(AssistantMessage(answer) if isinstance(answer, str) else answer)


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
