"""Agents of everyone at the same server: a run, or a stream read to its end, as one coroutine.

Each maker takes a base URL and gives a coroutine function; clients and agents are made once and
kept, as applications keep them. What a reader gets is counted, so that nobody skips the work.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import peers

import golem
import golem_adapters

Run = Callable[[], Awaitable[object]]
_open: list[Callable[[], Awaitable[object]]] = []


async def close() -> None:
    """Close every client that was made."""
    while _open:
        await _open.pop()()


PROMPT = "Say something."
BODY = {"model": "m", "messages": [{"role": "user", "content": PROMPT}]}


def _httpx() -> httpx.AsyncClient:
    client = httpx.AsyncClient()
    _open.append(client.aclose)
    return client


def httpx_bytes(url: str) -> Run:
    """The floor of a stream on httpx: counting its bytes."""
    client = _httpx()

    async def read() -> int:
        count = 0
        sent = BODY | {"stream": True}
        async with client.stream("POST", f"{url}/chat/completions", json=sent) as response:
            async for data in response.aiter_bytes():
                count += len(data)
        return count

    return read


def httpx_request(url: str) -> Run:
    """The floor of a run over HTTP: one request, and its answer decoded."""
    client = _httpx()

    async def ask() -> object:
        response = await client.post(f"{url}/chat/completions", json=BODY)
        return json.loads(response.content)["choices"][0]["message"]["content"]

    return ask


def _model(url: str, *, aiohttp: bool) -> golem_adapters.OpenAI:
    if aiohttp:
        from httpx_aiohttp import HttpxAiohttpClient

        client = HttpxAiohttpClient()
        _open.append(client.aclose)
        return golem_adapters.OpenAI("m", api_key="k", base_url=url, http_client=client)
    model = golem_adapters.OpenAI("m", api_key="k", base_url=url)
    _open.append(model.aclose)
    return model


def golem_stream(url: str, *, aiohttp: bool = False) -> Run:
    """Every event of golem's stream."""
    agent: golem.Agent[None] = golem.Agent(_model(url, aiohttp=aiohttp))

    async def read() -> int:
        count = 0
        async with agent.stream(PROMPT) as stream:
            async for _ in stream:
                count += 1
        return count

    return read


def golem_run(url: str, *, aiohttp: bool = False) -> Run:
    """A run of golem's."""
    agent: golem.Agent[None] = golem.Agent(_model(url, aiohttp=aiohttp))
    return lambda: agent.run(PROMPT)


def _pydantic_agent(url: str) -> Any:
    model = peers.module("pydantic_ai.models.openai").OpenAIChatModel(
        "m",
        provider=peers.module("pydantic_ai.providers.openai").OpenAIProvider(
            base_url=url, api_key="k"
        ),
    )
    return peers.module("pydantic_ai").Agent(model)


def pydantic_stream(url: str) -> Run:
    """pydantic-ai's `run_stream_events`, every event."""
    agent = _pydantic_agent(url)

    async def read() -> int:
        count = 0
        async with agent.run_stream_events(PROMPT) as events:
            async for _ in events:
                count += 1
        return count

    return read


def pydantic_run(url: str) -> Run:
    """pydantic-ai's run."""
    agent = _pydantic_agent(url)
    return lambda: agent.run(PROMPT)


def _openai_client(url: str) -> Any:
    client = peers.module("openai").AsyncOpenAI(base_url=url, api_key="k", max_retries=0)
    _open.append(client.close)
    return client


def openai_stream(url: str) -> Run:
    """The openai SDK's stream, every chunk."""
    client = _openai_client(url)

    async def read() -> int:
        count = 0
        async for _ in await client.chat.completions.create(**BODY, stream=True):
            count += 1
        return count

    return read


def _agents_agent(url: str) -> Any:
    agents = peers.module("agents")
    agents.set_tracing_disabled(True)
    model = agents.OpenAIChatCompletionsModel("m", _openai_client(url))
    return agents.Agent(name="a", model=model)


def agents_stream(url: str) -> Run:
    """openai-agents' streamed run, every event."""
    runner, agent = peers.module("agents").Runner, _agents_agent(url)

    async def read() -> int:
        count = 0
        async for _ in runner.run_streamed(agent, PROMPT).stream_events():
            count += 1
        return count

    return read


def agents_run(url: str) -> Run:
    """openai-agents' run."""
    runner, agent = peers.module("agents").Runner, _agents_agent(url)
    return lambda: runner.run(agent, PROMPT)


def langchain_stream(url: str) -> Run:
    """langchain-openai's `astream`, every chunk."""
    model = peers.module("langchain_openai").ChatOpenAI(model="m", base_url=url, api_key="k")

    async def read() -> int:
        count = 0
        async for _ in model.astream(PROMPT):
            count += 1
        return count

    return read


def litellm_stream(url: str) -> Run:
    """Every chunk of litellm's stream."""
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)
    completion = peers.module("litellm").acompletion
    given = BODY | {"model": "openai/m", "api_base": url, "api_key": "k", "stream": True}

    async def read() -> int:
        count = 0
        async for _ in await completion(**given):
            count += 1
        return count

    return read


STREAMS: dict[str, Callable[[str], Run]] = {
    "pydantic-ai": pydantic_stream,
    "openai-agents": agents_stream,
    "openai SDK": openai_stream,
    "langchain-openai": langchain_stream,
    "litellm": litellm_stream,
}
"""How each of the others streams."""

RUNS: dict[str, Callable[[str], Run]] = {"pydantic-ai": pydantic_run, "openai-agents": agents_run}
"""How each of the others runs."""
