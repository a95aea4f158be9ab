"""Recorded traffic of the Messages API, through the decoders, the error mapper and back.

A selection of the recordings is committed; the whole set is used where it lies beside the
repository.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import groupby, pairwise
from typing import Any

import pytest

from golem.errors import APIError, ProviderError
from golem.messages import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from golem_adapters._toolkit.walk import OPENING
from golem_adapters.anthropic.failures import http_error
from golem_adapters.anthropic.response import decode_count
from tests.adapters.driving import bytewise, cut
from tests.adapters.encoding import check
from tests.adapters.messaging import answered, body_of, decode, drive, encode
from tests.recordings import Place, Row, body_in, recorded, sources

Block = dict[str, Any]


SOURCES = sources("anthropic_messages")


@cache
def rows(place: Place, api: str = "anthropic.messages") -> list[Row]:
    return [row for row in recorded(place) if row["api"] == api]


def streams(place: Place) -> Iterator[bytes]:
    return (body_in(row) for row in rows(place) if row["status"] == 200 and row["stream"])


def said_in(content: Iterable[Block]) -> tuple[str, list[tuple[str, str, Any]]]:
    """Text and calls as a plain reading of the blocks gives them."""
    text, calls = "", []
    for block in content:
        if block["type"] == "text":
            text += block["text"]
        if block["type"] == "tool_use":
            calls.append((block["id"], block["name"], block["input"]))
    return text, calls


def said_by(message: AssistantMessage) -> tuple[str, list[tuple[str, str, Any]]]:
    return message.content, [(call.id, call.name, call.arguments()) for call in message.tool_calls]


@pytest.mark.parametrize("place", SOURCES)
def test_every_plain_answer_decodes(place: Place) -> None:
    count = 0
    for row in rows(place):
        if row["status"] != 200 or row["stream"]:
            continue
        answer, response = json.loads(body_in(row)), decode(body_in(row))
        assert said_in(answer["content"]) == said_by(response.message)
        usage = answer["usage"]
        prompt = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
        assert sum(usage.get(name) or 0 for name in prompt) == response.usage.input_tokens
        assert usage["output_tokens"] == response.usage.output_tokens
        assert (response.finish_reason == "tool_call") == (answer["stop_reason"] == "tool_use")
        if response.message.native is not None:
            kept = [json.loads(bytes(item)) for item in response.message.native.items]
            assert answer["content"] == kept
        count += 1
    assert count >= 80


@pytest.mark.parametrize("place", SOURCES)
def test_every_answer_goes_back_as_it_came(place: Place) -> None:
    for row in rows(place):
        if row["status"] != 200 or row["stream"]:
            continue
        content = json.loads(body_in(row))["content"]
        history = [UserMessage("q"), decode(body_in(row)).message, UserMessage("n")]
        sent = body_of(history)["messages"][1]["content"]
        assert list(map(plain, filter(says, content))) == list(map(plain, sent))


def says(block: Block) -> bool:
    """Whether a block may go back: the API sends blank texts and refuses them."""
    return bool(block.get("text", "x").strip())


def plain(block: Block) -> Block:
    """A block without nulls, and without the mark that the model made a call itself."""
    idle = (None, {"type": "direct"})
    return {name: value for name, value in block.items() if value not in idle}


@pytest.mark.parametrize("place", SOURCES)
def test_every_stream_decodes_the_same_however_it_is_cut_and_as_a_plain_answer(
    place: Place,
) -> None:
    dice = random.Random(7)
    count = 0
    for data in streams(place):
        places = [dice.randrange(len(data)) for _ in range(dice.randrange(1, 40))]
        outcomes = [
            drive([data]),
            drive(cut(data, places)),
            *([drive(bytewise(data))] if len(data) < 20_000 else []),
        ]
        assert all(outcome.told == outcome.said for outcome in outcomes)
        assert all(outcome.shape == outcomes[0].shape for outcome in outcomes)
        streamed, whole = outcomes[0].response, decode(as_plain(data))
        assert streamed is not None
        assert compared(whole.message) == compared(streamed.message)
        assert (whole.usage, whole.finish_reason, whole.details) == (
            streamed.usage,
            streamed.finish_reason,
            streamed.details,
        )
        count += 1
    assert count >= 30


def compared(message: AssistantMessage) -> Any:
    """All that a message says; argument text as its value, which is spelled anew when whole."""
    native = message.native
    return (
        said_by(message),
        message.thinking,
        [json.loads(bytes(item)) for item in native.items] if native else None,
    )


def as_plain(data: bytes) -> bytes:
    """What the server would have sent for the same answer without streaming."""
    message: dict[str, Any] = {}
    inputs: dict[int, str] = {}
    for line in data.decode().splitlines():
        event = json.loads(line[6:]) if line.startswith("data: {") else {"type": ""}
        index, delta = event.get("index", 0), event.get("delta", {})
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                message["content"].append(event["content_block"])
            case "content_block_delta":
                for name in ("text", "thinking"):
                    if name in delta:
                        message["content"][index][name] += delta[name]
                if "signature" in delta:
                    message["content"][index]["signature"] = delta["signature"]
                inputs[index] = inputs.get(index, "") + delta.get("partial_json", "")
            case "message_delta":
                message.update(delta)
                message["usage"].update(event["usage"])
            case _:
                pass
    for index, text in inputs.items():
        if text:
            message["content"][index]["input"] = json.loads(text)
    return json.dumps(message).encode()


@pytest.mark.parametrize("place", SOURCES)
def test_every_stream_that_is_cut_keeps_what_had_come(place: Place) -> None:
    dice = random.Random(11)
    for data in streams(place):
        end = dice.randrange(data.rfind(b"event: message_stop"))
        outcome = drive([data[:end]])
        assert isinstance(outcome.error, ProviderError)
        assert outcome.error.retryable
        assert outcome.told == outcome.said
        assert outcome.message.native is None
        assert drive([data]).message.content.startswith(outcome.message.content)


@pytest.mark.parametrize("place", SOURCES)
def test_every_error_body_says_what_is_wrong(place: Place) -> None:
    failed = [
        row for api in ("messages", "count_tokens") for row in rows(place, f"anthropic.{api}")
    ]
    count = 0
    for row in failed:
        if row["status"] < 400:
            continue
        data = body_in(row)
        error = http_error(row["status"], row["headers"], data, now=0.0, secret="")
        said = json.loads(data)
        assert isinstance(error, APIError)
        assert (row["status"], said["error"]["message"]) == (error.status, error.message)
        assert said["error"]["type"] == error.code
        assert not error.retryable
        assert said["request_id"] == error.request_id
        count += 1
    assert count >= 4


@pytest.mark.parametrize("place", SOURCES)
def test_every_count_is_read(place: Place) -> None:
    counts = [row for row in rows(place, "anthropic.count_tokens") if row["status"] == 200]
    for row in counts:
        data = body_in(row)
        assert json.loads(data)["input_tokens"] == decode_count(data, headers={}, secret="")
    assert len(counts) >= 4


# --- recorded requests: what others sent, as golem messages and back


class OtherwiseError(Exception):
    """A recorded request holds what golem has no place for outside of a model's own turn."""


