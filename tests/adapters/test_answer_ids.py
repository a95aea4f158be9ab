"""The id of an answer, which support asks for, never shows a key that a server put there."""

from __future__ import annotations

from typing import Any

import pytest

from tests.adapters import test_anthropic_http as anthropic
from tests.adapters import test_bedrock_http as bedrock
from tests.adapters import test_gemini_http as gemini
from tests.wire.server import answering, serving

TOLD = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("adapter", "streamed", "header", "key"),
    [
        (anthropic, anthropic.streamed, "x-request-id", anthropic.KEY),
        (bedrock, bedrock.streamed, "x-amzn-request-id", bedrock.SECRET),
        (gemini, gemini.events, "x-request-id", gemini.KEY),
    ],
    ids=["anthropic", "bedrock", "gemini"],
)
async def test_an_id_of_an_answer_does_not_show_the_key(
    adapter: Any, streamed: Any, header: str, key: str
) -> None:
    usual = getattr(adapter, "HEADERS", "").encode()
    quoting = TOLD + f"{header}: req-{key}\r\n".encode()
    answers = [
        made(adapter.HELLO).replace(usual, b"").replace(TOLD, quoting)
        for made in (adapter.plain, streamed)
    ]
    async with serving(answering(*answers)) as server:
        answer = await adapter.model_at(server.url).generate(adapter.ASK)
        _, told = await adapter.read(adapter.model_at(server.url))
    assert (answer.details.request_id, told.details.request_id) == ("req-[key]", "req-[key]")
