"""`Bedrock` over real loopback sockets, and in runs."""

from __future__ import annotations

import calendar
import json
import time
import traceback
from contextlib import aclosing
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from msgspec import Struct

from golem.agent import Agent
from golem.errors import APIError, ProviderError, RunError, TransportError
from golem.history import budget_history
from golem.messages import AssistantMessage, UserMessage
from golem.model import Delta, Request, Response, TextDelta, ToolSpec
from golem.tools import tool
from golem_adapters import AWSCredentials, Bedrock
from golem_adapters.bedrock.sigv4 import signature_headers
from tests.adapters.conversing import (
    CLAUDE,
    LLAMA,
    STARTED,
    answer,
    block_events,
    framed,
    spelled,
    stream_events,
)
from tests.wire.frames import event
from tests.wire.server import Connection, Server, answering, response, serving

SECRET, TOKEN = "aws-secret-0123456789", "session-token-0123456789"
KEYS = AWSCredentials("AKIDEXAMPLE", SECRET, TOKEN)
ASK = Request([UserMessage("hi")])
THOUGHT = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "sig"}}}
HELLO = {"text": "Hello"}
CALL = {"toolUse": {"toolUseId": "c1", "name": "weather", "input": {"city": "Paris"}}}
HEADERS = "x-amzn-requestid: req-1\r\n"


def plain(*blocks: dict[str, Any], reason: str = "end_turn") -> bytes:
    return response(spelled(answer(blocks, stopReason=reason)), headers=HEADERS)


def streamed(*blocks: dict[str, Any], reason: str = "end_turn") -> bytes:
    data = framed(stream_events(blocks, reason=reason))
    return response(data, kind="application/vnd.amazon.eventstream", headers=HEADERS)


def refusal(status: str, kind: str) -> bytes:
    body = json.dumps({"message": f"no {SECRET} {TOKEN}"}).encode()
    return response(body, status=status, headers=f"x-amzn-errortype: {kind}:http://x/\r\n")


def model_at(url: str, model: str = CLAUDE, **options: Any) -> Bedrock:
    return Bedrock(model, base_url=url, region="us-east-1", **{"credentials": KEYS, **options})


def bodies(server: Server) -> list[dict[str, Any]]:
    return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]


async def read(model: Bedrock) -> tuple[list[Delta], Response]:
    *deltas, last = [item async for item in model.stream(ASK)]
    assert isinstance(last, Response)
    return [item for item in deltas if not isinstance(item, Response)], last


async def failure(model: Bedrock, *, stream: bool = False) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await (read(model) if stream else model.generate(ASK))
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert SECRET not in shown
    assert TOKEN not in shown
    return caught.value


async def test_a_plain_answer_and_a_streamed_one_are_the_same() -> None:
    blocks = (THOUGHT, HELLO, CALL)
    async with serving(answering(plain(*blocks), streamed(*blocks))) as server:
        whole = await model_at(server.url).generate(ASK)
        deltas, last = await read(model_at(server.url))
    assert TextDelta("Hel") in deltas
    assert whole == last
    assert whole.details.request_id == "req-1"


