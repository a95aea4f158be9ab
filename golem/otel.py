"""Runs as OpenTelemetry spans; needs the extra ``golem-agents[otel]``.

An `OTelObserver` stands where any observer does (``on_event=``) and makes spans of the events it
sees: one for a run, in it one for each attempt at the model and one for each tool call. Names and
attributes are those of the semantic conventions for generative AI
(https://github.com/open-telemetry/semantic-conventions-genai); what they have no word for begins
with ``golem.``. Nothing else in golem imports this module or knows OpenTelemetry.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from time import time_ns
from typing import Any, Final

from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider
from opentelemetry.util.types import AttributeValue

from golem import events as ev
from golem.carrying import inside
from golem.codec import encode_json
from golem.context import RunContext
from golem.messages import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from golem.usage import Usage

OTHER: Final = "_OTHER"
"""The conventions' word for an error that has no class of its own."""

INTERRUPTED: Final = "golem.interrupted"
"""True on the span of a request or a call that the end of its run cut short."""

_OUTCOMES: Final[dict[type, str]] = {
    ev.RunFinished: "finished",
    ev.RunPaused: "paused",
    ev.RunFailed: "failed",
    ev.RunStopped: "stopped",
}

_ROLES: Final[dict[type, str]] = {
    UserMessage: "user",
    AssistantMessage: "assistant",
    ToolMessage: "tool",
}


class OTelObserver:
    """Makes spans of the runs it observes; one may be shared by any number of agents and runs.

    ``Agent(model, on_event=OTelObserver())``. `tracer_provider` is OpenTelemetry's global one
    unless given. With `capture_content` the spans also carry what was said: instructions,
    messages, arguments and results. `agent_name`, `provider_name` (as in the conventions:
    ``openai``, ``anthropic`` …) and `request_model` are what the events do not tell.

    The run's span is a child of the one that is current where the run is read; that of a
    sub-agent's run, of the call that runs it (of the parent's run, where it names no call and
    several run at once). No span is made current: see `span_of`. Every span is ended, however its
    run ends.
    """

    def __init__(
        self,
        tracer_provider: TracerProvider | None = None,
        *,
        capture_content: bool = False,
        agent_name: str = "",
        provider_name: str = "",
        request_model: str = "",
    ) -> None:
        self._tracer = trace.get_tracer("golem", tracer_provider=tracer_provider)
        self._provider = id(tracer_provider)
        self._capture = capture_content
        self._agent = agent_name
        self._model = request_model
        self._about = _known(
            {"gen_ai.provider.name": provider_name, "gen_ai.request.model": request_model}
        )
        self._runs: dict[_Key, _Run] = {}

    def __call__(self, event: ev.Event) -> None:
        """See one event."""
        key = _key(event.run_id)
        run = self._runs.get(key)
        if run is None:
            if not isinstance(event, (ev.RunStarted, *ev.TERMINAL)):
                return  # attached to a run that had begun
            run = self._runs[key] = self._begin(event)
            _open[self._provider, key] = run
        run.see(event)
        if isinstance(event, ev.TERMINAL):
            del self._runs[key]
            _open.pop((self._provider, key), None)

    def span_of(self, context: RunContext[Any]) -> Span:
        """The span of the tool call that `context` belongs to.

        For a tool whose own spans should stand under it:
        ``with trace.use_span(observer.span_of(context)): …``. A span that records nothing where
        the run is not observed.
        """
        found = self._runs.get(_key(context.run_id))
        same = (run for (run_id, _), run in self._runs.items() if run_id == context.run_id)
        run = found or next(same, None)  # asked from elsewhere: by id alone
        if run is None:
            return trace.INVALID_SPAN
        return run.call(context.call_id) or run.span

    def _begin(self, event: ev.Event) -> _Run:
        parent_id = event.parent_run_id if isinstance(event, ev.RunStarted) else ""
        return _Run(self, event, self._parent(parent_id) if parent_id else None)

    def _parent(self, run_id: str) -> _Run | None:
        """The run of that id that this one is carried out in, else any that is in progress."""
        for stream, _ in reversed(inside.get()):
            if found := _open.get((self._provider, (run_id, stream))):
                return found
        same = (self._provider, run_id)
        return next((run for (by, key), run in _open.items() if (by, key[0]) == same), None)

    def start(
        self,
        operation: str,
        target: str,
        event: ev.Event,
        parent: Span | None,
        attributes: dict[str, AttributeValue] | None = None,
    ) -> Span:
        """A span of one run, named as the conventions name it."""
        return self._tracer.start_span(
            f"{operation} {target}".rstrip(),
            context=None if parent is None else trace.set_span_in_context(parent),
            kind=SpanKind.CLIENT if operation == "chat" else SpanKind.INTERNAL,
            attributes={
                "gen_ai.operation.name": operation,
                **self._about,
                **_known({"gen_ai.agent.name": self._agent}),
                "gen_ai.conversation.id": event.conversation_id,
                "golem.run.id": event.run_id,
                **(attributes or {}),
            },
        )

    @property
    def captures(self) -> bool:
        """Whether what was said may be recorded."""
        return self._capture

    @property
    def names(self) -> tuple[str, str]:
        """The agent's name and the model's."""
        return self._agent, self._model


