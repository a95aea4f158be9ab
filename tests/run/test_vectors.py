"""The conformance cases of a run that are within today's features, plain and streamed."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest

from golem import (
    Agent,
    AssistantMessage,
    Event,
    Message,
    ModelRetry,
    RunError,
    Tool,
    ToolCanceled,
    ToolFailed,
    ToolResult,
    TransportError,
    Usage,
)
from golem.events import ModelFinished, ModelStarted, RunCanceled, ToolFinished, ToolStarted
from golem.model import Model, Response
from golem.testing import ScriptedModel
from tests import cases
from tests.cases import Case
from tests.run.support import Recorder, well_formed

OPTIONS = {
    *("prompt", "promptParts", "instructions", "dynamicInstructions", "processor", "responses"),
    *("tools", "toolRetries", "maxIterations", "runId", "conversationId", "stream"),
}
"""What a run can be told today."""

TOOL = {"name", "does", "maxRetries"}
BEHAVIORS = {"text", "parts", "failed", "canceled", "retry", "error"}
RESPONSE = {"message", "inputTokens", "outputTokens", "finishReason", "fail", "retryable"}

KNOWN = {
    *("output", "messages", "firstRequest", "modelRequests", "events", "usage", "requests"),
    *("toolCalls", "finishReason", "runId", "conversationId", "stage", "error", "partial"),
}
"""What an expectation may say; anything else would go unchecked."""


def supported(case: Case) -> bool:
    """Whether everything the case uses exists today."""
    options = case["options"]
    tools = options.get("tools", [])
    behaviors = [behavior for tool in tools for behavior in tool["does"]]
    # An attempt that is retried is not there yet; one that may not be retried is the same run.
    retried = any(item.get("retryable") for item in options.get("responses", []))
    used = options.keys() - ({"maxAttempts"} if not retried else set())
    return (
        used <= OPTIONS
        and all(tool.keys() <= TOOL for tool in tools)
        and all(behavior.keys() <= BEHAVIORS for behavior in behaviors)
        and all(item.keys() <= RESPONSE for item in options.get("responses", []))
    )


RUNS = cases.vectors("run")
SUPPORTED = [case for case in RUNS if supported(case)]


def test_no_case_vanishes_silently() -> None:
    """The cases in reach are counted: a feature that comes, or a typo here, shows."""
    assert (len(RUNS), len(SUPPORTED)) == (52, 27)


@pytest.mark.parametrize("streamed", [False, True], ids=["run", "stream"])
@pytest.mark.parametrize("case", SUPPORTED, ids=cases.name_of)
async def test_vector(case: Case, streamed: bool) -> None:
    """A run gives what the Go sibling gives: result or evidence, events and first request."""
    options, expected = case["options"], case["expected"]
    assert expected.keys() <= KNOWN
    model, recorder = model_of(options), Recorder()
    history = cases.messages(case["input"]["messages"])
    try:
        agent = agent_of(model, options)
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
        assert expected["output"] == outcome.output
        assert outcome.messages[-len(outcome.new_messages) :] == outcome.new_messages
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
    prompt = options.get("prompt", "go")
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


def agent_of(model: Model, options: Case) -> Agent[Any]:
    instructions: list[Any] = []
    if "dynamicInstructions" in options:
        instructions.append(lambda _: options["dynamicInstructions"])
    if "instructions" in options:  # fixed text goes first, wherever it stands
        instructions.append(options["instructions"])
    return Agent(
        model,
        instructions=instructions,
        tools=[tool_of(tool, options.get("toolRetries", 0)) for tool in options.get("tools", [])],
        history_processor=processor_of(options.get("processor")),
        max_turns=options.get("maxIterations", 10),
    )


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

    async def behave(arguments: dict[str, Any]) -> ToolResult:
        does = waiting.pop(0) if len(waiting) > 1 else waiting[0]
        match does:
            case {"failed": reason}:
                raise ToolFailed(reason)
            case {"canceled": reason}:
                raise ToolCanceled(reason)
            case {"retry": reason}:
                raise ModelRetry(reason)
            case {"error": reason}:
                raise RuntimeError(reason)
        parts = tuple(cases.part(part) for part in does.get("parts", []))
        return ToolResult(does.get("text", ""), parts)

    budget = neutral.get("maxRetries", retries)
    return Tool(neutral["name"], behave, schema={"type": "object"}, retries=budget)


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
        case RunCanceled(turn=turn, call_id=call_id):
            return f"canceled t{turn} a0 {call_id} err"
    return ""
