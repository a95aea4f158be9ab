"""`Anthropic` over real loopback sockets, and in runs."""

from __future__ import annotations

import json
import traceback
from contextlib import aclosing
from typing import Any

import anyio
import pytest
from msgspec import Struct

from golem.agent import Agent
from golem.errors import APIError, HistoryError, ProviderError, TransportError
from golem.history import budget_history
from golem.messages import AssistantMessage, UserMessage
from golem.model import Delta, Request, Response, TextDelta, ToolSpec
from golem.tools import tool
from golem_adapters import Anthropic
from tests.adapters.messaging import answer, block_events, sse, started, stream_events
from tests.wire.server import Connection, Server, answering, response, serving

KEY = "sk-ant-very-secret-0123456789"
ASK = Request([UserMessage("hi")])
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "sig"}
HELLO = {"type": "text", "text": "Hello"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "weather", "input": {"city": "Paris"}}
USE = {"type": "server_tool_use", "id": "srv_1", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": []}
HEADERS = "request-id: req-1\r\n"


def plain(*blocks: dict[str, Any], **members: Any) -> bytes:
    return response(json.dumps(answer(blocks, **members)).encode(), headers=HEADERS)


def streamed(*blocks: dict[str, Any], **members: Any) -> bytes:
    data = sse(stream_events(blocks, **members))
    return response(data, kind="text/event-stream", headers=HEADERS)


def refusal(status: str, kind: str, headers: str = "") -> bytes:
    body = {"type": "error", "error": {"type": kind, "message": f"no {KEY}"}}
    return response(json.dumps(body).encode(), status=status, headers=headers)


def model_at(url: str, **options: Any) -> Anthropic:
    return Anthropic("m", base_url=url, **{"api_key": KEY, **options})


def bodies(server: Server) -> list[dict[str, Any]]:
    return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]


async def read(model: Anthropic) -> tuple[list[Delta], Response]:
    *deltas, last = [item async for item in model.stream(ASK)]
    assert isinstance(last, Response)
    return [item for item in deltas if not isinstance(item, Response)], last


async def failure(model: Anthropic, *, stream: bool = False) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await (read(model) if stream else model.generate(ASK))
    assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    return caught.value


async def test_a_plain_answer_and_a_streamed_one_are_the_same() -> None:
    blocks = (THOUGHT, HELLO, CALL)
    async with serving(answering(plain(*blocks), streamed(*blocks))) as server:
        whole = await model_at(server.url).generate(ASK)
        deltas, last = await read(model_at(server.url))
    assert TextDelta("Hel") in deltas
    assert whole.message.content == "Hello"
    assert whole.message.thinking == last.message.thinking
    assert [c.arguments() for c in whole.message.tool_calls] == [
        c.arguments() for c in last.message.tool_calls
    ]
    assert (whole.usage, whole.details) == (last.usage, last.details)
    assert whole.details.request_id == "req-1"


async def test_the_request_goes_to_messages_with_key_and_version() -> None:
    async with serving(answering(plain(HELLO))) as server:
        await model_at(server.url, max_tokens=5).generate(ASK)
    lines = server.requests[0].partition(b"\r\n\r\n")[0].lower().decode().split("\r\n")
    assert lines[0] == "post /v1/messages http/1.1"
    assert f"x-api-key: {KEY}" in lines
    assert "anthropic-version: 2026-10-21" in lines
    assert "authorization" not in "".join(lines)
    assert bodies(server)[0]["max_tokens"] == 5


async def test_a_run_gives_thinking_back_beside_the_results() -> None:
    @tool
    async def weather(city: str) -> str:
        return f"sunny in {city}"

    for first, then in ((plain, plain), (streamed, streamed)):
        turns = (first(THOUGHT, CALL, stop_reason="tool_use"), then(HELLO))
        if first is streamed:
            turns = (streamed(THOUGHT, CALL, reason="tool_use"), streamed(HELLO))
        async with serving(answering(*turns)) as server:
            agent = Agent(model_at(server.url), tools=[weather], instructions="Be brief.")
            if first is streamed:
                async with agent.stream("hi") as stream:
                    async for _ in stream:
                        pass
                result = stream.result
            else:
                result = await agent.run("hi")
        assert result is not None
        assert result.output == "Hello"
        sent = bodies(server)[1]
        assert sent["system"] == [{"type": "text", "text": "Be brief."}]
        assert sent["messages"][1]["content"] == [THOUGHT, CALL]
        results = sent["messages"][2]["content"]
        assert results == [
            {"type": "tool_result", "tool_use_id": "toolu_1", "content": "sunny in Paris"}
        ]


