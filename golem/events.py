"""The events of a run: one union of frozen values, tagged by `kind` (contract §4.3).

Every event repeats the run's two ids and carries `seq`, which counts from 0 without gaps, so
that interleaved streams stay attributable and a reader can tell what it missed. A stream has
exactly one terminal event (`TERMINAL`), its last. Events are JSON: `encode_event`,
`decode_event`; an older reader meets newer events as `UnknownEvent`.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw, Struct

from golem.codec import encode_json, load_history, load_message
from golem.deferral import DeferralKind
from golem.errors import HistoryError, Stage
from golem.history.report import NOTHING_REPAIRED, HistoryRepair
from golem.messages import Message, Part
from golem.model import Details, FinishReason
from golem.rawjson import BLANKS, children, without_lone_surrogates
from golem.result import Partial, Result
from golem.usage import Usage


class _Event(Struct, frozen=True, tag_field="kind", rename="camel", omit_defaults=True):
    run_id: str
    conversation_id: str
    seq: int

    @property
    def kind(self) -> str:
        """The event's kind, as in its JSON."""
        return str(self.__struct_config__.tag)


class RunStarted(_Event, frozen=True, tag="run_started"):
    """The first event: the history is ready and nothing has been sent.

    `supplied` messages were given, `kept` is how many of them the history processor, the removal
    of system messages and repair have left, `sent` how many the first request will carry,
    but for results that approved calls have yet to give, and for a request processor.
    """

    supplied: int
    kept: int
    sent: int
    repair: HistoryRepair = NOTHING_REPAIRED
    parent_run_id: str = ""
    parent_call_id: str = ""


class ModelStarted(_Event, frozen=True, tag="model_started"):
    """A request goes out. Turns count from 0, attempts of one turn from 1.

    `model` is the model's own name, where the adapter tells it (its ``model``).
    """

    turn: int
    attempt: int
    model: str = ""


class ModelFinished(_Event, frozen=True, tag="model_finished"):
    """The request was answered, or (`error`, of the class `error_type`) failed.

    An answer that was complete when its stream failed counts: then there is both. `details` is
    what the provider says about the answer: which model it was, its ids.
    """

    turn: int
    attempt: int
    usage: Usage = Usage()
    finish_reason: FinishReason | None = None
    error: str = ""
    error_type: str = ""
    details: Details = Details()


class TextDelta(_Event, frozen=True, tag="text_delta", gc=False):
    """A piece of the answer's text."""

    text: str


class ThinkingDelta(_Event, frozen=True, tag="thinking_delta", gc=False):
    """A piece of the model's reasoning."""

    text: str


class ToolCallDelta(_Event, frozen=True, tag="tool_call_delta", gc=False):
    """A piece of a call being asked for; `index` counts the turn's calls from 0.

    `id` and `name` may be empty after the first piece; `args` is the next fragment.
    """

    index: int
    id: str = ""
    name: str = ""
    args: str = ""


class ToolStarted(_Event, frozen=True, tag="tool_started"):
    """A call of the batch is taken up."""

    turn: int
    call_id: str
    name: str
    args: str


class ToolFinished(_Event, frozen=True, tag="tool_finished"):
    """A call of the batch ended: with a `result` for the model, or (`error`) with none.

    `failed`: a definitive failure. `error` is also set, beside `result`, where the model is asked
    to correct its call.
    """

    turn: int
    call_id: str
    name: str
    args: str
    result: str = ""
    parts: tuple[Part, ...] = ()
    failed: bool = False
    error: str = ""
    error_type: str = ""


class RunCanceled(_Event, frozen=True, tag="run_canceled"):
    """A tool stopped the run: which call did, and why."""

    turn: int
    call_id: str
    name: str
    reason: str = ""


class ToolDeferred(_Event, frozen=True, tag="tool_deferred"):
    """A call of the batch waits for somebody: ``approval``, or an ``external`` result."""

    turn: int
    call_id: str
    name: str
    args: str
    deferral: DeferralKind
    reason: str = ""


class OutputRejected(_Event, frozen=True, tag="output_rejected"):
    """The answer has to be corrected; rounds count from 1, turns from 0 again."""

    round: int
    reason: str


class MessageAdded(_Event, frozen=True, tag="message_added"):
    """A message of this run is final and part of the transcript, at place `index` of it."""

    message: Message
    index: int = 0


class RunFinished(_Event, frozen=True, tag="run_finished"):
    """Terminal: the run has its answer."""

    result: Result[Any]


