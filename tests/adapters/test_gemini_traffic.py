"""Recorded traffic of Gemini, through the decoders, the error mapper and back.

A selection of the recordings is committed; the whole set is used where it lies beside the
repository.
"""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pytest

from golem.errors import APIError, ProviderError
from golem.messages import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem_adapters._toolkit.walk import SAID_NOTHING
from golem_adapters.gemini.conversation import UNSIGNED
from golem_adapters.gemini.failures import http_error
from golem_adapters.gemini.response import decode_count
from tests.adapters.driving import bytewise, cut
from tests.adapters.encoding import check
from tests.adapters.generating import answered, body_of, decode, drive, encode
from tests.recordings import Place, Row, body_in, recorded, sources

SOURCES = sources("gemini")


@cache
def rows(place: Place) -> list[Row]:
    return [row for row in recorded(place) if row["api"].startswith("gemini.")]


def generated(place: Place, *, stream: bool) -> Iterator[Row]:
    for row in rows(place):
        api = "gemini.streamGenerateContent" if stream else "gemini.generateContent"
        if row["status"] == 200 and row["api"] == api:
            yield row


def streams(place: Place) -> Iterator[bytes]:
    return map(body_in, generated(place, stream=True))


def said_in(parts: Iterable[Row]) -> tuple[str, str, list[tuple[str, Any]]]:
    """Text, thinking and calls as a plain reading of the parts gives them."""
    text, thinking, calls = "", "", []
    for part in parts:
        if "functionCall" in part:
            calls.append((part["functionCall"]["name"], part["functionCall"]["args"]))
        elif part.get("thought"):
            thinking += part["text"]
        else:
            text += part.get("text", "")
    return text, thinking, calls


def said_by(message: AssistantMessage) -> tuple[str, str, list[tuple[str, Any]]]:
    thinking = "".join(block.text for block in message.thinking)
    calls = [(call.name, call.arguments()) for call in message.tool_calls]
    return message.content, thinking, calls


def parts_in(answer: Row) -> list[Row]:
    parts: list[Row] = answer["candidates"][0]["content"].get("parts", [])
    return parts


@pytest.mark.parametrize("place", SOURCES)
def test_every_plain_answer_decodes(place: Place) -> None:
    count = 0
    for row in generated(place, stream=False):
        answer, response = json.loads(body_in(row)), decode(body_in(row))
        assert said_in(parts_in(answer)) == said_by(response.message)
        assert answer["usageMetadata"]["totalTokenCount"] == response.usage.total_tokens
        assert answer["candidates"][0].get("finishReason", "") == response.details.finish_reason
        assert (response.finish_reason == "tool_call") == bool(response.message.tool_calls)
        assert answer["modelVersion"] == response.details.model
        count += 1
    assert count >= 60


@pytest.mark.parametrize("place", SOURCES)
def test_every_answer_goes_back_as_it_came(place: Place) -> None:
    for row in [*generated(place, stream=False), *generated(place, stream=True)]:
        parts = parts_in(json.loads(as_plain(body_in(row)) if row["stream"] else body_in(row)))
        model = "gemini-2.5" if "gemini-2" in row["path"] else "gemini-3"
        message = decode(body_in(row)).message if not row["stream"] else streamed(body_in(row))
        sent = body_of([UserMessage("q"), message, UserMessage("n")], model=model)["contents"]
        assert list(map(unnamed, merged(parts))) == list(map(unnamed, said(sent)))


def said(contents: list[Row]) -> list[Row]:
    """What the model says, as its parts."""
    return [part for content in contents if content["role"] == "model" for part in content["parts"]]


def streamed(data: bytes) -> AssistantMessage:
    response = drive([data]).response
    assert response is not None
    return response.message


def merged(parts: Iterable[Row]) -> list[Row]:
    """Parts without empty texts, and with neighboring texts as one, as golem stores them."""
    found: list[Row] = []
    for part in parts:
        bare = set(part) <= {"text", "thought"}
        if bare and not part["text"]:
            continue
        last = found[-1] if found else {}
        if bare and set(last) == set(part):
            found[-1] = {**last, "text": last["text"] + part["text"]}
        else:
            found.append(part)
    return found


