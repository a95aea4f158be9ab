"""The agent: configuration in; runs, and streams of runs, out."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Awaitable, Callable, Iterable, Sequence
from importlib.metadata import entry_points
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
    get_args,
    overload,
)

import sniffio
import tenacity
from msgspec import Meta

from golem._run.driver import Run
from golem._run.evidence import partial_from
from golem._run.herald import Observer
from golem._run.journal import Write
from golem._run.ledger import Price
from golem._run.plan import HistoryProcessor, Instructions, Plan
from golem._run.resume import Unresolved, check_answers
from golem._run.retry import DEFAULT_RETRY
from golem._run.toolbox import AnyTool, Toolbox
from golem.context import RunContext
from golem.deferral import DeferredResults
from golem.errors import RunError, SubAgentPausedError, ToolCanceled
from golem.history.bounds import TokenCounter
from golem.limits import NO_LIMITS, Timeouts, UsageLimits
from golem.messages import Message, Part, UserMessage
from golem.model import Model, Settings
from golem.output import OUTPUT_NAME, Output, OutputMode
from golem.rawjson import clean_text
from golem.result import Partial, Result
from golem.stream import RunStream
from golem.tools import Tool, check_options

if TYPE_CHECKING:
    # The defaults spare `Agent(model)` an annotation; Python 3.11 itself knows none.
    import typing_extensions

    DepsT = typing_extensions.TypeVar("DepsT", default=None)
    OutputT = typing_extensions.TypeVar("OutputT", default=str)
else:
    DepsT = TypeVar("DepsT")
    OutputT = TypeVar("OutputT")

MODELS: Final = "golem.models"
"""The entry-point group in which adapters register: a prefix, and a callable of the name."""


class AgentOptions(TypedDict, total=False):
    """What an agent may be given beside its model."""

    instructions: Instructions | Sequence[Instructions]
    """Text, a function ``(RunContext) -> str`` (sync or async), or a sequence of both; resolved
    once per run and joined by a blank line, fixed text first. They replace the system messages of
    a history."""
    tools: Iterable[AnyTool]
    """Typed functions or `golem.tools.Tool`s."""
    parallel_tool_calls: bool
    """Let golem run the calls of one turn concurrently, but for those of `sequential` tools."""
    output_mode: OutputMode
    """How structured output is asked for; ``native`` where the model's adapter has it and plain
    text is not among the types, else ``tool``."""
    output_name: str
    """The name of the output tool and schema; ``final_result``."""
    output_retries: int
    """How often a rejected answer may be corrected; 0."""
    history_processor: HistoryProcessor
    """Rewrites the supplied history once per run, before validation and repair."""
    request_processor: HistoryProcessor
    """Rewrites what each request carries, and nothing else."""
    on_event: Observer
    """Called with every event of every run (sync or async); its errors are logged."""
    settings: Settings
    """Sampling settings, sent with every request."""
    max_turns: int
    """How many model turns a run may take; 10."""
    limits: UsageLimits
    """What a run may consume."""
    counter: TokenCounter
    """Counts a request's tokens, for ``per_request_input_tokens``."""
    price: Price
    """What some usage costs, for ``result.cost`` and the cost limit."""
    retry: tenacity.BaseRetrying | None
    """When a failed request is sent again: a tenacity policy. Three attempts, exponential, as told
    by the provider; None: never."""
    timeout: float | Timeouts
    """Seconds for the whole run, or for its parts."""
    journal: Write
    """Awaited with each message as it becomes final."""