async def test_a_paused_turn_goes_on_in_one_run() -> None:
    turns = (plain(USE, stop_reason="pause_turn"), plain(FOUND, HELLO), plain(HELLO))
    async with serving(answering(*turns)) as server:
        agent = Agent(model_at(server.url))
        result = await agent.run("hi")
        await agent.run("more", history=result.messages)
    assert (result.output, result.requests) == ("Hello", 2)
    assert bodies(server)[1]["messages"][1]["content"] == [USE]
    assert bodies(server)[2]["messages"][1]["content"] == [USE, FOUND, HELLO]


class Point(Struct):
    x: int


async def test_structured_output_is_asked_for_natively() -> None:
    answered = plain({"type": "text", "text": '{"x": 1}'})
    async with serving(answering(answered)) as server:
        result = await Agent(model_at(server.url), output_type=Point).run("hi")
    assert result.output == Point(1)
    schema = bodies(server)[0]["output_config"]["format"]["schema"]
    assert schema["additionalProperties"] is False or schema["$defs"]["Point"]


async def test_an_overloaded_server_is_asked_again() -> None:
    busy = refusal("529 Overloaded", "overloaded_error", "retry-after-ms: 1\r\n")
    async with serving(answering(busy, plain(HELLO))) as server:
        result = await Agent(model_at(server.url)).run("hi")
    assert (result.output, len(server.requests)) == ("Hello", 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_typed_and_quotes_no_key(stream: bool) -> None:
    async with serving(answering(refusal("401 Unauthorized", "authentication_error"))) as server:
        error = await failure(model_at(server.url), stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.message) == (401, "authentication_error", "no [key]")


async def test_a_stream_that_breaks_off_keeps_what_came() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(sse([started(), *block_events(0, HELLO)[:2]]))

    async with serving(script) as server:
        error = await failure(model_at(server.url), stream=True)
    assert isinstance(error, TransportError)
    assert error.partial == AssistantMessage("Hel")


async def test_a_server_that_does_not_end_its_body_is_not_waited_for() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(sse(stream_events([HELLO])))
        await connection.until_closed()

    async with serving(script) as server:
        with anyio.fail_after(30):
            _, last = await read(model_at(server.url))
            await server.closed.wait()
    assert last.message.content == "Hello"


async def test_leaving_a_stream_closes_the_connection_at_once() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(sse([started(), *block_events(0, HELLO)[:2]]))
        await connection.until_closed()

    async with serving(script) as server:
        async with aclosing(model_at(server.url).stream(ASK)) as deltas:
            assert TextDelta("Hel") == await anext(deltas)
        with anyio.fail_after(30):
            await server.closed.wait()


# --- counting


async def test_tokens_are_counted_by_the_provider() -> None:
    async with serving(answering(response(b'{"input_tokens":7}'))) as server:
        model = model_at(server.url, max_tokens=5, cache="5m", temperature=1.0)
        spec = ToolSpec("f", "", {"type": "object"})
        assert await model.count_tokens([UserMessage("hi")], [spec]) == 7
    head = server.requests[0].partition(b"\r\n")[0]
    assert head.lower() == b"post /v1/messages/count_tokens http/1.1"
    assert set(bodies(server)[0]) == {"model", "tools", "messages"}


async def test_a_model_is_the_counter_of_a_budget() -> None:
    counts = [response(b'{"input_tokens":%d}' % count) for count in (90, 10, 10, 10)]
    history = [UserMessage("a"), AssistantMessage("b"), UserMessage("c")]
    async with serving(answering(*counts)) as server:
        kept = await budget_history(model_at(server.url), 50)(history)
    assert kept == history[1:]


async def test_a_count_that_fails_says_why() -> None:
    body = refusal("404 Not Found", "not_found_error")
    async with serving(answering(body)) as server:
        model = model_at(server.url)
        with pytest.raises(HistoryError, match=r"counting tokens failed: 404 not_found_error") as c:
            await budget_history(model, 50)([UserMessage("a")])
    assert isinstance(c.value.__cause__, APIError)
    assert KEY not in str(c.value)
