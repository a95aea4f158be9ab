"""What an agent and a run may be told: the options, their meaning and their defaults."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Generic, TypedDict, TypeVar

from golem._run.herald import Observer
from golem._run.journal import Write
from golem._run.ledger import Price
from golem._run.plan import HistoryProcessor, Instructions
from golem._run.resume import Unresolved
from golem._run.toolbox import AnyTool
from golem.deferral import DeferredResults
from golem.history.bounds import TokenCounter
from golem.limits import Timeouts, UsageLimits
from golem.messages import Message, Part
from golem.model import Model, Settings
from golem.output import OutputMode

if TYPE_CHECKING:
    # The default spares `Agent(model)` an annotation; Python 3.11 itself knows none.
    import tenacity
    import typing_extensions

    DepsT = typing_extensions.TypeVar("DepsT", default=None)
else:
    DepsT = TypeVar("DepsT")


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
    """Awaited with each message as it becomes final, one at a time."""


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
