"""When a failed request is sent again: a tenacity policy, asked after each failure.

No retry object exists before the first failure. What is retried at all (never after the first
fragment, never a cancellation) is decided where requests are sent; a policy only ever sees an
``Exception``.
"""

from __future__ import annotations

import inspect
from typing import Any, Final

import tenacity

from golem.errors import ProviderError

LONGEST_RETRY_AFTER: Final = 120.0
"""Seconds; a provider that asks for more is not waited for (as the official SDKs have it)."""


def is_retryable(error: BaseException) -> bool:
    """Whether sending the same request again may help: the adapter's word on it."""
    return isinstance(error, ProviderError) and error.retryable


class wait_as_told(tenacity.wait.wait_base):  # noqa: N801 - tenacity's naming
    """Wait as long as the provider said (``retry_after``, up to 120 s), else as `otherwise`."""

    def __init__(self, otherwise: tenacity.wait.wait_base) -> None:
        self.otherwise = otherwise

    def __call__(self, retry_state: tenacity.RetryCallState) -> float:
        """Seconds until the next attempt."""
        error = retry_state.outcome.exception() if retry_state.outcome else None
        told = getattr(error, "retry_after", None)
        if told is not None and 0 < told <= LONGEST_RETRY_AFTER:
            return float(told)
        return float(self.otherwise(retry_state))


DEFAULT_RETRY: Final = tenacity.AsyncRetrying(
    retry=tenacity.retry_if_exception(is_retryable),
    stop=tenacity.stop_after_attempt(3),
    wait=wait_as_told(tenacity.wait_random_exponential(multiplier=0.5, max=8.0)),
    reraise=True,
)
"""Three attempts, exponential with jitter, as told by the provider where it tells."""


class Attempts:
    """The failures of one request, and what a policy makes of them.

    `begun` is when its first attempt was, on ``time.monotonic()``: tenacity's clock.
    """

    def __init__(self, policy: tenacity.BaseRetrying, begun: float) -> None:
        self._policy = policy.copy()
        self._state = tenacity.RetryCallState(self._policy, None, (), {})
        self._state.start_time = begun

    async def delay_after(self, error: Exception) -> float | None:
        """Seconds to wait before the next attempt; None: the error is final."""
        state = self._state
        state.set_exception((type(error), error, error.__traceback__))
        policy = self._policy
        if not getattr(policy, "enabled", True) or not await _answer(policy.retry(state)):
            return None
        if policy.after is not None:
            await _answer(policy.after(state))
        delay = float(await _answer(policy.wait(state)))
        state.upcoming_sleep = delay
        if await _answer(policy.stop(state)):
            return None
        state.next_action = tenacity.RetryAction(delay)
        state.idle_for += delay
        if self._policy.before_sleep is not None:
            await _answer(self._policy.before_sleep(state))
        state.prepare_for_next_attempt()
        return delay


async def _answer(value: Any) -> Any:
    """What a policy's part says; tenacity lets each be asynchronous."""
    return await value if inspect.isawaitable(value) else value
