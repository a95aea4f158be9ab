"""The OpenTelemetry bridge against the real SDK: which spans a run becomes, however it ends."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anyio
import pytest
import tenacity
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from golem import (
    Agent,
    AssistantMessage,
    DeferredResults,
    ModelRetry,
    Part,
    RunContext,
    RunError,
    ToolCall,
    ToolCanceled,
    ToolFailed,
    TransportError,
    Usage,
    tool,
)
from golem.model import Delta, Response, TextDelta
from golem.otel import OTelObserver
from golem.testing import Fragments, ScriptedModel

pytestmark = pytest.mark.virtual_time

USAGE = Usage(11, 7, cache_read_tokens=5, reasoning_tokens=3)


class Spans:
    """A tracer provider of its own and what came out of it."""

    def __init__(self) -> None:
        self.provider = TracerProvider()
        self._exporter = InMemorySpanExporter()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def observer(self, **options: Any) -> OTelObserver:
        return OTelObserver(self.provider, **options)

    @property
    def ended(self) -> tuple[ReadableSpan, ...]:
        return self._exporter.get_finished_spans()

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.ended]

    def all(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.ended if span.name == name]

    def one(self, name: str) -> ReadableSpan:
        (span,) = self.all(name)
        return span

    def tree(self) -> dict[str, str]:
        """The name of each span's parent, by its name."""
        names = {span.context.span_id: span.name for span in self.ended}
        return {
            span.name: names.get(span.parent.span_id, "") if span.parent else ""
            for span in self.ended
        }


@pytest.fixture
def spans() -> Iterator[Spans]:
    made = Spans()
    yield made
    made.provider.shutdown()


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def asks(*calls: tuple[str, str], args: str = "{}") -> AssistantMessage:
    return AssistantMessage(tool_calls=tuple(ToolCall.of(id_, name, args) for id_, name in calls))


def weather(city: str = "Rome") -> str:
    """The weather in a city."""
    return f"sunny in {city}"


async def hang() -> str:
    """Never come back."""
    await anyio.sleep_forever()
    return ""


async def test_an_answer_is_a_run_with_one_request_in_it(spans: Spans) -> None:
    observer = spans.observer(
        agent_name="guide", provider_name="openai", request_model="gpt-5-mini"
    )
    agent: Agent[None] = Agent(ScriptedModel(["hi"], usage=USAGE), on_event=observer)
    result = await agent.run("hello")

    assert spans.names == ["chat gpt-5-mini", "invoke_agent guide"]
    chat, run = spans.ended
    assert chat.parent is not None
    assert chat.parent.span_id == run.context.span_id
    assert (chat.kind, run.kind) == (SpanKind.CLIENT, SpanKind.INTERNAL)
    shared = {
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5-mini",
        "gen_ai.agent.name": "guide",
        "gen_ai.conversation.id": result.conversation_id,
        "golem.run.id": result.run_id,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "gen_ai.usage.cache_read.input_tokens": 5,
        "gen_ai.usage.reasoning.output_tokens": 3,
    }
    assert attributes(chat) == {
        "gen_ai.operation.name": "chat",
        "golem.turn": 0,
        "golem.attempt": 1,
        **shared,
    }
    assert attributes(run) == {
        "gen_ai.operation.name": "invoke_agent",
        "golem.run.outcome": "finished",
        "golem.run.requests": 1,
        "golem.run.tool_calls": 0,
        **shared,
    }
    assert {span.status.status_code for span in spans.ended} == {StatusCode.UNSET}


async def test_a_streamed_request_says_so_and_when_it_began_to_answer(spans: Spans) -> None:
    agent: Agent[None] = Agent(ScriptedModel(["hello there, friend"]), on_event=spans.observer())
    async with agent.stream("hello") as stream:
        async for _ in stream:
            pass
    seen = attributes(spans.one("chat"))
    assert seen["gen_ai.request.stream"] is True
    assert seen["gen_ai.response.time_to_first_chunk"] >= 0
    assert "gen_ai.provider.name" not in seen