def stored(request: Row) -> list[Message]:
    """A recorded request's history as golem would have it."""
    history: list[Message] = [
        SystemMessage(block["text"]) for block in blocks_of(request.get("system") or [])
    ]
    for message in request["messages"]:
        content = [bare(block) for block in blocks_of(message["content"])]
        if message["role"] == "assistant":
            history.append(answered(content))
        elif message["role"] == "user":
            history += given(content)
        else:
            raise OtherwiseError(message["role"])
    return history


def blocks_of(content: Any) -> list[Block]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def bare(block: Block) -> Block:
    """A block without the marks of caches, which golem gives the request."""
    return {name: value for name, value in block.items() if name != "cache_control"}


def given(content: list[Block]) -> Iterator[Message]:
    for kind, blocks in groupby(content, lambda block: block["type"] == "tool_result"):
        if kind:
            yield from map(result, blocks)
        else:
            text, parts = content_of(list(blocks))
            yield UserMessage(text, parts=parts)


def result(block: Block) -> Message:
    text, parts = content_of(blocks_of(block.get("content") or []))
    failed = bool(block.get("is_error"))
    return ToolMessage(text, parts=parts, tool_call_id=block["tool_use_id"], failed=failed)


def content_of(blocks: list[Block]) -> tuple[str, tuple[Part, ...]]:
    """Text and media; golem has the text first."""
    text, parts = "", []
    for block in blocks:
        if block["type"] == "text" and not parts:
            text += block["text"]
        elif block["type"] in ("image", "document") and set(block) <= {"type", "source"}:
            parts.append(medium(block["type"], block["source"]))
        else:
            raise OtherwiseError(block["type"])
    return text, tuple(parts)