class _Run:
    """The spans of one run."""

    def __init__(self, observer: OTelObserver, event: ev.Event, parent: _Run | None) -> None:
        self._observer = observer
        agent, self._model = observer.names
        above = None if parent is None else parent.above(event)
        self.span: Span = observer.start("invoke_agent", agent, event, above)
        self._attempt: Span | None = None
        self._sent = 0
        self._heard = False
        self._answered: tuple[Span, int, str] | None = None
        self._calls: list[tuple[str, Span]] = []

    def above(self, event: ev.Event) -> Span:
        """The span under which a run begins in this one: that of the call that carries it out.

        The call it names, else the only one that is running; of several, or none, the run's own.
        """
        named = event.parent_call_id if isinstance(event, ev.RunStarted) else ""
        if named and (found := self.call(named)):
            return found
        return self._calls[0][1] if len(self._calls) == 1 else self.span

    def call(self, call_id: str) -> Span | None:
        """The span of a running call."""
        return next((span for named, span in self._calls if named == call_id), None)

    def see(self, event: ev.Event) -> None:
        """Start, complete or end what the event is about."""
        if isinstance(event, (ev.TextDelta, ev.ThinkingDelta, ev.ToolCallDelta)):
            self._hear()
            return
        self._say(event)
        if isinstance(event, ev.ModelStarted):
            model = event.model or self._model
            self._attempt = self._observer.start("chat", model, event, self.span)
            self._attempt.set_attributes(_known({"gen_ai.request.model": model}))
            self._attempt.set_attribute("golem.turn", event.turn)
            self._attempt.set_attribute("golem.attempt", event.attempt)
            self._sent, self._heard = time_ns(), False
        elif isinstance(event, ev.ModelFinished):
            self._answer(event)
        elif isinstance(event, ev.ToolStarted):
            self._start_call(event)
        elif isinstance(event, (ev.ToolFinished, ev.ToolDeferred)):
            self._end_call(event)
        elif isinstance(event, ev.OutputRejected):
            self.span.set_attribute("golem.output.rejections", event.round)
        elif isinstance(event, (ev.RunFinished, ev.RunPaused, ev.RunFailed, ev.RunStopped)):
            self._end(event)

    # The model

    def _hear(self) -> None:
        if self._attempt is not None and not self._heard:
            self._heard = True
            waited = (time_ns() - self._sent) / 1e9
            self._attempt.set_attribute("gen_ai.request.stream", True)
            self._attempt.set_attribute("gen_ai.response.time_to_first_chunk", waited)

    def _answer(self, event: ev.ModelFinished) -> None:
        span, self._attempt = self._attempt, None
        if span is None:
            return
        if event.error:
            _fail(span, event.error_type or OTHER, event.error)
        details = event.details
        span.set_attributes(
            _known(
                {
                    "gen_ai.response.id": details.response_id,
                    "gen_ai.response.model": details.model,
                }
            )
        )
        if event.finish_reason is not None:
            span.set_attributes(_usage(event.usage))
            span.set_attribute("gen_ai.response.finish_reasons", [event.finish_reason])
            if self._observer.captures:  # what was said is told by the next event
                self._answered = span, time_ns(), event.finish_reason
                return
        span.end()

    def _say(self, event: ev.Event) -> None:
        """Complete the span of an answer with what it said."""
        if self._answered is None:
            return
        (span, ended, reason), self._answered = self._answered, None
        if isinstance(event, ev.MessageAdded) and isinstance(event.message, AssistantMessage):
            span.set_attribute("gen_ai.output.messages", _said(event.message, reason))
        span.end(ended)

    # The tools

    def _start_call(self, event: ev.ToolStarted) -> None:
        span = self._observer.start(
            "execute_tool",
            event.name,
            event,
            self.span,
            {
                "gen_ai.tool.name": event.name,
                "gen_ai.tool.type": "function",
                **_known({"gen_ai.tool.call.id": event.call_id}),
            },
        )
        if self._observer.captures:
            span.set_attribute("gen_ai.tool.call.arguments", event.args)
        self._calls.append((event.call_id, span))

    def _end_call(self, event: ev.ToolFinished | ev.ToolDeferred) -> None:
        # Ends come in the order of the starts, so calls that share an id do not mix.
        place = next((n for n, call in enumerate(self._calls) if call[0] == event.call_id), None)
        if place is None:
            return
        _, span = self._calls.pop(place)
        if isinstance(event, ev.ToolDeferred):
            span.set_attribute("golem.tool.deferred", event.deferral)
        else:
            self._judge(span, event)
        span.end()

    def _judge(self, span: Span, event: ev.ToolFinished) -> None:
        captures = self._observer.captures
        if captures and event.result:
            span.set_attribute("gen_ai.tool.call.result", event.result)
        if event.failed:  # the reasons of these two are written for the model: content
            _fail(span, "tool_failed", event.error if captures else "")
        elif event.error and event.result:
            _fail(span, "call_rejected", event.error if captures else "")
        elif event.error:
            _fail(span, event.error_type or OTHER, event.error)

    # Endings

    def _end(self, event: ev.Terminal) -> None:
        failed = isinstance(event, ev.RunFailed)
        for span in (self._attempt, *(span for _, span in self._calls)):
            if span is not None:
                span.set_attribute(INTERRUPTED, True)
                if failed:
                    _fail(span, OTHER, "")
                span.end()
        self._attempt, self._calls = None, []
        self.span.set_attribute("golem.run.outcome", _OUTCOMES[type(event)])
        left = event.result if isinstance(event, (ev.RunFinished, ev.RunPaused)) else event.partial
        if left is not None:
            self.span.set_attributes(_usage(left.usage))
            self.span.set_attribute("golem.run.requests", left.requests)
            self.span.set_attribute("golem.run.tool_calls", left.tool_calls)
            if left.finish_reason is not None:
                self.span.set_attribute("gen_ai.response.finish_reasons", [left.finish_reason])
            if self._observer.captures:
                self.span.set_attributes(_transcript(left.messages, left.finish_reason or ""))
        if isinstance(event, ev.RunFailed):
            _fail(self.span, event.stage, event.error)
        self.span.end()


