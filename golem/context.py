"""What a tool or an instructions function may know of the run it belongs to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from msgspec import Struct

from golem.messages import Message
from golem.usage import Usage

if TYPE_CHECKING:
    # The default makes a bare `RunContext` a complete annotation; Python 3.11 itself knows none.
    import typing_extensions

    DepsT = typing_extensions.TypeVar("DepsT", default=Any)
else:
    DepsT = TypeVar("DepsT")


class Charge(Protocol):
    """Counts what a sub-agent's run consumed into its parent's."""

    def __call__(
        self,
        usage: Usage,
        *,
        requests: int,
        tool_calls: int,
        cost: float | None,
        abandoned: Sequence[str] = (),
    ) -> None:
        """Add it."""
        ...


class RunContext(Struct, Generic[DepsT], frozen=True):
    """The run as its tools see it; a read-only value, made anew for every call.

    `deps` is what the caller of the run passed. `messages` is the transcript so far and `usage`
    what the run has consumed. `call_id` and `tool_name` are empty outside a tool call; `attempt`
    counts the calls of this tool that the run has had rejected, from 1. `approved`: this call was
    deferred and somebody has allowed it. `charge` adds what a sub-agent consumed to this run's.
    """

    deps: DepsT
    run_id: str
    conversation_id: str
    messages: Sequence[Message] = ()
    usage: Usage = Usage()
    call_id: str = ""
    tool_name: str = ""
    attempt: int = 1
    approved: bool = False
    charge: Charge | None = None

    @property
    def idempotency_key(self) -> str:
        """Stable over every resume of this call: the conversation's id and the call's."""
        return f"{self.conversation_id}:{self.call_id}"
