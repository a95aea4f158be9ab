"""What a history pass says it changed: values that can be logged, counted and sent as JSON."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

ChangeKind = Literal["synthesized", "dropped", "moved", "truncated"]


class Change(Struct, frozen=True, gc=False, rename="camel"):
    """One thing that repair changed, or (``truncated``) only noticed."""

    kind: ChangeKind
    call_id: Annotated[str, Meta(description="empty: the call or result had none")]
    tool_name: str
    input_index: Annotated[
        int, Meta(description="place in the given history: the result's, else the asking turn's")
    ]
    output_index: Annotated[
        int | None, Meta(description="place in the returned history; null: it is not there")
    ] = None


class HistoryRepair(Struct, frozen=True, rename="camel"):
    """What repairing a history changed. Falsy when it found nothing.

    The four tuples hold call ids in the order of the history; `changes` holds the same findings,
    id-less ones included, with the places to point at, ordered by place in the given history.
    A call in `truncated` was only noticed: its bytes are untouched, and it is there on every pass.
    """

    synthesized: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    moved: tuple[str, ...] = ()
    truncated: tuple[str, ...] = ()
    changes: tuple[Change, ...] = ()

    @classmethod
    def of(cls, changes: list[Change]) -> HistoryRepair:
        """The report of `changes`, given in any order that keeps those of one message together."""
        if not changes:
            return NOTHING_REPAIRED
        ordered = sorted(changes, key=lambda change: change.input_index)

        def ids(kind: ChangeKind) -> tuple[str, ...]:
            return tuple(change.call_id for change in ordered if change.kind == kind)

        return cls(
            synthesized=ids("synthesized"),
            dropped=ids("dropped"),
            moved=ids("moved"),
            truncated=tuple(filter(None, ids("truncated"))),
            changes=tuple(ordered),
        )

    def __bool__(self) -> bool:
        return bool(self.changes)


NOTHING_REPAIRED = HistoryRepair()


class UnsafePart(Struct, frozen=True, gc=False, rename="camel"):
    """A dropped URL part: the message in the history as given, its kind, what was refused."""

    message_index: int
    kind: str
    scheme: Annotated[str, Meta(description="lower-cased; empty: none, or an unparsable URL")]
    host: Annotated[str, Meta(description="the host, where a host policy refused it")] = ""


class InvalidPart(Struct, frozen=True, gc=False, rename="camel"):
    """A part that no run sends: the message in the history as given, its kind, what is wrong."""

    message_index: int
    kind: str
    reason: str


class SanitizeReport(Struct, frozen=True, rename="camel"):
    """What sanitizing dropped, and what it noticed and does not judge.

    Falsy when nothing was dropped, repaired or truncated. Indexes count in the history as given,
    claims in all of it: in what was dropped too.
    """

    system_prompts: Annotated[int, Meta(description="system messages dropped")] = 0
    unsafe_parts: tuple[UnsafePart, ...] = ()
    native_dropped: Annotated[int, Meta(description="messages whose native was dropped")] = 0
    unknown_dropped: Annotated[int, Meta(description="unknown members dropped, any depth")] = 0
    emptied: Annotated[
        tuple[int, ...], Meta(description="user messages removed: nothing was left in them")
    ] = ()
    identity_dropped: Annotated[int, Meta(description="messages stripped of their ids")] = 0
    thinking_dropped: Annotated[int, Meta(description="thinking blocks dropped")] = 0
    repair: HistoryRepair = NOTHING_REPAIRED
    claimed_conversation_ids: tuple[str, ...] = ()
    claimed_run_ids: tuple[str, ...] = ()
    tool_results: Annotated[int, Meta(description="results the history claims")] = 0
    signed_thinking: Annotated[int, Meta(description="thinking blocks with a signature")] = 0
    seals_dropped: Annotated[int, Meta(description="messages whose seal was dropped")] = 0
    claimed_seals: Annotated[int, Meta(description="messages left with a seal, unverified")] = 0
    invalid_parts: Annotated[
        tuple[InvalidPart, ...], Meta(description="parts no run sends; left unless asked to drop")
    ] = ()
    invalid_dropped: Annotated[int, Meta(description="invalid parts dropped")] = 0

    def __bool__(self) -> bool:
        return bool(
            self.system_prompts
            or self.unsafe_parts
            or self.native_dropped
            or self.unknown_dropped
            or self.emptied
            or self.identity_dropped
            or self.thinking_dropped
            or self.repair
            or self.seals_dropped
            or self.invalid_dropped
        )