def unnamed(part: Row) -> Row:
    """A part without the id of a call, which golem makes where the model gave none."""
    if "functionCall" not in part:
        return part
    call = {name: value for name, value in part["functionCall"].items() if name != "id"}
    return {**part, "functionCall": call}


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
        response, whole = outcomes[0].response, decode(as_plain(data))
        assert response is not None
        calls = (whole.message.tool_calls, response.message.tool_calls)
        assert [(c.id, c.signature) for c in calls[0]] == [(c.id, c.signature) for c in calls[1]]
        assert said_by(whole.message) == said_by(response.message)
        assert natives(whole.message) == natives(response.message)
        assert (whole.usage, whole.finish_reason, whole.details) == (
            response.usage,
            response.finish_reason,
            response.details,
        )
        count += 1
    assert count >= 20


def natives(message: AssistantMessage) -> list[Any] | None:
    native = message.native
    return [json.loads(bytes(item)) for item in native.items] if native else None


def as_plain(data: bytes) -> bytes:
    """What the server would have sent for the same answer without streaming."""
    whole: Row = {}
    parts: list[Row] = []
    counts: Row = {}
    for line in data.decode().splitlines():
        if not line.startswith("data: "):
            continue
        whole = json.loads(line[6:])
        parts += whole["candidates"][0].get("content", {}).get("parts", [])
        counts.update(whole["usageMetadata"])
    whole["candidates"][0]["content"] = {"parts": parts, "role": "model"}
    return json.dumps({**whole, "usageMetadata": counts}).encode()


@pytest.mark.parametrize("place", SOURCES)
def test_every_stream_that_is_cut_keeps_what_had_come(place: Place) -> None:
    dice = random.Random(11)
    for data in streams(place):
        end = dice.randrange(data.rfind(b'"finishReason"'))
        outcome = drive([data[:end]])
        assert isinstance(outcome.error, ProviderError)
        assert outcome.error.retryable
        assert outcome.told == outcome.said
        assert outcome.message.native is None
        assert drive([data]).message.content.startswith(outcome.message.content)


@pytest.mark.parametrize("place", SOURCES)
def test_every_error_body_says_what_is_wrong(place: Place) -> None:
    count = 0
    for row in rows(place):
        if row["status"] < 400:
            continue
        data = body_in(row)
        error = http_error(row["status"], row["headers"], data, now=0.0, secret="")
        told = json.loads(data)["error"]
        assert isinstance(error, APIError)
        assert (row["status"], told["message"]) == (error.status, error.message)
        assert told["status"] == error.code
        assert not error.retryable
        count += 1
    assert count >= 4


@pytest.mark.parametrize("place", SOURCES)
def test_every_count_is_read(place: Place) -> None:
    counts = [r for r in rows(place) if r["api"] == "gemini.countTokens" and r["status"] == 200]
    for row in counts:
        data = body_in(row)
        assert json.loads(data)["totalTokens"] == decode_count(data, headers={}, secret="")
    assert len(counts) >= 2


# --- recorded requests: what others sent, as golem messages and back


class OtherwiseError(Exception):
    """A recorded request holds what golem has no place for outside of a model's own turn."""


def camel(value: Any, name: str = "") -> Any:
    """A request in camel case and standard base64: the API takes the proto's own spelling too."""
    if name in ("args", "response"):
        return value
    if isinstance(value, dict):
        return {spelled(name): camel(member, name) for name, member in value.items()}
    if isinstance(value, list):
        return list(map(camel, value))
    return value.replace("-", "+").replace("_", "/") if name == "data" else value


def spelled(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.title, rest))


def stored(request: Row) -> list[Message]:
    """A recorded request's history as golem would have it."""
    system = request.get("systemInstruction") or {"parts": []}
    history: list[Message] = [SystemMessage(part["text"]) for part in system["parts"]]
    open_calls: list[ToolCall] = []
    for content in request["contents"]:
        parts = parts_of(content)
        if content["role"] == "model":
            message = answered(parts)
            history.append(message)
            open_calls = list(message.tool_calls)
            continue
        for part in parts:
            if "functionResponse" in part:
                history.append(result(part["functionResponse"], open_calls))
        others = [part for part in parts if "functionResponse" not in part]
        if others:
            history.append(prompt(others))
    return history


