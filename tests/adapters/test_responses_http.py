"""`OpenAIResponses` and `AzureOpenAI` over real loopback sockets."""

from __future__ import annotations

import json
import traceback
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from golem.errors import APIError, ProviderError, TransportError
from golem.messages import AssistantMessage, UserMessage
from golem.model import Delta, Request, Response, TextDelta
from golem_adapters import AzureOpenAI, OpenAIResponses
from tests.adapters.responding import item_events, sse, stream_events
from tests.adapters.responding import response as answer_of
from tests.wire.server import Connection, answering, response, serving

KEY = "sk-very-secret-0123456789"
ASK = Request([UserMessage("hi")])
HELLO = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "Hello", "annotations": []}],
}
SEALED = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "enc"}
ANSWER = json.dumps(answer_of([SEALED, HELLO])).encode()
STREAM = sse(stream_events([SEALED, HELLO]))
CHAT = b'{"choices":[{"index":0,"message":{"content":"Hello"},"finish_reason":"stop"}]}'


def model_at(url: str, **options: Any) -> OpenAIResponses:
    return OpenAIResponses("m", base_url=url, **{"api_key": KEY, **options})


async def read(model: OpenAIResponses) -> tuple[list[Delta], Response]:
    *deltas, last = [item async for item in model.stream(ASK)]
    assert isinstance(last, Response)
    return [item for item in deltas if not isinstance(item, Response)], last


async def failure(model: OpenAIResponses, *, stream: bool = False) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await (read(model) if stream else model.generate(ASK))
    assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    return caught.value


async def test_a_plain_answer_and_a_streamed_one_are_the_same() -> None:
    stream = response(STREAM, kind="text/event-stream", headers="x-request-id: req-1\r\n")
    plain = response(ANSWER, headers="x-request-id: req-1\r\n")
    async with serving(answering(plain, stream)) as server:
        whole = await model_at(server.url).generate(ASK)
        deltas, streamed = await read(model_at(server.url))
    assert [TextDelta("Hel"), TextDelta("lo")] == deltas
    assert whole.message.content == "Hello"
    assert whole.details.request_id == "req-1"
    assert whole.message.thinking == streamed.message.thinking
    assert (whole.usage, whole.details) == (streamed.usage, streamed.details)


async def test_the_request_goes_to_responses_with_the_key_as_bearer() -> None:
    async with serving(answering(response(ANSWER))) as server:
        await model_at(server.url, max_tokens=5, project="p").generate(ASK)
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = head.lower().decode().split("\r\n")
    assert lines[0] == "post /v1/responses http/1.1"
    assert f"authorization: bearer {KEY}" in lines
    assert "openai-project: p" in lines
    assert json.loads(body)["max_output_tokens"] == 5


async def test_the_next_request_carries_the_sealed_reasoning() -> None:
    async with serving(answering(response(ANSWER), response(ANSWER))) as server:
        model = model_at(server.url)
        first = await model.generate(ASK)
        await model.generate(Request([*ASK.messages, first.message, UserMessage("more")]))
        sent = json.loads(server.requests[1].partition(b"\r\n\r\n")[2])["input"]
    assert sent[1:3] == [SEALED, HELLO]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_error_status_is_mapped_with_its_body(stream: bool) -> None:
    body = b'{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}'
    refusal = response(body, status="429 Too Many", headers="retry-after: 7\r\n")
    async with serving(answering(refusal)) as server:
        error = await failure(model_at(server.url), stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.retry_after) == (429, "rate_limit_exceeded", 7.0)


async def test_a_stream_cut_in_the_middle_keeps_what_had_come() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(sse(item_events(0, HELLO)[:2]))

    async with serving(script) as server:
        error = await failure(model_at(server.url), stream=True)
    assert isinstance(error, TransportError)
    assert error.partial == AssistantMessage("Hel")


