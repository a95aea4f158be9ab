"""Drives a stream decoder over the bytes of one answer, as the HTTP shell would."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from golem.errors import ProviderError, TransportError
from golem.messages import AssistantMessage
from golem.model import Delta, Request, Response, TextDelta, ThinkingDelta, ToolCallDelta
from golem.wire.http import StreamDecoder
from golem_adapters.openai.dialect import ChatDialect, dialect_named
from golem_adapters.openai.stream import ChatStream
from golem_adapters.openai_responses.dialect import ResponsesDialect
from golem_adapters.openai_responses.dialect import dialect_named as responses_dialect
from golem_adapters.openai_responses.stream import ResponsesStream


@dataclass
class Outcome:
    """What came out of a stream: deltas, then a response or an error."""

    deltas: list[Delta] = field(default_factory=list)
    response: Response | None = None
    error: ProviderError | None = None

    @property
    def message(self) -> AssistantMessage:
        """The message, whole or as far as it came."""
        if self.response is not None:
            return self.response.message
        assert self.error is not None
        return self.error.partial or AssistantMessage()

    @property
    def told(self) -> tuple[str, str, list[tuple[str, str, str]]]:
        """Text, thinking and calls as the deltas alone tell them."""
        text = "".join(d.text for d in self.deltas if type(d) is TextDelta)
        thinking = "".join(d.text for d in self.deltas if type(d) is ThinkingDelta)
        calls: list[list[str]] = []
        for delta in self.deltas:
            if type(delta) is not ToolCallDelta:
                continue
            if delta.index == len(calls):
                assert delta.id, "the first piece of a call has its id"
                calls.append(["", "", ""])
            call = calls[delta.index]
            call[0] += delta.id
            call[1] += delta.name
            call[2] += delta.args
        return text, thinking, [(call[0], call[1], call[2]) for call in calls]

    @property
    def said(self) -> tuple[str, str, list[tuple[str, str, str]]]:
        """The same as the message tells it."""
        message = self.message
        thinking = "".join(block.text for block in message.thinking)
        return message.content, thinking, [(c.id, c.name, c.args) for c in message.tool_calls]

    @property
    def shape(self) -> tuple[Any, ...]:
        """The outcome without what differs by nature: minted ids, and how deltas are cut."""
        text, thinking, calls = self.said
        named = [(name, args) for _, name, args in calls]
        response = self.response
        return (
            (text, thinking, named),
            (response.usage, response.finish_reason, response.details) if response else None,
            (type(self.error), str(self.error)) if self.error else None,
        )


def drive(
    pieces: Iterable[bytes],
    *,
    dialect: str | ChatDialect = "openai",
    request: Request | None = None,
    lost: TransportError | None = None,
    secret: str = "",
) -> Outcome:
    """Feed `pieces` to a fresh decoder of Chat Completions and close it."""
    stream = ChatStream(request or Request(()), dialect_named(dialect), {}, secret)
    return outcome_of(stream, pieces, lost)


def drive_responses(
    pieces: Iterable[bytes],
    *,
    dialect: str | ResponsesDialect = "openai",
    request: Request | None = None,
    lost: TransportError | None = None,
    secret: str = "",
) -> Outcome:
    """Feed `pieces` to a fresh decoder of Responses and close it."""
    record = responses_dialect(dialect)
    return outcome_of(ResponsesStream(request or Request(()), record, {}, secret), pieces, lost)


def outcome_of(
    stream: StreamDecoder, pieces: Iterable[bytes], lost: TransportError | None = None
) -> Outcome:
    """What comes out of `stream` for `pieces`."""
    outcome = Outcome()
    for piece in pieces:
        outcome.deltas.extend(stream.feed(piece))
        if stream.done:
            break
    try:
        last, outcome.response = stream.close(lost)
        outcome.deltas.extend(last)
    except ProviderError as error:
        outcome.error = error
    return outcome


def cut(data: bytes, places: Iterable[int]) -> Iterator[bytes]:
    """`data` in pieces, cut at `places`."""
    begin = 0
    for place in sorted(places):
        yield data[begin:place]
        begin = place
    yield data[begin:]


def bytewise(data: bytes) -> Iterator[bytes]:
    """`data` one byte at a time."""
    return (data[place : place + 1] for place in range(len(data)))


def events(*chunks: Any, done: bool = True) -> bytes:
    """An event stream of JSON values."""
    lines = [f"data: {json.dumps(chunk, separators=(',', ':'))}\n\n" for chunk in chunks]
    return "".join([*lines, "data: [DONE]\n\n" if done else ""]).encode()


def delta(finish: str | None = None, **members: Any) -> dict[str, Any]:
    """One chunk of a stream with one choice."""
    choice = {"index": 0, "delta": members, "finish_reason": finish}
    return {"id": "cc-1", "model": "m", "object": "chat.completion.chunk", "choices": [choice]}


def piece(
    index: int | None = None, id: str | None = None, name: str | None = None, args: Any = None
) -> dict[str, Any]:
    """A piece of a tool call with only the members that are given."""
    function = {"name": name, "arguments": args}
    members = {
        "index": index,
        "id": id,
        "function": {k: v for k, v in function.items() if v is not None},
    }
    return {k: v for k, v in members.items() if v is not None}


STOP = delta("stop")
CALLS = delta("tool_calls")
HI = events(delta(content="Hi"), done=False)
