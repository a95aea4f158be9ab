"""Everything one run is told before it starts; made by the agent, read by the driver."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct

from golem._run.herald import Observer
from golem._run.journal import Write
from golem._run.ledger import Price
from golem._run.resume import Unresolved
from golem._run.toolbox import Toolbox
from golem.context import RunContext
from golem.deferral import DeferredResults
from golem.history.bounds import TokenCounter
from golem.limits import Timeouts, UsageLimits
from golem.messages import Message, UserMessage
from golem.model import Model, OutputSchema, Settings, ToolSpec
from golem.output import Output, OutputMode

if TYPE_CHECKING:
    import tenacity  # loaded by who has a policy, or by the first failure

HistoryProcessor = Callable[
    [list[Message]],
    Iterable[Message] | AsyncIterable[Message] | Awaitable[Iterable[Message]],
]
"""Rewrites the supplied history once per run, before validation and repair (contract §2.4).

As a *request* processor it rewrites what one request carries, and nothing else.
"""

Instructions = str | Callable[[RunContext[Any]], str | Awaitable[str]]
"""Fixed text, or a function of the run that gives it."""


class Plan(Struct, frozen=True, kw_only=True):
    """One run: what it starts from, what it may use, who watches."""

    model: Model
    toolbox: Toolbox
    history: Sequence[Message]
    prompt: UserMessage | None
    deps: Any
    run_id: str
    conversation_id: str
    parent_run_id: str
    parent_call_id: str
    instructions: Sequence[Instructions]
    processor: HistoryProcessor | None
    request_processor: HistoryProcessor | None
    observers: Sequence[Observer]
    settings: Settings | None
    output: Output
    output_mode: OutputMode
    output_retries: int
    max_turns: int
    parallel: bool
    limits: UsageLimits
    timeouts: Timeouts
    retry: tenacity.BaseRetrying | Literal["default"] | None
    price: Price | None
    counter: TokenCounter | None
    journal: Write | None
    deferred: DeferredResults | None
    unresolved: Unresolved

    @property
    def specs(self) -> Sequence[ToolSpec]:
        """The tools a request advertises, output tools last."""
        if not self.output_tools:
            return self.toolbox.specs
        return (*self.toolbox.specs, *self.output.tools)

    @property
    def output_tools(self) -> bool:
        """Whether the result is given by calling an output tool."""
        return self.output_mode == "tool" and bool(self.output.shapes)

    @property
    def output_schema(self) -> OutputSchema | None:
        """The schema that the provider is asked to enforce."""
        asked = self.output_mode == "native" and self.output.shapes and not self.output.takes_text
        return self.output.schema if asked else None
