"""What every provider asks of calls and results, judged at the port: on messages, without HTTP.

What one provider asks of the bytes, its judge knows: `golem.testing.judge`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from typing import Any

from golem.closing import closable
from golem.messages import AssistantMessage, Message, SystemMessage, ToolMessage
from golem.model import Delta, Model, Request, Response


def complaints(messages: Sequence[Message]) -> list[str]:
    """What a provider would refuse about the pairing of these messages; empty when nothing.

    Every call has exactly one result, all of a turn's results stand directly behind it, and no
    result stands anywhere else. Calls without an id are the adapters' business and pass.
    """
    return list(_complaints(messages))


class Strict:
    """A model as strict as the strictest provider: a request with broken pairing is refused.

    Raises AssertionError with the `complaints`, so that no retry can hide them.
    """

    def __init__(self, model: Model) -> None:
        self._model = model

    def __repr__(self) -> str:
        return f"Strict({self._model!r})"

    @property
    def native_output(self) -> bool:
        """Whether the model can enforce an output schema."""
        return bool(getattr(self._model, "native_output", False))

    async def generate(self, request: Request) -> Response:
        """The model's answer."""
        _judge(request)
        return await self._model.generate(request)

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Response, Any]:
        """The model's answer, in fragments."""
        _judge(request)
        async with aclosing(closable(self._model.stream(request))) as answer:
            async for item in answer:
                yield item


def _judge(request: Request) -> None:
    if not request.messages:
        raise AssertionError("a request without messages")
    if found := complaints(request.messages):
        raise AssertionError("a provider would refuse this: " + "; ".join(found))


def _complaints(messages: Sequence[Message]) -> Iterator[str]:
    expected: list[str] = []
    for place, message in enumerate(messages):
        if isinstance(message, ToolMessage):
            if message.tool_call_id in expected:
                expected.remove(message.tool_call_id)
            elif message.tool_call_id:
                yield f"message {place}: a result of {message.tool_call_id!r} nobody waits for"
            continue
        for call_id in expected:
            yield f"message {place}: call {call_id!r} has no result before it"
        expected = []
        if isinstance(message, AssistantMessage):
            expected = [call.id for call in message.tool_calls if call.id]
        if isinstance(message, SystemMessage) and place:
            yield f"message {place}: a system message that is not the first"
    for call_id in expected:
        yield f"the end: call {call_id!r} has no result"