_Key = tuple[str, object]
"""A run: its id, which two runs may share, and the stream that carries it out."""

_open: dict[tuple[int, _Key], _Run] = {}
"""Runs in progress by tracer provider, so that observers of two agents find parents."""


def _key(run_id: str) -> _Key:
    """The run of that id that the current task carries out, as observers' and tools' tasks do."""
    pulls = inside.get()
    return run_id, pulls[-1][0] if pulls else None


def _fail(span: Span, kind: str, description: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, description or None))


def _known(attributes: dict[str, str]) -> dict[str, AttributeValue]:
    return {name: value for name, value in attributes.items() if value}


def _usage(usage: Usage) -> dict[str, AttributeValue]:
    """Tokens, as far as the provider has counted any."""
    counts = {
        "gen_ai.usage.input_tokens": usage.input_tokens,
        "gen_ai.usage.output_tokens": usage.output_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cache_read_tokens,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens,
    }
    return {name: count for name, count in counts.items() if count}


# What was said, in the shapes the conventions give it


def _transcript(messages: Sequence[Message], finish_reason: str) -> dict[str, AttributeValue]:
    """A run's messages: what went in, and the model's last word."""
    attributes: dict[str, AttributeValue] = {}
    system = [m.content for m in messages if isinstance(m, SystemMessage)]
    spoken = [message for message in messages if not isinstance(message, SystemMessage)]
    if system:
        said = [{"type": "text", "content": text} for text in system]
        attributes["gen_ai.system_instructions"] = encode_json(said).decode()
    if spoken and isinstance(last := spoken[-1], AssistantMessage):
        attributes["gen_ai.output.messages"] = _said(last, finish_reason)
        spoken.pop()
    given = [{"role": _ROLES[type(message)], "parts": _parts(message)} for message in spoken]
    attributes["gen_ai.input.messages"] = encode_json(given).decode()
    return attributes


def _said(message: AssistantMessage, finish_reason: str) -> str:
    said = {"role": "assistant", "parts": _parts(message), "finish_reason": finish_reason}
    return encode_json([said]).decode()


def _parts(message: Message) -> list[dict[str, Any]]:
    if isinstance(message, ToolMessage):
        answer = {
            "type": "tool_call_response",
            "id": message.tool_call_id,
            "response": message.content,
        }
        return [answer, *_media(message.parts)]
    parts: list[dict[str, Any]] = []
    if isinstance(message, AssistantMessage):
        parts = [{"type": "reasoning", "content": t.text} for t in message.thinking if t.text]
    if message.content:
        parts.append({"type": "text", "content": message.content})
    if not isinstance(message, SystemMessage):
        parts += _media(message.parts)
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            parts.append(
                {"type": "tool_call", "id": call.id, "name": call.name, "arguments": call.args}
            )
    return parts


def _media(parts: Iterable[Part]) -> list[dict[str, Any]]:
    """Media by reference; inline data is named and left out: spans are no place for it."""
    return [
        {"type": "uri", "modality": part.kind, "mime_type": part.media_type, "uri": part.url}
        if part.url
        else {"type": part.kind, "mime_type": part.media_type}
        for part in parts
    ]