async def test_a_tool_turn_has_a_span_for_each_call(spans: Spans) -> None:
    model = ScriptedModel([asks(("c1", "weather")), "sunny"])
    agent: Agent[None] = Agent(model, tools=[weather], on_event=spans.observer())
    await agent.run("weather?")

    assert spans.names == ["chat", "execute_tool weather", "chat", "invoke_agent"]
    assert spans.tree()["execute_tool weather"] == "invoke_agent"
    call = spans.one("execute_tool weather")
    assert call.kind is SpanKind.INTERNAL
    seen = attributes(call)
    assert seen["gen_ai.operation.name"] == "execute_tool"
    assert seen["gen_ai.tool.name"] == "weather"
    assert seen["gen_ai.tool.type"] == "function"
    assert seen["gen_ai.tool.call.id"] == "c1"
    assert "gen_ai.tool.call.arguments" not in seen
    assert [attributes(span)["golem.turn"] for span in spans.all("chat")] == [0, 1]


async def test_parallel_calls_overlap_and_keep_apart_even_with_one_id(spans: Spans) -> None:
    model = ScriptedModel([asks(("same", "weather"), ("same", "fails"), ("c3", "weather")), "ok"])

    @tool
    async def fails() -> str:
        """Fail for good."""
        raise ToolFailed("closed")

    agent: Agent[None] = Agent(
        model, tools=[weather, fails], parallel_tool_calls=True, on_event=spans.observer()
    )
    await agent.run("all")

    calls = [span for span in spans.ended if span.name.startswith("execute_tool")]
    assert [span.name for span in calls] == [
        "execute_tool weather",
        "execute_tool fails",
        "execute_tool weather",
    ]
    assert [span.status.status_code.name for span in calls] == ["UNSET", "ERROR", "UNSET"]
    assert attributes(calls[1])["error.type"] == "tool_failed"
    starts = [span.start_time or 0 for span in calls]
    ends = [span.end_time or 0 for span in calls]
    assert max(starts) <= min(ends)


async def test_a_call_that_has_to_be_corrected_is_an_error_of_its_own_kind(spans: Spans) -> None:
    model = ScriptedModel([asks(("c1", "unknown")), asks(("c2", "refuses")), "sorry"])

    @tool(retries=1)
    async def refuses() -> str:
        """Refuse."""
        raise ModelRetry("SECRET")

    agent: Agent[None] = Agent(model, tools=[refuses], on_event=spans.observer())
    await agent.run("go")
    for name in ("execute_tool unknown", "execute_tool refuses"):
        assert attributes(spans.one(name))["error.type"] == "call_rejected"
        assert spans.one(name).status.description is None


async def test_a_failing_tool_fails_its_span_and_the_run(spans: Spans) -> None:
    @tool
    async def breaks() -> str:
        """Break."""
        raise ConnectionError("no route")

    agent: Agent[None] = Agent(
        ScriptedModel([asks(("c1", "breaks"))]), tools=[breaks], on_event=spans.observer()
    )
    with pytest.raises(RunError):
        await agent.run("go")

    call, run = spans.one("execute_tool breaks"), spans.one("invoke_agent")
    assert call.status.status_code is StatusCode.ERROR
    assert call.status.description == "no route"
    assert attributes(call)["error.type"] == "ConnectionError"
    assert attributes(run)["error.type"] == "tool"
    assert attributes(run)["golem.run.outcome"] == "failed"
    assert run.status.description == "tool 'breaks' (call 'c1'): no route"


async def test_a_run_that_fails_before_it_starts_has_a_span_too(spans: Spans) -> None:
    def broken(history: Any) -> Any:
        raise OSError("no disk")

    agent: Agent[None] = Agent(
        ScriptedModel([]), history_processor=broken, on_event=spans.observer()
    )
    with pytest.raises(RunError):
        await agent.run("go")
    assert spans.names == ["invoke_agent"]
    assert attributes(spans.one("invoke_agent"))["error.type"] == "history"


async def test_every_attempt_has_a_span(spans: Spans) -> None:
    retry = tenacity.AsyncRetrying(stop=tenacity.stop_after_attempt(3), wait=tenacity.wait_none())
    model = ScriptedModel([TransportError("cut"), TransportError("cut again"), "at last"])
    agent: Agent[None] = Agent(model, retry=retry, on_event=spans.observer())
    await agent.run("hello")

    attempts = spans.all("chat")
    assert [attributes(span)["golem.attempt"] for span in attempts] == [1, 2, 3]
    assert [span.status.description for span in attempts] == ["cut", "cut again", None]
    assert [attributes(span).get("error.type") for span in attempts] == [
        "TransportError",
        "TransportError",
        None,
    ]
    assert spans.one("invoke_agent").status.status_code is StatusCode.UNSET


