"""Gemini in tests: bodies for histories, answers and streams as the server sends them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from golem.errors import TransportError
from golem.history import repair
from golem.messages import AssistantMessage, Message
from golem.model import Request, Response, Settings
from golem_adapters.gemini.dialect import dialect_named, traits_of
from golem_adapters.gemini.request import Options, encode_request
from golem_adapters.gemini.response import decode_response
from golem_adapters.gemini.stream import GeminiStream
from tests.adapters.driving import Outcome, outcome_of

Part = dict[str, Any]
Chunk = dict[str, Any]

USAGE = {"promptTokenCount": 3, "candidatesTokenCount": 2, "totalTokenCount": 5}


# --- out


def encode(
    history: Iterable[Message],
    *,
    model: str = "gemini-3-flash",
    dialect: str = "gemini",
    settings: Settings | None = None,
    repaired: bool = True,
    thinking: dict[str, Any] | None = None,
    safety: Sequence[dict[str, Any]] = (),
    server_tools: Sequence[dict[str, Any]] = (),
    **members: Any,
) -> bytes:
    """The request body for `history`."""
    messages = list(repair(history)) if repaired else list(history)
    return encode_request(
        Request(messages, **members),
        settings=settings or Settings(),
        dialect=dialect_named(dialect),
        traits=traits_of(model),
        options=Options(thinking, safety, server_tools),
    )


def body_of(history: Iterable[Message], **options: Any) -> dict[str, Any]:
    """The request body for `history`, decoded."""
    body: dict[str, Any] = json.loads(encode(history, **options))
    return body


def wire(history: Iterable[Message], **options: Any) -> list[dict[str, Any]]:
    """The contents of the request for `history`."""
    contents: list[dict[str, Any]] = body_of(history, **options)["contents"]
    return contents


def shape(contents: list[dict[str, Any]]) -> list[str]:
    """Each content as its role and the kinds of its parts."""
    return [c["role"] + ":" + ",".join(map(kind_of, c["parts"])) for c in contents]


def kind_of(part: Part) -> str:
    """The member that says what a part is."""
    kinds = [name for name in part if name not in ("thought", "thoughtSignature")]
    return "thought" if part.get("thought") else kinds[0]


# --- in


def answer(parts: Sequence[Part], finish: str | None = "STOP", **members: Any) -> Chunk:
    """The body of a plain answer, or one chunk of a stream."""
    candidate: dict[str, Any] = {"index": 0}
    if parts:
        candidate["content"] = {"role": "model", "parts": list(parts)}
    if finish:
        candidate["finishReason"] = finish
    return {
        "candidates": [candidate],
        "usageMetadata": USAGE,
        "modelVersion": "m-1",
        "responseId": "r-1",
        **members,
    }


def text(words: str, signature: str = "") -> Part:
    """A part of text."""
    return {"text": words, **({"thoughtSignature": signature} if signature else {})}


def thought(words: str, signature: str = "") -> Part:
    """A part of thinking."""
    return {
        "text": words,
        "thought": True,
        **({"thoughtSignature": signature} if signature else {}),
    }


def call(name: str, signature: str = "", *, id: str = "", **args: Any) -> Part:
    """A part that calls a function."""
    named = {"id": id} if id else {}
    part: Part = {"functionCall": {**named, "name": name, "args": args}}
    return {**part, **({"thoughtSignature": signature} if signature else {})}


def plainly(parts: Sequence[Part], finish: str | None = "STOP", **members: Any) -> Response:
    """The response of a plain answer with these parts."""
    return decode(compact(answer(parts, finish, **members)))


def decode(body: bytes, request: Request | None = None, **options: Any) -> Response:
    """The response in `body`."""
    arguments = {"headers": {}, "secret": "", **options}
    return decode_response(body, request=request or Request(()), **arguments)


def answered(parts: Sequence[Part]) -> AssistantMessage:
    """The message that an answer with these parts becomes."""
    return plainly(parts).message


def drive(
    pieces: Iterable[bytes],
    *,
    request: Request | None = None,
    lost: TransportError | None = None,
    headers: dict[str, str] | None = None,
    secret: str = "",
) -> Outcome:
    """Feed `pieces` to a fresh decoder and close it."""
    return outcome_of(GeminiStream(request or Request(()), headers or {}, secret), pieces, lost)


# --- streams


def compact(value: Any) -> bytes:
    """`value` as JSON without blanks."""
    return json.dumps(value, separators=(",", ":")).encode()


def sse(chunks: Iterable[Any]) -> bytes:
    """An event stream of JSON chunks, ended as Google does."""
    return b"".join(b"data: " + compact(chunk) + b"\r\n\r\n" for chunk in chunks)


def streamed(parts: Sequence[Part], size: int = 3, finish: str = "STOP") -> list[Chunk]:
    """All chunks of an answer whose texts come in pieces; a signature comes with the last one."""
    chunks = [answer([piece], None) for part in parts for piece in pieces_of(part, size)]
    return [*chunks, answer([{"text": ""}], finish)]


def pieces_of(part: Part, size: int) -> list[Part]:
    """A part as a stream has it: signed ones come whole."""
    words = part.get("text")
    if not words or set(part) - {"text", "thought"}:
        return [part]
    return [{**part, "text": words[at : at + size]} for at in range(0, len(words), size)]
