"""Everything one run is told before it starts; made by the agent, read by the driver."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from golem._run.toolbox import Toolbox
from golem.context import RunContext
from golem.events import Event
from golem.messages import Message, UserMessage
from golem.model import Model, Settings

Observer = Callable[[Event], Awaitable[None] | None]
"""Called with every event of a run; its exceptions are logged and never fail the run."""

HistoryProcessor = Callable[
    [list[Message]],
    Iterable[Message] | AsyncIterable[Message] | Awaitable[Iterable[Message]],
]
"""Rewrites the supplied history once per run, before validation and repair (contract §2.4)."""

Instructions = str | Callable[[RunContext[Any]], str | Awaitable[str]]
"""Fixed text, or a function of the run that gives it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run: what it starts from, what it may use, who watches."""

    model: Model
    toolbox: Toolbox
    history: Sequence[Message]
    prompt: UserMessage | None
    deps: Any
    run_id: str
    conversation_id: str
    instructions: Sequence[Instructions]
    processor: HistoryProcessor | None
    observers: Sequence[Observer]
    settings: Settings | None
    max_turns: int