async def test_what_goes_out_is_what_was_signed() -> None:
    model = "arn:aws:bedrock:us-east-1:1:application-inference-profile/x"
    async with serving(answering(plain(HELLO), streamed(HELLO))) as server:
        await model_at(server.url, model).generate(ASK)
        await read(model_at(server.url, model))
    for sent in server.requests:
        head, _, body = sent.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        path = first.split(" ")[1]
        assert (
            "/model/arn%3Aaws%3Abedrock%3Aus-east-1%3A1%3Aapplication-inference-profile%2Fx/"
            in path
        )
        headers = {
            name.lower(): value.strip() for name, _, value in (x.partition(":") for x in lines)
        }
        when = time.strptime(headers["x-amz-date"], "%Y%m%dT%H%M%SZ")
        names = headers["authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
        assert {"host", "content-type", "x-amz-date", "x-amz-security-token"} < set(names)
        again = signature_headers(
            "POST",
            f"http://{headers['host']}{path}",
            {name: headers[name] for name in names if not name.startswith(("x-amz", "host"))},
            body,
            credentials=KEYS,
            region="us-east-1",
            service="bedrock",
            now=calendar.timegm(when),
        )
        assert again["authorization"] == headers["authorization"]


async def test_a_bearer_key_needs_no_signature() -> None:
    async with serving(answering(plain(HELLO))) as server:
        await model_at(server.url, credentials=None, api_key="bedrock-key").generate(ASK)
    head = server.requests[0].partition(b"\r\n\r\n")[0].lower()
    assert b"authorization: bearer bedrock-key" in head
    assert b"x-amz-date" not in head


async def test_credentials_are_fetched_for_every_request() -> None:
    given = iter([KEYS, AWSCredentials("AKIDOTHER", SECRET)])

    async def fetch() -> AWSCredentials:
        await anyio.lowlevel.checkpoint()
        return next(given)

    async with serving(answering(plain(HELLO), streamed(HELLO))) as server:
        model = model_at(server.url, credentials=fetch)
        await model.generate(ASK)
        await read(model)
    first, second = server.requests
    assert b"Credential=AKIDEXAMPLE/".lower() in first.lower()
    assert b"Credential=AKIDOTHER/".lower() in second.lower()
    assert b"x-amz-security-token" not in second.lower()


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_gives_thinking_back_beside_the_results(stream: bool) -> None:
    @tool
    async def weather(city: str) -> str:
        return f"sunny in {city}"

    kind = streamed if stream else plain
    turns = (kind(THOUGHT, CALL, reason="tool_use"), kind(HELLO))
    async with serving(answering(*turns)) as server:
        agent = Agent(model_at(server.url), tools=[weather], instructions="Be brief.")
        if stream:
            async with agent.stream("hi") as events:
                async for _ in events:
                    pass
            result = events.result
        else:
            result = await agent.run("hi")
    assert result is not None
    assert result.output == "Hello"
    sent = bodies(server)[1]
    assert sent["system"] == [{"text": "Be brief."}]
    assert sent["messages"][1]["content"] == [THOUGHT, CALL]
    assert sent["messages"][2]["content"] == [
        {"toolResult": {"toolUseId": "c1", "content": [{"text": "sunny in Paris"}]}}
    ]


class Point(Struct):
    x: int


async def test_structured_output_is_native_where_the_family_has_it_and_a_tool_elsewhere() -> None:
    async with serving(answering(plain({"text": '{"x": 1}'}))) as server:
        result = await Agent(model_at(server.url), output_type=Point).run("hi")
    assert result.output == Point(1)
    schema = bodies(server)[0]["outputConfig"]["textFormat"]["structure"]["jsonSchema"]["schema"]
    assert "additionalProperties" in schema
    async with serving(answering(plain(HELLO))) as server:
        with pytest.raises(RunError):
            await Agent(model_at(server.url, LLAMA), output_type=Point).run("hi")
    body = bodies(server)[0]
    assert "outputConfig" not in body
    assert len(body["toolConfig"]["tools"]) == 1


async def test_a_throttled_request_is_sent_again() -> None:
    busy = response(
        b'{"message":"slow down"}',
        status="429 Too Many Requests",
        headers="x-amzn-errortype: ThrottlingException\r\nretry-after-ms: 1\r\n",
    )
    async with serving(answering(busy, plain(HELLO))) as server:
        result = await Agent(model_at(server.url)).run("hi")
    assert (result.output, len(server.requests)) == ("Hello", 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_typed_and_quotes_no_secret(stream: bool) -> None:
    refused = refusal("403 Forbidden", "InvalidSignatureException")
    async with serving(answering(refused)) as server:
        error = await failure(model_at(server.url), stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.code) == (403, "InvalidSignatureException")
    assert error.message == "no [key] [key]"


async def scripted(connection: Connection, *pieces: bytes) -> None:
    await connection.request()
    await connection.begin_stream()
    for piece in pieces:
        await connection.chunk(piece)


BEGUN = framed([STARTED, *block_events(0, HELLO)[:1]])


async def test_a_stream_that_breaks_off_keeps_what_came() -> None:
    async def script(connection: Connection) -> None:
        await scripted(connection, BEGUN)

    async with serving(script) as server:
        error = await failure(model_at(server.url), stream=True)
    assert isinstance(error, TransportError)
    assert error.partial == AssistantMessage("Hel")


async def test_an_exception_inside_a_stream_keeps_what_came() -> None:
    complaint = event("modelStreamErrorException", {"message": f"no {TOKEN}"}, "exception")

    async def script(connection: Connection) -> None:
        await scripted(connection, BEGUN, complaint)
        await connection.until_closed()

    async with serving(script) as server:
        error = await failure(model_at(server.url), stream=True)
    assert isinstance(error, APIError)
    assert (error.status, error.retryable, error.message) == (424, True, "no [key]")
    assert error.partial == AssistantMessage("Hel")


async def test_a_server_that_does_not_end_its_body_is_not_waited_for() -> None:
    async def script(connection: Connection) -> None:
        await scripted(connection, framed(stream_events([HELLO])))
        await connection.until_closed()

    async with serving(script) as server:
        with anyio.fail_after(30):
            _, last = await read(model_at(server.url))
            await server.closed.wait()
    assert last.message.content == "Hello"


async def test_leaving_a_stream_closes_the_connection_at_once() -> None:
    async def script(connection: Connection) -> None:
        await scripted(connection, BEGUN)
        await connection.until_closed()

    async with serving(script) as server:
        async with aclosing(model_at(server.url).stream(ASK)) as deltas:
            assert TextDelta("Hel") == await anext(deltas)
        with anyio.fail_after(30):
            await server.closed.wait()


# --- counting


async def test_tokens_are_counted_by_the_service() -> None:
    async with serving(answering(response(b'{"inputTokens":7}'))) as server:
        model = model_at(server.url, max_tokens=5, temperature=1.0)
        spec = ToolSpec("f", "", {"type": "object"})
        assert await model.count_tokens([UserMessage("hi")], [spec]) == 7
    head = server.requests[0].partition(b"\r\n")[0].lower()
    assert head.endswith(b"/count-tokens http/1.1")
    assert set(bodies(server)[0]["input"]["converse"]) == {"toolConfig", "messages"}


async def test_a_model_is_the_counter_of_a_budget() -> None:
    counts = [response(b'{"inputTokens":%d}' % count) for count in (90, 10, 10, 10)]
    history = [UserMessage("a"), AssistantMessage("b"), UserMessage("c")]
    async with serving(answering(*counts)) as server:
        kept = await budget_history(model_at(server.url), 50)(history)
    assert kept == history[1:]
