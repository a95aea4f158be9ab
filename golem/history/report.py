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
