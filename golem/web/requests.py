"""What a client posts, made into what a run may be given. Pure: bytes in, values out.

The boundary of trust, in this order: the body is JSON of the expected shape and within the
bounds; a sealed history is verified, and refused unless this server wrote every message of it;
any other is sanitized; what was dropped or repaired is in the report. What a client must not
assert is refused with that report, not silently dropped, unless the application asks for that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final, Literal, NamedTuple, TypeVar

import msgspec
from msgspec import Raw, Struct

from golem._run.resume import Unresolved
from golem.codec import load_history, load_message
from golem.deferral import Approval, DeferredResults
from golem.errors import HistoryError
from golem.history.repair import normalize_history
from golem.history.report import HistoryRepair, SanitizeReport
from golem.history.sanitize import sanitize_history
from golem.history.seal import SealReport, verify
from golem.messages import Message, UserMessage
from golem.rawjson import children, clean_text, without_lone_surrogates
from golem.tools import ToolResult
from golem.web.http import Refusal
from golem.web.sealing import identity_keys

T = TypeVar("T")

Unsafe = Literal["refuse", "drop"]
"""What becomes of a request that asserts what a client must not: a 422, or a report."""

_ID_LENGTH: Final = 200
"""Characters of an id that a client may choose; golem's own have 36."""


class Posted(NamedTuple):
    """A conversation as a client posts it, whatever the protocol; nothing of it is checked yet.

    `prompt` is what is said now; None: the history's last message is.
    """

    history: Sequence[Message]
    prompt: UserMessage | None = None
    conversation_id: str = ""


class IntakeReport(Struct, frozen=True, rename="camel", omit_defaults=True):
    """What the boundary did to a posted conversation; what a page can show as a banner.

    Indexes count in the history as posted, the prompt behind it. `changed`: anything was dropped
    or repaired.
    """

    changed: bool = False
    sanitized: SanitizeReport | None = None
    repaired: HistoryRepair | None = None
    seal: SealReport | None = None


class Admitted(NamedTuple):
    """What a run may be given."""

    history: list[Message]
    prompt: UserMessage | None
    conversation_id: str
    report: IntakeReport
    claimed: tuple[str, ...] = ()
    """The conversations that the client says this is, for somebody to check whose they are."""


class Intake(Struct, frozen=True):
    """The bounds and policies of the boundary; see `golem.web.asgi.app`."""

    max_messages: int
    policies: Mapping[str, Any]
    unsafe: Unsafe
    keys: tuple[bytes, ...] = ()

    def admit(self, posted: Posted, identity: str, *, system_is_usual: bool = False) -> Admitted:
        """What of it a run may be given. Raises Refusal.

        `system_is_usual`: clients of the protocol send system messages as a matter of course;
        they are dropped, not refused.
        """
        prompt = [] if posted.prompt is None else [posted.prompt]
        if not posted.history and not prompt:
            raise _unprocessable("empty", "there is neither a prompt nor a history")
        if len(posted.history) + len(prompt) > self.max_messages:
            raise too_many(self.max_messages)
        if self.keys:
            admitted = self._verified(posted, prompt, identity)
        else:
            admitted = self._sanitized(posted, prompt)
        dropped = admitted.report.sanitized
        asserted = dropped is not None and (
            dropped.unsafe_parts or (dropped.system_prompts and not system_is_usual)
        )
        if asserted and self.unsafe == "refuse":
            raise _unprocessable(
                "unsafe_content",
                "the conversation has system messages or addresses that a client must not bring",
                detail=admitted.report,
            )
        emptied = admitted.prompt is None if prompt else not admitted.history
        if emptied:
            raise _unprocessable("empty", "nothing of it may be sent", detail=admitted.report)
        _check_parts(admitted)
        return admitted

    def prompt(self, prompt: UserMessage) -> tuple[UserMessage, IntakeReport]:
        """What is said to a conversation that the server has itself. Raises Refusal."""
        admitted = self.admit(Posted((), prompt), "")
        assert admitted.prompt is not None  # noqa: S101 - else it was refused
        return admitted.prompt, admitted.report

    def _sanitized(self, posted: Posted, prompt: list[UserMessage]) -> Admitted:
        try:
            messages, report = sanitize_history([*posted.history, *prompt], **self.policies)
        except HistoryError as error:
            raise bad_history(error) from error
        now: UserMessage | None = None
        last = len(posted.history)
        if prompt and last not in report.emptied and isinstance(messages[-1], UserMessage):
            now = messages.pop()  # type: ignore[assignment]
        claimed = tuple(
            dict.fromkeys(filter(None, (*report.claimed_conversation_ids, posted.conversation_id)))
        )
        conversation = posted.conversation_id or donated(posted.history)
        intake = IntakeReport(bool(report), sanitized=report)
        return Admitted(messages, now, conversation, intake, claimed)

    def _verified(self, posted: Posted, prompt: list[UserMessage], identity: str) -> Admitted:
        try:
            seal = verify(posted.history, identity_keys(self.keys, identity))
        except HistoryError as error:
            raise bad_history(error) from error
        if seal:
            raise _unprocessable(
                "not_sealed",
                "the history is not as this server wrote it for you",
                detail=IntakeReport(seal=seal),
            )
        now, report = sanitize_history(prompt, **self.policies)
        messages, repair = normalize_history(posted.history)
        conversation = posted.conversation_id or donated(posted.history)
        intake = IntakeReport(
            bool(report) or bool(repair), sanitized=report, repaired=repair, seal=seal
        )
        said = now[0] if now and isinstance(now[0], UserMessage) else None
        return Admitted(messages, said, conversation, intake, tuple(filter(None, [conversation])))