class RunOptions(TypedDict, Generic[DepsT], total=False):
    """What one run may be given beside its prompt."""

    history: Iterable[Message]
    """The conversation so far: ``result.messages`` of an earlier run, or a stored one."""
    deps: DepsT
    """Anything the tools and instructions need; theirs as ``ctx.deps``."""
    run_id: str
    """Names this run; minted when empty."""
    conversation_id: str
    """Names the conversation, else the history does, else minted. A fresh ``new_id()`` forks."""
    parent_run_id: str
    """The run this one belongs to; on its ``run_started`` event."""
    parent_call_id: str
    """The call of that run which this one carries out."""
    parts: Iterable[Part]
    """Media that goes with the prompt, after its text."""
    tools: Iterable[AnyTool]
    """Replace the agent's tools."""
    model: Model | str
    """Replaces the agent's model."""
    settings: Settings
    """Replace the agent's settings."""
    limits: UsageLimits
    """Replace the agent's limits."""
    timeout: float | Timeouts
    """Replaces the agent's timeout."""
    journal: Write
    """Replaces the agent's journal."""
    on_event: Observer
    """Called with every event, after the agent's own observer."""
    deferred: DeferredResults
    """The answers to the pending calls of a paused run, which this one resumes."""
    unresolved: Unresolved
    """What becomes of a pending call without an answer: ``error`` before anything runs, or
    ``interrupt``, which closes it."""


