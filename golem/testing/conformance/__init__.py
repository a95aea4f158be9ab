"""What every adapter has to pass, golem's own and yours (contract §5).

Each check is an async function of a `Subject` (how to make the model, and who judges it) that
raises AssertionError with what is wrong. Run them one by one in your test runner
(``@pytest.mark.parametrize("check", CHECKS)``), or all with `conforms`. Nothing here needs one.

answers    what comes in: plain and streamed the same, deltas that tell all of it
requests   what goes out: any repaired history, the same bytes, nothing that cannot be carried
failures   what goes wrong: the right error, what had come, no secret, no open connection
runs       all of it together, under an agent

They prove agreement with the judge's record of the rules, not acceptance by the provider.
"""

from __future__ import annotations

from typing import Final

from golem.testing.conformance import answers, failures, requests, runs
from golem.testing.conformance.subject import Check as Check
from golem.testing.conformance.subject import Subject as Subject

CHECKS: Final[tuple[Check, ...]] = (
    *answers.CHECKS,
    *requests.CHECKS,
    *failures.CHECKS,
    *runs.CHECKS,
)
"""Every check, in the order in which it is best to make them pass; each has a `__name__`."""


async def conforms(subject: Subject) -> None:
    """Run every check; an AssertionError names all that failed, and why."""
    failed: list[str] = []
    for check in CHECKS:
        try:
            await check(subject)
        except Exception as error:  # noqa: BLE001  (whatever it is, the adapter does not pass)
            kind = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
            failed.append(f"{check.__name__}: {kind}{error}")
    if failed:
        raise AssertionError("\n".join([f"{len(failed)} of {len(CHECKS)} checks failed", *failed]))