async def test_a_pause_ends_the_run_without_an_error_and_the_resume_is_a_run(spans: Spans) -> None:
    @tool(requires_approval=True)
    async def pay() -> str:
        """Pay."""
        return "paid"

    model = ScriptedModel([asks(("c1", "pay")), "done"])
    agent: Agent[None] = Agent(model, tools=[pay], on_event=spans.observer())
    paused = await agent.run("pay")
    run, call = spans.one("invoke_agent"), spans.one("execute_tool pay")
    assert attributes(run)["golem.run.outcome"] == "paused"
    assert attributes(call)["golem.tool.deferred"] == "approval"
    assert {span.status.status_code for span in spans.ended} == {StatusCode.UNSET}

    answers = DeferredResults(approvals={"c1": True})
    resumed = await agent.run(None, history=paused.messages, deferred=answers)
    assert resumed.output == "done"
    first, second = spans.all("invoke_agent")
    conversation = attributes(first)["gen_ai.conversation.id"]
    assert attributes(second)["gen_ai.conversation.id"] == conversation


async def test_a_stop_is_no_error(spans: Spans) -> None:
    @tool
    async def stops() -> str:
        """Stop the run."""
        raise ToolCanceled("enough")

    agent: Agent[None] = Agent(
        ScriptedModel([asks(("c1", "stops"))]), tools=[stops], on_event=spans.observer()
    )
    with pytest.raises(RunError):
        await agent.run("go")
    run = spans.one("invoke_agent")
    assert attributes(run)["golem.run.outcome"] == "stopped"
    assert run.status.status_code is StatusCode.UNSET


async def test_leaving_a_stream_ends_its_spans(spans: Spans) -> None:
    agent: Agent[None] = Agent(ScriptedModel(["a long story"]), on_event=spans.observer())
    async with agent.stream("tell") as stream:
        async for _ in stream.text():
            break
    assert spans.names == ["chat", "invoke_agent"]
    assert attributes(spans.one("chat"))["golem.interrupted"] is True
    assert attributes(spans.one("invoke_agent"))["golem.run.outcome"] == "stopped"


@pytest.mark.parametrize("parallel", [False, True])
async def test_cancellation_ends_every_span(spans: Spans, parallel: bool) -> None:
    agent: Agent[None] = Agent(
        ScriptedModel([asks(("c1", "hang"), ("c2", "hang"))]),
        tools=[hang],
        parallel_tool_calls=parallel,
        on_event=spans.observer(),
    )
    with anyio.move_on_after(0.05) as scope:
        await agent.run("go")
    assert scope.cancelled_caught
    calls = spans.all("execute_tool hang")
    assert len(calls) == (2 if parallel else 1)
    assert all(attributes(call)["golem.interrupted"] for call in calls)
    assert spans.names[-1] == "invoke_agent"
    assert {span.status.status_code for span in spans.ended} == {StatusCode.UNSET}


async def test_a_timeout_fails_the_call_it_struck(spans: Spans) -> None:
    agent: Agent[None] = Agent(
        ScriptedModel([asks(("c1", "hang"))]), tools=[hang], timeout=0.05, on_event=spans.observer()
    )
    with pytest.raises(RunError):
        await agent.run("go")
    call = spans.one("execute_tool hang")
    assert call.status.status_code is StatusCode.ERROR
    assert attributes(call)["golem.interrupted"] is True


async def test_a_stream_that_dies_fails_its_request(spans: Spans) -> None:
    died: list[Delta | Exception] = [TextDelta("so "), TransportError("cut")]
    agent: Agent[None] = Agent(ScriptedModel([Fragments(died)]), on_event=spans.observer())
    async with agent.stream("go") as stream:
        with pytest.raises(RunError):
            async for _ in stream:
                pass
    assert spans.one("chat").status.description == "cut"
    assert attributes(spans.one("invoke_agent"))["error.type"] == "model"


async def test_a_sub_agent_runs_under_the_call_that_runs_it(spans: Spans) -> None:
    # Two observers of one provider, as two agents with names of their own have.
    inner: Agent[None] = Agent(ScriptedModel(["42"]), on_event=spans.observer(agent_name="inner"))
    outer: Agent[None] = Agent(
        ScriptedModel([asks(("c1", "ask"), args='{"prompt": "?"}'), "it is 42"]),
        tools=[inner.as_tool("ask", "Ask the other one.")],
        on_event=spans.observer(agent_name="outer"),
    )
    await outer.run("go")
    tree = spans.tree()
    assert tree["invoke_agent inner"] == "execute_tool ask"
    assert tree["execute_tool ask"] == "invoke_agent outer"
    assert tree["invoke_agent outer"] == ""
    assert len({span.context.trace_id for span in spans.ended}) == 1