def _check_parts(admitted: Admitted) -> None:
    """Raise Refusal for a part that no run sends: a run with it would fail at once."""
    noticed = admitted.report.sanitized
    if noticed is not None and len(noticed.invalid_parts) > noticed.invalid_dropped:
        first = noticed.invalid_parts[0]
        message = f"message {first.message_index}: {clean(first.reason)}"
        raise _unprocessable("invalid_parts", message, detail=admitted.report)


def donated(history: Sequence[Message]) -> str:
    """The conversation that the most recent message which names one belongs to."""
    named = (message.conversation_id for message in reversed(history) if message.conversation_id)
    return next(named, "")


# Bodies


def golem_body(data: bytes, max_messages: int) -> Posted:
    """``{"prompt", "parts", "history", "conversationId"}``: golem's own body. Raises Refusal."""
    members = read_members(data, ("prompt", "parts", "history", "conversationId"))
    return Posted(
        _history(members, max_messages),
        _prompt(members),
        identifier(members, "conversationId"),
    )


class Answers(NamedTuple):
    """What a client says to the calls of a paused run, and may say beside it."""

    deferred: DeferredResults
    prompt: UserMessage | None
    unresolved: Unresolved


def answers_body(data: bytes) -> Answers:
    """``{"approvals", "external", "prompt", "parts", "unresolved"}``. Raises Refusal.

    An approval is a bool or ``{"approved", "reason"}``, an external result a text or
    ``{"text", "parts"}``, both by call id.
    """
    known = ("approvals", "external", "prompt", "parts", "unresolved")
    members = read_members(data, known)
    nothing: dict[str, Any] = {}
    approvals = _member(members, "approvals", dict[str, bool | Approval], nothing)
    external = _member(members, "external", dict[str, str | ToolResult], nothing)
    unresolved: Any = _member(members, "unresolved", Unresolved, "error")
    deferred = DeferredResults(approvals=approvals, external=external)
    return Answers(deferred, _prompt(members), unresolved)


class StopOrder(Struct, frozen=True, forbid_unknown_fields=True):
    """How a run is to be stopped, as `RunStream.stop` takes it."""

    when: Literal["now", "after_model", "after_tools"] = "now"
    within: float | None = None


def stop_body(data: bytes) -> StopOrder:
    """``{"when", "within"}``; nothing at all is the defaults. Raises Refusal."""
    order: StopOrder = decoded(data or b"{}", StopOrder, "the body")
    if order.within is not None and not 0 <= order.within <= 86_400:
        raise _malformed("`within` is a number of seconds from 0 to a day")
    return order


