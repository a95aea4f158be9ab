"""Runs of every kind as the events of their streams, and those as frames."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from golem import AssistantMessage, DeferredResults, Event, RunError, ToolMessage
from golem.testing import Watch
from golem.web import EncoderFactory, Frame, Numbered
from tests.run import virtual_time
from tests.run.conversation_plans import PAUSING, PLANS, Plan
from tests.run.conversation_play import play
from tests.run.scenarios import SCENARIOS, World


def scenario(name: str) -> list[Event]:
    """The events of one of the scenarios that the sweeps play too."""

    async def go() -> list[Event]:
        events: list[Event] = []
        try:
            async with World(SCENARIOS[name]).open(Watch()) as stream:
                async for event in stream:
                    events.append(event)
        except RunError:
            pass  # said by its terminal event
        return events

    return virtual_time.run(go, backend="asyncio")


def approved(call_id: str) -> bool:
    """What somebody says to a call that asks."""
    return call_id in ("a", "c")


def played(plan: Plan, *, resume: bool = False) -> list[list[Event]]:
    """The events of a drawn run, and of the one that answers what it may have paused for."""

    plan = replace(plan, prompt=plan.prompt or "p", observer_fails=False)

    async def go() -> list[list[Event]]:
        first = await play(plan, [], "run-1")
        runs = [first.events]
        if resume and first.result is not None and first.result.pending:
            pending = first.result.pending
            ids = [call.id for message in answers(first.events) for call in message.tool_calls]
            if len(ids) > len(set(ids)):
                return runs  # nobody could tell which of them an answer is for
            said = DeferredResults(
                approvals={c.call_id: approved(c.call_id) for c in pending.approvals},
                external={c.call_id: "from elsewhere" for c in pending.external},
            )
            again = await play(plan, first.result.messages, "run-2", deferred=said)
            runs.append(again.events)
        return runs

    return virtual_time.run(go, backend="asyncio")


RUNS: st.SearchStrategy[list[list[Event]]] = st.one_of(
    PLANS.map(played), PAUSING.map(lambda plan: played(plan, resume=True))
)
"""Events of random runs; of one that paused, and the one that resumes it."""


def frames(
    events: Sequence[Event], encode: EncoderFactory, after: str | None = None
) -> list[Frame]:
    """All frames of a stream."""
    numbered = Numbered(encode(), after)
    found = [frame for event in events for frame in numbered.feed(event)]
    return found + numbered.close()


def body(events: Sequence[Event], encode: EncoderFactory) -> bytes:
    """The bytes of a stream, without comments."""
    return b"".join(frame.encode() for frame in frames(events, encode))


def answers(events: Sequence[Event]) -> list[AssistantMessage]:
    """What the model has answered in a run."""
    return [m for m in _added(events) if isinstance(m, AssistantMessage)]


def results(events: Sequence[Event]) -> list[ToolMessage]:
    """What the calls of a run came to."""
    return [m for m in _added(events) if isinstance(m, ToolMessage)]


def _added(events: Sequence[Event]) -> list[Any]:
    return [event.message for event in events if event.kind == "message_added"]
