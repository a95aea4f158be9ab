"""Calls that wait for somebody: what a paused run left open, and the answers that resume it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct, field

from golem.tools import ToolResult

DeferralKind = Literal["approval", "external"]


class PendingCall(Struct, frozen=True, rename="camel"):
    """A call that a tool deferred: for approval, or for a result from elsewhere."""

    kind: DeferralKind
    call_id: str
    tool_name: str
    args: Annotated[str, Meta(description="the model's argument text")]
    reason: str = ""


class Pending(Struct, frozen=True, rename="camel"):
    """What a paused run waits for, in call order. Falsy when it is nothing."""

    approvals: tuple[PendingCall, ...] = ()
    external: tuple[PendingCall, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.approvals or self.external)

    def __len__(self) -> int:
        return len(self.approvals) + len(self.external)


NOTHING_PENDING = Pending()


class Approval(Struct, frozen=True):
    """Somebody's word on a call: run it, or tell the model (with `reason`) that it may not.

    Raises TypeError for anything but a bool: what is only truthy ("no") approves nothing.
    """

    approved: bool
    reason: str = ""

    def __post_init__(self) -> None:
        _require("approved", self.approved, bool)
        _require("reason", self.reason, str)


class DeferredResults(Struct, frozen=True):
    """The answers to the pending calls of a paused run, by call id.

    `approvals`: True, False or an `Approval`. `external`: the result itself, text or a
    `ToolResult`. How a call was deferred is not in the history and is not checked.

    Raises TypeError for an answer of another type.
    """

    approvals: Mapping[str, bool | Approval] = field(default_factory=dict[str, bool | Approval])
    external: Mapping[str, str | ToolResult] = field(default_factory=dict[str, str | ToolResult])

    def __post_init__(self) -> None:
        _require("approvals", self.approvals, Mapping)
        _require("external", self.external, Mapping)
        for call_id, said in self.approvals.items():
            _require(f"the approval of {call_id!r}", said, bool, Approval)
        for call_id, result in self.external.items():
            _require(f"the external result of {call_id!r}", result, str, ToolResult)


DENIED: Final = "Your tool call was denied"
"""How the result of a call begins that was not allowed to run (contract §4.6)."""


def denial(reason: str = "") -> str:
    """What the model reads of a call that was not allowed to run."""
    because = f": {reason}" if reason else ""
    return f"{DENIED}{because}. Do not call it again; continue without its result."


def _require(what: str, given: object, *kinds: type) -> None:
    if not isinstance(given, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise TypeError(f"{what} must be {expected}, not {type(given).__name__}")
