"""The machine alone: what it asks for, what it refuses to be told, what it keeps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from golem import AssistantMessage, ModelRetry, ToolCanceled, ToolMessage, Usage, UserMessage
from golem._run.commands import (
    CallModel,
    Canceled,
    Crashed,
    Failed,
    Outcome,
    Rejected,
    Returned,
    RunFailure,
    RunTools,
)
from golem._run.machine import Machine
from golem._run.rules import Rules
from golem.history.repair import NO_RESULT
from golem.history.report import NOTHING_REPAIRED
from golem.model import Response, TextDelta, ThinkingDelta, ToolCallDelta
from tests.run.support import asks, closing

ANSWER = Response(AssistantMessage("done"), Usage(1, 1))
TWO = Response(asks(("1", "a"), ("2", "b")), Usage(2, 1), "tool_call")


def machine(max_turns: int = 5) -> Machine:
    return Machine(
        head=[UserMessage("q")],
        prompt=UserMessage("p"),
        run_id="r",
        conversation_id="c",
        repair=NOTHING_REPAIRED,
        rules=Rules(max_turns=max_turns),
    )


def asked(response: Response = TWO) -> Machine:
    """A machine whose model has asked for tools."""
    made = machine()
    made.next()
    made.request_sent()
    made.model_replied(response)
    return made


def batch(*outcomes: Outcome) -> Machine:
    """A machine whose batch of two has had these outcomes."""
    made = asked()
    command = made.next()
    assert isinstance(command, RunTools)
    batch = made.tools_started()
    for place, outcome in enumerate(outcomes):
        made.tool_started()
        made.tool_finished(place, outcome)
    batch.settle()
    return made


def test_a_command_stands_until_it_is_answered() -> None:
    made = machine()
    first = made.next()
    assert isinstance(first, CallModel)
    assert first is made.next()
    assert [message.content for message in first.messages] == ["q", "p"]


def test_an_answer_ends_the_run() -> None:
    made = machine()
    made.next()
    made.request_sent()
    made.model_replied(ANSWER)
    assert made.next() is None
    assert ("done", 1, Usage(1, 1)) == (
        made.result.output,
        made.result.requests,
        made.result.usage,
    )


def test_results_join_in_call_order_stamped_and_the_model_is_asked_again() -> None:
    made = batch(Returned("A"), Failed("B"))
    made.tools_replied()
    results = made.messages[-2:]
    assert [
        (r.content, r.failed, r.tool_call_id, r.run_id, r.conversation_id)
        for r in results
        if isinstance(r, ToolMessage)
    ] == [("A", False, "1", "r", "c"), ("B", True, "2", "r", "c")]
    command = made.next()
    assert isinstance(command, CallModel)
    assert command.turn == 1
    assert results == list(command.messages[-2:])


def _finish_first(made: Machine) -> None:
    command = made.next()
    assert isinstance(command, RunTools)
    batch = made.tools_started()
    made.tool_finished(0, Returned("A"))
    batch.settle()


WRONG: dict[str, tuple[Callable[[], Machine], Callable[[Machine], Any]]] = {
    "a reply before anything was asked": (machine, lambda m: m.model_replied(ANSWER)),
    "a request nobody asked for": (machine, lambda m: m.request_sent()),
    "tools where the model is due": (machine, lambda m: (m.next(), m.tools_started())),
    "results where the model is due": (machine, lambda m: (m.next(), m.tools_replied())),
    "the model where tools are due": (asked, lambda m: (m.next(), m.model_replied(ANSWER))),
    "a second answer": (asked, lambda m: m.model_replied(ANSWER)),
    "a batch before it was asked for": (asked, lambda m: m.tools_started()),
    "the same batch twice": (asked, lambda m: (m.next(), m.tools_started(), m.tools_started())),
    "a tool outside a batch": (asked, lambda m: (m.next(), m.tool_started())),
    "results of a batch that never started": (asked, lambda m: (m.next(), m.tools_replied())),
    "an outcome twice": (
        lambda: batch(Returned("A")),
        lambda m: m.tool_finished(0, Returned("x")),
    ),
    "an outcome of a call that is not there": (
        lambda: batch(Returned("A")),
        lambda m: m.tool_finished(2, Returned("x")),
    ),
    "results before all are there": (asked, lambda m: (_finish_first(m), m.tools_replied())),
    "an outcome too many": (
        lambda: batch(Returned("A"), Returned("B")),
        lambda m: m.tool_finished(1, Returned("x")),
    ),
    "an outcome after the deciding one": (
        lambda: batch(Canceled("stop")),
        lambda m: m.tool_finished(1, Returned("x")),
    ),
    "a result before the answer": (machine, lambda m: m.result),
}


@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG.keys())
def test_a_wrong_reply_raises_at_once(wrong: tuple[Callable[[], Machine], Any]) -> None:
    make, reply = wrong
    made = make()
    with pytest.raises(TypeError):
        reply(made)


def test_there_is_no_evidence_before_anything_happened() -> None:
    made = machine()
    assert made.partial is None
    made.next()
    made.request_sent()
    assert made.partial is None


@pytest.mark.parametrize(
    ("delta", "text", "thinking"),
    [
        (TextDelta("t"), "t", ""),
        (ThinkingDelta("h"), "", "h"),
        (ToolCallDelta(0, "1", "a", '{"x'), "", ""),
    ],
)
def test_a_fragment_is_evidence_until_the_answer_takes_its_place(
    delta: Any, text: str, thinking: str
) -> None:
    made = machine()
    made.next()
    made.request_sent()
    made.fragment(delta)
    partial = made.partial
    assert partial is not None
    assert (text, thinking, 1) == (partial.text, partial.thinking, partial.requests)
    made.model_replied(ANSWER)
    assert made.partial is not None
    assert (made.partial.text, made.partial.thinking) == ("", "")


def test_fragments_of_a_failed_attempt_are_no_part_of_the_next() -> None:
    made = machine()
    made.next()
    made.request_sent()
    made.fragment(TextDelta("first"))
    made.request_sent()
    assert made.partial is None
    assert made.ledger.requests == 2


def test_partial_is_readable_at_every_moment_of_a_batch() -> None:
    made = asked()
    command = made.next()
    assert isinstance(command, RunTools)
    seen = [made.partial]
    batch = made.tools_started()
    seen.append(made.partial)
    for place, call in enumerate(command.calls):
        made.tool_started()
        seen.append(made.partial)
        made.tool_finished(place, Returned(call.name))
        seen.append(made.partial)
        batch.settle()
    made.tools_replied()
    seen.append(made.partial)
    partials = [partial for partial in seen if partial is not None]
    assert len(seen) == len(partials)
    assert [len(partial.batch_results) for partial in partials] == [0, 0, 0, 1, 1, 2, 0]
    assert [partial.tool_calls for partial in partials] == [0, 0, 1, 1, 2, 2, 2]
    assert [len(partial.messages) for partial in partials] == [3, 3, 3, 3, 3, 3, 5]
    assert [len(partial.resume_messages) for partial in partials] == [3, 3, 3, 4, 4, 5, 5]


def test_what_was_given_out_never_changes() -> None:
    """Commands, results and partials are snapshots: later turns do not reach into them."""
    made = machine()
    command = made.next()
    assert isinstance(command, CallModel)
    made.request_sent()
    made.model_replied(TWO)
    before = made.partial
    assert before is not None
    assert (len(command.messages), len(before.messages)) == (2, 3)
    before.messages.clear()
    made.messages.clear()
    made.new_messages.clear()
    assert len(made.messages) == 3


@pytest.mark.parametrize(
    ("outcomes", "stage", "cause"),
    [
        ([Returned("A"), Crashed(OSError("x"))], "tool", OSError),
        ([Rejected("no", "t", 0, by_tool=True)], "tool", ModelRetry),
        ([Canceled("enough")], "canceled", ToolCanceled),
    ],
)
def test_a_deciding_outcome_ends_the_run(outcomes: list[Outcome], stage: str, cause: type) -> None:
    made = batch(*outcomes)
    made.tools_replied()
    for _ in range(2):
        with pytest.raises(RunFailure) as caught:
            made.next()
        assert stage == caught.value.stage
        assert isinstance(caught.value.__cause__, cause)


def test_a_failed_batch_ends_the_transcript_at_its_asking_turn() -> None:
    made = batch(Returned("A"), Crashed(OSError("x")))
    made.tools_replied()
    assert made.partial is not None
    assert [message.content for message in made.partial.messages] == ["q", "p", ""]
    assert [result.content for result in made.partial.batch_results] == ["A"]


def test_a_stopped_batch_is_closed_after_what_it_has() -> None:
    made = batch(Returned("A"), Canceled("enough"))
    stamps = {"run_id": "r", "conversation_id": "c"}
    made.tools_replied()
    assert closing("2", "b", **stamps) == made.messages[-1]
    assert made.partial is not None
    assert made.partial.batch_results == []


@pytest.mark.parametrize("ids", [("1", "2", "3"), ("", "", ""), ("x", "x", "x")])
@pytest.mark.parametrize("done", [(1,), (2,), (1, 2)])
def test_a_result_that_a_stop_came_before_takes_the_place_of_its_closing(
    ids: tuple[str, ...], done: tuple[int, ...]
) -> None:
    """Whatever the ids: `resume_messages` tells what has happened, in call order."""
    made = asked(Response(asks(*((each, "a") for each in ids)), Usage(2, 1), "tool_call"))
    made.next()
    made.tools_started()
    for place in done:
        made.tool_finished(place, Returned(f"did {place}"))
    made.stop_now()
    partial = made.partial
    assert partial is not None
    told = [f"did {place}" if place in done else NO_RESULT for place in range(3)]
    assert [message.content for message in partial.messages[-3:]] == [NO_RESULT] * 3
    assert told == [message.content for message in partial.resume_messages[-3:]]
    assert list(ids) == [m.tool_call_id for m in partial.resume_messages[-3:]]  # type: ignore[union-attr]
    assert len(partial.messages) == len(partial.resume_messages)
    assert (partial.resume_messages[-1].run_id, made.messages[-1].conversation_id) == ("r", "c")  # type: ignore[union-attr]


def test_budgets_are_per_tool_name_and_per_kind_of_refusal() -> None:
    made = asked(Response(asks(*((str(n), name) for n, name in enumerate("aabab")))))
    command = made.next()
    assert isinstance(command, RunTools)
    batch = made.tools_started()
    kinds = [True, False, True, False, True]
    decided = []
    for place, by_tool in enumerate(kinds):
        made.tool_finished(place, Rejected("no", "text", 1, by_tool))
        batch.settle()
        decided.append(batch.decided)
        if batch.decided:
            break
    # a by tool, a by golem, b by tool: one each; the fourth is a's second by golem.
    assert decided == [False, False, False, True]
    assert (made.rejections("a"), made.rejections("b")) == (3, 1)


def test_the_turn_limit_strikes_before_the_next_request() -> None:
    made = machine(max_turns=1)
    made.next()
    made.request_sent()
    made.model_replied(TWO)
    command = made.next()
    assert isinstance(command, RunTools)
    batch = made.tools_started()
    for place in range(len(command.calls)):
        made.tool_finished(place, Returned(""))
    batch.settle()
    made.tools_replied()
    with pytest.raises(RunFailure, match="after 1 turns") as caught:
        made.next()
    assert caught.value.stage == "loop"
