"""Converse in tests: bodies for histories, streams as Bedrock sends them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from golem.errors import TransportError
from golem.history import repair
from golem.messages import AssistantMessage, Message, Part, ToolCall, ToolMessage, UserMessage
from golem.model import Request, Response, Settings, ToolSpec
from golem_adapters.bedrock.dialect import ConverseDialect, dialect_of
from golem_adapters.bedrock.request import Options, encode_request
from golem_adapters.bedrock.response import decode_response
from golem_adapters.bedrock.stream import ConverseStream
from tests.adapters.driving import Outcome, outcome_of
from tests.wire.frames import event

Block = dict[str, Any]
Event = tuple[str, dict[str, Any]]

CLAUDE = "us.anthropic.claude-sonnet-4-5-20250929-v1:0"
NOVA = "us.amazon.nova-2-lite-v1:0"
LLAMA = "us.meta.llama4-maverick-17b-instruct-v1:0"
MISTRAL = "us.mistral.pixtral-large-2502-v1:0"
TITAN = "amazon.titan-text-express-v1"
WRITER = "us.writer.palmyra-x4-v1:0"
MODELS = (
    CLAUDE,
    NOVA,
    LLAMA,
    "mistral.mistral-7b-instruct-v0:2",
    MISTRAL,
    WRITER,
    TITAN,
    "openai.gpt-oss-120b-1:0",
    "arn:aws:bedrock:us-east-1:123456789012:application-inference-profile/x1",
)

SPEC = ToolSpec("f", "does f", {"type": "object", "properties": {}})
PNG = Part.image(b"png", "image/png")
PDF = Part.document(b"pdf", "application/pdf")
MP4 = Part.video(b"mp4", "video/mp4")


def family(model: str | ConverseDialect) -> ConverseDialect:
    """The family of a model, or the record itself."""
    return model if isinstance(model, ConverseDialect) else dialect_of(model)


# --- histories


def turn(*results: ToolMessage, args: str = "{}") -> list[Message]:
    """A question, a call of `f` and its results."""
    return [
        UserMessage("q"),
        AssistantMessage(tool_calls=(ToolCall.of("c1", "f", args),)),
        *results,
    ]


def result(text: str = "r", *parts: Part, failed: bool = False) -> ToolMessage:
    """The result of that call."""
    return ToolMessage(text, parts=parts, tool_call_id="c1", tool_name="f", failed=failed)


# --- out


def encode(
    history: Iterable[Message],
    *,
    model: str | ConverseDialect = CLAUDE,
    settings: Settings | None = None,
    repaired: bool = True,
    cache: str | None = None,
    server_tools: Sequence[dict[str, Any]] = (),
    **members: Any,
) -> bytes:
    """The request body for `history`."""
    messages = list(repair(history)) if repaired else list(history)
    return encode_request(
        Request(messages, **members),
        settings=settings or Settings(),
        dialect=family(model),
        options=Options(cache, server_tools),
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
    return [m["role"] + ":" + ",".join(next(iter(b)) for b in m["content"]) for m in messages]


# --- in


def answer(content: Sequence[Block], **members: Any) -> dict[str, Any]:
    """The body of a plain answer."""
    return {
        "metrics": {"latencyMs": 7},
        "output": {"message": {"content": list(content), "role": "assistant"}},
        "stopReason": "end_turn",
        "usage": {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5},
        **members,
    }


def spelled(value: Any) -> bytes:
    """`value` as JSON, as the service spells it."""
    return json.dumps(value, separators=(",", ":")).encode()


def plainly(
    content: Sequence[Block], model: str | ConverseDialect = CLAUDE, **members: Any
) -> Response:
    """The response of a plain answer with these blocks."""
    return decode(spelled(answer(content, **members)), model=model)


def decode(
    body: bytes,
    request: Request | None = None,
    *,
    model: str | ConverseDialect = CLAUDE,
    headers: dict[str, str] | None = None,
    secrets: Sequence[str] = (),
) -> Response:
    """The response in `body`."""
    return decode_response(
        body,
        request=request or Request(()),
        dialect=family(model),
        headers=headers or {},
        secrets=secrets,
    )


def answered(content: Sequence[Block], model: str | ConverseDialect = CLAUDE) -> AssistantMessage:
    """The message that an answer with these blocks becomes."""
    return plainly(content, model).message


def drive(
    pieces: Iterable[bytes],
    *,
    model: str | ConverseDialect = CLAUDE,
    request: Request | None = None,
    lost: TransportError | None = None,
    headers: dict[str, str] | None = None,
    secrets: Sequence[str] = (),
) -> Outcome:
    """Feed `pieces` to a fresh decoder and close it."""
    stream = ConverseStream(request or Request(()), family(model), headers or {}, secrets)
    return outcome_of(stream, pieces, lost)


# --- streams


def framed(events: Iterable[Event]) -> bytes:
    """An event stream."""
    return b"".join(event(name, payload) for name, payload in events)


STARTED: Event = ("messageStart", {"role": "assistant", "p": "abc"})


def start(index: int | None, **opened: Any) -> Event:
    """The event that opens a block."""
    return "contentBlockStart", _placed(index, {"start": opened})


def delta(index: int | None, **piece: Any) -> Event:
    """A piece of a block."""
    return "contentBlockDelta", _placed(index, {"delta": piece, "p": "abcdef"})


def stop(index: int | None) -> Event:
    """The event that closes a block."""
    return "contentBlockStop", _placed(index, {})


def _placed(index: int | None, members: dict[str, Any]) -> dict[str, Any]:
    return members if index is None else {"contentBlockIndex": index, **members}


def ended(reason: str = "end_turn", **usage: Any) -> list[Event]:
    """The last events."""
    counts = {"inputTokens": 3, "outputTokens": 2, "totalTokens": 5, **usage}
    return [
        ("messageStop", {"p": "ab", "stopReason": reason}),
        ("metadata", {"metrics": {"latencyMs": 7}, "p": "a", "usage": counts}),
    ]


def cut_up(text: str, size: int) -> list[str]:
    """`text` in pieces."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def block_events(index: int, block: Block, size: int = 3) -> list[Event]:
    """The events of one block, whose texts come in pieces of `size`."""
    kind, value = next(iter(block.items()))
    events: list[Event] = []
    match kind:
        case "text":
            events += [delta(index, text=piece) for piece in cut_up(value, size) or [""]]
        case "citationsContent":
            said = "".join(piece["text"] for piece in value["content"])
            events += [delta(index, text=piece) for piece in cut_up(said, size)]
            events += [delta(index, citation=one) for one in value["citations"]]
        case "reasoningContent" if "redactedContent" in value:
            events.append(delta(index, reasoningContent=value))
        case "reasoningContent":
            readable = value["reasoningText"]
            for piece in cut_up(readable["text"], size):
                events.append(delta(index, reasoningContent={"text": piece}))
            if "signature" in readable:
                events.append(delta(index, reasoningContent={"signature": readable["signature"]}))
        case "toolUse":
            opened = {name: member for name, member in value.items() if name != "input"}
            events.append(start(index, toolUse=opened))
            args = json.dumps(value["input"], separators=(",", ":"))
            for piece in ["", *cut_up("" if args == "{}" else args, size)]:
                events.append(delta(index, toolUse={"input": piece}))
        case "toolResult":
            opened = {name: member for name, member in value.items() if name != "content"}
            events.append(start(index, toolResult=opened))
            events += [delta(index, toolResult=[piece]) for piece in value["content"]]
        case "image":
            events.append(start(index, image={"format": value["format"]}))
            events.append(delta(index, image={"source": value["source"]}))
        case _:
            events.append(delta(index, **block))
    return [*events, stop(index)]


def stream_events(content: Sequence[Block], size: int = 3, reason: str = "end_turn") -> list[Event]:
    """All events of an answer."""
    events = [STARTED]
    for index, block in enumerate(content):
        events += block_events(index, block, size)
    return [*events, *ended(reason)]
