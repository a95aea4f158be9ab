"""Pausing and resuming: in another process, with every answer, whatever stands behind the pause."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from golem import (
    Agent,
    Approval,
    AssistantMessage,
    DeferredResults,
    HistoryError,
    Message,
    ModelRetry,
    Part,
    RunContext,
    RunError,
    RunStream,
    ToolCanceled,
    ToolDeferred,
    ToolFailed,
    ToolMessage,
    ToolResult,
    UserMessage,
    dump_history,
    load_history,
    tool,
)
from golem.events import RunPaused
from golem.history.repair import NO_RESULT
from golem.testing import ScriptedModel, Strict
from tests.run.support import Recorder, announced, asks, boom, echo, resumes, well_formed

DENIED = "Your tool call was denied. Do not call it again; continue without its result."


@tool
async def ask(context: RunContext[Any], say: str = "done") -> str:
    """Do it, if somebody allows it; then do what `say` says."""
    if not context.approved:
        raise ToolDeferred("approval", "sure?")
    match say:
        case "fail":
            raise ToolFailed("cannot")
        case "retry":
            raise ModelRetry("say it differently")
        case "stop":
            raise ToolCanceled("enough")
        case "later":
            raise ToolDeferred("external", "job 7")
        case "break":
            raise RuntimeError("broken")
    return say


@tool
async def job() -> str:
    """Begin something that ends elsewhere."""
    raise ToolDeferred("external", "job 7")


def paused(*calls: tuple[str, str] | tuple[str, str, str]) -> list[Message]:
    """A history whose last turn has these calls, unanswered."""
    return [UserMessage("q", conversation_id="c"), asks(*calls)]


def agent(*script: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(Strict(ScriptedModel(script)), tools=[ask, job, echo, boom], **options)


async def resumed(
    made: Agent[Any, Any], streamed: bool, history: list[Message], answers: Any, **given: Any
) -> Any:
    """The result of a resumed run, in either form."""
    given = {"history": history, "deferred": answers, **given}
    if not streamed:
        return await made.run(given.pop("prompt", None), **given)
    stream: RunStream[Any] = made.stream(given.pop("prompt", None), **given)
    async with stream:
        async for _ in stream:
            pass
    return stream.result


both_forms = pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])


def results(messages: list[Message]) -> list[tuple[str, str]]:
    return [(m.tool_call_id, m.content) for m in messages if isinstance(m, ToolMessage)]


# The pause


@both_forms
async def test_the_others_of_a_paused_batch_run_and_the_model_is_not_asked(streamed: bool) -> None:
    recorder = Recorder()
    model = ScriptedModel([asks(("1", "ask"), ("2", "echo"), ("3", "job"), ("4", "echo"))])
    made: Agent[Any, Any] = Agent(model, tools=[ask, job, echo], on_event=recorder)
    if streamed:
        async with made.stream("p") as stream:
            async for _ in stream:
                pass
        assert isinstance(stream.outcome, RunPaused)
        result: Any = stream.result
    else:
        result = await made.run("p")
    assert (result.output, len(model.requests), result.tool_calls) == (None, 1, 2)
    assert results(result.messages) == [("2", "echoed"), ("4", "echoed")]
    (approval,), (external,) = result.pending.approvals, result.pending.external
    assert (
        approval.kind,
        approval.call_id,
        approval.tool_name,
        approval.args,
        approval.reason,
    ) == ("approval", "1", "ask", "{}", "sure?")
    assert (external.kind, external.call_id, external.reason) == ("external", "3", "job 7")
    assert (len(result.pending), bool(result.pending)) == (2, True)
    well_formed(recorder.events)
    assert [kind for kind in recorder.kinds if kind == "tool_deferred"] == [
        "tool_deferred",
        "tool_deferred",
    ]


# Answers


@both_forms
@pytest.mark.parametrize(
    ("answers", "content", "tool_calls"),
    [
        (DeferredResults(approvals={"1": True}), "done", 1),
        (DeferredResults(approvals={"1": Approval(True, "fine")}), "done", 1),
        (DeferredResults(approvals={"1": False}), DENIED, 0),
        (
            DeferredResults(approvals={"1": Approval(False, "not today")}),
            DENIED.replace("denied", "denied: not today", 1),
            0,
        ),
        (DeferredResults(external={"1": "  as it is\n"}), "  as it is\n", 0),
        (DeferredResults(external={"1": ToolResult("seen")}), "seen", 0),
    ],
    ids=["approved", "approved with a word", "denied", "denied why", "external", "result"],
)
async def test_each_answer_completes_its_call(
    streamed: bool, answers: DeferredResults, content: str, tool_calls: int
) -> None:
    recorder = Recorder()
    made = agent("ok", on_event=recorder)
    result = await resumed(made, streamed, paused(("1", "ask")), answers)
    assert ("ok", tool_calls, False) == (result.output, result.tool_calls, bool(result.pending))
    assert [("1", content)] == results(result.messages)
    answer = result.messages[2]
    assert (result.run_id, "ask") == (answer.run_id, answer.tool_name)
    assert [answer, result.messages[3]] == result.new_messages == announced(recorder.events)
    ran = [kind for kind in recorder.kinds if kind.startswith("tool_")]
    assert (["tool_started", "tool_finished"] if tool_calls else []) == ran
    well_formed(recorder.events)


async def test_an_external_answer_may_bring_media() -> None:
    image = Part.image(b"\x01", "image/png")
    answers = DeferredResults(external={"1": ToolResult("shot", (image,))})
    result = await resumed(agent("ok"), False, paused(("1", "job")), answers)
    answer = result.messages[2]
    assert (("shot", (image,))) == (answer.content, answer.parts)


async def test_media_no_run_may_send_is_refused_before_anything_runs() -> None:
    answers = DeferredResults(external={"1": ToolResult("shot", (Part("image"),))})
    with pytest.raises((ValueError, RunError)):
        await resumed(agent("ok"), False, paused(("1", "job")), answers)


@both_forms
@pytest.mark.parametrize(
    ("say", "content", "failed"),
    [("fail", "cannot", True), ("done", "done", False)],
)
async def test_an_approved_call_may_fail_for_good(
    streamed: bool, say: str, content: str, failed: bool
) -> None:
    history = paused(("1", "ask", f'{{"say":"{say}"}}'))
    answers = DeferredResults(approvals={"1": True})
    result = await resumed(agent("ok"), streamed, history, answers)
    answer = result.messages[2]
    assert (content, failed, 1) == (answer.content, answer.failed, result.tool_calls)


@both_forms
async def test_an_approved_call_may_ask_for_correction(streamed: bool) -> None:
    """Its budget is this run's; the corrected call is deferred anew, since nobody allowed it."""

    @tool(retries=1)
    async def fussy(context: RunContext[Any], say: str) -> str:
        if not context.approved:
            raise ToolDeferred("approval")
        raise ModelRetry("say it differently")

    made: Agent[Any, Any] = Agent(
        ScriptedModel([asks(("2", "fussy", '{"say":"b"}'))]), tools=[fussy]
    )
    history = paused(("1", "fussy", '{"say":"a"}'))
    result = await resumed(made, streamed, history, DeferredResults(approvals={"1": True}))
    assert "say it differently" in result.messages[2].content
    assert [call.call_id for call in result.pending.approvals] == ["2"]


