"""The conformance cases of runs and of resumed runs: every one, plain and streamed."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from typing import Any

import anyio
import anyio.lowlevel
import pytest
import tenacity

from golem import (
    Agent,
    Approval,
    AssistantMessage,
    DeferredResults,
    Event,
    Message,
    ModelRetry,
    PendingCall,
    RunContext,
    RunError,
    Timeouts,
    Tool,
    ToolCanceled,
    ToolDeferred,
    ToolFailed,
    ToolResult,
    TransportError,
    Usage,
    UsageLimitError,
    UsageLimits,
)
from golem import events as ev
from golem._run.retry import DEFAULT_RETRY
from golem.events import (
    ModelFinished,
    ModelStarted,
    OutputRejected,
    RunCanceled,
    ToolFinished,
    ToolStarted,
)
from golem.model import Model, Response
from golem.testing import ScriptedModel, Strict
from tests import cases
from tests.cases import Case
from tests.run.support import Recorder, well_formed

OPTIONS = {
    *("prompt", "promptParts", "instructions", "dynamicInstructions", "processor", "responses"),
    *("tools", "toolRetries", "toolTimeoutMs", "parallel", "maxIterations", "maxAttempts"),
    *("runId", "conversationId", "stream", "usageLimit", "pricePerInputToken", "counter"),
    *("decoder", "outputRetries", "outputTool", "results"),
}
"""What a run can be told; `stream` is a form of it, and both forms play every case."""

KNOWN = {
    *("output", "messages", "firstRequest", "modelRequests", "events", "usage", "requests"),
    *("toolCalls", "finishReason", "runId", "conversationId", "stage", "error", "partial"),
    *("pending", "cost", "usageLimit", "constructionError"),
}
"""What an expectation may say; anything else would go unchecked."""

DEPARTURES: dict[str, str] = {}
"""Cases that the contract answers differently on purpose (§6), and why: none of these."""

CASES = [case for case in cases.vectors("run", "resume") if case["name"] not in DEPARTURES]


def test_no_case_vanishes_silently() -> None:
    """The cases are counted: one that is lost shows, and so does an option nobody reads."""
    assert len(cases.vectors("run", "resume")) == 57 == len(CASES)
    for case in CASES:
        assert case["options"].keys() <= OPTIONS
        assert case["expected"].keys() <= KNOWN


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("case", CASES, ids=cases.name_of)
async def test_vector(case: Case, streamed: bool) -> None:
    """A run gives what the Go sibling gives: result or evidence, events and first request."""
    options, expected = case["options"], case["expected"]
    model, recorder = model_of(options), Recorder()
    history = cases.messages(case["input"]["messages"])
    if "constructionError" in expected:
        with pytest.raises(ValueError, match=r"limit|per_request"):
            agent_of(model, options)
        return
    agent = agent_of(model, options)
    try:
        outcome = await play(agent, options, history, recorder, streamed)
    except ValueError:  # the calling program is at fault, and nothing ran
        assert expected.keys() == {"error", "events", "modelRequests"}
        assert (recorder.events, len(model.requests)) == ([], 0)
        return
    well_formed(recorder.events)
    assert expected["events"] == [text for event in recorder.events if (text := spell(event))]
    assert expected["modelRequests"] == len(model.requests)
    assert ("error" in expected) == isinstance(outcome, RunError)
    check(expected, outcome)
    if "firstRequest" in expected:
        ids = outcome.run_id, outcome.conversation_id
        assert messages_of(expected["firstRequest"], *ids) == list(model.requests[0].messages)


def check(expected: Case, outcome: Any) -> None:
    """The result, or the error and its evidence, are the expected ones."""
    if isinstance(outcome, RunError):
        # A processor's error has a stage of its own here (contract §4.2), in Go it has none.
        assert expected.get("stage", "history") == outcome.stage
        if "usageLimit" in expected:
            limit = outcome.__cause__
            assert isinstance(limit, UsageLimitError)
            found = {"kind": limit.kind, "limit": limit.limit, "actual": limit.actual}
            assert expected["usageLimit"] == found
        evidence, expected = outcome.partial, expected.get("partial")
        if expected is None:
            assert evidence is None
            return
        assert evidence is not None
        assert (outcome.run_id, outcome.conversation_id) == (
            evidence.run_id,
            evidence.conversation_id,
        )
        outcome = evidence
    else:
        assert expected["output"] == (outcome.output or "")
        assert expected.get("pending", NOTHING) == pending_of(outcome)
        assert expected.get("cost") == outcome.cost
        added = [m for m in outcome.messages if m.run_id == outcome.run_id]
        assert added == outcome.new_messages
    for name in ("runId", "conversationId"):
        found = outcome.run_id if name == "runId" else outcome.conversation_id
        if expected[name] == "$MINTED":
            assert uuid.UUID(found).version == 7
        else:
            assert expected[name] == found
    wanted = messages_of(expected["messages"], outcome.run_id, outcome.conversation_id)
    assert wanted == outcome.messages
    usage = expected["usage"]
    assert Usage(usage["inputTokens"], usage["outputTokens"]) == outcome.usage
    assert expected["requests"] == outcome.requests
    assert expected["toolCalls"] == outcome.tool_calls
    assert (expected["finishReason"] or "stop") == outcome.finish_reason


async def play(
    agent: Agent[Any], options: Case, history: list[Message], recorder: Recorder, streamed: bool
) -> Any:
    """The result of the run, or the RunError that ended it."""
    given: dict[str, Any] = {"history": history, "on_event": recorder}
    if "promptParts" in options:
        given["parts"] = [cases.part(part) for part in options["promptParts"]]
    given |= {
        ours: options[theirs]
        for ours, theirs in (("run_id", "runId"), ("conversation_id", "conversationId"))
        if theirs in options
    }
    if "results" in options:
        given["deferred"] = answers_of(options["results"])
    prompt = options.get("prompt", None if "results" in options else "go")
    try:
        if not streamed:
            return await agent.run(prompt, **given)
        seen: list[Event] = []
        async with agent.stream(prompt, **given) as stream:
            try:
                async for event in stream:
                    seen.append(event)
            finally:
                assert recorder.events == seen
        return stream.result
    except RunError as error:
        return error


def agent_of(model: Model, options: Case) -> Agent[Any, Any]:
    instructions: list[Any] = []
    if "dynamicInstructions" in options:
        instructions.append(lambda _: options["dynamicInstructions"])
    if "instructions" in options:  # fixed text goes first, wherever it stands
        instructions.append(options["instructions"])
    given: dict[str, Any] = {}
    if "outputTool" in options:  # its arguments reach the decoder as they are
        given |= {"output_type": dict, "output_mode": "tool", "output_name": options["outputTool"]}
        given |= {"decoder": lambda text: text}
    if "decoder" in options:
        given["decoder"] = decoder_of(options["decoder"])
    if "toolTimeoutMs" in options:
        given["timeout"] = Timeouts(tool=options["toolTimeoutMs"] / 1000)
    if "usageLimit" in options:
        given["limits"] = UsageLimits(**{LIMITS[k]: v for k, v in options["usageLimit"].items()})
    if "pricePerInputToken" in options:
        given["price"] = lambda usage: usage.input_tokens * options["pricePerInputToken"]
    if "counter" in options:
        given["counter"] = Counter(options["counter"])
    return Agent(
        model,
        instructions=instructions,
        tools=[tool_of(tool, options.get("toolRetries", 0)) for tool in options.get("tools", [])],
        history_processor=processor_of(options.get("processor")),
        max_turns=options.get("maxIterations", 10),
        parallel_tool_calls=options.get("parallel", False),
        output_retries=options.get("outputRetries", 0),
        retry=DEFAULT_RETRY.copy(
            stop=tenacity.stop_after_attempt(options.get("maxAttempts", 1)),
            wait=tenacity.wait_none(),
        ),
        **given,
    )


LIMITS = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "totalTokens": "total_tokens",
    "requests": "requests",
    "toolCalls": "tool_calls",
    "cost": "cost",
    "perRequestInputTokens": "per_request_input_tokens",
}

NOTHING: Case = {"approvals": [], "external": []}


class Counter:
    """A token counter that counts as its case says."""

    def __init__(self, neutral: Case) -> None:
        self._neutral = neutral

    async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
        match self._neutral:
            case {"type": "error", "message": reason}:
                raise RuntimeError(reason)
            case {"type": "perMessage", "tokens": tokens}:
                return int(tokens) * len(messages)
            case {"type": "contentChars"}:
                return sum(len(message.content.encode()) for message in messages)
        raise AssertionError(f"unknown counter {self._neutral}")


def decoder_of(neutral: Case) -> Any:
    """A decoder that refuses `times` answers, or breaks."""
    refused = 0

    def decode(text: str) -> str:
        nonlocal refused
        if neutral["type"] == "error":
            raise RuntimeError(neutral["reason"])
        assert neutral["type"] == "reject"
        if refused < neutral["times"]:
            refused += 1
            raise ModelRetry(neutral["reason"])
        return text

    return decode


def answers_of(neutral: Case) -> DeferredResults:
    return DeferredResults(
        {
            call_id: Approval(said["approved"], said.get("reason", ""))
            for call_id, said in neutral.get("approvals", {}).items()
        },
        neutral.get("external", {}),
    )


def pending_of(result: Any) -> Case:
    def spelled(call: PendingCall) -> Case:
        args = json.loads(call.args)
        spelling = {"args": args, "callId": call.call_id, "toolName": call.tool_name}
        return {**spelling, **({"reason": call.reason} if call.reason else {})}

    return {
        "approvals": [spelled(call) for call in result.pending.approvals],
        "external": [spelled(call) for call in result.pending.external],
    }


def model_of(options: Case) -> ScriptedModel:
    responses = options.get("responses", [{"message": {"role": "assistant", "content": "ok"}}])
    return ScriptedModel([response_of(item) for item in responses])


def response_of(item: Case) -> Response | Exception:
    if "fail" in item:
        return TransportError(item["fail"], retryable=item["retryable"])
    message = cases.message(item["message"])
    assert isinstance(message, AssistantMessage)
    usage = Usage(item.get("inputTokens", 0), item.get("outputTokens", 0))
    return Response(message, usage, item.get("finishReason", "stop"))


def tool_of(neutral: Case, retries: int) -> Tool:
    """A tool that does what its case says, once per behavior; the last one repeats."""
    waiting = list(neutral["does"])

    async def behave(context: RunContext[Any], arguments: dict[str, Any]) -> ToolResult:
        does = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        if "deferUnlessApproved" in does:
            does = does["then"] if context.approved else {"defer": does["deferUnlessApproved"]}
        match does:
            case {"failed": reason}:
                raise ToolFailed(reason)
            case {"canceled": reason}:
                raise ToolCanceled(reason)
            case {"retry": reason}:
                raise ModelRetry(reason)
            case {"error": reason}:
                raise RuntimeError(reason)
            case {"defer": {"kind": kind, **rest}}:
                raise ToolDeferred(kind, rest.get("reason", ""))
            case {"hang": True}:
                await anyio.sleep_forever()
            case {"sleepMs": _}:  # longer than its siblings, whatever the clock says
                for _ in range(10):
                    await anyio.lowlevel.checkpoint()
        parts = tuple(cases.part(part) for part in does.get("parts", []))
        return ToolResult(does.get("text", ""), parts)

    budget = neutral.get("maxRetries", retries)
    timeout = neutral["timeoutMs"] / 1000 if "timeoutMs" in neutral else None
    made = Tool(neutral["name"], behave, schema={"type": "object"}, retries=budget, timeout=timeout)
    made.takes_context = True
    return made


def processor_of(neutral: Case | None) -> Any:
    if neutral is None:
        return None
    if neutral["type"] == "error":

        def fail(_: list[Message]) -> list[Message]:
            raise RuntimeError(neutral["message"])

        return fail
    assert neutral["type"] == "trim"

    def trim(history: list[Message]) -> list[Message]:
        kept = history[-neutral["maxMessages"] :]
        while kept and (role_of(kept[0]) == "tool" or getattr(kept[0], "tool_calls", ())):
            del kept[0]
        return kept

    return trim


def role_of(message: Message) -> str:
    return str(message.__struct_config__.tag)


def messages_of(neutral: list[Case], run_id: str, conversation_id: str) -> list[Message]:
    """Expected messages with the run's own ids in place of their names."""
    text = json.dumps(neutral).replace("$RUN", run_id).replace("$CONV", conversation_id)
    return cases.messages(json.loads(text))


