"""What is demanded of a run that has died, or ended otherwise, and what watches it until then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import anyio
import anyio.lowlevel
from msgspec import Struct

from golem._run.evidence import partial_from
from golem.agent import Agent
from golem.errors import RunError
from golem.events import TERMINAL, Event, MessageAdded, RunFailed, RunStopped, Terminal
from golem.history.repair import normalize_history
from golem.history.report import HistoryRepair
from golem.messages import Message
from golem.result import Partial
from golem.testing.scripted import ScriptedModel
from golem.testing.strict import Strict

BEGINNINGS: Final = ("model_started", "tool_started")


class Watch:
    """What one run said: give it as ``on_event=``, and its `write` as ``journal=``.

    Both take a moment, as whatever writes to a file or a socket does, so that a sweep dies there
    too. `begun` holds the suspension at which each event was told.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.journal: list[Message] = []
        self.begun: list[int] = []
        self.suspended = 0

    async def __call__(self, event: Event) -> None:
        """Take an event."""
        self.events.append(event)
        self.begun.append(self.suspended)
        await anyio.lowlevel.checkpoint()

    async def write(self, message: Message) -> None:
        """Take a message for good."""
        await anyio.lowlevel.checkpoint()
        self.journal.append(message)
        await anyio.lowlevel.checkpoint()


class Death(Struct, frozen=True):
    """One run that died, or ended otherwise, at the `point` of a sweep.

    This is demanded of every one, and AssertionError raised otherwise:

    - the run got the backend's own cancellation (`error`), nothing else, and began no request and
      no tool behind the next suspension; what stopped it otherwise raised nothing;
    - the observer saw events numbered without gaps and exactly one terminal event (`terminal`);
    - the exception, the terminal event and the stream have the same evidence (`partial`);
    - ``partial.messages`` continues with one more run, repaired in the asked turn only, and not
      at all where a stop has closed it, with ``partial.resume_messages`` neither;
    - so does the journal, where there is one; it has every message that was said to be added;
    - no task is left.
    """

    point: int
    error: BaseException | None
    terminal: Terminal
    partial: Partial | None
    events: Sequence[Event]
    journal: Sequence[Message]
    repair: HistoryRepair | None
    """What one more run from the partial had to repair."""


async def examine(
    watch: Watch, error: BaseException | None, point: int, history: Sequence[Message]
) -> Death:
    """What became of the run that died at that `point`. Raises AssertionError; see `Death`.

    `error` is what the run raised, if it did; `history` is what was journaled before the run.
    """
    terminal = well_formed(watch.events)
    partial = evidence_of(terminal)
    if error is not None and not isinstance(error, RunError):
        expected = anyio.get_cancelled_exc_class()
        demand(isinstance(error, expected), f"the run got {error!r}, not its cancellation")
        for event, at in zip(watch.events, watch.begun, strict=True):
            late = event.kind in BEGINNINGS and at > point + 1
            demand(not late, f"{event.kind} after the cancellation")
    if error is not None:
        found = partial_from(error)
        demand(found == partial, f"the exception has other evidence: {found}")
    repair = None
    if partial is not None:
        repair = await resumes(partial.messages)
    if watch.journal:
        added = [e.message for e in watch.events if isinstance(e, MessageAdded)]
        lost = [message for message in added if message not in watch.journal]
        demand(not lost, f"not in the journal: {lost}")
        await resumes([*history, *watch.journal], whole=False)
    return Death(point, error, terminal, partial, watch.events, watch.journal, repair)


async def resumes(messages: Sequence[Message], *, whole: bool = True) -> HistoryRepair:
    """Assert that one more run continues from these messages; what it had to repair.

    `whole`: nothing but missing results of one turn may be repaired.
    """
    before = list(messages)
    model = ScriptedModel(["resumed"])
    result = await Agent(Strict(model)).run("continue", history=messages)
    demand(before == list(messages), "a run has changed the history it was given")
    repair = result.repair
    if whole:
        demand(not repair.dropped and not repair.moved, f"more than gaps was repaired: {repair}")
        turns = {change.input_index for change in repair.changes if change.kind == "synthesized"}
        demand(len(turns) <= 1, f"several turns had gaps: {repair}")
    again, second = normalize_history(result.messages)
    demand(list(again) == result.messages and not mended(second), "repair is not stable")
    return repair


def mended(repair: HistoryRepair) -> bool:
    """Whether anything was repaired; arguments that were cut off are only told of."""
    return any(change.kind != "truncated" for change in repair.changes)


def well_formed(events: Sequence[Event]) -> Terminal:
    """Assert that events are numbered, of one run, with one terminal event, the last; that one."""
    demand(bool(events), "no terminal event")
    numbers = [event.seq for event in events]
    demand(numbers == list(range(len(events))), f"events with gaps: {numbers}")
    demand(len({event.run_id for event in events}) == 1, "events of several runs")
    *others, terminal = events
    ended = [event.kind for event in others if isinstance(event, TERMINAL)]
    demand(not ended, f"an event behind a terminal event: {ended}")
    if not isinstance(terminal, TERMINAL):
        raise AssertionError(f"the last event is {terminal.kind}")
    return terminal


def evidence_of(terminal: Terminal) -> Partial | None:
    """The partial of a terminal event, or what the partial of a finished run would be."""
    if isinstance(terminal, (RunStopped, RunFailed)):
        return terminal.partial
    result = terminal.result
    return Partial(
        messages=result.messages,
        new_messages=result.new_messages,
        run_id=result.run_id,
        conversation_id=result.conversation_id,
        usage=result.usage,
        requests=result.requests,
        tool_calls=result.tool_calls,
        finish_reason=result.finish_reason,
        cost=result.cost,
    )


def demand(met: bool, otherwise: str) -> None:
    """Raise AssertionError unless it is met, also where ``assert`` is switched off."""
    if not met:
        raise AssertionError(otherwise)