@both_forms
async def test_an_approved_call_may_stop_the_run(streamed: bool) -> None:
    history = paused(("1", "ask"), ("2", "ask", '{"say":"stop"}'), ("3", "ask"))
    answers = DeferredResults(approvals={"1": True, "2": True, "3": True})
    with pytest.raises(RunError) as caught:
        await resumed(agent(), streamed, history, answers)
    assert caught.value.stage == "canceled"
    partial = caught.value.partial
    assert partial is not None
    assert results(partial.messages) == [("1", "done"), ("2", NO_RESULT), ("3", NO_RESULT)]
    await resumes(partial)


@both_forms
async def test_what_was_done_beside_an_approved_call_that_stops_the_run_need_not_be_done_again(
    streamed: bool,
) -> None:
    calls = [("1", "ask"), ("2", "ask", '{"say":"stop"}'), ("3", "job"), ("4", "ask"), ("5", "job")]
    history = [*paused(*calls), UserMessage("and then?")]
    answers = DeferredResults(
        approvals={"1": True, "2": True, "4": True}, external={"3": "given", "5": "too"}
    )
    with pytest.raises(RunError) as caught:
        await resumed(agent(parallel_tool_calls=True), streamed, history, answers)
    partial = caught.value.partial
    assert partial is not None
    closed = [("1", "done"), ("2", NO_RESULT), ("3", "given"), ("4", NO_RESULT), ("5", "too")]
    assert closed == results(partial.messages)
    closed[3] = ("4", "done")
    assert closed == results(partial.resume_messages)
    assert partial.resume_messages[-1] == history[-1]
    await resumes(partial)
    assert not (await agent("on").run("go on", history=partial.resume_messages)).repair


