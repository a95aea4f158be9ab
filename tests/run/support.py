"""What the tests of runs share: observers that remember, and checks every scenario has to pass."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any

import anyio.lowlevel

from golem import (
    Agent,
    AssistantMessage,
    Event,
    Message,
    Partial,
    Result,
    ToolCall,
    ToolMessage,
    normalize_history,
    tool,
)
from golem.events import TERMINAL, MessageAdded
from golem.history.repair import NO_RESULT
from golem.model import Delta, Request, Response
from golem.testing import ScriptedModel


class Recorder:
    """An observer that remembers every event; give it to `on_event`."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def __call__(self, event: Event) -> None:
        self.events.append(event)

    @property
    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


class SlowRecorder(Recorder):
    """The same, awaiting each time, as an observer that writes to a file does."""

    async def __call__(self, event: Event) -> None:  # type: ignore[override]
        self.events.append(event)
        await anyio.lowlevel.checkpoint()


class Gives:
    """A model that gives whatever it is told to, whether or not a model may."""

    def __init__(self, *items: Any) -> None:
        self.items = items
        self.requests: list[Request] = []

    async def generate(self, request: Request) -> Response:
        self.requests.append(request)
        for item in self.items:
            if isinstance(item, BaseException):
                raise item
        found: Response = self.items[-1]
        return found

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        self.requests.append(request)
        for item in self.items:
            if isinstance(item, BaseException):
                raise item
            yield item


def asks(*calls: tuple[str, str] | tuple[str, str, str], text: str = "") -> AssistantMessage:
    """An assistant message with these calls: id, name and argument text (``{}``)."""
    made = [ToolCall.of(call[0], call[1], call[2] if len(call) == 3 else "{}") for call in calls]
    return AssistantMessage(text, tool_calls=tuple(made))


def well_formed(events: Sequence[Event]) -> None:
    """Assert what holds for the events of every run: numbered, stamped, one terminal, last."""
    assert list(range(len(events))) == [event.seq for event in events]
    assert len({event.run_id for event in events}) == 1
    assert all(event.run_id and event.conversation_id for event in events)
    assert [False] * (len(events) - 1) + [True] == [isinstance(event, TERMINAL) for event in events]


def announced(events: Sequence[Event]) -> list[Message]:
    """The messages that the events say were added."""
    return [event.message for event in events if isinstance(event, MessageAdded)]


async def resumes(partial: Partial, *, synthesized: Sequence[str] = ()) -> None:
    """Assert that one more run continues from the partial, repairing exactly these calls."""
    model = ScriptedModel(["resumed"])
    before = list(partial.messages)
    result = await Agent(model).run("continue", history=partial.messages)
    assert before == partial.messages
    assert result.output == "resumed"
    assert tuple(synthesized) == result.repair.synthesized
    assert () == result.repair.dropped == result.repair.moved
    assert paired(model.requests[0].messages)
    assert partial.conversation_id == result.conversation_id
    assert partial.run_id != result.run_id


def paired(messages: Sequence[Message]) -> bool:
    """Whether every call has its result and every result its call: nothing is left to repair."""
    repaired, report = normalize_history(messages)
    return list(messages) == repaired and not (report.synthesized or report.dropped or report.moved)


def closing(call_id: str, name: str, **stamps: str) -> ToolMessage:
    """The fixed result of a call that has none."""
    return ToolMessage(NO_RESULT, tool_call_id=call_id, tool_name=name, **stamps)


@tool
async def echo(text: str = "echoed") -> str:
    """Say it again."""
    return text


@tool
async def boom() -> str:
    """Fail."""
    raise RuntimeError("boom")


def contents(messages: Any) -> list[str]:
    """The text of each message."""
    return [message.content for message in messages]


async def consume(agent: Agent[Any], streamed: bool, **options: Any) -> Result[str]:
    """The result of a run asked "p", in one of its two forms."""
    if not streamed:
        return await agent.run("p", **options)
    async with agent.stream("p", **options) as stream:
        async for _ in stream:
            pass
    assert stream.result is not None
    return stream.result
