"""The agent: configuration in; runs, and streams of runs, out."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Generic,
    TypeVar,
    Unpack,
    cast,
    get_args,
    overload,
)

from msgspec import Meta
from msgspec.structs import replace

from golem._run.driver import Run
from golem._run.loops import inside_loop, runner
from golem._run.plan import Instructions, Plan
from golem._run.resume import Unresolved, check_answers
from golem._run.toolbox import Toolbox
from golem.carrying import inside
from golem.context import RunContext
from golem.deferral import DeferredResults
from golem.errors import RunError, SubAgentPausedError, ToolCanceled
from golem.faults import messages_in
from golem.limits import NO_LIMITS, Timeouts, UsageLimits
from golem.messages import Part, UserMessage
from golem.model import Model, Settings
from golem.options import AgentOptions, DepsT, RunOptions
from golem.output import OUTPUT_NAME, Output, OutputMode
from golem.rawjson import clean_text
from golem.result import Result
from golem.stream import RunStream
from golem.tools import Tool, check_options

if TYPE_CHECKING:
    # The default spares `Agent(model)` an annotation; Python 3.11 itself knows none.
    import typing_extensions

    OutputT = typing_extensions.TypeVar("OutputT", default=str)
else:
    OutputT = TypeVar("OutputT")

_UNRESOLVED: Final = get_args(Unresolved)

MODELS: Final = "golem.models"
"""The entry-point group in which adapters register: a prefix, and a callable of the name."""


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
        # Without a policy nothing is retried; any other None is what was not given.
        options = cast("AgentOptions", _given(options, but="retry"))
        self._options = options
        self._toolbox = Toolbox(_several("tools", options.get("tools", ())))
        self._instructions = _sequence(options.get("instructions", ()))
        name = options.get("output_name", OUTPUT_NAME)
        self._output = Output(output_type, decoder=decoder, name=name)
        for option in ("max_turns", "output_retries"):
            least = 1 if option == "max_turns" else 0
            given = options.get(option, least)
            _require(option, given, int)
            if cast("int", given) < least:
                raise ValueError(f"{option} must be at least {least}, got {given}")
        for option in ("on_event", "journal", "price", "history_processor", "request_processor"):
            _callable(option, options.get(option))
        timeouts, limits = _timeouts(options.get("timeout")), options.get("limits", NO_LIMITS)
        self._check(self._toolbox, limits)
        self._plan = self._planned(timeouts, limits)

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
        return await _result_of(self._start(prompt, options, streaming=False))

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
        if inside_loop():
            raise RuntimeError("run_sync in a running event loop: use await agent.run(…)")
        return runner().run(self.run(prompt, **options))

    def as_tool(self, name: str, description: str) -> Tool:
        """This agent as a tool of another: it takes a prompt and gives its output.

        Its run names the parent's in ``parent_run_id`` and counts into the parent's usage and
        limits. Where a tool stops it, the parent is stopped; where it fails, the call fails with
        its RunError; where it pauses, with SubAgentPausedError: nobody can answer it there.
        """

        async def delegate(
            context: RunContext[Any], prompt: Annotated[str, Meta(min_length=1)]
        ) -> Any:
            options: RunOptions[Any] = {
                "deps": context.deps,
                "parent_run_id": context.run_id,
                "parent_call_id": context.call_id,
            }
            run = self._start(prompt, options, streaming=False)
            try:
                result = await _result_of(run)
            except RunError as error:
                if isinstance(error.__cause__, ToolCanceled):
                    raise ToolCanceled(error.__cause__.reason) from error
                raise
            finally:  # however it ends, and also where it left no evidence
                run.charge(context.charge)
            if result.pending:
                raise SubAgentPausedError(name, result.pending)
            return result.output

        return Tool.from_function(delegate, name=name, description=description)

    def _planned(self, timeouts: Timeouts, limits: UsageLimits) -> Plan:
        """What all runs have in common that are not told otherwise; made and checked once."""
        own = self._options
        observer = own.get("on_event")
        return Plan(
            model=self._model,
            toolbox=self._toolbox,
            history=(),
            prompt=None,
            deps=None,
            run_id="",
            conversation_id="",
            parent_run_id="",
            parent_call_id="",
            instructions=self._instructions,
            processor=own.get("history_processor"),
            request_processor=own.get("request_processor"),
            observers=() if observer is None else (observer,),
            settings=own.get("settings"),
            output=self._output,
            output_mode=own.get("output_mode", "tool"),
            output_retries=own.get("output_retries", 0),
            max_turns=own.get("max_turns", 10),
            parallel=own.get("parallel_tool_calls", False),
            limits=limits,
            timeouts=timeouts,
            retry=own.get("retry", "default"),
            price=own.get("price"),
            counter=own.get("counter"),
            journal=own.get("journal"),
            deferred=None,
            unresolved="error",
        )

    def _start(self, prompt: str | None, options: RunOptions[DepsT], *, streaming: bool) -> Run:
        if options:
            return Run(self._told(prompt, options), streaming=streaming)
        asked, mode = _prompt(prompt, (), ()), self._output_mode(self._model)
        return Run(replace(self._plan, prompt=asked, output_mode=mode), streaming=streaming)

    def _told(self, prompt: str | None, options: RunOptions[DepsT]) -> Plan:
        """The plan of a run with options of its own. Raises what `run` does where one is wrong."""
        check_options("a run", options, RunOptions.__optional_keys__)
        options = cast("RunOptions[DepsT]", _given(options))
        own = self._plan
        for name in ("run_id", "conversation_id", "parent_run_id", "parent_call_id"):
            if not isinstance(options.get(name, ""), str):
                raise TypeError(f"{name} must be text, not {type(options.get(name)).__name__}")
        history = list(messages_in(options.get("history", ())))
        model, tools = options.get("model"), options.get("tools")
        deferred, unresolved = options.get("deferred"), options.get("unresolved", "error")
        if unresolved not in _UNRESOLVED:
            raise ValueError(f"unresolved must be one of {_UNRESOLVED}, got {unresolved!r}")
        _require("deferred", deferred, DeferredResults)
        _callable("on_event", options.get("on_event"))
        _callable("journal", options.get("journal"))
        if deferred is not None:
            check_answers(history, deferred, unresolved)
        limits = options.get("limits", own.limits)
        toolbox = own.toolbox if tools is None else Toolbox(_several("tools", tools))
        if toolbox is not own.toolbox or limits is not own.limits:
            self._check(toolbox, limits)
        used = own.model if model is None else resolve_model(model)
        observer = options.get("on_event")
        return replace(
            own,
            model=used,
            toolbox=toolbox,
            history=history,
            prompt=_prompt(prompt, _several("parts", options.get("parts", ())), history),
            deps=options.get("deps"),
            run_id=clean_text(options.get("run_id", "")),
            conversation_id=clean_text(options.get("conversation_id", "")),
            parent_run_id=options.get("parent_run_id", ""),
            parent_call_id=options.get("parent_call_id", ""),
            observers=own.observers if observer is None else (*own.observers, observer),
            settings=_settings(options.get("settings", own.settings)),
            output_mode=self._output_mode(used),
            limits=limits,
            timeouts=_timeouts(options.get("timeout", own.timeouts)),
            journal=options.get("journal", own.journal),
            deferred=deferred,
            unresolved=unresolved,
        )

    def _output_mode(self, model: Model) -> OutputMode:
        """The agent's own, else the best that the model of the run has."""
        mode = self._options.get("output_mode")
        if mode is not None:
            return mode
        native = getattr(model, "native_output", False) and not self._output.takes_text
        return "native" if native else "tool"

    def _check(self, toolbox: Toolbox, limits: UsageLimits) -> None:
        """Raise ValueError or TypeError for options that are none or do not go together."""
        _require("limits", limits, UsageLimits)
        mode, retry = self._options.get("output_mode"), self._options.get("retry")
        if mode is not None and mode not in get_args(OutputMode):
            raise ValueError(f"output_mode must be one of {get_args(OutputMode)}, got {mode!r}")
        _settings(self._options.get("settings"))
        if retry is not None:
            _require_policy(retry)
        for spec in self._output.tools:
            if spec.name in toolbox:
                raise ValueError(f"a tool is named {spec.name!r}, as the output tool is")
        if self._output.shapes and self._output.takes_text and mode == "native":
            raise ValueError("output_mode='native' enforces a schema, which plain text has not")
        if limits.per_request_input_tokens is not None and "counter" not in self._options:
            raise ValueError("per_request_input_tokens needs a counter")
        if limits.cost is not None and "price" not in self._options:
            raise ValueError("a limit of cost needs a price")


