"""The agent: configuration in; runs, and streams of runs, out."""

from __future__ import annotations

import asyncio
import atexit
import threading
from collections.abc import Iterable, Sequence
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final, Generic, TypedDict, TypeVar, Unpack

import sniffio

from golem._run.driver import Run
from golem._run.plan import HistoryProcessor, Instructions, Observer, Plan
from golem._run.toolbox import AnyTool, Toolbox
from golem.messages import Message, Part, UserMessage
from golem.model import Model, Settings
from golem.rawjson import clean_text
from golem.result import Result
from golem.stream import RunStream

if TYPE_CHECKING:
    # The default spares `Agent(model)` an annotation; Python 3.11 itself knows none.
    import typing_extensions

    DepsT = typing_extensions.TypeVar("DepsT", default=None)
else:
    DepsT = TypeVar("DepsT")

MODELS: Final = "golem.models"
"""The entry-point group in which adapters register: a prefix, and a callable of the name."""


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
    parts: Iterable[Part]
    """Media that goes with the prompt, after its text."""
    tools: Iterable[AnyTool]
    """Replace the agent's tools."""
    model: Model | str
    """Replaces the agent's model."""
    settings: Settings
    """Replace the agent's settings."""
    on_event: Observer
    """Called with every event, after the agent's own observer."""


class Agent(Generic[DepsT]):
    """A model with instructions and tools. Immutable: share it among tasks, threads and loops.

    Args:
        model: A `golem.model.Model`, or ``"provider:name"`` for a registered adapter.
        instructions: Text, a function ``(RunContext) -> str`` (sync or async), or a sequence of
            both; resolved once per run and joined by a blank line, fixed text first. They replace
            the system messages of a history.
        tools: Typed functions or `golem.tools.Tool`s.
        history_processor: Rewrites the supplied history once per run, before validation and
            repair.
        on_event: Called with every event of every run (sync or async); its errors are logged.
        settings: Sampling settings, sent with every request.
        max_turns: How many model turns a run may take (contract §4.8).

    Raises:
        TypeError: A tool cannot have a schema.
        ValueError: Two tools of one name, no such model, `max_turns` below 1.
    """

    def __init__(
        self,
        model: Model | str,
        *,
        instructions: Instructions | Sequence[Instructions] = (),
        tools: Iterable[AnyTool] = (),
        history_processor: HistoryProcessor | None = None,
        on_event: Observer | None = None,
        settings: Settings | None = None,
        max_turns: int = 10,
    ) -> None:
        if max_turns < 1:
            raise ValueError(f"max_turns must be at least 1, got {max_turns}")
        self._model = resolve_model(model)
        self._instructions = _sequence(instructions)
        self._toolbox = Toolbox(tools)
        self._processor = history_processor
        self._observers = () if on_event is None else (on_event,)
        self._settings = settings
        self._max_turns = max_turns

    def __repr__(self) -> str:
        return f"Agent({self._model!r})"

    async def run(
        self, prompt: str | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> Result[str]:
        """Run to the end and return the result.

        `prompt` is what the user says; it may be empty where there is a history. Everything else
        is in `RunOptions`.

        Raises:
            ValueError: A prompt part no run may send, or neither prompt nor history; nothing ran.
            RunError: The run did not reach an answer; the evidence is its ``partial``. Where the
                caller is cancelled the backend's own exception passes through, and
                `golem.partial_from` finds the evidence.
        """
        async with RunStream[str](self._start(prompt, options, streaming=False)) as stream:
            async for _ in stream:
                pass
            if stream.result is None:
                raise AssertionError("a run that raised nothing has a result")
            return stream.result

    def stream(
        self, prompt: str | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> RunStream[str]:
        """The same run as an asynchronous stream of events; nothing runs until it is read.

        Takes and raises what `run` does: ValueError at once, RunError after the terminal event.
        """
        return RunStream(self._start(prompt, options, streaming=True))

    def run_sync(
        self, prompt: str | None = None, **options: Unpack[RunOptions[DepsT]]
    ) -> Result[str]:
        """`run` for scripts without an event loop; runs of one thread share one asyncio loop.

        Raises:
            RuntimeError: Called where a loop is already running; use ``await agent.run(…)``.
        """
        if _inside_loop():
            raise RuntimeError("run_sync in a running event loop: use await agent.run(…)")
        return _runner().run(self.run(prompt, **options))

    def _start(self, prompt: str | None, options: RunOptions[DepsT], *, streaming: bool) -> Run:
        history = list(options.get("history", ()))
        model, tools = options.get("model"), options.get("tools")
        observer = options.get("on_event")
        plan = Plan(
            model=self._model if model is None else resolve_model(model),
            toolbox=self._toolbox if tools is None else Toolbox(tools),
            history=history,
            prompt=_prompt(prompt, tuple(options.get("parts", ())), history),
            deps=options.get("deps"),
            run_id=options.get("run_id", ""),
            conversation_id=options.get("conversation_id", ""),
            instructions=self._instructions,
            processor=self._processor,
            observers=self._observers if observer is None else (*self._observers, observer),
            settings=options.get("settings", self._settings),
            max_turns=self._max_turns,
        )
        return Run(plan, streaming=streaming)


def resolve_model(model: Model | str) -> Model:
    """The model itself, or the one a registered adapter makes of ``"provider:name"``.

    Raises ValueError when no adapter is registered for the provider.
    """
    if not isinstance(model, str):
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
    for position, part in enumerate(parts):
        try:
            part.validate()
        except ValueError as error:
            raise ValueError(f"prompt part {position}: {error}") from error
    if text or parts:
        return UserMessage(clean_text(text or ""), parts=parts)
    if not history:
        raise ValueError("a run needs a prompt, parts or a history")
    return None


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