@both_forms
async def test_an_approved_call_that_breaks_leaves_the_turn_as_it_was(streamed: bool) -> None:
    history = paused(("1", "ask"), ("2", "ask", '{"say":"break"}'), ("3", "job"))
    answers = DeferredResults(approvals={"1": True, "2": True}, external={"3": "given"})
    with pytest.raises(RunError) as caught:
        await resumed(agent(), streamed, history, answers)
    assert caught.value.stage == "tool"
    partial = caught.value.partial
    assert partial is not None
    assert history == partial.messages
    assert results(list(partial.batch_results)) == [("3", "given"), ("1", "done")]
    await resumes(partial, synthesized=("1", "2", "3"))


@both_forms
async def test_a_call_may_be_deferred_again_and_again(streamed: bool) -> None:
    """Results stand in call order, whichever of them came when."""
    history = paused(("1", "ask", '{"say":"later"}'), ("2", "job"), ("3", "ask"))
    first = await resumed(
        agent(),
        streamed,
        history,
        DeferredResults(approvals={"1": True, "3": True}, external={"2": "two"}),
    )
    assert [call.call_id for call in first.pending.external] == ["1"]
    assert results(first.messages) == [("2", "two"), ("3", "done")]
    last = await resumed(
        agent("ok"), streamed, first.messages, DeferredResults(external={"1": "one"})
    )
    assert results(last.messages) == [("1", "one"), ("2", "two"), ("3", "done")]
    assert [message.content for message in last.new_messages] == ["one", "ok"]


# What stands around the pause


@both_forms
async def test_later_messages_are_kept_behind_the_completed_turn(streamed: bool) -> None:
    history = [
        *paused(("1", "ask"), ("2", "echo"), ("3", "job")),
        ToolMessage("had", tool_call_id="2", tool_name="echo"),
        UserMessage("meanwhile"),
        AssistantMessage("still waiting"),
    ]
    answers = DeferredResults(approvals={"1": True}, external={"3": "late"})
    result = await resumed(agent("ok"), streamed, history, answers, prompt="and now?")
    assert [
        *("q", "", "done", "had", "late", "meanwhile", "still waiting", "and now?", "ok"),
    ] == [message.content for message in result.messages]
    assert [m.content for m in result.new_messages] == ["done", "late", "and now?", "ok"]
    assert [result.run_id] * 4 == [m.run_id for m in result.new_messages]
    assert result.messages[3].run_id == ""


async def test_only_the_last_turn_with_calls_is_pending() -> None:
    history = [*paused(("1", "ask")), UserMessage("no matter"), asks(("2", "ask"))]
    with pytest.raises(HistoryError, match="'1' is not pending"):
        await resumed(agent("ok"), False, history, DeferredResults(approvals={"1": True}))
    answers = DeferredResults(approvals={"2": True})
    result = await resumed(agent("ok"), False, history, answers)
    assert results(result.messages) == [("1", NO_RESULT), ("2", "done")]
    assert result.repair.synthesized == ("1",)


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        (DeferredResults(), "'1' .ask. has no resolution"),
        (DeferredResults(approvals={"1": True}), "'2' .job. has no resolution"),
        (DeferredResults(approvals={"1": True}, external={"1": "x", "2": "y"}), "both"),
        (DeferredResults(approvals={"1": True, "9": True}, external={"2": "y"}), "'9' is not"),
        (DeferredResults(approvals={"": True}), "'' is not pending"),
    ],
)
async def test_answers_that_do_not_match_are_refused_before_anything_runs(
    answers: DeferredResults, said: str
) -> None:
    recorder = Recorder()
    model = ScriptedModel(["ok"])
    made: Agent[Any, Any] = Agent(model, tools=[ask, job], on_event=recorder)
    with pytest.raises(ValueError, match=said):
        await resumed(made, False, paused(("1", "ask"), ("2", "job")), answers)
    with pytest.raises(ValueError, match=said):
        made.stream(None, history=paused(("1", "ask"), ("2", "job")), deferred=answers)
    assert (len(model.requests), recorder.events) == (0, [])