class Agent(Generic[DepsT, OutputT]):
    """A model with instructions and tools. Immutable: share it among tasks, threads and loops.

    ``Agent(model, output_type=…, …)``: `model` is a `golem.model.Model`, or ``"provider:name"``
    for a registered adapter. `output_type` is `str`, a type msgspec can decode, or a sequence of
    types; `decoder` makes the output of the model's text instead, and raises ``ModelRetry`` to
    have it corrected. Everything else is in `AgentOptions`.

    Raises:
        TypeError: A tool or an output type cannot have a schema; no option has that name.
        ValueError: Two tools of one name, no such model, an option out of range.
    """

    if not TYPE_CHECKING:

        def __class_getitem__(cls, types: Any) -> Any:
            # `Agent[Deps]` is `Agent[Deps, str]`: what the defaults say to type checkers.
            both = types if isinstance(types, tuple) else (types, str)
            return super().__class_getitem__(both)

    @overload
    def __init__(self, model: Model | str, **options: Unpack[AgentOptions]) -> None: ...

    @overload
    def __init__(
        self,
        model: Model | str,
        *,
        output_type: type[OutputT] | Sequence[type[OutputT]],
        **options: Unpack[AgentOptions],
    ) -> None: ...

    @overload
    def __init__(
        self,
        model: Model | str,
        *,
        output_type: Any = ...,
        decoder: Callable[[str], Awaitable[OutputT] | OutputT],
        **options: Unpack[AgentOptions],
    ) -> None: ...

    def __init__(
        self,
        model: Model | str,
        *,
        output_type: Any = str,
        decoder: Callable[[str], Any] | None = None,
        **options: Unpack[AgentOptions],
    ) -> None:
        self._model = resolve_model(model)
        check_options("Agent", options, AgentOptions.__optional_keys__)
        self._options = options
        self._toolbox = Toolbox(options.get("tools", ()))
        self._instructions = _sequence(options.get("instructions", ()))
        name = options.get("output_name", OUTPUT_NAME)
        self._output = Output(output_type, decoder=decoder, name=name)
        for option in ("max_turns", "output_retries"):
            least = 1 if option == "max_turns" else 0
            if (given := options.get(option)) is not None and cast("int", given) < least:
                raise ValueError(f"{option} must be at least {least}, got {given}")
        self._check(self._toolbox, options.get("limits", NO_LIMITS))

    def __repr__(self) -> str:
        return f"Agent({self._model!r})"

    async def run(
        self, prompt: str | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> Result[OutputT]:
        """Run to the end and return the result; a paused run has something in ``pending``.

        `prompt` is what the user says; it may be empty where there is a history. Everything else
        is in `RunOptions`.

        Raises:
            ValueError: A prompt part no run may send, neither prompt nor history, answers that do
                not match what is pending; nothing ran. TypeError for an option there is not.
            RunError: The run did not reach an answer; the evidence is its ``partial``. Where the
                caller is cancelled the backend's own exception passes through, and
                `golem.partial_from` finds the evidence.
        """
        run = self._start(prompt, options, streaming=False)
        async with RunStream[OutputT](run) as stream:
            async for _ in stream:
                pass
            if stream.result is None:
                raise AssertionError("a run that raised nothing has a result")
            return stream.result

    def stream(
        self, prompt: str | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> RunStream[OutputT]:
        """The same run as an asynchronous stream of events; nothing runs until it is read.

        Takes and raises what `run` does: ValueError at once, RunError after the terminal event.
        """
        return RunStream(self._start(prompt, options, streaming=True))

    def run_sync(
        self, prompt: str | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> Result[OutputT]:
        """`run` for scripts without an event loop; runs of one thread share one asyncio loop.

        Raises:
            RuntimeError: Called where a loop is already running; use ``await agent.run(…)``.
        """
        if _inside_loop():
            raise RuntimeError("run_sync in a running event loop: use await agent.run(…)")
        return _runner().run(self.run(prompt, **options))

    def as_tool(self, name: str, description: str) -> Tool:
        """This agent as a tool of another: it takes a prompt and gives its output.

        Its run names the parent's in ``parent_run_id`` and counts into the parent's usage and
        limits. Where a tool stops it, the parent is stopped; where it fails, the call fails with
        its RunError; where it pauses, with SubAgentPausedError: nobody can answer it there.
        """

        async def delegate(
            context: RunContext[Any], prompt: Annotated[str, Meta(min_length=1)]
        ) -> Any:
            try:
                result = await self.run(
                    prompt,
                    deps=context.deps,
                    parent_run_id=context.run_id,
                    parent_call_id=context.call_id,
                )
            except RunError as error:
                _charge(context, error.partial)
                if isinstance(error.__cause__, ToolCanceled):
                    raise ToolCanceled(error.__cause__.reason) from error
                raise
            except BaseException as error:
                _charge(context, partial_from(error))
                raise
            _charge(context, result)
            if result.pending:
                raise SubAgentPausedError(name, result.pending)
            return result.output

        return Tool.from_function(delegate, name=name, description=description)

    def _start(self, prompt: str | None, options: RunOptions[DepsT], *, streaming: bool) -> Run:
        check_options("a run", options, RunOptions.__optional_keys__)
        # Whoever wraps `run` passes on what it was given: None is what was not.
        given = {name: value for name, value in options.items() if value is not None}
        options = cast("RunOptions[DepsT]", given)
        own = self._options
        for name in ("run_id", "conversation_id", "parent_run_id", "parent_call_id"):
            if not isinstance(options.get(name, ""), str):
                raise TypeError(f"{name} must be text, not {type(options.get(name)).__name__}")
        history = list(options.get("history", ()))
        model, tools = options.get("model"), options.get("tools")
        deferred, unresolved = options.get("deferred"), options.get("unresolved", "error")
        if deferred is not None:
            check_answers(history, deferred, unresolved)
        limits = options.get("limits", own.get("limits", NO_LIMITS))
        toolbox = self._toolbox if tools is None else Toolbox(tools)
        self._check(toolbox, limits)
        used = self._model if model is None else resolve_model(model)
        native = getattr(used, "native_output", False) and not self._output.takes_text
        default_mode: OutputMode = "native" if native else "tool"
        plan = Plan(
            model=used,
            toolbox=toolbox,
            history=history,
            prompt=_prompt(prompt, tuple(options.get("parts", ())), history),
            deps=options.get("deps"),
            run_id=options.get("run_id", ""),
            conversation_id=options.get("conversation_id", ""),
            parent_run_id=options.get("parent_run_id", ""),
            parent_call_id=options.get("parent_call_id", ""),
            instructions=self._instructions,
            processor=own.get("history_processor"),
            request_processor=own.get("request_processor"),
            observers=[o for o in (own.get("on_event"), options.get("on_event")) if o is not None],
            settings=options.get("settings", own.get("settings")),
            output=self._output,
            output_mode=own.get("output_mode", default_mode),
            output_retries=own.get("output_retries", 0),
            max_turns=own.get("max_turns", 10),
            parallel=own.get("parallel_tool_calls", False),
            limits=limits,
            timeouts=_timeouts(options.get("timeout", own.get("timeout"))),
            retry=own.get("retry", DEFAULT_RETRY),
            price=own.get("price"),
            counter=own.get("counter"),
            journal=options.get("journal", own.get("journal")),
            deferred=deferred,
            unresolved=unresolved,
        )
        return Run(plan, streaming=streaming)

    def _check(self, toolbox: Toolbox, limits: UsageLimits) -> None:
        """Raise ValueError or TypeError for options that are none or do not go together."""
        mode, retry = self._options.get("output_mode"), self._options.get("retry")
        if mode is not None and mode not in get_args(OutputMode):
            raise ValueError(f"output_mode must be one of {get_args(OutputMode)}, got {mode!r}")
        settings = self._options.get("settings")
        if settings is not None and not isinstance(settings, Settings):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"settings must be golem.Settings, not {type(settings).__name__}")
        if retry is not None and not isinstance(retry, tenacity.BaseRetrying):
            raise TypeError(f"retry must be a tenacity policy or None, got {retry!r}")
        for spec in self._output.tools:
            if spec.name in toolbox:
                raise ValueError(f"a tool is named {spec.name!r}, as the output tool is")
        if self._output.shapes and self._output.takes_text and mode == "native":
            raise ValueError("output_mode='native' enforces a schema, which plain text has not")
        if limits.per_request_input_tokens is not None and "counter" not in self._options:
            raise ValueError("per_request_input_tokens needs a counter")


def resolve_model(model: Model | str) -> Model:
    """The model itself, or the one a registered adapter makes of ``"provider:name"``.

    Raises ValueError when no adapter is registered for the provider, TypeError for what is no
    model.
    """
    if not isinstance(model, str):
        if not isinstance(model, Model):
            raise TypeError(f"{model!r} is no model: it has no generate and stream")
        return model
    provider, colon, name = model.partition(":")
    for entry in entry_points(group=MODELS, name=provider):
        if colon and name:
            made: Model = entry.load()(name)
            return made
    known = ", ".join(sorted(f"{entry.name}:…" for entry in entry_points(group=MODELS)))
    raise ValueError(f"no model {model!r}; registered are: {known or 'none'}")


def _sequence(instructions: Instructions | Sequence[Instructions]) -> Sequence[Instructions]:
    if isinstance(instructions, str) or callable(instructions):
        return (instructions,)
    return tuple(instructions)


def _prompt(
    text: str | None, parts: tuple[Part, ...], history: Sequence[Any]
) -> UserMessage | None:
    if text is not None and not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"the prompt must be text, not {type(text).__name__}")
    for position, part in enumerate(parts):
        if not isinstance(part, Part):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(f"prompt part {position} is no Part but {type(part).__name__}")
        try:
            part.validate()
        except ValueError as error:
            raise ValueError(f"prompt part {position}: {error}") from error
    if text or parts:
        return UserMessage(clean_text(text or ""), parts=parts)
    if not history:
        raise ValueError("a run needs a prompt, parts or a history")
    return None


def _timeouts(given: float | Timeouts | None) -> Timeouts:
    return given if isinstance(given, Timeouts) else Timeouts(total=given)


def _charge(context: RunContext[Any], consumed: Partial | Result[Any] | None) -> None:
    """Count what a sub-agent's run consumed into its parent's."""
    if consumed is not None and context.charge is not None:
        context.charge(
            consumed.usage,
            requests=consumed.requests,
            tool_calls=consumed.tool_calls,
            cost=consumed.cost,
        )


def _inside_loop() -> bool:
    """Whether this thread is running an event loop, asyncio's or another's."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        pass
    else:
        return True
    try:
        sniffio.current_async_library()
    except sniffio.AsyncLibraryNotFoundError:
        return False
    return True


class _Loop:
    """The loop of one thread, closed when the thread ends and drops it."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()

    def __del__(self) -> None:
        self.runner.close()


_threads = threading.local()


def _runner() -> asyncio.Runner:
    """This thread's loop: clients that belong to a loop survive from run to run."""
    loop: _Loop | None = getattr(_threads, "loop", None)
    if loop is None:
        loop = _threads.loop = _Loop()
        if threading.current_thread() is threading.main_thread():
            atexit.register(loop.runner.close)  # while everything that closing needs is there
    return loop.runner
