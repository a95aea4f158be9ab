"""`Gemini` over real loopback sockets, and in runs."""

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
from golem_adapters import Gemini
from tests.adapters.generating import answer, call, compact, sse, streamed, text, thought
from tests.wire.server import Connection, Server, answering, response, serving

KEY = "AIza-very-secret-0123456789"
ASK = Request([UserMessage("hi")])
SIGNATURE = "c2lnbmVk"
HELLO = text("Hello")
CALL = call("weather", SIGNATURE, city="Paris")


def plain(*parts: dict[str, Any], **members: Any) -> bytes:
    return response(compact(answer(parts, **members)))


def events(*parts: dict[str, Any]) -> bytes:
    return response(sse(streamed(parts)), kind="text/event-stream")


def refusal(status: str, code: str, *details: dict[str, Any]) -> bytes:
    error = {"code": int(status[:3]), "message": f"no {KEY}", "status": code, "details": details}
    return response(json.dumps({"error": error}).encode(), status=status)


def model_at(url: str, name: str = "gemini-3-flash", **options: Any) -> Gemini:
    return Gemini(name, base_url=url.removesuffix("/v1"), **{"api_key": KEY, **options})


def bodies(server: Server) -> list[dict[str, Any]]:
    return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in server.requests]


async def read(model: Gemini) -> tuple[list[Delta], Response]:
    *deltas, last = [item async for item in model.stream(ASK)]
    assert isinstance(last, Response)
    return [item for item in deltas if not isinstance(item, Response)], last


async def failure(model: Gemini, *, stream: bool = False) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await (read(model) if stream else model.generate(ASK))
    assert KEY not in "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    return caught.value


async def test_a_plain_answer_and_a_streamed_one_are_the_same() -> None:
    parts = (thought("hm"), HELLO, CALL)
    async with serving(answering(plain(*parts), events(*parts))) as server:
        whole = await model_at(server.url).generate(ASK)
        deltas, last = await read(model_at(server.url))
    assert TextDelta("Hel") in deltas
    assert whole == last
    assert whole.message.content == "Hello"


async def test_the_request_goes_to_the_model_with_the_key() -> None:
    async with serving(answering(plain(HELLO), events(HELLO))) as server:
        await model_at(server.url, max_tokens=5).generate(ASK)
        await read(model_at(server.url, "gemini-x", project="p", location="l", token="t"))
    first, second = (r.partition(b"\r\n\r\n")[0].decode().split("\r\n") for r in server.requests)
    assert first[0] == "POST /v1beta/models/gemini-3-flash:generateContent HTTP/1.1"
    assert f"x-goog-api-key: {KEY}" in first
    place = "/v1beta1/projects/p/locations/l/publishers/google/models/gemini-x"
    assert second[0] == f"POST {place}:streamGenerateContent?alt=sse HTTP/1.1"
    assert "authorization: bearer t" in [line.lower() for line in second]
    assert bodies(server)[0]["generationConfig"] == {"maxOutputTokens": 5}


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_gives_signatures_back_beside_the_results(stream: bool) -> None:
    @tool
    async def weather(city: str) -> str:
        return f"sunny in {city}"

    made = events if stream else plain
    async with serving(answering(made(thought("hm"), CALL), made(HELLO))) as server:
        agent = Agent(model_at(server.url), tools=[weather], instructions="Be brief.")
        if stream:
            async with agent.stream("hi") as running:
                async for _ in running:
                    pass
            result = running.result
        else:
            result = await agent.run("hi")
    assert result is not None
    assert result.output == "Hello"
    sent = bodies(server)[1]
    assert sent["systemInstruction"] == {"parts": [{"text": "Be brief."}]}
    asked = sent["contents"][1]["parts"]
    assert [asked[0], asked[1]["thoughtSignature"]] == [thought("hm"), SIGNATURE]
    name = asked[1]["functionCall"]["id"]
    response = {"id": name, "name": "weather", "response": {"output": "sunny in Paris"}}
    assert sent["contents"][2]["parts"] == [{"functionResponse": response}]


