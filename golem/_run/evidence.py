"""Evidence that travels with an exception: how a cancelled run's partial reaches its caller."""

from __future__ import annotations

from typing import Final, cast

from golem.errors import RunError
from golem.result import Partial

_EVIDENCE: Final = "_golem_partial"


def partial_from(error: BaseException) -> Partial | None:
    """The evidence of the run that `error` ended, wherever it hangs; None where there is none.

    Searches the exception, its cause and context, and the members of groups: an external
    cancellation is the backend's own exception and carries the evidence along (contract §4.4).
    Where a cancel scope swallowed the exception, use ``stream.partial`` or the journal.
    """
    seen: set[int] = set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        found = waiting.pop()
        if found is None or id(found) in seen:
            continue
        seen.add(id(found))
        if isinstance(found, RunError):
            return found.partial
        if _EVIDENCE in found.__dict__:
            # None too is an answer: a run without evidence must not be given that of another one,
            # whose error is being handled around it.
            return cast("Partial | None", found.__dict__[_EVIDENCE])
        waiting += [found.__context__, found.__cause__]
        if isinstance(found, BaseExceptionGroup):
            waiting += cast("BaseExceptionGroup[BaseException]", found).exceptions
    return None


def carries(error: BaseException) -> bool:
    """Whether evidence hangs on the exception itself, or on a member of the group that it is."""
    if _EVIDENCE in error.__dict__:
        return True
    members: tuple[BaseException, ...] = ()
    if isinstance(error, BaseExceptionGroup):
        members = cast("BaseExceptionGroup[BaseException]", error).exceptions
    return any(map(carries, members))


def attach(error: BaseException, partial: Partial | None) -> None:
    """Hang the evidence on an exception that passes through."""
    error.__dict__[_EVIDENCE] = partial
    if isinstance(error, BaseExceptionGroup):
        # A scope that takes its own cancellation out of a group makes a new group of the rest.
        for member in cast("BaseExceptionGroup[BaseException]", error).exceptions:
            attach(member, partial)
