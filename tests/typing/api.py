"""Public usage as type checkers see it: checked by mypy and pyright, strict, and never run."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, assert_type

from golem import (
    Agent,
    AssistantMessage,
    Event,
    HistoryRepair,
    Message,
    Model,
    ModelRetry,
    Part,
    Partial,
    PendingCall,
    Result,
    RunContext,
    RunError,
    RunStream,
    Settings,
    Tool,
    ToolResult,
    UnknownEvent,
    UserMessage,
    decode_event,
    dump_history,
    load_history,
    new_id,
    normalize_history,
    partial_from,
    tool,
)
from golem.events import MessageAdded, RunFinished, Terminal, TextDelta
from golem.model import Delta, Request, Response
from golem.options import RunOptions
from golem.testing import ScriptedModel
from golem.testing.conformance import CHECKS, Subject, conforms
from golem.testing.judge import ChatJudge, Judge, Violation, misbehave
from golem.web import (
    EncoderFactory,
    MemoryReplay,
    Replay,
    SQLiteReplay,
    agui,
    chat_chunks,
    chat_completion,
    golem_events,
    messages_from_ui,
    sse,
    ui_messages,
    verbatim,
)
from golem.web.asgi import App, app, header
from golem_adapters import OpenAI


@dataclass
class Deps:
    user: str


@tool
async def weather(context: RunContext[Deps], city: str) -> str:
    """A tool with the run's context."""
    if not city:
        raise ModelRetry("name a city")
    return f"{context.deps.user}: sunny in {city}, call {context.idempotency_key}"


@tool(name="shot", retries=2)
def screenshot(width: int = 80) -> ToolResult:
    """A tool with options and media."""
    return ToolResult("shot", (Part.image(b"x" * width, "image/png"),))


def plain(context: RunContext, text: str) -> str:
    """A bare context is a complete annotation."""
    return text


assert_type(weather, Tool)
assert_type(screenshot, Tool)


async def instructions(context: RunContext[Deps]) -> str:
    """Instructions of a run."""
    return f"The user is {context.deps.user}."


async def observe(event: Event) -> None:
    """An observer."""
    assert_type(event.seq, int)
    assert_type(event.kind, str)
    if isinstance(event, MessageAdded):
        assert_type(event.message, Message)


async def newest(history: list[Message]) -> AsyncIterator[Message]:
    """A processor."""
    for message in history[-20:]:
        yield message


class Echo:
    """A model of one's own."""

    async def generate(self, request: Request) -> Response:
        """Answer whole."""
        return Response(AssistantMessage(str(len(request.messages))))

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        """Answer in fragments."""
        yield await self.generate(request)


model: Model = Echo()
scripted: Model = ScriptedModel(["x", AssistantMessage("y"), OSError()])

agent = Agent[Deps](
    model,
    instructions=["fixed", instructions, lambda context: context.run_id],
    tools=[weather, screenshot, plain],
    history_processor=newest,
    on_event=observe,
    settings=Settings(temperature=0.5),
    max_turns=3,
)
assert_type(agent, Agent[Deps])

without_deps = Agent("openai:gpt-5-mini", history_processor=lambda history: history[-2:])
assert_type(without_deps, Agent[None])


async def runs(history: list[Message]) -> None:
    """A run, its result, and the next one."""
    result = await agent.run(
        "hi",
        history=iter(history),
        deps=Deps("ada"),
        run_id="r",
        conversation_id=new_id(),
        parts=[Part.image_url("https://example.com/x.png")],
        tools=[plain],
        model="openai:gpt-5-mini",
        settings=Settings(),
        on_event=lambda event: None,
    )
    assert_type(result, Result[str])
    assert_type(result.output, str)
    assert_type(result.messages, list[Message])
    assert_type(result.repair, HistoryRepair)
    again = await without_deps.run(history=load_history(dump_history(result.messages)))
    assert_type(again, Result[str])
    assert_type(agent.run_sync("hi", deps=Deps("ada")), Result[str])
    await without_deps.run("hi", deps=Deps("ada"))  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


