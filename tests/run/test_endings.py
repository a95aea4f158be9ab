"""How a run can end: the table of the contract's §4.4, row by row, in both forms."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from golem import (
    Agent,
    AssistantMessage,
    Event,
    Message,
    Partial,
    RunError,
    RunStream,
    Timeouts,
    ToolCanceled,
    ToolDeferred,
    TransportError,
    Usage,
    UsageLimitError,
    UsageLimits,
    partial_from,
    tool,
)
from golem.history.repair import NO_RESULT
from golem.testing import FunctionModel, ScriptedModel, dies, hangs
from tests.run.support import Recorder, asks, boom, echo, resumes, well_formed

pytestmark = pytest.mark.virtual_time


@tool
async def stop() -> str:
    """Stop the run."""
    raise ToolCanceled("enough")


@tool
async def ask() -> str:
    """Wait for somebody."""
    raise ToolDeferred("approval", "sure?")


@tool
async def hang() -> str:
    """Wait for ever."""
    await anyio.sleep_forever()
    return ""


class Odd(Exception):
    """What nobody foresaw."""


def refuse(history: list[Message]) -> list[Message]:
    raise Odd("no")


async def full(message: Message) -> None:
    raise Odd("disk full")


def broken(text: str) -> str:
    raise Odd("cannot")


@dataclass(frozen=True)
class Row:
    """One row: what happens, and what has to come of it."""

    script: list[Any]
    event: str
    stage: str | None = None  # of the RunError; None: nothing is raised
    cause: type[BaseException] | None = None
    contents: list[str] | None = None  # of partial.messages, or of the result's
    beside: list[str] = field(default_factory=list)  # batch_results
    repaired: tuple[str, ...] = ()  # when resumed
    text: str | None = None  # of the partial
    evidence: bool = True
    options: dict[str, Any] = field(default_factory=dict)


BATCH = asks(("1", "echo"), ("2", "boom"), ("3", "echo"))
RETRYING = {"retry": None}

ROWS: dict[str, Row] = {
    "answer": Row(["hi"], "run_finished", contents=["p", "hi"]),
    "deferred calls": Row(
        [asks(("1", "ask"), ("2", "echo"))], "run_paused", contents=["p", "", "echoed"]
    ),
    "model": Row([Odd("down")], "run_failed", "model", Odd, evidence=False),
    "model, in its second turn": Row(
        [asks(("1", "echo")), Odd("down")], "run_failed", "model", Odd, ["p", "", "echoed"]
    ),
    "provider": Row(
        [TransportError("reset")], "run_failed", "model", TransportError, None, evidence=False,
        options=RETRYING,
    ),
    "stream cut": Row(
        [asks(("1", "echo")), dies("as I was saying", 1)],
        "run_failed", "model", TransportError, ["p", "", "echoed"], text="as I was",
        options=RETRYING,
    ),
    "a tool's hard error": Row(
        [BATCH], "run_failed", "tool", RuntimeError, ["p", ""], ["echoed"], ("1", "2", "3")
    ),
    "a tool's timeout": Row(
        [asks(("1", "echo"), ("2", "hang"))],
        "run_failed", "tool", TimeoutError, ["p", ""], ["echoed"], ("1", "2"),
        options={"timeout": Timeouts(tool=0.001)},
    ),
    "output rejected for good": Row(
        ["x"], "run_failed", "decode", None, ["p", "x"], options={"output_type": int}
    ),
    "a decoder's error": Row(
        ["x"], "run_failed", "decode", Odd, ["p", "x"], options={"decoder": broken}
    ),
    "max_turns": Row(
        [asks(("1", "echo"))], "run_failed", "loop", None, ["p", "", "echoed"],
        options={"max_turns": 1},
    ),
    "limits, after a response": Row(
        ["hi"], "run_failed", "usage", UsageLimitError, ["p", "hi"],
        options={"limits": UsageLimits(total_tokens=2)},
    ),
    "limits, before a batch": Row(
        [asks(("1", "echo"), ("2", "echo"))],
        "run_failed", "usage", UsageLimitError, ["p", ""], repaired=("1", "2"),
        options={"limits": UsageLimits(tool_calls=1)},
    ),
    "processor": Row(
        [], "run_failed", "history", Odd, evidence=False, options={"history_processor": refuse}
    ),
    "request processor": Row(
        [], "run_failed", "history", Odd, evidence=False, options={"request_processor": refuse}
    ),
    "journal": Row([], "run_failed", "history", Odd, evidence=False, options={"journal": full}),
    "ToolCanceled": Row(
        [asks(("1", "echo"), ("2", "stop"), ("3", "echo"))],
        "run_stopped", "canceled", ToolCanceled, ["p", "", "echoed", NO_RESULT, NO_RESULT],
    ),
    "golem's own timeout, in the model": Row(
        [asks(("1", "echo")), hangs("as I was saying", 1)],
        "run_failed", "model", TimeoutError, ["p", "", "echoed"], text="as I was",
        options={"timeout": 0.02},
    ),
    "golem's own timeout, in a tool": Row(
        [asks(("1", "echo"), ("2", "hang"))],
        "run_failed", "tool", TimeoutError, ["p", ""], ["echoed"], ("1", "2"),
        options={"timeout": 0.02},
    ),
}  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
async def test_an_ending(row: Row, streamed: bool) -> None:
    recorder = Recorder()
    agent = Agent(
        ScriptedModel(row.script, usage=Usage(2, 1)),
        tools=[echo, boom, stop, ask, hang],
        on_event=recorder,
        **row.options,
    )
    error: RunError | None = None
    stream: RunStream[Any] | None = None
    try:
        if streamed:
            async with agent.stream("p") as stream:
                async for _ in stream:
                    pass
        else:
            await agent.run("p")
    except RunError as raised:
        error = raised
    well_formed(recorder.events)
    terminal: Any = recorder.events[-1]
    assert row.event == terminal.kind
    assert (row.stage is None) == (error is None)
    left: Any = terminal.result if error is None else terminal.partial
    if stream is not None:
        assert terminal is stream.outcome
    if error is not None:
        assert row.stage == error.stage
        if row.cause is not None:
            assert isinstance(error.__cause__, row.cause)
        assert left == error.partial == partial_from(error)
        assert (error.run_id, error.conversation_id) == (terminal.run_id, terminal.conversation_id)
    assert row.evidence == (left is not None)
    if left is None:
        return
    assert row.contents is None or row.contents == [m.content for m in left.messages]
    if isinstance(left, Partial):
        assert row.beside == [result.content for result in left.batch_results]
        assert (row.text or "") == (left.text if streamed else row.text or "")
        await resumes(left, synthesized=row.repaired)
        if not left.closed:
            assert left.resume_messages == [*left.messages, *left.batch_results]


# The rows that somebody outside the run brings about


Strike = Callable[[RunStream[Any], Event, anyio.CancelScope], Any]


async def _consumer_stops(stream: RunStream[Any], event: Event, scope: anyio.CancelScope) -> None:
    await stream.stop()


async def _leaves(stream: RunStream[Any], event: Event, scope: anyio.CancelScope) -> None:
    await stream.aclose()


async def _cancels(stream: RunStream[Any], event: Event, scope: anyio.CancelScope) -> None:
    scope.cancel()
    await anyio.lowlevel.checkpoint()


OUTSIDE: dict[str, tuple[Strike, bool]] = {
    "stream.stop()": (_consumer_stops, True),
    "consumer left": (_leaves, False),
    "external cancellation": (_cancels, False),
}


@pytest.mark.parametrize(("strike", "closed"), OUTSIDE.values(), ids=OUTSIDE.keys())
async def test_an_ending_from_outside(strike: Strike, closed: bool) -> None:
    """All three are `run_stopped` and raise nothing of golem's; a stop alone closes the batch."""
    recorder = Recorder()
    model = ScriptedModel([asks(("1", "echo"), ("2", "echo")), "x"], usage=Usage(2, 1))
    stream = Agent(model, tools=[echo], on_event=recorder).stream("p")
    kinds: list[str] = []
    with anyio.CancelScope() as scope:
        async with stream:
            async for event in stream:
                kinds.append(event.kind)
                if event.kind == "tool_finished":
                    await strike(stream, event, scope)
    assert scope.cancelled_caught == (strike is _cancels)
    well_formed(recorder.events)
    assert recorder.kinds[-1] == "run_stopped"
    assert ("run_stopped" in kinds) == closed
    partial = stream.partial
    assert partial is not None
    contents = [message.content for message in partial.messages]
    assert (["p", "", "echoed", NO_RESULT] if closed else ["p", ""]) == contents
    assert ([] if closed else ["echoed"]) == [m.content for m in partial.batch_results]
    await resumes(partial, synthesized=() if closed else ("1", "2"))


