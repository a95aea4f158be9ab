"""`OpenAI` over real loopback sockets: what the shell does with connections and their ends."""

from __future__ import annotations

import gc
import json
import pickle
import socket
import traceback
from contextlib import aclosing
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest

from golem import Agent, tool
from golem.errors import ProviderError, TransportError
from golem.messages import UserMessage
from golem.model import Delta, Model, Request, Response, TextDelta, ToolCallDelta
from golem_adapters import OpenAI
from tests.adapters.driving import delta, events
from tests.wire.server import Connection, answering, response, serving

KEY = "sk-very-secret-0123456789"
ASK = Request([UserMessage("hi")])
ANSWER = json.dumps(
    {
        "id": "r1",
        "model": "m-1",
        "choices": [{"index": 0, "message": {"content": "Hello"}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2},
    }
).encode()
STREAM = events(delta(content="Hel"), delta(content="lo"), delta("stop"))

BAD_LOCATIONS = (
    None,
    "",
    "http://[::1",
    "http://x:junk/",
    "http://x:99999/",
    "mailto:somebody",
    "http://xn--/",
    f"http://{KEY}/",
    "x" * 70_000 + ":",
)


def model_at(url: str, **options: Any) -> OpenAI:
    return OpenAI("m", base_url=url, api_key=KEY, **options)


async def either(connection: Connection) -> None:
    """Answer every request, plain or streamed, as it asks."""
    while True:
        request = await connection.request()
        if b'"stream":true' in request:
            await connection.begin_stream()
            await connection.chunk(STREAM)
            await connection.chunk(b"")
        else:
            await connection.send(response(ANSWER))


async def read(model: OpenAI) -> tuple[list[Delta], Response]:
    items = [item async for item in model.stream(ASK)]
    *deltas, last = items
    assert isinstance(last, Response)
    assert not any(isinstance(item, Response) for item in deltas)
    return [item for item in deltas if not isinstance(item, Response)], last


async def failure(model: OpenAI, *, stream: bool = False) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await (read(model) if stream else model.generate(ASK))
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert KEY not in shown
    assert KEY.encode() not in pickle.dumps(caught.value)
    return caught.value


async def test_a_plain_answer_comes_back_whole() -> None:
    async with serving(answering(response(ANSWER, headers="x-request-id: req-9\r\n"))) as server:
        answer = await model_at(server.url).generate(ASK)
    assert answer.message.content == "Hello"
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 2)
    assert (
        answer.details.response_id,
        answer.details.request_id,
        answer.details.model,
    ) == ("r1", "req-9", "m-1")


async def test_the_request_is_what_the_dialect_wrote_with_the_key_as_bearer() -> None:
    async with serving(answering(response(ANSWER))) as server:
        await model_at(server.url, temperature=0.5, organization="org").generate(ASK)
        head, _, body = server.requests[0].partition(b"\r\n\r\n")
    lines = head.lower().decode().split("\r\n")
    assert lines[0] == "post /v1/chat/completions http/1.1"
    assert f"authorization: bearer {KEY}" in lines
    assert "openai-organization: org" in lines
    assert json.loads(body) == {
        "model": "m",
        "temperature": 0.5,
        "messages": [{"role": "user", "content": "hi"}],
    }


async def test_a_stream_gives_deltas_and_then_the_response() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        for place in range(0, len(STREAM), 50):
            await connection.chunk(STREAM[place : place + 50])
        await connection.chunk(b"")

    async with serving(script) as server:
        deltas, answer = await read(model_at(server.url))
    assert [TextDelta("Hel"), TextDelta("lo")] == deltas
    assert answer.message.content == "Hello"
    assert answer.details.request_id == "req-1"


async def test_deltas_are_given_out_as_they_come() -> None:
    go_on = anyio.Event()

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(events(delta(content="Hel"), done=False))
        await go_on.wait()
        await connection.chunk(events(delta(content="lo"), delta("stop")))
        await connection.chunk(b"")

    async with serving(script) as server, aclosing(model_at(server.url).stream(ASK)) as items:
        assert TextDelta("Hel") == await anext(items)
        go_on.set()
        assert TextDelta("lo") == await anext(items)
        assert isinstance(await anext(items), Response)