async def test_a_failure_inside_the_stream_that_quotes_the_key_is_not_quoted() -> None:
    event = {"type": "error", "code": "server_error", "message": f"no {KEY}"}
    async with serving(answering(response(sse([event]), kind="text/event-stream"))) as server:
        error = await failure(model_at(server.url), stream=True)
    assert isinstance(error, APIError)
    assert error.message == "no [key]"


async def test_a_server_that_does_not_end_its_body_is_not_waited_for() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(STREAM)
        await connection.until_closed()

    async with serving(script) as server:
        with anyio.fail_after(5):
            _, answer = await read(model_at(server.url))
            await server.closed.wait()
    assert answer.message.content == "Hello"


async def test_leaving_a_stream_closes_the_connection_at_once() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(sse(item_events(0, HELLO)[:2]))
        await connection.until_closed()

    async with serving(script) as server:
        async with aclosing(model_at(server.url).stream(ASK)) as deltas:
            assert TextDelta("Hel") == await anext(deltas)
        with anyio.fail_after(5):
            await server.closed.wait()


# --- tokens, here and at Azure


async def fresh() -> str:
    await anyio.lowlevel.checkpoint()
    return "token-of-the-hour"


@pytest.mark.parametrize("token", ["token-of-the-hour", lambda: "token-of-the-hour", fresh])
async def test_a_token_goes_out_as_bearer_wherever_it_comes_from(token: Any) -> None:
    async with serving(answering(response(ANSWER))) as server:
        await model_at(server.url, api_key=None, token=token).generate(ASK)
    async with serving(answering(response(CHAT))) as azure:
        url = azure.url.removesuffix("/v1")
        await AzureOpenAI("dep", base_url=url, token=token).generate(ASK)
    for request in (server.requests[0], azure.requests[0]):
        assert b"authorization: bearer token-of-the-hour" in request.lower()
        assert b"api-key" not in request


async def test_a_token_is_asked_for_anew_and_never_quoted() -> None:
    tokens = iter(["first-token-1", "second-token-2"])
    body = b'{"error":{"message":"bad token second-token-2"}}'
    refusal = response(body, status="401 Unauthorized")
    async with serving(answering(response(CHAT), refusal)) as server:
        model = AzureOpenAI("dep", base_url=server.url, token=lambda: next(tokens))
        await model.generate(ASK)
        with pytest.raises(APIError, match=r"bad token \[key\]"):
            await model.generate(ASK)
    assert b"bearer first-token-1" in server.requests[0].lower()


async def test_what_a_token_function_raises_passes() -> None:
    def broken() -> str:
        raise LookupError("no credentials")

    with pytest.raises(LookupError, match="no credentials"):
        await AzureOpenAI("dep", base_url="http://127.0.0.1:1", token=broken).generate(ASK)


async def test_a_token_that_no_header_can_carry_is_refused_unseen() -> None:
    model = AzureOpenAI("dep", base_url="http://127.0.0.1:1", token=lambda: "a\nb")
    with pytest.raises(ValueError, match="token holds characters"):
        await model.generate(ASK)


async def test_azure_is_asked_at_the_deployment_with_the_key_in_its_own_header() -> None:
    async with serving(answering(response(CHAT), response(CHAT))) as server:
        url = server.url.removesuffix("/v1")
        await AzureOpenAI("my dep", base_url=url, api_key=KEY).generate(ASK)
        version = "2024-10-21"
        model = AzureOpenAI("my dep", base_url=url, api_key=KEY, api_version=version)
        await model.generate(ASK)
    heads = [request.partition(b"\r\n\r\n")[0].decode() for request in server.requests]
    lines = [head.splitlines()[0] for head in heads]
    assert lines == [
        "POST /openai/v1/chat/completions HTTP/1.1",
        f"POST /openai/deployments/my%20dep/chat/completions?api-version={version} HTTP/1.1",
    ]
    assert all(f"api-key: {KEY}" in head for head in heads)