def spell(event: Event) -> str:
    """An event in the sibling's words; empty for one that only we have."""
    match event:
        case ModelStarted(turn=turn, attempt=attempt):
            return f"model_start t{turn} a{attempt}"
        case ModelFinished(turn=turn, attempt=attempt, error=error):
            return f"model_end t{turn} a{attempt}" + (" err" if error else "")
        case ToolStarted(turn=turn, call_id=call_id):
            return f"tool_start t{turn} a0 {call_id}"
        case ToolFinished(turn=turn, call_id=call_id, error=error):
            return f"tool_end t{turn} a0 {call_id}" + (" err" if error else "")
        case ev.ToolDeferred(turn=turn, call_id=call_id):
            return f"deferred t{turn} a0 {call_id}"
        case OutputRejected(round=round_):
            return f"output_rejected t0 a{round_} err"
        case RunCanceled(turn=turn, call_id=call_id):
            return f"canceled t{turn} a0 {call_id} err"
    return ""


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("case", cases.field_reports("resume"), ids=cases.name_of)
async def test_a_history_of_a_bug_report_resumes(case: Case, streamed: bool) -> None:
    """Every call has its result, the prompt stands last; wire shapes are the adapters' tests."""
    model = ScriptedModel(["ok"])
    history = cases.messages(case["messages"])
    outcome = await play(Agent(Strict(model)), case["args"], history, Recorder(), streamed)
    assert outcome.output == "ok"
    (request,) = model.requests
    assert case["args"]["prompt"] == request.messages[-1].content
    texts = [message.content for message in request.messages]
    assert all(text in texts for text in case["expect"].get("contentPresent", []))
    assert [m for m in request.messages if m in history] == history
