"""Media of every kind, type and address: sent as the server takes it, or refused by name."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

import pytest

from golem import (
    AssistantMessage,
    Message,
    Part,
    ToolCall,
    ToolMessage,
    UnsupportedContentError,
    UserMessage,
)
from golem.testing.judge import judge_anthropic, judge_bedrock, judge_gemini
from tests.adapters import conversing, generating, messaging
from tests.adapters.conversing import MODELS
from tests.judge.judging import SERVERS
from tests.judge.test_gemini_no_refusals import SERVERS as GEMINI

KINDS = ("image", "document", "audio", "video")
TYPES = (
    *("image/png", "image/jpg", "image/PNG", "image/tiff", "image/png; x=y", "image/"),
    *("text/plain", "text/html", "application/pdf", "application/json", "application/x-odd"),
    *("audio/wav", "audio/mpeg", "audio/L16;rate=24000", "video/mp4", "video/x-odd"),
    *("odd", "/", "*/*", "é/x", ""),
)
URLS = (
    *("https://e.example/a", "https://e.example/a.pdf", "http://e.example/a.mp4", "https://"),
    *("gs://bucket/a.png", "s3://bucket/a.pdf", "s3://[bad", "s3://", "http://[::1"),
    *("file:///etc/passwd", "ftp://e.example/a", "javascript:x", "//e.example/a", "a.png", ":"),
    *("data:", "data:,", "data:image/png;base64,@", "data:image/png;base64,eA==", "data:,x"),
    *("data:application/pdf;base64,eA==", "data:audio/wav;base64,eA==", "data:odd;base64,eA=="),
)


def parts() -> Iterator[Part]:
    for kind, media_type in itertools.product(KINDS, TYPES):
        if media_type:
            yield Part(kind, data=b"x", media_type=media_type)
    for kind, url in itertools.product(KINDS, URLS):
        yield Part(kind, url=url)
        yield Part(kind, url=url, media_type="image/png")


def anthropic(messages: list[Message]) -> list[Any]:
    return judge_anthropic(json.loads(messaging.encode(messages)))


def bedrock(messages: list[Message], model: str) -> list[Any]:
    body = json.loads(conversing.encode(messages, model=model))
    return judge_bedrock(body, model=quote(model, safe=""))


def gemini(messages: list[Message], dialect: str, model: str) -> list[Any]:
    body = json.loads(generating.encode(messages, model=model, dialect=dialect))
    return judge_gemini(body, model=model, dialect=dialect)


EVERY: dict[str, Callable[[list[Message]], list[Any]]] = {
    **SERVERS,
    "anthropic": anthropic,
    **{f"bedrock-{model}": partial(bedrock, model=model) for model in MODELS},
    **{
        f"gemini-{name}": partial(gemini, dialect=dialect, model=model)
        for name, (dialect, model) in GEMINI.items()
    },
}


def places(part: Part) -> list[list[Message]]:
    """A part beside a prompt, in a tool's result, and made by a model."""
    call = ToolCall.of("call_1", "look", "{}")
    asked: list[Message] = [UserMessage("look"), AssistantMessage(tool_calls=(call,))]
    return [
        [UserMessage("see", parts=(part,))],
        [*asked, ToolMessage("seen", tool_call_id="call_1", tool_name="look", parts=(part,))],
        [UserMessage("draw"), AssistantMessage("so", parts=(part,)), UserMessage("and?")],
    ]


@pytest.mark.parametrize("server", EVERY)
def test_whatever_is_sent_is_taken(server: str) -> None:
    taken = 0
    for part in parts():
        for history in places(part):
            try:
                found = EVERY[server](history)
            except UnsupportedContentError:
                continue
            assert found == [], part
            taken += 1
    assert taken