class Point(Struct):
    x: int


async def test_structured_output_is_asked_for_natively_where_it_stands_beside_tools() -> None:
    async with serving(answering(plain(text('{"x": 1}')))) as server:
        result = await Agent(model_at(server.url), output_type=Point).run("hi")
    assert result.output == Point(1)
    config = bodies(server)[0]["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["responseJsonSchema"]["properties"] == {"x": {"type": "integer"}}


async def test_older_models_give_structured_output_as_a_tool() -> None:
    async with serving(answering(plain(call("final_result", x=1)))) as server:
        model = model_at(server.url, "gemini-2.5-flash")
        result = await Agent(model, output_type=Point).run("hi")
    assert result.output == Point(1)
    assert "generationConfig" not in bodies(server)[0]


async def test_a_busy_server_is_asked_again_when_it_says() -> None:
    info = {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "0.001s"}
    busy = refusal("429 Too Many Requests", "RESOURCE_EXHAUSTED", info)
    async with serving(answering(busy, plain(HELLO))) as server:
        result = await Agent(model_at(server.url)).run("hi")
    assert (result.output, len(server.requests)) == ("Hello", 2)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_refusal_is_typed_and_quotes_no_key(stream: bool) -> None:
    async with serving(answering(refusal("403 Forbidden", "PERMISSION_DENIED"))) as server:
        error = await failure(model_at(server.url), stream=stream)
    assert isinstance(error, APIError)
    assert (error.status, error.code, error.message) == (403, "PERMISSION_DENIED", "no [key]")


async def test_a_stream_that_breaks_off_keeps_what_came() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(sse(streamed([HELLO])[:1]))

    async with serving(script) as server:
        error = await failure(model_at(server.url), stream=True)
    assert isinstance(error, TransportError)
    assert error.partial == AssistantMessage("Hel")


async def test_leaving_a_stream_closes_the_connection_at_once() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(sse(streamed([HELLO])[:1]))
        await connection.until_closed()

    async with serving(script) as server:
        async with aclosing(model_at(server.url).stream(ASK)) as deltas:
            assert TextDelta("Hel") == await anext(deltas)
        with anyio.fail_after(30):
            await server.closed.wait()


# --- counting


async def test_tokens_are_counted_by_the_provider() -> None:
    async with serving(answering(response(b'{"totalTokens":7}'))) as server:
        model = model_at(server.url, max_tokens=5)
        spec = ToolSpec("f", "", {"type": "object"})
        assert await model.count_tokens([UserMessage("hi")], [spec]) == 7
    head = server.requests[0].partition(b"\r\n")[0]
    assert head == b"POST /v1beta/models/gemini-3-flash:countTokens HTTP/1.1"
    asked = bodies(server)[0]["generateContentRequest"]
    assert set(asked) == {"model", "tools", "contents"}
    assert asked["model"] == "models/gemini-3-flash"


async def test_a_model_is_the_counter_of_a_budget() -> None:
    counts = [response(b'{"totalTokens":%d}' % count) for count in (90, 10, 10, 10)]
    history = [UserMessage("a"), AssistantMessage("b"), UserMessage("c")]
    async with serving(answering(*counts)) as server:
        kept = await budget_history(model_at(server.url), 50)(history)
    assert kept == history[1:]


async def test_a_count_that_fails_says_why() -> None:
    async with serving(answering(refusal("404 Not Found", "NOT_FOUND"))) as server:
        model = model_at(server.url)
        with pytest.raises(HistoryError, match=r"counting tokens failed: 404 NOT_FOUND") as caught:
            await budget_history(model, 50)([UserMessage("a")])
    assert isinstance(caught.value.__cause__, APIError)
    assert KEY not in str(caught.value)
