"""Conversations of many runs, each of which may go any way there is (a Hypothesis state machine).

Every run goes on from what an earlier one has left behind: its result, its partial, its journal,
stored and loaded, damaged or not, paused or not. Whatever happened, the laws of
``conversation_laws`` hold after each. ``nox -s fuzz`` plays it for much longer.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import note, settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, multiple, rule

from golem import (
    DeferredResults,
    HistoryError,
    Message,
    ToolMessage,
    dump_history,
    encode_event,
    load_history,
    normalize_history,
)
from golem._run.resume import pending_calls
from golem.events import TERMINAL, RunFinished
from golem.history.edit import turns
from tests.run import virtual_time
from tests.run.conversation_laws import obey, spelled
from tests.run.conversation_plans import (
    ANSWERS,
    DAMAGES,
    PAUSING,
    PLANS,
    Answers,
    Damage,
    Plan,
)
from tests.run.conversation_play import Played, play


@dataclass(frozen=True)
class Stored:
    """A conversation as somebody keeps it."""

    messages: tuple[Message, ...] = ()


class Conversations(RuleBasedStateMachine):
    """Runs, and what becomes of what they leave behind."""

    backend = "asyncio"
    stored = Bundle("stored")

    def __init__(self) -> None:
        super().__init__()
        self.runs = 0

    @initialize(target=stored)
    def begin(self) -> Stored:
        return Stored()

    @rule(target=stored, history=stored, damages=DAMAGES, plan=PLANS)
    def run(self, history: Stored, damages: list[Damage], plan: Plan) -> Any:
        """A run from any history there is, whatever has happened to it."""
        history = damaged(history, damages)
        if not (plan.prompt or normalize_history(history.messages)[0]):
            return as_before(history)
        return self._left(self._play(plan, history, twice=plan.repeatable))

    @rule(target=stored, history=stored, pausing=PAUSING, plan=PLANS, answers=ANSWERS)
    def pause_and_resume(self, history: Stored, pausing: Plan, plan: Plan, answers: Answers) -> Any:
        """A run that waits for somebody, most likely, and what becomes of it then."""
        if not (pausing.prompt or normalize_history(history.messages)[0]):
            return as_before(history)
        played = self._play(pausing, history)
        evidence = played.evidence
        paused = Stored(tuple(evidence.messages)) if evidence is not None else history
        return self.answer(paused, [], plan, answers)

    @rule(target=stored, history=stored, damages=DAMAGES, plan=PLANS, answers=ANSWERS)
    def resume(self, history: Stored, damages: list[Damage], plan: Plan, answers: Answers) -> Any:
        """Answer whatever a history has pending, in any way."""
        return self.answer(history, damages, plan, answers)

    def answer(self, history: Stored, damages: list[Damage], plan: Plan, answers: Answers) -> Any:
        """The same; nothing may run where the answers do not fit."""
        history = damaged(history, damages)
        pending = list(dict.fromkeys(c.id for c in pending_calls(history.messages)))
        said: dict[str, Any] = dict(zip(pending, answers.said, strict=False))
        if answers.odd:
            said["nobody asked"] = True
        deferred = DeferredResults(
            approvals={k: v for k, v in said.items() if not isinstance(v, str)},
            external={k: v for k, v in said.items() if isinstance(v, str)},
        )
        complete = len(said) == len(pending) or answers.unresolved == "interrupt"
        given = {"deferred": deferred, "unresolved": answers.unresolved}
        if not pending or answers.odd or not complete:
            with pytest.raises(HistoryError):
                self._play(plan, history, **given)
            return as_before(history)
        played = self._play(plan, history, **given)
        self._check_answers(played, said)
        return self._left(played)

    def _play(self, plan: Plan, history: Stored, *, twice: bool = False, **given: Any) -> Played:
        self.runs += 1
        supplied = list(history.messages)

        async def once(streamed: bool | None, check: Callable[[Played], Any]) -> Played:
            played = await play(plan, supplied, f"r{self.runs}", streamed=streamed, **given)
            note(" ".join(event.kind for event in played.events))
            assert all(a is b for a, b in zip(supplied, history.messages, strict=True))
            await check(played)
            return played

        played: Played = virtual_time.run(once, None, obey, backend=self.backend)
        if twice and plan.form.kind in ("run", "read"):
            other = virtual_time.run(once, not plan.form.streamed, obey, backend=self.backend)
            self._check_equal(played, other)
        return played

    def _check_equal(self, one: Played, other: Played) -> None:
        """Plain and streamed, a run is the same run."""
        if not is_named(one):  # its conversation was minted
            return
        assert outline(one) == outline(other)
        assert one.evidence == other.evidence
        assert one.result == other.result
        if not (one.plan.parallel and one.world.journal_failed):  # which write, is up to chance
            assert spelled(one.journal) == spelled(other.journal)

    def _check_answers(self, played: Played, said: dict[str, Any]) -> None:
        """Every answer is in the turn that asked, in call order."""
        if not isinstance(played.terminal, RunFinished) or played.plan.processor:
            return
        results = played.terminal.result.new_messages
        texts = [(m.tool_call_id, m.content) for m in results if isinstance(m, ToolMessage)]
        for call_id, answer in said.items():
            found = [text for named, text in texts if named == call_id]
            assert found, f"no result of {call_id!r}"
            if answer == "given":
                assert "given" in found
        for turn in turns(played.terminal.result.messages):
            places = range(turn.index + 1, turn.index + 1 + len(turn.results))
            assert tuple(places) == turn.result_indexes

    def _left(self, played: Played) -> Any:
        """What the application may go on from."""
        journal = [*played.supplied, *played.journal]
        kept, evidence = [journal, journal, journal], played.evidence
        if evidence is not None:
            kept[1:] = evidence.messages, evidence.resume_messages
        return multiple(*map(stored_and_loaded, kept))


def stored_and_loaded(messages: list[Message]) -> Stored:
    """JSON, and back: in another process it is the same conversation."""
    written = dump_history(messages)
    loaded = load_history(written)
    assert loaded == messages
    assert dump_history(loaded) == written
    return Stored(tuple(loaded))


def damaged(history: Stored, damages: list[Damage]) -> Stored:
    """Messages lost, there twice, or at another place."""
    messages = list(history.messages)
    for how, place, to in damages if messages else []:
        place %= len(messages)
        message = messages[place]
        if how != "double" and len(messages) > 1:
            del messages[place]
        if how != "drop":
            messages.insert(to % (len(messages) + 1), message)
    return Stored(tuple(messages))


def as_before(history: Stored) -> Any:
    """As many histories as a run leaves: what is drawn must not depend on how things went."""
    return multiple(history, history, history)


def is_named(played: Played) -> bool:
    """Whether the conversation's id is one that both runs must have."""
    named = played.terminal.conversation_id
    return played.plan.forks or any(m.conversation_id == named for m in played.supplied)


def outline(played: Played) -> list[bytes]:
    """What happened, without what only streams tell."""
    return [
        encode_event(event).split(b'"seq":')[0] + event.kind.encode()
        for event in played.events
        if not event.kind.endswith("_delta") and not isinstance(event, TERMINAL)
    ]


class ConversationsOnTrio(Conversations):
    """The same, on the other backend."""

    backend = "trio"


@pytest.fixture(autouse=True)
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What golem logs of observers and journals that fail on purpose is of no interest."""
    monkeypatch.setattr(logging.getLogger("golem"), "disabled", True)


TestConversationsOnAsyncio = Conversations.TestCase
TestConversationsOnTrio = ConversationsOnTrio.TestCase

# Each example is a whole conversation: 60 of them, 12,000 with the profile of ``nox -s fuzz``.
FEW = settings(max_examples=settings().max_examples * 3 // 5, stateful_step_count=12)
TestConversationsOnAsyncio.settings = FEW
TestConversationsOnTrio.settings = FEW