@pytest.mark.parametrize(
    "history",
    [
        [],
        [UserMessage("q"), AssistantMessage("a")],
        [*paused(("1", "ask")), ToolMessage("r", tool_call_id="1")],
        paused(("", "ask")),
    ],
    ids=["nothing", "no calls", "all answered", "a call without id"],
)
async def test_where_nothing_is_pending_nothing_can_be_resumed(history: list[Message]) -> None:
    with pytest.raises(ValueError, match="pending"):
        await resumed(agent("ok"), False, history, DeferredResults())


@both_forms
async def test_unresolved_calls_may_be_closed_instead(streamed: bool) -> None:
    history = paused(("1", "ask"), ("2", "job"), ("3", "ask"))
    result = await resumed(
        agent("ok"),
        streamed,
        history,
        DeferredResults(approvals={"3": True}),
        unresolved="interrupt",
        prompt="never mind",
    )
    assert results(result.messages) == [("1", NO_RESULT), ("2", NO_RESULT), ("3", "done")]
    assert [result.run_id] * 3 == [m.run_id for m in result.new_messages[:3]]
    nothing = await resumed(
        agent("ok"), streamed, history, DeferredResults(), unresolved="interrupt"
    )
    assert [call_id for call_id, _ in results(nothing.messages)] == ["1", "2", "3"]


@both_forms
async def test_an_id_that_repeats_is_answered_by_one_answer(streamed: bool) -> None:
    history = paused(("same", "ask", '{"say":"a"}'), ("same", "ask", '{"say":"b"}'))
    answers = DeferredResults(approvals={"same": True})
    result = await resumed(agent("ok"), streamed, history, answers)
    assert results(result.messages) == [("same", "a"), ("same", "b")]


@both_forms
async def test_calls_without_an_id_pass_beside_the_pending_ones(streamed: bool) -> None:
    history = [
        *paused(("", "echo"), ("1", "ask")),
        ToolMessage("nameless", tool_name="echo"),
    ]
    model = ScriptedModel(["ok"])
    made: Agent[Any, Any] = Agent(model, tools=[ask, echo])
    result = await resumed(made, streamed, history, DeferredResults(approvals={"1": True}))
    assert results(result.messages) == [("", "nameless"), ("1", "done")]


async def test_a_paused_run_may_simply_be_continued() -> None:
    """Without answers the open call is closed by repair, and the model goes on."""
    result = await agent("ok").run("forget it", history=paused(("1", "ask")))
    assert results(result.messages) == [("1", NO_RESULT)]


@both_forms
async def test_a_consumer_may_stop_a_resumed_run(streamed: bool) -> None:
    history = paused(("1", "ask"), ("2", "job"), ("3", "ask"))
    answers = DeferredResults(approvals={"1": True, "3": True}, external={"2": "two"})
    stream: RunStream[Any] = agent("ok").stream(None, history=history, deferred=answers)
    async with stream:
        async for event in stream:
            if event.kind == ("run_started" if streamed else "tool_finished"):
                await stream.stop()
    partial = stream.partial
    assert partial is not None
    first = NO_RESULT if streamed else "done"
    assert results(partial.messages) == [("1", first), ("2", "two"), ("3", NO_RESULT)]
    await resumes(partial)


@both_forms
async def test_a_later_stop_lets_the_approved_calls_run(streamed: bool) -> None:
    when: Any = "after_tools" if streamed else "after_model"
    history = paused(("1", "ask"), ("2", "ask"))
    answers = DeferredResults(approvals={"1": True, "2": True})
    stream: RunStream[Any] = agent("ok").stream(None, history=history, deferred=answers)
    async with stream:
        async for event in stream:
            if event.kind == "tool_started":
                await stream.stop(when)
    partial = stream.partial
    assert partial is not None
    assert results(partial.messages) == [("1", "done"), ("2", "done")]
    assert partial.requests == 0


