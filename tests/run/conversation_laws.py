"""What holds for every run of a conversation, however it went: the laws the machine checks.

Each takes what was played; `obey` holds it to all of them. The laws follow the contract: events
§4.3, endings and evidence §4.4, deferral §4.6, the journal §4.9, identity §3.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import anyio
from msgspec.structs import replace

from golem import (
    AssistantMessage,
    Message,
    ModelRetry,
    RunError,
    SystemMessage,
    Timeouts,
    ToolCanceled,
    ToolMessage,
    Usage,
    UserMessage,
    decode_event,
    dump_message,
    encode_event,
    normalize_history,
    partial_from,
)
from golem.events import (
    MessageAdded,
    ModelFinished,
    ModelStarted,
    OutputRejected,
    RunFailed,
    RunFinished,
    RunPaused,
    RunStopped,
    TextDelta,
    ToolCallDelta,
    ToolFinished,
    ToolStarted,
    UnknownEvent,
)
from golem.events import ToolDeferred as Deferred
from golem.history.repair import NO_RESULT
from golem.limits import UsageLimitError
from golem.model import Response
from golem.rawjson import clean_text
from golem.testing.deaths import BEGINNINGS, mended, resumes
from tests.run.conversation_play import Played
from tests.run.conversation_tools import continues
from tests.run.support import announced, well_formed


async def obey(played: Played) -> None:
    """Hold the run to every law."""
    events_are_well_formed(played)
    the_reader_sees_what_observers_see(played)
    deltas_are_the_answer(played)
    calls_end_in_the_order_they_start(played)
    the_ending_is_in_the_table(played)
    a_cancellation_begins_nothing(played)
    a_stop_begins_nothing(played)
    limits_hold(played)
    counts_add_up(played)
    messages_are_stamped_and_history_is_not(played)
    announcements_rebuild_the_transcript(played)
    nothing_said_is_lost(played)
    no_result_is_lost(played)
    the_journal_holds_the_evidence(played)
    await the_evidence_resumes(played)
    await the_journal_resumes(played)


def spelled(messages: Iterable[Message]) -> Counter[bytes]:
    """The messages without their order."""
    return Counter(map(dump_message, messages))


# Events


def events_are_well_formed(played: Played) -> None:
    well_formed(played.events)
    assert len({event.conversation_id for event in played.events}) == 1
    for event in played.events:
        written = encode_event(event)
        back = decode_event(written)
        assert not isinstance(back, UnknownEvent)
        assert written == encode_event(back)


def the_reader_sees_what_observers_see(played: Played) -> None:
    stream, events = played.world.stream, played.events
    if stream is None:
        return
    assert played.seen == events[: len(played.seen)]
    assert stream.outcome is played.terminal
    if played.plan.form.kind in ("read", "stop", "stopped"):
        assert played.seen == events
    if played.plan.form.kind == "stopped":
        assert played.told in ([], [played.terminal])


def deltas_are_the_answer(played: Played) -> None:
    """What a reader has put together from the pieces is the message that then joins."""
    if played.world.stream is None:
        return
    text = calls = ""
    whole: list[tuple[str, str]] = []
    for event in played.events:
        if isinstance(event, ModelStarted):
            text = calls = ""
        elif isinstance(event, TextDelta):
            text += event.text
        elif isinstance(event, ToolCallDelta):
            calls += event.id + event.name + event.args
        elif isinstance(event, ModelFinished) and event.finish_reason is not None:
            whole.append((text, calls))
    turns = [m for m in announced(played.events) if isinstance(m, AssistantMessage)]
    assert len(turns) <= len(whole) <= len(turns) + 1
    if not any(isinstance(item, Response) for item in played.plan.script):
        said = [(m.content, "".join(c.id + c.name + c.args for c in m.tool_calls)) for m in turns]
        assert whole[: len(said)] == said


def calls_end_in_the_order_they_start(played: Played) -> None:
    begun = [(e.turn, e.call_id) for e in played.events if isinstance(e, ToolStarted)]
    ended = [(e.turn, e.call_id) for e in played.events if isinstance(e, (ToolFinished, Deferred))]
    assert ended == begun[: len(ended)]


# Endings


def the_ending_is_in_the_table(played: Played) -> None:
    """Contract §4.4, row by row: the terminal event, what was raised, the stage, its cause."""
    terminal, error = played.terminal, played.error
    cancelled = error is not None and not isinstance(error, RunError)
    if cancelled:
        assert played.struck
        assert isinstance(error, anyio.get_cancelled_exc_class())
        found = partial_from(error)
        nothing = isinstance(terminal, RunPaused) and not terminal.result.usage
        assert found == played.evidence or (found is None and nothing)
    if isinstance(terminal, (RunFinished, RunPaused)):
        assert error is None or cancelled
        result = terminal.result
        assert isinstance(terminal, RunPaused) == bool(result.pending)
        assert not result.pending or result.output is None
        assert played.result in (None, result) if cancelled else played.result == result
        return
    assert played.result is None
    if isinstance(error, RunError):
        assert error.partial == terminal.partial
        assert partial_from(error) == error.partial
        assert (error.run_id, error.conversation_id) == (
            terminal.run_id,
            terminal.conversation_id,
        )
        stage = "canceled" if isinstance(terminal, RunStopped) else terminal.stage
        assert error.stage == stage
        causes_fit(error)
        return
    left = played.plan.form.kind == "leave" and len(played.seen) == played.plan.form.at + 1
    if isinstance(terminal, RunFailed):
        assert cancelled or left
        return
    assert isinstance(terminal, RunStopped)
    asked = played.told or any(c.name == "ends" for m in played_calls(played) for c in m.tool_calls)
    assert cancelled or left or asked


def played_calls(played: Played) -> list[AssistantMessage]:
    everything = [*played.supplied, *(played.evidence.messages if played.evidence else ())]
    return [message for message in everything if isinstance(message, AssistantMessage)]


def causes_fit(error: RunError) -> None:
    cause = error.__cause__
    allowed: dict[str, tuple[type[Any], ...]] = {
        "model": (Exception,),
        "tool": (RuntimeError, OSError, ModelRetry, TimeoutError, ValueError),
        "decode": (ModelRetry, TimeoutError),
        "loop": (type(None),),
        "usage": (UsageLimitError,),
        "history": (OSError, LookupError, ValueError, TimeoutError, type(None)),
        "canceled": (ToolCanceled,),  # whoever stops a stream knows that they did
    }
    assert isinstance(cause, allowed[error.stage]), (error, cause)
    assert not isinstance(cause, AssertionError), error  # the strict model's word, or a bug
    assert not isinstance(cause, (TypeError, AttributeError, KeyError, IndexError)), error


def a_cancellation_begins_nothing(played: Played) -> None:
    if not played.struck or isinstance(played.error, RunError):
        return
    watch, at = played.world.watch, played.plan.form.at
    for event, begun in zip(watch.events, watch.begun, strict=True):
        assert not (event.kind in BEGINNINGS and begun > at + 1), event


def a_stop_begins_nothing(played: Played) -> None:
    form = played.plan.form
    if form.kind == "stop" and form.when == "now" and played.told:
        assert not [e for e in played.events[form.at + 1 :] if e.kind in BEGINNINGS]


def limits_hold(played: Played) -> None:
    """Nothing is begun that a limit forbids; what crosses one is the last thing."""
    plan, limits = played.plan, played.plan.limits
    turns = [event for event in played.events if isinstance(event, ModelStarted)]
    rounds = [event.round for event in played.events if isinstance(event, OutputRejected)]
    assert all(event.turn < plan.max_turns for event in turns)
    assert rounds == list(range(1, len(rounds) + 1))
    assert len(rounds) <= plan.output_retries
    assert limits.tool_calls is None or played.world.executed <= limits.tool_calls
    # Checked after each response: a request that failed and is sent again has none.
    first = [event for event in turns if event.attempt == 1]
    assert limits.requests is None or len(first) <= limits.requests + 1


# Evidence


def counts_add_up(played: Played) -> None:
    model, evidence = played.world.model, played.evidence
    if evidence is None:
        assert (model.turns, clean_text(model.said), played.world.executed) == (0, "", 0)
        assert model.usage == Usage()
        return
    turns = [m for m in evidence.new_messages if isinstance(m, AssistantMessage)]
    assert len(turns) == model.turns
    assert evidence.usage == model.usage
    assert evidence.text == clean_text(model.said)
    finished = [event for event in played.events if isinstance(event, ModelFinished)]
    told = sum((event.usage for event in finished), Usage())
    surely = played.plan.timeout == Timeouts() and not played.struck
    slack = 0 if surely else 1
    assert 0 <= evidence.requests - len(model.requests) <= slack
    if not played.struck and played.plan.form.kind != "leave":
        assert told == evidence.usage
    if surely and played.plan.form.kind in ("run", "read"):
        assert evidence.tool_calls == played.world.executed
    assert evidence.tool_calls >= played.world.executed


def messages_are_stamped_and_history_is_not(played: Played) -> None:
    """Whatever the run adds has its ids; what it was given is the same as before."""
    evidence = played.evidence
    if evidence is None:
        return
    ids = played.terminal.run_id, played.terminal.conversation_id
    assert (evidence.run_id, evidence.conversation_id) == ids
    for message in [*evidence.new_messages, *evidence.batch_results]:
        assert not isinstance(message, SystemMessage)
        assert (message.run_id, message.conversation_id) == ids
    assert spelled(evidence.new_messages) == spelled(own(played, evidence.messages))
    if played.plan.processor:
        return
    others = [m for m in evidence.messages if m.run_id != ids[0]]
    if others and isinstance(others[0], SystemMessage):
        assert others.pop(0).content.startswith(played.plan.instructions)
    kept = without_system(played.supplied)
    if played.deferred is None:
        assert others == without_system(normalize_history(played.supplied)[0])
    else:
        made = [m for m in others if m not in kept]
        assert all(isinstance(m, ToolMessage) and not m.run_id for m in made)


def own(played: Played, messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if message.run_id == played.terminal.run_id]


def without_system(messages: Iterable[Message]) -> list[Message]:
    return [message for message in messages if not isinstance(message, SystemMessage)]


def announcements_rebuild_the_transcript(played: Played) -> None:
    """Inserted one after the other where the events say, the messages make the transcript."""
    evidence = played.evidence
    if evidence is None:
        return
    told = spelled(announced(played.events))
    assert told <= spelled(evidence.new_messages)
    if played.struck or played.plan.form.kind == "leave":
        return
    assert told == spelled(evidence.new_messages)
    rebuilt = [m for m in evidence.messages if m.run_id != played.terminal.run_id]
    for event in played.events:
        if isinstance(event, MessageAdded):
            rebuilt.insert(event.index, event.message)
    assert rebuilt == evidence.messages


def nothing_said_is_lost(played: Played) -> None:
    """What was enqueued has joined once, or is `unsaid`."""
    stream, evidence = played.world.stream, played.evidence
    told_all = not played.struck and played.plan.form.kind != "leave"
    if stream is None or (evidence is None and not told_all):
        return
    joined = announced(played.events) if evidence is None else evidence.new_messages
    said = [m.content for m in joined if isinstance(m, UserMessage)]
    texts = Counter(message.content for message in stream.unsaid)
    texts += Counter(text for text in said if text in played.world.enqueued)
    assert texts == Counter(played.world.enqueued)


def no_result_is_lost(played: Played) -> None:
    """Every result that a tool gave is in the transcript or beside it, once."""
    evidence = played.evidence
    if evidence is None:
        return
    results = [m for m in evidence.new_messages if isinstance(m, ToolMessage)]
    kept = Counter((m.tool_call_id, m.content) for m in [*results, *evidence.batch_results])
    given = Counter(
        {key: n for key, n in played.world.finished.items() if key[0] not in evidence.abandoned}
    )
    assert given <= kept, f"lost: {given - kept}"


async def the_evidence_resumes(played: Played) -> None:
    """One more run continues from it, with no more to repair than the contract allows."""
    evidence, terminal = played.evidence, played.terminal
    if evidence is None:
        return
    repair = await resumes(evidence.messages)
    if isinstance(terminal, RunPaused):
        pending = [*terminal.result.pending.approvals, *terminal.result.pending.external]
        named = Counter(call.call_id for call in pending if call.call_id)
        assert Counter(repair.synthesized) == named
    closed = isinstance(terminal, RunStopped) and not (
        played.plan.form.kind == "leave" or played.struck
    )
    if closed or isinstance(terminal, RunFinished):
        assert not mended(repair), repair
    # Of a batch that a stop has closed every result beside it has a closing to stand for.
    kept = [
        m for m in evidence.batch_results if evidence.closed or m.tool_call_id in repair.synthesized
    ]
    if kept:
        whole = await continues(evidence.resume_messages)
        assert spelled(kept) <= spelled(whole)
    if closed:
        assert not mended(await resumes(evidence.resume_messages))


# The journal


def the_journal_holds_the_evidence(played: Played) -> None:
    """All that the partial holds has been written; once, unless a write was cut off."""
    evidence = played.evidence
    if evidence is None or played.world.journal_failed:
        return
    held, written = (
        spelled([*evidence.new_messages, *evidence.batch_results]),
        spelled(played.journal),
    )
    assert held <= written, f"not in the journal: {held - written}"
    if not played.struck and played.plan.timeout == Timeouts() and played.plan.form.within is None:
        assert held == written, f"nowhere but in the journal: {written - held}"


async def the_journal_resumes(played: Played) -> None:
    """Concatenated it is history, and says what the transcript says."""
    stored = [*played.supplied, *played.journal]
    if stored:
        await continues(stored)
    evidence = played.evidence
    if evidence is None or played.plan.processor or played.world.journal_failed:
        return
    if spelled(played.journal) != spelled([*evidence.new_messages, *evidence.batch_results]):
        return  # a write that was cut off was made again
    if has_nameless(stored):
        return  # nothing can pair it
    read, _ = normalize_history(stored)
    kept, _ = normalize_history(evidence.resume_messages)
    assert spelled(as_paired(read)) == spelled(as_paired(kept))


def as_paired(messages: Sequence[Message]) -> list[Message]:
    """The messages without instructions; of closings only what pairing can tell.

    Where an id stands twice in a turn, results answer its calls in the order they come in, so
    which of the two calls is closed depends on the order of their results, and so does its tool.
    """
    twice = {
        call_id
        for message in messages
        if isinstance(message, AssistantMessage)
        for call_id, count in Counter(call.id for call in message.tool_calls).items()
        if count > 1
    }
    return [
        replace(message, tool_name="")
        if isinstance(message, ToolMessage)
        and message.content == NO_RESULT
        and message.tool_call_id in twice
        else message
        for message in without_system(messages)
    ]


def has_nameless(messages: Sequence[Message]) -> bool:
    """Whether there is a call or a result without an id, which nothing can pair."""
    calls = [c for m in messages if isinstance(m, AssistantMessage) for c in m.tool_calls]
    results = [m for m in messages if isinstance(m, ToolMessage)]
    return any(not c.id for c in calls) or any(not m.tool_call_id for m in results)
