"""A model that is several: the next one answers where one cannot."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any, Final

from golem.batching import batches_of
from golem.closing import closable
from golem.errors import APIError, ProviderError
from golem.messages import Message
from golem.model import Delta, Model, Request, Response
from golem.portability import HistoryCheck, check_by, joined, name_of

_ELSEWHERE: Final = frozenset({402, 429})
"""Statuses of a provider that has nothing left for this account, for minutes or for good. To ask
it again is in vain, which is why the error may be final; another one can answer."""


def _innermost(error: BaseException) -> BaseException:
    """The end of an error's chain."""
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        error = error.__cause__ or error.__context__ or error
    return error


class FallbackModel:
    """Asks its members in turn: the next one where one fails in a way that another may not.

    That is with a retryable error, or with one that says that the account has nothing left there
    (402, and 429 also where its wait is too long to be retried), and only before anything of an
    answer was given out: every other error is raised. The last member's is raised with the
    others' as its context. Histories are portable between members.

    Raises ValueError without members, and TypeError for one that is no model.
    """

    def __init__(self, members: Sequence[Model]) -> None:
        if not members:
            raise ValueError("a FallbackModel needs at least one model")
        for place, member in enumerate(members):
            if not isinstance(member, Model):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise TypeError(f"member {place} of a FallbackModel is no model but {member!r:.80}")
        self._members = tuple(members)

    def __repr__(self) -> str:
        return f"FallbackModel([{', '.join(map(repr, self._members))}])"

    @property
    def native_output(self) -> bool:
        """Whether every member can enforce an output schema."""
        return all(getattr(member, "native_output", False) for member in self._members)

    def check(self, messages: Sequence[Message]) -> HistoryCheck:
        """What each member would do to a repaired history; every finding names its member."""
        return joined([(name_of(member), check_by(member, messages)) for member in self._members])

    async def generate(self, request: Request) -> Response:
        """The answer of the first member that gives one."""
        failed: ProviderError | None = None
        for place, member in enumerate(self._members):
            try:
                return await member.generate(request)
            except ProviderError as error:
                failed = self._chained(error, failed, place)
        raise AssertionError("the error of the last member is raised")

    async def stream(self, request: Request) -> AsyncGenerator[Delta | Response, Any]:
        """The answer of the first member that begins one."""
        async with aclosing(self.batches(request)) as answer:
            async for batch in answer:
                if isinstance(batch, Response):
                    yield batch
                    continue
                for delta in batch:
                    yield delta

    async def batches(self, request: Request) -> AsyncGenerator[Sequence[Delta] | Response, Any]:
        """The same in batches: as many fragments at once as that member gives at once."""
        failed: ProviderError | None = None
        for place, member in enumerate(self._members):
            begun = False
            try:
                async with aclosing(closable(batches_of(member, request))) as answer:
                    async for batch in answer:
                        if batch:  # nothing was given out yet where it is empty
                            begun = True
                            yield batch
            except ProviderError as error:
                if begun:
                    raise
                failed = self._chained(error, failed, place)
            else:
                return

    def _chained(
        self, error: ProviderError, before: ProviderError | None, place: int
    ) -> ProviderError:
        """The error, that of the member before as its context; raised where no other may answer."""
        if before is not None:
            _innermost(error).__context__ = before
        spent = isinstance(error, APIError) and error.status in _ELSEWHERE
        if not (error.retryable or spent) or place == len(self._members) - 1:
            raise error
        return error