async def test_external_cancellation_of_run_is_the_backends_own_exception() -> None:
    raised: list[BaseException] = []

    async def run() -> None:
        try:
            await Agent(ScriptedModel([asks(("1", "hang"))]), tools=[hang]).run("p")
        except BaseException as error:
            raised.append(error)
            raise

    with anyio.move_on_after(0.01):
        await run()
    assert [anyio.get_cancelled_exc_class()] == [type(error) for error in raised]
    partial = partial_from(raised[0])
    assert partial is not None
    await resumes(partial, synthesized=("1",))


async def test_what_finished_beside_a_failure_can_be_kept() -> None:
    """`resume_messages`: the results are in place, so that side effects need not repeat."""
    with pytest.raises(RunError) as caught:
        await Agent(ScriptedModel([BATCH]), tools=[echo, boom]).run("p")
    partial = caught.value.partial
    assert partial is not None
    model = ScriptedModel(["ok"])
    result = await Agent(model).run("go on", history=partial.resume_messages)
    assert result.repair.synthesized == ("2", "3")
    sent = [message.content for message in model.requests[0].messages]
    assert sorted(sent, key=["p", "", NO_RESULT, "echoed", "go on"].index) == [
        "p",
        "",
        NO_RESULT,
        NO_RESULT,
        "echoed",
        "go on",
    ]


async def test_a_model_that_says_nothing_leaves_no_evidence_and_still_its_ids() -> None:
    model = FunctionModel(lambda request: Odd("down"))
    with pytest.raises(RunError) as caught:
        await Agent(model).run("p", run_id="r", conversation_id="c")
    assert (caught.value.partial, "r", "c") == (
        None,
        caught.value.run_id,
        caught.value.conversation_id,
    )


def test_every_row_says_what_is_left() -> None:
    assert all(row.contents is not None for row in ROWS.values() if row.evidence)
    assert isinstance(BATCH, AssistantMessage)
