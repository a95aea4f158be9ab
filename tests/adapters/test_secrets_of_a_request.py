"""Each request may have its own token: an error quotes none, also not one that is not the last.

The server tells the first request's error when the second has been sent, and quotes all it got.
"""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import anyio
import pytest

from golem import UserMessage
from golem.errors import ProviderError
from golem.model import Request
from golem_adapters import Anthropic, Bedrock, Gemini
from golem_adapters.bedrock.sigv4 import AWSCredentials
from tests.wire.server import Connection, response, serving

TOKENS = ("token-of-the-first/+=", "token-of-the-second/+=")
ASK = Request([UserMessage("hi")])


def bedrock(url: str, tokens: Iterator[str]) -> Any:
    return Bedrock(
        "anthropic.claude-3",
        region="us-east-1",
        base_url=url,
        credentials=lambda: AWSCredentials("AKID", "secret-key", next(tokens)),
    )


MODELS: dict[str, Callable[[str, Iterator[str]], Any]] = {
    "anthropic": lambda url, tokens: Anthropic("m", base_url=url, token=lambda: next(tokens)),
    "gemini": lambda url, tokens: Gemini("m", base_url=url, token=lambda: next(tokens)),
    "bedrock": bedrock,
    "bedrock-token": lambda url, tokens: Bedrock(
        "m", base_url=url, region="us-east-1", token=lambda: next(tokens)
    ),
}


def refusing(quoted: str) -> bytes:
    said = {"message": quoted, "error": {"message": quoted, "type": quoted}}
    return response(json.dumps(said).encode(), status="403 Forbidden")


def broken(quoted: str) -> bytes:
    """A success whose body is none."""
    return response(f"not JSON: {quoted}".encode())


def failing(quoted: str) -> bytes:
    """A stream that ends with an error."""
    said = json.dumps({"type": "error", "error": {"message": quoted, "type": quoted}})
    return response(f"event: error\ndata: {said}\n\n".encode(), kind="text/event-stream")


async def read(model: Any) -> None:
    async with aclosing(model.stream(ASK)) as items:
        async for _ in items:
            pass


@pytest.mark.parametrize(
    ("answer", "streamed"),
    [(refusing, False), (refusing, True), (broken, False), (failing, True)],
    ids=["refused", "refused stream", "no JSON", "error in a stream"],
)
@pytest.mark.parametrize("name", MODELS)
async def test_no_error_quotes_a_token(name: str, answer: Any, streamed: bool) -> None:
    first, second = anyio.Event(), anyio.Event()

    async def script(connection: Connection) -> None:
        head, _, _ = (await connection.request()).partition(b"\r\n\r\n")
        if TOKENS[0].encode() in head:
            first.set()
            await second.wait()
        second.set()
        tokens = [token for token in TOKENS if token.encode() in head]
        await connection.send(answer(" ".join(tokens)))

    errors: list[str] = []
    async with serving(script) as server:
        model = MODELS[name](server.url.removesuffix("/v1"), iter(TOKENS))

        async def ask() -> None:
            with pytest.raises(ProviderError) as caught:
                await (read(model) if streamed else model.generate(ASK))
            error = caught.value
            errors.append("".join(traceback.format_exception(error)) + repr(vars(error)))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await first.wait()
            tasks.start_soon(ask)
        await model.aclose()
    assert len(errors) == 2
    for token in TOKENS:
        assert not any(token in text for text in errors)
    assert answer is failing or any("[key]" in text for text in errors)