def parts_of(content: Row) -> list[Row]:
    """The parts of a content; an SDK sends a single one bare."""
    parts = content["parts"]
    return parts if isinstance(parts, list) else [parts]


def result(response: Row, open_calls: list[ToolCall]) -> Message:
    """A result, which golem knows by the id that it gave the call."""
    at = next((i for i, c in enumerate(open_calls) if c.id == response.get("id")), 0)
    call = open_calls.pop(at)
    body = response["response"]
    if set(body) - {"output", "error"} or any(not isinstance(v, str) for v in body.values()):
        raise OtherwiseError(f"a result with {list(body)}")
    (words,) = body.values() or [""]
    media = tuple(map(medium, response.get("parts", ())))
    failed = "error" in body
    return ToolMessage(words, parts=media, tool_call_id=call.id, tool_name=call.name, failed=failed)


def prompt(parts: list[Row]) -> Message:
    """Text and media; golem has the text first."""
    words, media = "", []
    for part in parts:
        if "text" in part and not media:
            words += part["text"]
        else:
            media.append(medium(part))
    return UserMessage(words, parts=tuple(media))


def medium(part: Row) -> Part:
    if set(part) == {"inlineData"}:
        data = part["inlineData"]["data"]
        mime = part["inlineData"]["mimeType"]
        return Part(kind(mime), data=base64.b64decode(data), media_type=mime)
    if set(part) == {"fileData"}:
        mime = part["fileData"]["mimeType"]
        return Part(kind(mime), url=part["fileData"]["fileUri"], media_type=mime)
    raise OtherwiseError(f"a part with {sorted(part)}")


def kind(mime: str) -> str:
    head = mime.partition("/")[0]
    return head if head in ("image", "audio", "video") else "document"


def requests(place: Place) -> Iterator[tuple[Row, Row, list[Message]]]:
    for row in rows(place):
        if row["status"] != 200 or "countTokens" in row["api"]:
            continue
        try:
            given = {name: row["request"].get(name) for name in ("systemInstruction", "contents")}
            request = camel(given)
            yield row, request, stored(request)
        except OtherwiseError:
            continue


def normal(contents: Iterable[Row]) -> list[Any]:
    """The listed normal forms of docs/providers/gemini.md, taken away on both sides."""
    found: list[tuple[str, list[Row]]] = []
    for content in contents:
        parts = [normal_part(part) for part in merged(parts_of(content))]
        if not parts and content["role"] == "model":
            continue
        parts = parts or [{"text": SAID_NOTHING}]
        if found and found[-1][0] == content["role"]:
            found[-1] = (content["role"], merged(found[-1][1] + parts))
        else:
            found.append((content["role"], parts))
    return found


def normal_part(part: Row) -> Row:
    part = dict(unnamed(part))
    if part.get("thoughtSignature") == UNSIGNED:
        del part["thoughtSignature"]
    if "functionResponse" in part:
        response = {k: v for k, v in part["functionResponse"].items() if k != "id"}
        response["response"] = response["response"] or {"output": ""}
        part["functionResponse"] = response
    return part


@pytest.mark.parametrize("place", SOURCES)
def test_recorded_requests_are_written_as_others_wrote_them(place: Place) -> None:
    count = 0
    for row, request, history in requests(place):
        model = "gemini-2.5" if "gemini-2" in row["path"] else "gemini-3"
        body = body_of(history, model=model)
        assert normal(request["contents"]) == normal(body["contents"]), row["file"]
        system = (request.get("systemInstruction") or {"parts": []})["parts"]
        assert system == body.get("systemInstruction", {"parts": []})["parts"]
        assert not check("gemini", body)
        count += 1
    assert count >= 80


@pytest.mark.parametrize("place", SOURCES)
def test_requests_that_grow_stay_append_only(place: Place) -> None:
    count = 0
    by_file: dict[str, list[list[Message]]] = {}
    for row, _, history in requests(place):
        by_file.setdefault(row["file"], []).append(history)
    for recordings in by_file.values():
        for shorter, longer in pairwise(recordings):
            if len(shorter) >= len(longer) or longer[: len(shorter)] != shorter:
                continue
            assert encode(longer).startswith(encode(shorter).removesuffix(b"]}]}"))
            count += 1
    assert count >= 10
