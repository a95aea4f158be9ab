"""Whole runs: in memory at a model that answers at once, over HTTP, and a thousand at a time."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import chat_server
import clients
import peers
from rows import Goal, Row, timed, times_as_long, times_faster
from timing import compare_async

import golem
from golem import AssistantMessage, ToolCall, ToolMessage
from golem.model import Delta, Request, Response

CONCURRENT = 1_000
PROGRAM = Path(__file__).parents[1] / "concurrent_runs.py"


def measure(rounds: int, concurrent: int) -> list[Row]:
    """Runs without and with a tool turn, over HTTP, and `concurrent` at once."""
    rows = [_in_memory("no tool", rounds, []), _in_memory("one tool turn", rounds, [look])]
    with chat_server.running() as server:
        rows += [_over_http(server, rounds), _concurrent(server, concurrent, rounds)]
    return rows


def look(n: int) -> str:
    """Look at something."""
    return f"seen {n}"


# In memory


class Answers:
    """A model that calls the tool that there is, and answers once it has a result."""

    def __init__(self) -> None:
        call = ToolCall.of("call_1", "look", '{"n": 1}')
        self._call = Response(AssistantMessage(tool_calls=(call,)), finish_reason="tool_call")
        self._text = Response(AssistantMessage("Done."))

    async def generate(self, request: Request) -> Response:
        """The call, or the text."""
        if request.tools and type(request.messages[-1]) is not ToolMessage:
            return self._call
        return self._text

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        """The same; nobody streams here."""
        yield await self.generate(request)


def _in_memory(title: str, rounds: int, tools: list[Callable[[int], str]]) -> Row:
    agent: golem.Agent[None] = golem.Agent(Answers(), tools=[golem.tool(_sync(t)) for t in tools])
    contestants: dict[str, clients.Run] = {"golem": lambda: agent.run(clients.PROMPT)}
    if peers.there("pydantic-ai"):
        contestants["pydantic-ai"] = _pydantic_in_memory(tools)
    if peers.there("openai-agents"):
        contestants["openai-agents"] = _agents_in_memory(tools)
    found = compare_async(contestants, rounds)
    with_tool = bool(tools)
    goals = [
        times_faster(found, "golem", "pydantic-ai", 30),
        times_faster(found, "golem", "openai-agents", 12),
    ]
    note = "an async tool" if with_tool else ""
    return timed(f"run in memory, {title}", "µs/run", found, goals if with_tool else [], note)


def _sync(function: Callable[[int], str]) -> Any:
    """The tool as an async function: a thread would be measured otherwise."""

    async def look(n: int) -> str:
        """Look at something."""
        return function(n)

    return look


def _pydantic_in_memory(tools: list[Callable[[int], str]]) -> clients.Run:
    m = peers.module("pydantic_ai.messages")

    def answer(messages: list[Any], info: Any) -> Any:
        last = messages[-1].parts[-1]
        if info.function_tools and last.part_kind != "tool-return":
            return m.ModelResponse([m.ToolCallPart("look", '{"n": 1}', "call_1")])
        return m.ModelResponse([m.TextPart("Done.")])

    model = peers.module("pydantic_ai.models.function").FunctionModel(answer)
    agent = peers.module("pydantic_ai").Agent(model, tools=[_sync(t) for t in tools])
    return lambda: agent.run(clients.PROMPT)


def _agents_in_memory(tools: list[Callable[[int], str]]) -> clients.Run:
    agents = peers.module("agents")
    responses = peers.module("openai.types.responses")
    agents.set_tracing_disabled(True)
    call = responses.ResponseFunctionToolCall(
        arguments='{"n": 1}', call_id="call_1", name="look", type="function_call"
    )
    text = responses.ResponseOutputText(annotations=[], text="Done.", type="output_text")
    said = responses.ResponseOutputMessage(
        id="m", content=[text], role="assistant", status="completed", type="message"
    )

    class Model(agents.Model):  # type: ignore[misc, name-defined]
        async def get_response(self, **given: Any) -> Any:
            answered = given["input"][-1].get("type", "").endswith("output")
            output = said if answered or not tools else call
            return agents.ModelResponse(output=[output], usage=agents.Usage(), response_id=None)

        def stream_response(self, *given: Any, **named: Any) -> Any:
            raise NotImplementedError

    functions = [agents.function_tool(_sync(tool)) for tool in tools]
    agent = agents.Agent(name="a", model=Model(), tools=functions)
    return lambda: agents.Runner.run(agent, clients.PROMPT)


# Over HTTP


def _over_http(server: str, rounds: int) -> Row:
    url = f"{server}/plain/v1"
    contestants = {"httpx request": clients.httpx_request(url), "golem": clients.golem_run(url)}
    contestants |= {n: make(url) for n, make in clients.RUNS.items() if peers.there(n)}
    found = compare_async(contestants, 3 * rounds, close=clients.close)
    goals = [times_as_long(found, "golem", "httpx request", 1.25)]
    return timed("run over HTTP, stock httpx", "µs/run", found, goals, "client CPU")


def _concurrent(server: str, concurrent: int, rounds: int) -> Row:
    """Each in a process of its own, so that memory is whose it is; the best of some rounds."""
    url = f"{server}/late/100/v1"
    names = ["golem, aiohttp", *(name for name in clients.RUNS if peers.there(name))]
    best: dict[str, dict[str, float]] = {}
    for _ in range(min(rounds, 3)):
        for name in names:
            found = _alone(name, url, concurrent)
            if name not in best or found["cpu"] < best[name]["cpu"]:
                best[name] = found
    ours = best["golem, aiohttp"]

    def ratio(peer: str) -> float | None:
        return best[peer]["cpu"] / ours["cpu"] if peer in best else None

    goals = [
        Goal("errors", ours["errors"], 0),
        Goal("pydantic-ai / golem, aiohttp", ratio("pydantic-ai"), 10, "at least"),
        Goal("openai-agents / golem, aiohttp", ratio("openai-agents"), 10, "at least"),
        Goal("MB that memory grew", ours["grown"], 40),
    ]
    figures: dict[str, tuple[float, float | None]] = {
        name: (found["cpu"] * 1e6, found["wall"] * 1e6) for name, found in best.items()
    }
    grown = ", ".join(f"{name} {found['grown']:.0f} MB" for name, found in best.items())
    failed = ", ".join(f"{name} {found['errors']:.0f}" for name, found in best.items())
    note = f"an answer takes 100 ms; memory grew: {grown}; errors: {failed}"
    return Row(f"{concurrent:,} concurrent runs", "µs/run", figures, goals, note)


def _alone(name: str, url: str, concurrent: int) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, str(PROGRAM), name, url, str(concurrent)],
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, float] = json.loads(done.stdout)
    return found