async def streams() -> None:
    """A stream, its events and what it leaves."""
    async with agent.stream("hi", deps=Deps("ada")) as stream:
        assert_type(stream, RunStream[str])
        async for event in stream:
            assert_type(event, Event)
            match event:
                case TextDelta(text=text):
                    assert_type(text, str)
                case RunFinished(result=result):
                    assert_type(result.messages, list[Message])
                case _:
                    pass
        async for piece in stream.text():
            assert_type(piece, str)
    assert_type(stream.outcome, Terminal | None)
    assert_type(stream.result, Result[str] | None)
    assert_type(stream.partial, Partial | None)


async def failures() -> None:
    """Evidence, and going on from it."""
    try:
        await without_deps.run("hi")
    except RunError as error:
        if error.partial is not None:
            assert_type(error.partial.resume_messages, list[Message])
            await without_deps.run("continue", history=error.partial.messages)
    except BaseException as error:
        assert_type(partial_from(error), Partial | None)
        raise


def values() -> None:
    """Histories and events at rest."""
    history: list[Message] = [UserMessage("q"), AssistantMessage("a")]
    messages, report = normalize_history(history)
    assert_type(messages, list[Message])
    assert_type(report, HistoryRepair)
    assert_type(decode_event(b"{}"), Event | UnknownEvent)


async def judges() -> None:
    """A provider that is played, and the suite of adapters."""
    async with ChatJudge(["hi"], misbehave.together(misbehave.trickle(), misbehave.closes())) as j:
        assert_type(j, ChatJudge)
        assert_type(j.violations, list[Violation])
        assert_type(j.requests[0].json, dict[str, Any] | None)

    def model(judge: Judge) -> Model:
        return OpenAI("m", base_url=judge.base_url, api_key=judge.key)

    subject = Subject(model, ChatJudge, frozenset({"thinking"}))
    assert_type(await conforms(subject), None)
    for check in CHECKS:
        assert_type(check.__name__, str)
        await check(subject)


async def on_the_web(agent: Agent[None, str], body: bytes) -> None:
    """Event streams of any source, in every protocol, and what clients post."""
    encoders: list[EncoderFactory] = [
        golem_events,
        ui_messages,
        agui,
        chat_chunks(model="m", created=1),
        functools.partial(ui_messages, version=7, describe=verbatim),
    ]
    for encode in encoders:
        chunks = sse(agent.stream("q"), encode=encode, ping=None, after=None)
        async for chunk in chunks:
            assert_type(chunk, bytes)
        await chunks.aclose()
    events: list[Event | UnknownEvent] = [decode_event(body)]
    as_iterator: AsyncIterator[bytes] = sse(events)
    del as_iterator
    assert_type(messages_from_ui(body), list[Message])
    assert_type(chat_completion(await agent.run("q"), model="m", created=1), bytes)


def serves(replay: Replay) -> None:
    """An app whose agents have options of the run beside them."""

    async def agent_for(identity: str) -> tuple[Agent[Deps], RunOptions[Deps]]:
        return agent, {"deps": Deps("en")}

    def may_answer(identity: str, call: PendingCall) -> bool:
        return call.kind == "approval"

    async def on_end(identity: str, outcome: Terminal) -> None:
        assert_type(outcome.seq, int)

    served = app(
        agent_for,
        authenticate=lambda scope: header(scope, "x-name") or None,
        replay=replay,
        on_disconnect="detach",
        may_answer=may_answer,
        on_end=on_end,
        seal_key=[b"new" * 8, b"old" * 8],
    )
    assert_type(served, App)
    stores: list[Replay] = [MemoryReplay(ttl=60), SQLiteReplay("replay.db")]
    assert_type(stores[0], Replay)