@pytest.mark.parametrize("named", [True, False])
async def test_sub_agents_that_run_at_once_are_each_under_their_call(
    spans: Spans, named: bool
) -> None:
    """A run that names no call may belong to any of several: it is under the parent's run."""
    inner: Agent[None] = Agent(
        ScriptedModel(["1", "2"]), on_event=spans.observer(agent_name="inner")
    )

    @tool
    async def by_hand(ctx: RunContext, prompt: str) -> str:
        return (await inner.run(prompt, parent_run_id=ctx.run_id)).output

    helper = inner.as_tool("ask", "Ask the other one.") if named else by_hand
    asked = [(f"c{n}", helper.name, f'{{"prompt": "{n}"}}') for n in (1, 2)]
    calls = tuple(ToolCall.of(*call) for call in asked)
    outer: Agent[None] = Agent(
        ScriptedModel([AssistantMessage(tool_calls=calls), "done"]),
        tools=[helper],
        parallel_tool_calls=True,
        on_event=spans.observer(agent_name="outer"),
    )
    await outer.run("go")
    above = {span.parent.span_id for span in spans.all("invoke_agent inner") if span.parent}
    wanted = f"execute_tool {helper.name}" if named else "invoke_agent outer"
    assert {span.context.span_id for span in spans.all(wanted)} == above


async def test_concurrent_runs_of_one_agent_keep_apart(spans: Spans) -> None:
    model = ScriptedModel([asks(("c", "weather"))] * 5 + ["done"] * 5)
    agent: Agent[None] = Agent(model, tools=[weather], on_event=spans.observer())
    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(agent.run, f"question {number}")

    runs = {span.context.span_id: span for span in spans.all("invoke_agent")}
    assert len(runs) == 5
    assert len({span.context.trace_id for span in runs.values()}) == 5
    for span in spans.ended:
        if span.parent is not None:
            run = runs[span.parent.span_id]
            assert attributes(run)["golem.run.id"] == attributes(span)["golem.run.id"]
    assert len(spans.ended) == 5 * 4


@pytest.mark.parametrize("how", ["run", "stream", "left"])
async def test_concurrent_runs_under_one_run_id_keep_apart(spans: Spans, how: str) -> None:
    """As where a run id is taken from elsewhere, for all that one request sets off."""
    observer = spans.observer()
    tracer = spans.provider.get_tracer("application")

    @tool
    async def look(context: RunContext[Any]) -> str:
        await anyio.lowlevel.checkpoint()
        with trace.use_span(observer.span_of(context)), tracer.start_as_current_span("query"):
            await anyio.lowlevel.checkpoint()
        return "found"

    model = ScriptedModel([asks(("c", "look"))] * 5 + ["done"] * 5)
    agent: Agent[None] = Agent(model, tools=[look], on_event=observer)

    async def go(number: int) -> None:
        if how == "run":
            await agent.run("question", run_id="same", conversation_id="same")
            return
        async with agent.stream("question", run_id="same", conversation_id="same") as stream:
            async for event in stream:
                if how == "left" and event.kind == "tool_finished":
                    break
                await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        for number in range(5):
            tasks.start_soon(go, number)

    runs = spans.all("invoke_agent")
    assert len({span.context.trace_id for span in runs}) == len(runs) == 5
    for name, each in (("chat", 1 if how == "left" else 2), ("execute_tool look", 1), ("query", 1)):
        traces = sorted(span.context.trace_id for span in spans.all(name))
        assert sorted([run.context.trace_id for run in runs] * each) == traces
    calls = {span.context.span_id for span in spans.all("execute_tool look")}
    assert calls == {span.parent.span_id for span in spans.all("query") if span.parent}
    assert {attributes(run)["golem.run.outcome"] for run in runs} == {
        "stopped" if how == "left" else "finished"
    }


async def test_a_run_is_a_child_of_what_is_current_and_a_tool_can_go_under_its_call(
    spans: Spans,
) -> None:
    observer = spans.observer()
    tracer = spans.provider.get_tracer("application")

    @tool
    async def looks(ctx: RunContext) -> str:
        """Look something up."""
        with trace.use_span(observer.span_of(ctx)), tracer.start_as_current_span("query"):
            return "found"

    agent: Agent[None] = Agent(
        ScriptedModel([asks(("c1", "looks")), "done"]), tools=[looks], on_event=observer
    )
    with tracer.start_as_current_span("request"):
        await agent.run("go")
    assert spans.tree() == {
        "chat": "invoke_agent",
        "query": "execute_tool looks",
        "execute_tool looks": "invoke_agent",
        "invoke_agent": "request",
        "request": "",
    }
    elsewhere: RunContext[None] = RunContext(None, "unknown", "unknown")
    assert observer.span_of(elsewhere) is trace.INVALID_SPAN