async def _result_of(run: Run) -> Result[Any]:
    """Run to the end."""
    outside = inside.get()
    inside.set((*outside, (run, 0)))
    events = run.events()
    try:
        async for _ in events:
            pass
    finally:
        try:
            await events.aclose()
        finally:
            inside.set(outside)
    if (result := run.result) is None:
        raise AssertionError("a run that raised nothing has a result")
    return result


def resolve_model(model: Model | str) -> Model:
    """The model itself, or the one a registered adapter makes of ``"provider:name"``.

    Raises ValueError when no adapter is registered for the provider, TypeError for what is no
    model.
    """
    if not isinstance(model, str):
        if not isinstance(model, Model):
            raise TypeError(f"{model!r} is no model: it has no generate and stream")
        return model
    from importlib.metadata import entry_points  # dear to load, and few name a model by text

    provider, colon, name = model.partition(":")
    for entry in entry_points(group=MODELS, name=provider):
        if colon and name:
            made: Model = entry.load()(name)
            return made
    known = ", ".join(sorted(f"{entry.name}:…" for entry in entry_points(group=MODELS)))
    raise ValueError(f"no model {model!r}; registered are: {known or 'none'}")


def _given(options: Mapping[str, Any], *, but: str = "") -> dict[str, Any]:
    """The options that were given: whoever wraps golem passes on None for what it was not."""
    return {name: value for name, value in options.items() if value is not None or name == but}