class RunPaused(_Event, frozen=True, tag="run_paused"):
    """Terminal: calls wait for somebody; ``result.pending`` says which."""

    result: Result[Any]


class RunFailed(_Event, frozen=True, tag="run_failed"):
    """Terminal: the run failed; `partial` is its evidence, if it had produced any."""

    stage: Stage
    error: str
    partial: Partial | None = None
    error_type: str = ""


class RunStopped(_Event, frozen=True, tag="run_stopped"):
    """Terminal: the run was stopped: by a tool, by its consumer, by cancellation."""

    reason: str
    partial: Partial | None = None


class UnknownEvent(Struct, frozen=True):
    """An event this version cannot read: its kind and its exact JSON."""

    kind: str
    data: bytes


Terminal = RunFinished | RunPaused | RunFailed | RunStopped
TERMINAL: Final = (RunFinished, RunPaused, RunFailed, RunStopped)

Event = (
    RunStarted
    | ModelStarted
    | ModelFinished
    | TextDelta
    | ThinkingDelta
    | ToolCallDelta
    | ToolStarted
    | ToolFinished
    | ToolDeferred
    | RunCanceled
    | OutputRejected
    | MessageAdded
    | RunFinished
    | RunPaused
    | RunFailed
    | RunStopped
)


_event = msgspec.json.Decoder(Event)
_members = msgspec.json.Decoder(dict[str, Raw])


def encode_event(event: Event | UnknownEvent) -> bytes:
    """The event as one line of JSON.

    An output that JSON cannot carry (a decoder may give anything) is written as
    ``{"unencodable": "its type"}``; numbers that are not finite as null.
    """
    if isinstance(event, UnknownEvent):
        return event.data
    try:
        return encode_json(event)
    except (TypeError, ValueError, OverflowError, RecursionError):
        if not isinstance(event, (RunFinished, RunPaused)):
            raise
        stand_in = {"unencodable": type(event.result.output).__qualname__}
        result = msgspec.structs.replace(event.result, output=stand_in)
        return encode_json(msgspec.structs.replace(event, result=result))


def decode_event(data: bytes | str) -> Event | UnknownEvent:
    """The event that `encode_event` wrote; `UnknownEvent` for one of a newer version.

    Messages in it are read as `golem.load_message` reads them, members of newer writers included.
    Raises ValueError when `data` is not a JSON object with a `kind`.
    """
    try:
        return _event.decode(data)
    except msgspec.ValidationError:
        pass  # a newer kind, a newer shape of a known one, or a message that has gained members
    except (msgspec.DecodeError, RecursionError):
        pass  # no JSON, or a call whose arguments the decoder refuses the whole document for
    try:
        members = _read_members(data.encode() if isinstance(data, str) else bytes(data))
        kind = msgspec.json.decode(members.get("kind", b""), type=str)
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError) as error:
        raise ValueError(f"not an event: {error}") from error
    try:
        return _with_messages(members)
    except (msgspec.ValidationError, HistoryError):
        text = data.encode() if isinstance(data, str) else data
        return UnknownEvent(kind, text.strip(BLANKS))


_LISTS: Final = {
    "messages": "messages",
    "newMessages": "new_messages",
    "batchResults": "batch_results",
}
"""Where a result or a partial has messages: JSON name to attribute."""


def _read_members(data: bytes) -> dict[str, Raw]:
    """The members of an object, each with its exact text.

    Lone surrogate escapes, which a model may have put into arguments, do not keep them from being
    found. Raises ValueError where there is no object.
    """
    masked = without_lone_surrogates(data)
    if masked == data:
        return _members.decode(data)
    _members.decode(masked)  # it is an object
    return {child.key or "": Raw(data[child.start : child.end]) for child in children(data)}


def _with_messages(members: dict[str, Raw]) -> Event:
    """The event of these members, its messages read tolerantly and put into their places."""
    found: dict[str, Any] = {}
    if "message" in members:
        found["message"] = load_message(bytes(members["message"]))
        members["message"] = Raw(b'{"role":"user"}')
    inside = next((name for name in ("result", "partial") if name in members), "")
    lists: dict[str, Any] = {}
    if inside:
        inner = _read_members(bytes(members[inside]))
        for name, attribute in _LISTS.items():
            if name in inner:
                lists[attribute] = load_history(bytes(inner[name]))
                inner[name] = Raw(b"[]")
        members[inside] = Raw(msgspec.json.encode(inner))
    event = _event.decode(msgspec.json.encode(members))
    if inside and lists:
        found[inside] = msgspec.structs.replace(getattr(event, inside), **lists)
    return msgspec.structs.replace(event, **found)
