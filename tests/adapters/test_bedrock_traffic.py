"""Recorded traffic of Converse, through the decoders, the error mapper and back.

All recordings of it are committed; the file that they were taken from is used too where it lies
beside the repository, and may have grown.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby, pairwise
from typing import Any
from urllib.parse import unquote

import pytest

from golem.errors import APIError, ProtocolError, ProviderError, TransportError
from golem.messages import AssistantMessage, Message, Part, SystemMessage, ToolMessage, UserMessage
from golem.wire.eventstream import EventStreamDecoder
from golem_adapters._toolkit.walk import OPENING
from golem_adapters.bedrock.failures import http_error
from golem_adapters.bedrock.response import decode_count
from golem_adapters.bedrock.turns import BETWEEN
from tests.adapters.conversing import answered, body_of, decode, drive, encode
from tests.adapters.driving import bytewise, cut
from tests.adapters.encoding import check
from tests.recordings import Place, Row, body_in, recorded, sources

Block = dict[str, Any]


SOURCES = sources("bedrock_converse")


@cache
def rows(place: Place) -> list[Row]:
    return [
        row
        for row in recorded(place)
        if row["api"].startswith("bedrock.") and "invoke" not in row["api"]
    ]


def model_of(row: Row) -> str:
    return unquote(row["path"].split("/")[2])


def plain_rows(place: Place) -> Iterator[Row]:
    for row in rows(place):
        if row["api"] == "bedrock.converse" and row["status"] == 200:
            yield row


def streams(place: Place) -> Iterator[tuple[str, bytes]]:
    for row in rows(place):
        if row["kind"] == "b64":
            yield model_of(row), base64.b64decode(row["response"])


def said_in(content: Iterable[Block]) -> tuple[str, list[tuple[str, str, Any]]]:
    """Text and calls as a plain reading of the blocks gives them."""
    text, calls = "", []
    for block in content:
        text += block.get("text", "")
        call = block.get("toolUse", {})
        if call and call.get("type") != "server_tool_use":
            calls.append((call["toolUseId"], call["name"], call["input"]))
    return text, calls


def said_by(message: AssistantMessage) -> tuple[str, list[tuple[str, str, Any]]]:
    return message.content, [(call.id, call.name, call.arguments()) for call in message.tool_calls]


@pytest.mark.parametrize("place", SOURCES)
def test_every_plain_answer_decodes(place: Place) -> None:
    count = 0
    for row in plain_rows(place):
        answer = json.loads(body_in(row))
        response = decode(body_in(row), model=model_of(row))
        content = answer["output"]["message"]["content"]
        assert said_in(content) == said_by(response.message)
        usage = answer["usage"]
        assert usage["totalTokens"] == response.usage.total_tokens
        assert usage["outputTokens"] == response.usage.output_tokens
        assert (response.finish_reason == "tool_call") == (answer["stopReason"] == "tool_use")
        assert answer["stopReason"] == response.details.finish_reason
        if response.message.native is not None:
            kept = [json.loads(bytes(item)) for item in response.message.native.items]
            assert content == kept
        count += 1
    assert count >= 130


@pytest.mark.parametrize("place", SOURCES)
def test_every_answer_goes_back_as_it_came(place: Place) -> None:
    for row in plain_rows(place):
        content = json.loads(body_in(row))["output"]["message"]["content"]
        model = model_of(row)
        history = [UserMessage("q"), decode(body_in(row), model=model).message, UserMessage("n")]
        turns = body_of(history, model=model)["messages"]
        sent = [block for turn in turns if turn["role"] == "assistant" for block in turn["content"]]
        assert [*map(plain, filter(says, content))] == [b for b in sent if b != {"text": BETWEEN}]


def says(block: Block) -> bool:
    """Whether a block may go back: no model takes back reasoning that is not signed."""
    readable = block.get("reasoningContent", {}).get("reasoningText")
    return "signature" in readable if readable else bool(block.get("text", "x").strip())


def plain(block: Block) -> Block:
    """A block without the type that a model's own call needs not say."""
    call = block.get("toolUse", {})
    if call.get("type") == "tool_use":
        return {"toolUse": {name: value for name, value in call.items() if name != "type"}}
    return block


@pytest.mark.parametrize("place", SOURCES)
def test_every_stream_decodes_the_same_however_it_is_cut_and_as_a_plain_answer(
    place: Place,
) -> None:
    dice = random.Random(7)
    count = 0
    for model, data in streams(place):
        outcomes = [drive([data], model=model), drive(bytewise(data), model=model)]
        for _ in range(20):
            places = [dice.randrange(len(data)) for _ in range(dice.randrange(1, 40))]
            outcomes.append(drive(cut(data, places), model=model))
        assert all(outcome.told == outcome.said for outcome in outcomes)
        assert all(outcome.shape == outcomes[0].shape for outcome in outcomes)
        streamed, whole = outcomes[0].response, decode(as_plain(data), model=model)
        assert streamed is not None
        assert compared(whole.message) == compared(streamed.message)
        assert (whole.usage, whole.finish_reason, whole.details) == (
            streamed.usage,
            streamed.finish_reason,
            streamed.details,
        )
        count += 1
    assert count >= 11