async def test_the_journal_of_pause_and_resume_is_one_history() -> None:
    journal: list[Message] = []

    async def write(message: Message) -> None:
        journal.append(message)

    script = [asks(("1", "ask"), ("2", "echo"), ("3", "job"))]
    first = await agent(*script, journal=write).run("p")
    assert journal == first.new_messages
    answers = DeferredResults(approvals={"1": True}, external={"3": "late"})
    await resumed(agent("ok", journal=write), False, journal.copy(), answers, prompt="and?")
    assert len(journal) == len({id(message) for message in journal}) == 7
    result = await agent("x").run("q", history=journal)
    assert () == result.repair.synthesized == result.repair.dropped
    assert sorted(results(result.messages)) == [("1", "done"), ("2", "echoed"), ("3", "late")]


# Another process

PROGRAM = """
import asyncio, json, sys
from typing import Any
from golem import Agent, DeferredResults, RunContext, ToolDeferred, dump_history, load_history, tool
from golem.testing import ScriptedModel
from golem.messages import AssistantMessage, ToolCall

@tool
async def pay(context: RunContext[Any], amount: int) -> str:
    if not context.approved:
        raise ToolDeferred("approval", "money")
    return f"paid {amount} by {context.idempotency_key}"

async def main(form: str) -> None:
    if form == "pause":
        asking = AssistantMessage(tool_calls=(ToolCall.of("c1", "pay", '{"amount": 1}'),))
        result = await Agent(ScriptedModel([asking]), tools=[pay]).run("buy", conversation_id="c")
        assert [c.call_id for c in result.pending.approvals] == ["c1"]
        sys.stdout.buffer.write(dump_history(result.messages))
        return
    history = load_history(sys.stdin.buffer.read())
    agent = Agent(ScriptedModel(["thanks"]), tools=[pay])
    answers = DeferredResults(approvals={"c1": True})
    async with agent.stream(None, history=history, deferred=answers) as stream:
        async for event in stream:
            pass
    assert stream.result.output == "thanks"
    sys.stdout.buffer.write(dump_history(stream.result.messages))

asyncio.run(main(sys.argv[1]))
"""


def test_a_run_paused_in_one_process_is_resumed_in_another() -> None:
    def process(form: str, given: bytes = b"") -> bytes:
        root = str(Path(__file__).parents[1])
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, form],
            input=given,
            capture_output=True,
            check=False,
            cwd=root,
            timeout=60,
        )
        assert done.stderr == b""
        return done.stdout

    stored = process("pause")
    assert b"\n" not in stored
    assert json.loads(stored)[0]["conversationId"] == "c"
    history = load_history(process("resume", stored))
    assert [m.content for m in history] == ["buy", "", "paid 1 by c:c1", "thanks"]
    assert {"c"} == {m.conversation_id for m in history}
    assert stored == dump_history(history[:2])


@pytest.mark.parametrize(
    ("answers", "named"),
    [
        (lambda: DeferredResults(approvals={"c": "no"}), "the approval of 'c'"),
        (lambda: DeferredResults(approvals={"c": 1}), "the approval of 'c'"),
        (lambda: Approval("false"), "approved must be bool"),  # type: ignore[arg-type]
        (lambda: DeferredResults(external={"c": None}), "the external result of 'c'"),
        (lambda: DeferredResults(external={"c": {"a": 1}}), "the external result of 'c'"),
        (lambda: DeferredResults(approvals=["c"]), "approvals must be Mapping"),
    ],
)
def test_only_an_answer_is_an_answer(answers: Any, named: str) -> None:
    """What is merely truthy approves nothing."""
    with pytest.raises(TypeError, match=named):
        answers()


async def test_options_of_a_resumed_run_are_checked_before_anything_runs() -> None:
    agent = Agent(ScriptedModel(["x"]))
    with pytest.raises(ValueError, match="unresolved must be one of"):
        await agent.run("p", unresolved="interupt")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="deferred must be DeferredResults"):
        await agent.run("p", deferred={"approvals": {}})  # type: ignore[arg-type]


async def test_a_call_without_an_id_cannot_wait() -> None:
    """Nothing could answer it: a run that pauses for it could never be resumed."""

    @tool(requires_approval=True)
    async def act() -> str:
        return "unreached"

    with pytest.raises(RunError, match="without an id cannot wait"):
        await Agent(ScriptedModel([asks(("", "act"))]), tools=[act]).run("p")