SECRETS = ("SECRET-PROMPT", "SECRET-ARGS", "SECRET-RESULT", "SECRET-ANSWER", "SECRET-RULES")


def secretive(spans: Spans, **options: Any) -> Agent[None]:
    @tool
    async def look(what: str) -> str:
        """Look."""
        return "SECRET-RESULT"

    @tool
    async def fails() -> str:
        """Fail."""
        raise ToolFailed("SECRET-RESULT")

    model = ScriptedModel(
        [
            asks(("c1", "look"), args='{"what": "SECRET-ARGS"}'),
            asks(("c2", "fails")),
            "SECRET-ANSWER",
        ]
    )
    return Agent(
        model,
        instructions="SECRET-RULES",
        tools=[look, fails],
        on_event=spans.observer(**options),
    )


async def test_nothing_that_was_said_is_recorded_by_default(spans: Spans) -> None:
    await secretive(spans).run("SECRET-PROMPT")
    recorded = " ".join(span.to_json() for span in spans.ended)
    assert [secret for secret in SECRETS if secret in recorded] == []


async def test_what_was_said_is_recorded_when_asked_for(spans: Spans) -> None:
    picture = Part.image_url("https://example.com/a.png")
    inline = Part.image(b"data", "image/png")
    await secretive(spans, capture_content=True).run("SECRET-PROMPT", parts=[picture, inline])

    run = attributes(spans.one("invoke_agent"))
    assert json.loads(run["gen_ai.system_instructions"]) == [
        {"type": "text", "content": "SECRET-RULES"}
    ]
    given = json.loads(run["gen_ai.input.messages"])
    assert [message["role"] for message in given] == [
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
    ]
    uri = {"type": "uri", "modality": "image", "mime_type": "", "uri": picture.url}
    assert given[0]["parts"] == [
        {"type": "text", "content": "SECRET-PROMPT"},
        uri,
        {"type": "image", "mime_type": "image/png"},
    ]
    call = {"type": "tool_call", "id": "c1", "name": "look"}
    assert given[1]["parts"] == [{**call, "arguments": '{"what": "SECRET-ARGS"}'}]
    answered = {"type": "tool_call_response", "id": "c1", "response": "SECRET-RESULT"}
    assert given[2]["parts"] == [answered]
    said = [{"role": "assistant", "parts": [{"type": "text", "content": "SECRET-ANSWER"}]}]
    assert json.loads(run["gen_ai.output.messages"]) == [{**said[0], "finish_reason": "stop"}]

    look = attributes(spans.one("execute_tool look"))
    assert look["gen_ai.tool.call.arguments"] == '{"what": "SECRET-ARGS"}'
    assert look["gen_ai.tool.call.result"] == "SECRET-RESULT"
    assert spans.one("execute_tool fails").status.description == "SECRET-RESULT"
    first, _, last = spans.all("chat")
    assert "SECRET-ARGS" in attributes(first)["gen_ai.output.messages"]
    assert "SECRET-ANSWER" in attributes(last)["gen_ai.output.messages"]


async def test_an_answer_whose_run_is_cut_off_before_it_is_told_is_ended(spans: Spans) -> None:
    class Dies:
        """An observer that cancels the run between an answer and its message."""

        def __init__(self) -> None:
            self.scope = anyio.CancelScope()

        async def __call__(self, event: Any) -> None:
            if event.kind == "model_finished":
                self.scope.cancel()
                await anyio.sleep(1)

    dies = Dies()
    agent: Agent[None] = Agent(ScriptedModel(["hi"]), on_event=spans.observer(capture_content=True))
    with dies.scope:
        await agent.run("hello", on_event=dies)
    assert spans.names == ["chat", "invoke_agent"]


async def test_an_observer_attached_to_a_run_that_has_begun_sees_only_its_end(
    spans: Spans,
) -> None:
    observer = spans.observer()
    agent: Agent[None] = Agent(ScriptedModel([Response(AssistantMessage("hi"))]))
    events = [event async for event in agent.stream("hello")]
    for event in events[1:]:
        observer(event)
    assert spans.names == ["invoke_agent"]