async def test_the_deltas_of_one_network_chunk_come_as_one_batch() -> None:
    go_on = anyio.Event()

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.begin_stream()
        await connection.chunk(b": nothing to tell\n\n")
        await connection.chunk(events(delta(content="Hel"), delta(content="lo"), done=False))
        await go_on.wait()
        await connection.chunk(events(delta(content=" you"), delta("stop")))
        await connection.chunk(b"")

    async with serving(script) as server, aclosing(model_at(server.url).batches(ASK)) as batches:
        assert [TextDelta("Hel"), TextDelta("lo")] == await anext(batches)
        go_on.set()
        assert [TextDelta(" you")] == await anext(batches)
        answer = await anext(batches)
        assert isinstance(answer, Response)
        assert answer.message.content == "Hello you"
        with pytest.raises(StopAsyncIteration):
            await anext(batches)


async def test_what_only_the_end_tells_is_the_last_batch() -> None:
    call = {"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}
    body = events(delta(tool_calls=[call]), delta("tool_calls"))
    async with serving(answering(response(body, kind="text/event-stream"))) as server:
        batches = [batch async for batch in model_at(server.url).batches(ASK)]
    *told, answer = batches
    assert told == [[ToolCallDelta(0, "c", "f")], [ToolCallDelta(0, args="{}")]]
    assert isinstance(answer, Response)


async def test_leaving_batches_closes_the_connection_at_once() -> None:
    async with serving(endless) as server:
        async with aclosing(model_at(server.url).batches(ASK)) as batches:
            async for _ in batches:
                break
        with anyio.fail_after(5):
            await server.closed.wait()
        gc.collect()


async def test_a_connection_is_used_again_also_by_another_model_of_the_server() -> None:
    stream = response(STREAM, kind="text/event-stream")
    async with serving(answering(response(ANSWER), stream, stream, response(ANSWER))) as server:
        await model_at(server.url).generate(ASK)
        await read(model_at(server.url))
        await read(model_at(server.url))
        await model_at(server.url).generate(ASK)
    assert server.connections == 1


async def test_a_kept_connection_that_the_server_closes_meanwhile_costs_nothing() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(response(ANSWER))
        await connection.request()  # and goes, without an answer

    async with serving(script) as server:
        answers = [await model_at(server.url).generate(ASK) for _ in range(3)]
    assert [answer.message.content for answer in answers] == ["Hello"] * 3
    assert server.connections == 3


async def test_a_new_connection_that_the_server_closes_is_an_error_at_once() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()

    async with serving(script) as server:
        error = await failure(model_at(server.url))
    assert isinstance(error, TransportError)
    assert server.connections == 1


async def test_a_server_that_does_not_end_its_body_after_done_is_not_waited_for() -> None:
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


@pytest.mark.parametrize("stream", [False, True])
async def test_a_silent_server_is_given_up(stream: bool) -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        if stream:
            await connection.begin_stream()
            await connection.chunk(events(delta(content="Hel"), done=False))
        await connection.until_closed()

    async with serving(script) as server:
        error = await failure(model_at(server.url, timeout=0.1), stream=stream)
    assert isinstance(error, TransportError)
    assert str(error) == "127.0.0.1 sent nothing for too long"
    assert ("Hel" if stream else None) == (error.partial and error.partial.content)


async def test_cancelling_mid_stream_closes_the_connection() -> None:
    async with serving(endless) as server:
        with anyio.move_on_after(0.2) as scope:
            async with aclosing(model_at(server.url).stream(ASK)) as items:
                async for _ in items:
                    pass
        assert scope.cancelled_caught
        with anyio.fail_after(5):
            await server.closed.wait()


async def test_cancelling_a_plain_call_closes_the_connection() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.until_closed()

    async with serving(script) as server:
        with anyio.move_on_after(0.2) as scope:
            await model_at(server.url).generate(ASK)
        assert scope.cancelled_caught
        with anyio.fail_after(5):
            await server.closed.wait()


async def test_leaving_a_stream_closes_the_connection_at_once() -> None:
    async with serving(endless) as server:
        async with aclosing(model_at(server.url).stream(ASK)) as items:
            async for _ in items:
                break
        with anyio.fail_after(5):
            await server.closed.wait()
        gc.collect()  # nothing of the HTTP client's is left for the collector to complain of


async def endless(connection: Connection) -> None:
    """One delta, then silence until the client goes."""
    await connection.request()
    await connection.begin_stream()
    await connection.chunk(events(delta(content="Hel"), done=False))
    await connection.until_closed()


async def fail_while_reading(model: OpenAI) -> None:
    async with aclosing(model.stream(ASK)) as items:
        async for _ in items:
            raise KeyError("mine")


async def test_an_exception_of_the_consumer_passes_and_closes_the_connection() -> None:
    async with serving(endless) as server:
        with pytest.raises(KeyError, match="mine"):
            await fail_while_reading(model_at(server.url))
        with anyio.fail_after(5):
            await server.closed.wait()


async def test_a_body_that_is_json_where_a_stream_was_asked_for_is_read_too() -> None:
    async with serving(answering(response(ANSWER))) as server:
        deltas, answer = await read(model_at(server.url))
    assert [TextDelta("Hello")] == deltas
    assert answer.message.content == "Hello"


async def test_closing_the_model_closes_its_connections_and_a_later_call_opens_new_ones() -> None:
    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(response(ANSWER))
        await connection.until_closed()

    async with serving(script) as server:
        model = model_at(server.url)
        await model.generate(ASK)
        await model.aclose()
        with anyio.fail_after(5):
            await server.closed.wait()
        await model.generate(ASK)
        await model.aclose()
        await model.aclose()
    assert server.connections == 2


async def test_a_callers_own_client_is_used_and_left_open() -> None:
    client = httpx.AsyncClient(headers={"x-mine": "1"}, timeout=3.0)
    async with serving(answering(response(ANSWER), response(ANSWER))) as server, client:
        model = model_at(server.url, http_client=client)
        await model.generate(ASK)
        await model.aclose()
        assert not client.is_closed
        await model.generate(ASK)
    assert all(b"x-mine: 1" in request.lower() for request in server.requests)


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_one_model_serves_one_event_loop_after_another(backend: str) -> None:
    model = model_at(f"http://127.0.0.1:{free_port()}/v1")

    async def once() -> str:
        port = urlsplit(model.base_url).port or 0
        async with serving(answering(response(ANSWER), response(ANSWER)), port=port):
            await model.generate(ASK)
            return (await model.generate(ASK)).message.content

    answers = [anyio.run(once, backend=backend) for _ in range(2)]
    assert answers == ["Hello", "Hello"]
    gc.collect()
    left = [thing for thing in gc.get_objects() if type(thing) is httpx.AsyncClient]
    assert not left, "a loop that ends closes its pools"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


@pytest.mark.parametrize("args", ["", '{"path":"/"', "null"])
@pytest.mark.parametrize("reason", ["length", "content_filter"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_never_runs_a_call_that_was_cut_short(
    stream: bool, reason: str, args: str
) -> None:
    ran: list[str] = []

    @tool
    def wipe(path: str = "everything") -> str:
        """Delete what is at a path."""
        ran.append(path)
        return "gone"

    call = {"index": 0, "id": "c1", "function": {"name": "wipe", "arguments": args}}
    if stream:
        cut = response(events(delta(tool_calls=[call]), delta(reason)), kind="text/event-stream")
        then = response(STREAM, kind="text/event-stream")
    else:
        choice = {"message": {"tool_calls": [call]}, "finish_reason": reason}
        cut, then = response(json.dumps({"choices": [choice]}).encode()), response(ANSWER)
    async with serving(answering(cut, then)) as server:
        agent = Agent(model_at(server.url), tools=[wipe])
        if stream:
            async with agent.stream("go") as running:
                async for _ in running:
                    pass
            result = running.result
        else:
            result = await agent.run("go")
    assert not ran
    assert result is not None
    assert result.output == "Hello"


def test_the_model_is_a_model() -> None:
    assert isinstance(OpenAI("m", base_url="http://h/v1"), Model)
