"""What becomes of a history on its way to a provider: values to log, count and send as JSON.

`golem.check_history` gives them out; an adapter notes them while it writes a request
(`golem.wire.notes`). Only values live here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from golem.messages import Message

FindingKind = Literal["dropped", "renamed", "flattened", "refused"]
"""``dropped``: it is not sent. ``renamed``: it is sent under another id or name. ``flattened``:
it is sent as something else, such as an image of a tool's result as part of a user's message.
``refused``: no request can carry it, and one that has to raises
`golem.errors.UnsupportedContentError` before anything is sent."""


class Finding(Struct, frozen=True, gc=False, rename="camel", omit_defaults=True):
    """One thing in a history that does not reach a model as it is stored."""

    kind: FindingKind
    message_index: Annotated[int, Meta(description="place in the given history")]
    member: Annotated[
        str, Meta(description="what of the message: ``toolCalls[0].id``; empty: all of it")
    ]
    what: Annotated[str, Meta(description="what is stored there, never its content")]
    why: Annotated[str, Meta(description="what becomes of it, and why")]
    model: Annotated[str, Meta(description="of several models the one that it is about")] = ""

    def __str__(self) -> str:
        place = f"messages[{self.message_index}]"
        place = f"{place}.{self.member}" if self.member else place
        about = f" ({self.model})" if self.model else ""
        return f"{place}: {self.kind}{about}: {self.what}: {self.why}"


class HistoryCheck(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What a model's adapter would do to a history. Falsy when it would send it as it is.

    `findings` are in the order of the history. `unknown` names models whose adapters do not say;
    with one of them nothing is certain, and the report is truthy.
    """

    findings: tuple[Finding, ...] = ()
    unknown: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.findings or self.unknown)

    def of(self, kind: FindingKind) -> tuple[Finding, ...]:
        """The findings of one kind."""
        return tuple(finding for finding in self.findings if finding.kind == kind)


def check_by(model: object, messages: Sequence[Message]) -> HistoryCheck:
    """What `model` says about a repaired history; unknown where its adapter does not say."""
    check: Any = getattr(model, "check", None)
    if not callable(check):
        return HistoryCheck(unknown=(name_of(model),))
    found: object = check(messages)
    return found if isinstance(found, HistoryCheck) else HistoryCheck(unknown=(name_of(model),))


def joined(checks: Sequence[tuple[str, HistoryCheck]]) -> HistoryCheck:
    """The checks of several models as one; each finding says by the name whose it is."""
    findings = [
        replace(finding, model=finding.model or name)
        for name, check in checks
        for finding in check.findings
    ]
    findings.sort(key=lambda finding: finding.message_index)
    unknown = tuple(name for _, check in checks for name in check.unknown)
    return HistoryCheck(tuple(findings), unknown)


def name_of(model: object) -> str:
    """How a report names a model: ``Gemini('gemini-3')``; no more than that of its repr."""
    name: object = getattr(model, "model", "")
    kind = type(model).__name__
    return f"{kind}({name!r})" if isinstance(name, str) and name else kind