def read_members(data: bytes, known: Sequence[str] | None = None) -> dict[str, bytes]:
    """The members of the object that a body is, each with its exact text. Raises Refusal."""
    try:
        try:
            members = dict(msgspec.json.decode(data, type=dict[str, Raw]))
        except msgspec.ValidationError:
            raise
        except msgspec.DecodeError:
            masked = without_lone_surrogates(data)
            if masked == data:
                raise
            msgspec.json.decode(masked, type=dict[str, Raw])  # an object, but for those
            members = {c.key or "": Raw(data[c.start : c.end]) for c in children(data)}
    except msgspec.ValidationError:
        raise _malformed("the body must be a JSON object") from None
    except RecursionError:
        raise _malformed("the body is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeError, ValueError) as error:
        raise _no_json(error) from None
    unknown = [name for name in members if known is not None and name not in known]
    if unknown:
        names = ", ".join(known or ())
        raise _malformed(f"the body has no member {clean(unknown[0])!r}; known are: {names}")
    return {name: bytes(text) for name, text in members.items() if bytes(text) != b"null"}


def clean(value: object) -> str:
    """A short text that may go back to who sent it."""
    return clean_text(str(value))[:200]


def _member(members: Mapping[str, bytes], name: str, kind: Any, default: T) -> T:
    return decoded(members[name], kind, f"`{name}`") if name in members else default


def decoded(data: bytes, kind: Any, what: str) -> Any:
    """What the JSON says, as that type. Raises Refusal, which calls it `what`."""
    try:
        return msgspec.json.decode(without_lone_surrogates(data), type=kind)
    except RecursionError:
        raise _malformed(f"{what} is nested too deeply") from None
    except (msgspec.ValidationError, UnicodeError, TypeError) as error:
        raise _malformed(f"{what} is not what it should be: {clean(error)}") from None
    except (msgspec.DecodeError, ValueError) as error:
        raise _no_json(error) from None


def identifier(members: Mapping[str, bytes], name: str) -> str:
    """An id that the client chose, of bounded length. Raises Refusal."""
    found: str = _member(members, name, str, "")
    if len(found) > _ID_LENGTH:
        raise _malformed(f"`{name}` may have {_ID_LENGTH} characters")
    return clean_text(found)


def _history(members: Mapping[str, bytes], max_messages: int) -> list[Message]:
    text = members.get("history", b"[]")
    check_count(text, max_messages)
    try:
        return load_history(text)
    except HistoryError as error:
        raise bad_history(error) from error


def check_count(messages: bytes, max_messages: int) -> None:
    """Raise Refusal for an array of more messages than may be posted, before any is read."""
    try:
        found = len(msgspec.json.decode(messages, type=list[Raw]))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return  # whoever reads it says better what is wrong, and takes lone surrogates
    if found > max_messages:
        raise too_many(max_messages)


def _prompt(members: Mapping[str, bytes]) -> UserMessage | None:
    text: str = _member(members, "prompt", str, "")
    parts = members.get("parts", b"[]")
    if not text and parts == b"[]":
        return None
    written = b'{"role":"user","parts":%b}' % parts
    try:
        said = load_message(written)
    except HistoryError as error:
        raise _unprocessable("invalid_parts", f"the prompt: {clean(error.reason)}") from None
    return UserMessage(clean_text(text), parts=said.parts)  # type: ignore[union-attr]


def bad_history(error: HistoryError) -> Refusal:
    """The history is at fault, and where."""
    detail = {"index": error.index, "path": error.path, "reason": clean(error.reason)}
    return _unprocessable("invalid_history", clean(error), detail=detail)


def too_many(max_messages: int) -> Refusal:
    """More messages than may be posted."""
    return Refusal(
        HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        "too_many_messages",
        f"a conversation may have {max_messages} messages",
        detail={"maxMessages": max_messages},
    )


def _no_json(error: Exception) -> Refusal:
    message = f"the body is not JSON: {clean(error)}"
    return Refusal(HTTPStatus.BAD_REQUEST, "invalid_json", message)


def _malformed(message: str) -> Refusal:
    return Refusal(HTTPStatus.BAD_REQUEST, "invalid_body", message)


def _unprocessable(code: str, message: str, *, detail: object = None) -> Refusal:
    return Refusal(HTTPStatus.UNPROCESSABLE_ENTITY, code, message, detail=detail)
