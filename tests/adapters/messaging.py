"""Messages of Anthropic in tests: bodies for histories, streams as servers send them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from golem.errors import TransportError
from golem.history import repair
from golem.messages import AssistantMessage, Message
from golem.model import Request, Response, Settings
from golem_adapters.anthropic.dialect import MessagesDialect, dialect_named
from golem_adapters.anthropic.request import Options, encode_request
from golem_adapters.anthropic.response import decode_response
from golem_adapters.anthropic.stream import MessagesStream
from tests.adapters.driving import Outcome, outcome_of

Block = dict[str, Any]
Event = dict[str, Any]


# --- out


def encode(
    history: Iterable[Message],
    *,
    dialect: str | MessagesDialect = "anthropic",
    stream: bool = False,
    settings: Settings | None = None,
    repaired: bool = True,
    thinking: dict[str, Any] | None = None,
    cache: str | None = None,
    server_tools: Sequence[dict[str, Any]] = (),
    **members: Any,
) -> bytes:
    """The request body for `history`."""
    messages = list(repair(history)) if repaired else list(history)
    return encode_request(
        Request(messages, **members),
        model="m",
        settings=settings or Settings(),
        dialect=dialect_named(dialect),
        stream=stream,
        options=Options(thinking, cache, server_tools),
    )


def body_of(history: Iterable[Message], **options: Any) -> dict[str, Any]:
    """The request body for `history`, decoded."""
    body: dict[str, Any] = json.loads(encode(history, **options))
    return body


def wire(history: Iterable[Message], **options: Any) -> list[dict[str, Any]]:
    """The messages of the request for `history`."""
    messages: list[dict[str, Any]] = body_of(history, **options)["messages"]
    return messages


def shape(messages: list[dict[str, Any]]) -> list[str]:
    """Each message as its role and the kinds of its blocks."""
    return [m["role"] + ":" + ",".join(block["type"] for block in m["content"]) for m in messages]


# --- in


def answer(content: Sequence[Block], **members: Any) -> dict[str, Any]:
    """The body of a plain answer."""
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m-1",
        "content": list(content),
        "stop_reason": "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": 3, "output_tokens": 2},
        **members,
    }


def plainly(content: Sequence[Block], **members: Any) -> Response:
    """The response of a plain answer with these blocks."""
    return decode(json.dumps(answer(content, **members), separators=(",", ":")).encode())


def decode(body: bytes, request: Request | None = None, **options: Any) -> Response:
    """The response in `body`."""
    dialect = dialect_named(options.pop("dialect", "anthropic"))
    arguments = {"headers": {}, "secret": "", **options}
    return decode_response(body, request=request or Request(()), dialect=dialect, **arguments)


def answered(content: Sequence[Block], dialect: str = "anthropic") -> AssistantMessage:
    """The message that an answer with these blocks becomes."""
    body = json.dumps(answer(content)).encode()
    return decode(body, dialect=dialect).message


def drive(
    pieces: Iterable[bytes],
    *,
    dialect: str | MessagesDialect = "anthropic",
    request: Request | None = None,
    lost: TransportError | None = None,
    headers: dict[str, str] | None = None,
    secret: str = "",
) -> Outcome:
    """Feed `pieces` to a fresh decoder and close it."""
    record = dialect_named(dialect)
    stream = MessagesStream(request or Request(()), record, headers or {}, secret)
    return outcome_of(stream, pieces, lost)


# --- streams


def sse(events: Iterable[Event], *, named: bool = True) -> bytes:
    """An event stream of JSON events."""
    text = ""
    for event in events:
        text += f"event: {event['type']}\n" if named else ""
        text += f"data: {json.dumps(event, separators=(',', ':'))}\n\n"
    return text.encode()


def started(**members: Any) -> Event:
    """The first event."""
    message = answer([], stop_reason=None, usage={"input_tokens": 3, "output_tokens": 1})
    return {"type": "message_start", "message": {**message, **members}}


def ended(reason: str | None = "end_turn", **members: Any) -> list[Event]:
    """The last events."""
    delta = {"stop_reason": reason, "stop_sequence": None, **members}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 2}},
        {"type": "message_stop"},
    ]


def start(index: int | None, block: Block) -> Event:
    """The event that opens a block."""
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: int | None, kind: str, **members: Any) -> Event:
    """A piece of a block."""
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def stop(index: int | None) -> Event:
    """The event that closes a block."""
    return {"type": "content_block_stop", "index": index}


_EMPTY = {"text": "", "thinking": "", "signature": "", "input": {}}
_PIECES = {"text": "text_delta", "thinking": "thinking_delta"}


def block_events(index: int, block: Block, size: int = 3) -> list[Event]:
    """The events of one block, whose texts come in pieces of `size`."""
    opened = {name: _EMPTY.get(name, value) for name, value in block.items() if name != "citations"}
    events = [start(index, opened)]
    for name, kind in _PIECES.items():
        if name in block:
            for piece in cut_up(block[name], size):
                events.append(delta(index, kind, **{name: piece}))
    events += [
        delta(index, "citations_delta", citation=one) for one in block.get("citations") or ()
    ]
    if block.get("signature"):
        events.append(delta(index, "signature_delta", signature=block["signature"]))
    if "input" in block:
        args = json.dumps(block["input"], separators=(",", ":"))
        for piece in ["", *cut_up("" if args == "{}" else args, size)]:
            events.append(delta(index, "input_json_delta", partial_json=piece))
    return [*events, stop(index)]


def cut_up(text: str, size: int) -> list[str]:
    """`text` in pieces."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def stream_events(content: Sequence[Block], size: int = 3, **members: Any) -> list[Event]:
    """All events of an answer."""
    events = [started()]
    for index, block in enumerate(content):
        events += block_events(index, block, size)
    return [*events, *ended(**members)]