def compared(message: AssistantMessage) -> Any:
    """All that a message says; argument text as its value, which is spelled anew when whole."""
    native = message.native
    return (
        said_by(message),
        message.thinking,
        [json.loads(bytes(item)) for item in native.items] if native else None,
    )


def as_plain(data: bytes) -> bytes:
    """What the service would have sent for the same answer without streaming."""
    blocks: dict[int, Block] = {}
    answer: Row = {}
    for frame in EventStreamDecoder().feed(data):
        event = json.loads(frame.payload)
        index = event.get("contentBlockIndex", 0)
        match frame.name:
            case "contentBlockStart":
                (kind, value), *_ = event["start"].items()
                empty = {"toolUse": {"input": ""}, "toolResult": {"content": []}}
                blocks[index] = {kind: {**value, **empty[kind]}}
            case "contentBlockDelta":
                grow(blocks.setdefault(index, {}), event["delta"])
            case "messageStop" | "metadata":
                answer.update(event)
            case _:
                pass
    content = [blocks[index] for index in sorted(blocks)]
    for block in content:
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"] or "{}")
    return json.dumps({"output": {"message": {"content": content}}, **answer}).encode()


def grow(block: Block, delta: Block) -> None:
    (kind, piece), *_ = delta.items()
    match kind:
        case "text":
            block["text"] = block.get("text", "") + piece
        case "toolUse":
            block["toolUse"]["input"] += piece["input"]
        case "toolResult":
            block["toolResult"]["content"] += piece
        case "reasoningContent" if "redactedContent" in piece:
            block["reasoningContent"] = piece
        case _:
            readable = block.setdefault("reasoningContent", {}).setdefault("reasoningText", {})
            for name, text in piece.items():
                readable[name] = readable.get(name, "") + text


@pytest.mark.parametrize("place", SOURCES)
def test_every_stream_that_is_cut_keeps_what_had_come(place: Place) -> None:
    dice = random.Random(11)
    for model, data in streams(place):
        whole = drive([data], model=model).message
        for _ in range(20):
            end = dice.randrange(data.rfind(b"messageStop"))
            outcome = drive([data[:end]], model=model)
            assert isinstance(outcome.error, TransportError)
            assert outcome.error.retryable
            assert outcome.told == outcome.said
            assert outcome.message.native is None
            assert whole.content.startswith(outcome.message.content)


