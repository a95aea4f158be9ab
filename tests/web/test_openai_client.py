"""The official OpenAI client against an endpoint of ours: a real server on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from openai import APIError, OpenAI
from openai.types.chat import ChatCompletion

from golem import Agent, AssistantMessage, Thinking, ToolDeferred, Usage, tool
from golem.rawjson import BLANKS
from golem.result import Result
from golem.testing import FunctionModel, Scripted, dies
from golem.web import chat_chunks, chat_completion, messages_from_chat, sse
from golem.web.sse import HEADERS
from tests.run.support import asks

SCRIPT: dict[str, list[Scripted]] = {
    "plain": [AssistantMessage("Hello, you.", thinking=(Thinking("hm"),))],
    "tools": [asks(("1", "look", '{"n":"x"}'), text="Let me see."), "It is 5."],
    "external": [asks(("1", "elsewhere", '{"n":"x"}'), text="Over to you.")],
    "dies": [dies("a longer answer", 1, OSError("password@host"))],
}


@tool
def look(n: str) -> str:
    """Look it up."""
    return n


@tool
def elsewhere(n: str) -> str:
    """Ask for a result from elsewhere."""
    raise ToolDeferred("external")


def agent_for(script: str) -> Agent[Any, str]:
    """The agent that plays a script."""
    answers = iter(SCRIPT[script])
    model = FunctionModel(lambda _: next(answers), usage=Usage(10, 4, 3))
    return Agent(model, tools=[look, elsewhere], retry=None)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """``POST /v1/chat/completions``: the model's name is the script to play."""
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    asked = httpx.Response(200, content=body).json()
    agent, history = agent_for(asked["model"]), messages_from_chat(body)
    about: dict[str, Any] = {"model": asked["model"], "created": 1_700_000_000}
    headers = [(b"content-type", b"application/json")]
    if asked.get("stream"):
        headers = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    if asked.get("stream"):
        usage = bool((asked.get("stream_options") or {}).get("include_usage"))
        encode = chat_chunks(**about, include_usage=usage)
        async for chunk in sse(agent.stream(None, history=history), encode=encode):
            await send({"type": "http.response.body", "body": chunk, "more_body": True})
        last = b""
    else:
        last = chat_completion(await agent.run(None, history=history), **about)
    await send({"type": "http.response.body", "body": last})


@pytest.fixture(scope="module")
def client() -> Iterator[OpenAI]:
    """The official client, talking to `app` over a socket."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    thread = threading.Thread(target=asyncio.run, args=(server.serve([listening]),))
    thread.start()
    try:
        with OpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="-", max_retries=0) as client:
            yield client
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


ASKED: Any = [{"role": "system", "content": "be nice"}, {"role": "user", "content": "hi"}]


@contextlib.contextmanager
def streamed(client: OpenAI, model: str, **options: Any) -> Iterator[Any]:
    with client.chat.completions.stream(model=model, messages=ASKED, **options) as stream:
        yield stream


@pytest.mark.parametrize(
    ("script", "words"),
    [("plain", "Hello, you."), ("tools", "Let me see.\n\nIt is 5.")],
)
def test_a_streamed_answer(client: OpenAI, script: str, words: str) -> None:
    """Put together by the client's own accumulator."""
    with streamed(client, script, stream_options={"include_usage": True}) as stream:
        whole = stream.get_final_completion()
    (choice,) = whole.choices
    assert (choice.message.content, choice.finish_reason) == (words, "stop")
    assert choice.message.tool_calls is None
    assert (whole.model, whole.created) == (script, 1_700_000_000)
    turns = len(SCRIPT[script])
    assert whole.usage.prompt_tokens == 10 * turns
    assert whole.usage.total_tokens == 14 * turns
    assert whole.usage.prompt_tokens_details.cached_tokens == 3 * turns


def test_thinking_is_where_clients_look_for_it(client: OpenAI) -> None:
    """As `reasoning_content`, beside the content."""
    chunks = client.chat.completions.create(model="plain", messages=ASKED, stream=True)
    deltas = [chunk.choices[0].delta for chunk in chunks]
    thought = "".join(getattr(delta, "reasoning_content", "") for delta in deltas)
    assert thought == "hm"
    whole = client.chat.completions.create(model="plain", messages=ASKED)
    assert whole.choices[0].message.model_extra == {"reasoning_content": "hm"}


def test_a_plain_answer(client: OpenAI) -> None:
    """The run's output, without what was said on the way."""
    whole = client.chat.completions.create(model="tools", messages=ASKED)
    assert isinstance(whole, ChatCompletion)
    (choice,) = whole.choices
    assert (choice.message.content, choice.finish_reason) == ("It is 5.", "stop")
    assert whole.usage is not None
    assert whole.usage.completion_tokens == 8


def test_a_call_for_the_client(client: OpenAI) -> None:
    """Streamed or not, it can answer it in its next request."""
    whole = client.chat.completions.create(model="external", messages=ASKED)
    with streamed(client, "external") as stream:
        together = stream.get_final_completion()
    for (choice,) in (whole.choices, together.choices):
        assert choice.finish_reason == "tool_calls"
        assert choice.message.content == "Over to you."
        (call,) = choice.message.tool_calls or []
        assert call.type == "function"
        assert (call.id, call.function.name) == ("1", "elsewhere")
        assert call.function.arguments == '{"n":"x"}'
    asked = whole.choices[0].message.model_dump(exclude_none=True)
    answer = {"role": "tool", "tool_call_id": "1", "content": "5"}
    history = messages_from_chat([*ASKED, asked, answer])
    assert [m.content for m in history] == ["be nice", "hi", "Over to you.", "5"]


def test_a_failure_inside_the_stream_is_the_client_s_error(client: OpenAI) -> None:
    """It raises what it was told, which is nothing of the server's insides."""
    chunks = client.chat.completions.create(model="dies", messages=ASKED, stream=True)
    said: list[str] = []
    with pytest.raises(APIError, match=r"failed at the model stage \(OSError\)") as caught:
        said.extend(chunk.choices[0].delta.content or "" for chunk in chunks)
    assert "a longer answer".startswith("".join(said))
    assert "".join(said)
    assert "password" not in str(caught.value.body)


def test_a_completion_of_any_result() -> None:
    """A value as JSON; cut off as the API says it; nothing said as nothing."""

    def body(result: Result[Any]) -> Any:
        data = chat_completion(result, model="m", created=1)
        assert data.strip(BLANKS) == data
        return ChatCompletion.model_validate_json(data, strict=False).choices[0]

    value = body(Result({"n": 1}, [], [], "r", "c"))
    assert value.message.content == '{"n":1}'
    cut = body(Result("a", [], [], "r", "c", finish_reason="length"))
    assert cut.finish_reason == "length"
    odd = body(Result(object(), [], [], "r", "c"))
    assert odd.message.content == '{"unencodable":"object"}'