def _several(option: str, given: Any) -> tuple[Any, ...]:
    """All of them; TypeError, naming the option, for one alone that is not in a list."""
    name: str = type(given).__name__
    if isinstance(given, (str, bytes, dict)) or not hasattr(given, "__iter__"):
        raise TypeError(f"{option} must be a list, or iterable, not {name}")
    return tuple(given)


def _sequence(instructions: Instructions | Sequence[Instructions]) -> Sequence[Instructions]:
    if isinstance(instructions, str) or callable(instructions):
        return (instructions,)
    wanted = "instructions must be text, a function or a list of these"
    if not hasattr(instructions, "__iter__"):
        raise TypeError(f"{wanted}, not {type(instructions).__name__}")
    for one in (found := tuple(instructions)):
        if not (isinstance(one, str) or callable(one)):
            raise TypeError(f"{wanted}, not a list with {type(one).__name__}")
    return found


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


def _settings(given: object) -> Settings | None:
    if given is not None and not isinstance(given, Settings):
        raise TypeError(f"settings must be golem.Settings, not {type(given).__name__}")
    return given


def _require(option: str, given: object, kind: type) -> None:
    """Raise TypeError unless `given` is nothing, or of that type (a bool is no number)."""
    if given is not None and (not isinstance(given, kind) or isinstance(given, bool)):
        raise TypeError(f"{option} must be {kind.__name__}, not {type(given).__name__}")


def _require_policy(given: object) -> None:
    from tenacity import BaseRetrying  # dear to load; who has made a policy has loaded it

    if not isinstance(given, BaseRetrying):
        raise TypeError(f"retry must be a tenacity policy or None, got {given!r}")


def _callable(option: str, given: object) -> None:
    if given is not None and not callable(given):
        raise TypeError(f"{option} must be callable, not {type(given).__name__}")


def _timeouts(given: float | Timeouts | None) -> Timeouts:
    return given if isinstance(given, Timeouts) else Timeouts(total=given)