@pytest.mark.parametrize("place", SOURCES)
def test_one_wrong_byte_anywhere_is_an_error_with_what_had_come(place: Place) -> None:
    dice = random.Random(13)
    for model, data in streams(place):
        whole = drive([data], model=model).message
        for _ in range(30):
            damaged = bytearray(data)
            damaged[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
            outcome = drive([bytes(damaged)], model=model)
            assert isinstance(outcome.error, ProtocolError)
            assert outcome.told == outcome.said
            assert whole.content.startswith(outcome.message.content)
            assert outcome.shape == drive(bytewise(bytes(damaged)), model=model).shape


@pytest.mark.parametrize("place", SOURCES)
def test_every_error_body_says_what_is_wrong(place: Place) -> None:
    count = 0
    for row in rows(place):
        if row["status"] < 400:
            continue
        headers = {**row["headers"], "x-amzn-errortype": "ValidationException:http://x/"}
        data = body_in(row)
        error: ProviderError = http_error(row["status"], headers, data, now=0.0, secrets=())
        assert isinstance(error, APIError)
        assert (row["status"], json.loads(data)["message"]) == (error.status, error.message)
        assert (error.code, error.retryable) == ("ValidationException", False)
        count += 1
    assert count >= 7


@pytest.mark.parametrize("place", SOURCES)
def test_every_count_is_read(place: Place) -> None:
    counts = [r for r in rows(place) if r["api"] == "bedrock.count-tokens" and r["status"] == 200]
    for row in counts:
        data = body_in(row)
        assert json.loads(data)["inputTokens"] == decode_count(data, headers={}, secrets=())
    assert len(counts) >= 3


# --- recorded requests: what others sent, as golem messages and back


class OtherwiseError(Exception):
    """A recorded request holds what golem has no place for, or what the service refused."""


def stored(model: str, request: Row) -> list[Message]:
    """A recorded request's history as golem would have it."""
    history: list[Message] = [
        SystemMessage(block["text"]) for block in request.get("system") or [] if "text" in block
    ]
    for message in request["messages"]:
        content = [block for block in message["content"] if "cachePoint" not in block]
        if message["role"] == "assistant":
            if content != [{"text": BETWEEN}]:
                history.append(answered(content, model))
        else:
            history += given(content)
    return history


def given(content: list[Block]) -> Iterator[Message]:
    for kind, blocks in groupby(content, lambda block: "toolResult" in block):
        if kind:
            yield from (result(block["toolResult"]) for block in blocks)
        else:
            text, parts = content_of(list(blocks))
            yield UserMessage(text, parts=parts)


def result(body: Block) -> Message:
    text, parts = content_of(body["content"])
    failed = body.get("status") == "error"
    return ToolMessage(text, parts=parts, tool_call_id=body["toolUseId"], failed=failed)


def content_of(blocks: list[Block]) -> tuple[str, tuple[Part, ...]]:
    """Text and media; golem has the text first."""
    text, parts = "", []
    for block in blocks:
        (kind, value), *_ = block.items()
        if kind == "text" and not parts:
            text += value
        elif kind in ("image", "document", "video"):
            parts.append(medium(kind, value))
        else:
            raise OtherwiseError(kind)
    return text, tuple(parts)


def medium(kind: str, body: Block) -> Part:
    """A part; of a document the format's name is the end of a media type too."""
    spelled = body["format"] if "/" in body["format"] else f"{kind}/{body['format']}"
    if uri := body["source"].get("s3Location", {}).get("uri"):
        return Part(kind, url=uri, media_type=spelled)
    return Part(kind, data=base64.b64decode(body["source"]["bytes"]), media_type=spelled)


def normal(messages: Iterable[Row]) -> list[Any]:
    """The listed normal forms of docs/providers/bedrock.md, taken away on both sides."""
    turns: list[tuple[str, list[Block]]] = []
    for message in messages:
        role = message["role"]
        content = [block for block in message["content"] if "cachePoint" not in block]
        if role == "assistant":
            content = [plain(block) for block in content if says(block)]
            if content == [{"text": BETWEEN}]:
                continue
        if turns and turns[-1][0] == role:
            content = turns.pop()[1] + content
        turns.append((role, content))
    found: list[Any] = []
    for role, content in turns:
        if role == "assistant":
            found.append((role, content))
        else:
            found += [(role, normal_given(m)) for m in given(content)]
    return found[1:] if found[0] == ("user", (OPENING, False, [])) else found


def normal_given(message: Message) -> Any:
    failed = message.failed if isinstance(message, ToolMessage) else False
    parts = getattr(message, "parts", ())
    return (
        message.content,
        failed,
        [(p.kind, p.url, p.data, p.media_type.rpartition("/")[2]) for p in parts],
    )


def requests(place: Place) -> Iterator[tuple[Row, list[Message]]]:
    for row in rows(place):
        request = row["request"]
        if row["status"] != 200 or not isinstance(request, dict) or "messages" not in request:
            continue
        try:
            yield row, stored(model_of(row), request)
        except OtherwiseError:
            continue


@pytest.mark.parametrize("place", SOURCES)
def test_recorded_requests_are_written_as_others_wrote_them(place: Place) -> None:
    count = 0
    for row, history in requests(place):
        model, request = model_of(row), row["request"]
        body = body_of(history, model=model)
        assert normal(request["messages"]) == normal(body["messages"]), row["file"]
        system = [block["text"] for block in request.get("system") or [] if "text" in block]
        assert system == [block["text"] for block in body.get("system", ())]
        # The rules know nothing of the service's own tools, whose results are the assistant's.
        assert check("bedrock", body) == check("bedrock", request) or not check("bedrock", body)
        count += 1
    assert count >= 130


@pytest.mark.parametrize("place", SOURCES)
def test_requests_that_grow_stay_append_only(place: Place) -> None:
    count = 0
    by_file: dict[str, list[tuple[str, list[Message]]]] = {}
    for row, history in requests(place):
        by_file.setdefault(row["file"], []).append((model_of(row), history))
    for recordings in by_file.values():
        for (model, shorter), (_, longer) in pairwise(recordings):
            if len(shorter) >= len(longer) or longer[: len(shorter)] != shorter:
                continue
            # A history with calls has to have tools, which stand in front of it.
            short, long = (
                json.dumps(body_of(h, model=model)["messages"]) for h in (shorter, longer)
            )
            assert long.startswith(short.removesuffix("]}]"))
            assert encode(longer, model=model).endswith(b"]}")
            count += 1
    assert count >= 10