def medium(kind: str, source: Block) -> Part:
    match source["type"]:
        case "url":
            return Part(kind, url=source["url"])
        case "base64":
            return Part(
                kind, data=base64.b64decode(source["data"]), media_type=source["media_type"]
            )
        case "text":
            return Part(kind, data=source["data"].encode(), media_type=source["media_type"])
        case other:
            raise OtherwiseError(other)


def normal(messages: Iterable[Row]) -> list[Any]:
    """The listed normal forms of docs/providers/anthropic.md, taken away on both sides."""
    found: list[Any] = []
    for message in messages:
        content = [bare(block) for block in blocks_of(message["content"])]
        if message["role"] == "assistant":
            told = [plain(block) for block in content if says(block)]
            content = [block for at, block in enumerate(told) if not thought_at_the_end(told[at:])]
            found.append(("assistant", content))
        else:
            found.append(("user", [normal_given(m) for m in given(content)]))
    return found[1:] if found[0] == ("user", [(OPENING, False, [])]) else found


def thought_at_the_end(blocks: list[Block]) -> bool:
    return all(block["type"] in ("thinking", "redacted_thinking") for block in blocks)


def normal_given(message: Message) -> Any:
    failed = message.failed if isinstance(message, ToolMessage) else False
    parts = getattr(message, "parts", ())
    return message.content, failed, [(part.kind, part.url, part.data) for part in parts]


def requests(place: Place) -> Iterator[tuple[Row, list[Message]]]:
    for row in rows(place):
        if row["status"] != 200:
            continue
        try:
            yield row, stored(row["request"])
        except OtherwiseError:
            continue


@pytest.mark.parametrize("place", SOURCES)
def test_recorded_requests_are_written_as_others_wrote_them(place: Place) -> None:
    count = 0
    for row, history in requests(place):
        request = row["request"]
        mode = request.get("thinking")
        body = body_of(history, thinking=mode)
        recorded = request["messages"]
        assert normal(recorded) == normal(body["messages"]), row["file"]
        system = [block["text"] for block in blocks_of(request.get("system") or [])]
        assert system == [block["text"] for block in body.get("system", ())]
        assert mode == body.get("thinking")
        assert not check("anthropic", body)
        count += 1
    assert count >= 150


@pytest.mark.parametrize("place", SOURCES)
def test_requests_that_grow_stay_append_only(place: Place) -> None:
    count = 0
    by_file: dict[str, list[list[Message]]] = {}
    for row, history in requests(place):
        by_file.setdefault(row["file"], []).append(history)
    for recordings in by_file.values():
        for shorter, longer in pairwise(recordings):
            if len(shorter) >= len(longer) or longer[: len(shorter)] != shorter:
                continue
            short, long = encode(shorter), encode(longer)
            assert long.startswith(short.removesuffix(b"]}]}"))
            count += 1
    assert count >= 10
