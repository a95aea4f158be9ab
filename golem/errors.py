"""Every exception golem raises, and nothing else.

Who raises what, layer by layer::

    GolemError
    ├── HistoryError (also ValueError)      codec, history passes, history processors:
    │                                       the *history* is at fault; says where
    ├── UnsupportedContentError             adapters, before anything is sent:
    │                                       the history holds what this model cannot take
    ├── ProviderError                       adapters, while talking to a provider
    │   ├── APIError                        the provider answered, with an error
    │   ├── TransportError                  the connection failed, or a stream was cut
    │   └── ProtocolError                   the provider answered something unreadable
    ├── SubAgentPausedError                 an agent that is a tool: nobody can answer it there
    ├── ReplayError                         the record of served runs (golem.web):
    │   ├── UnknownRunError                 it has no such run, or has forgotten it
    │   ├── ReplayGapError                  the events asked for were dropped at its bound
    │   └── ReplayFullError                 it can take no further run
    └── RunError                            runs: carries the stage and the evidence (`partial`)

    ToolSignal                              raised *by tools*, to say how a call ended
    ├── ModelRetry                          the model is told to correct its arguments
    ├── ToolFailed                          a definitive failure, recorded for the model
    ├── ToolCanceled                        the whole run stops here
    └── ToolDeferred                        the run pauses until somebody answers the call

``TypeError`` and plain ``ValueError`` mean that the *calling program* passed something wrong
(a bad limit, a tool without a schema, an invalid prompt part); nothing has run yet.
Cancellation is never one of these: the backend's own exception passes through untouched.
Any other exception that leaves golem is a bug in golem.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from golem.deferral import Pending
    from golem.messages import AssistantMessage
    from golem.result import Partial

Stage = Literal["model", "tool", "decode", "loop", "usage", "history", "canceled"]
"""Where a run ended (contract §4.4)."""


class GolemError(Exception):
    """Base of every error golem raises itself. All of them survive pickling."""

    def __reduce__(self) -> tuple[object, ...]:
        # The default re-runs __init__ with `args` alone, which keyword-only members would not
        # survive, and an error that cannot cross a process boundary hangs a process pool.
        return _rebuild, (type(self), self.args, self.__dict__.copy())


E = TypeVar("E", bound=BaseException)


def _rebuild(cls: type[E], args: tuple[object, ...], state: dict[str, object]) -> E:
    error = cls.__new__(cls, *args)
    error.__dict__.update(state)
    return error


class HistoryError(GolemError, ValueError):
    """A history that cannot be read, written or processed; the text says what and where.

    `index` is the position of the message at fault (``None``: the document as a whole),
    `path` the member inside it in the JSON names (``parts[0].data``, ``""``: the message itself)
    and `reason` the complaint without the place.
    """

    def __init__(self, reason: str, *, index: int | None = None, path: str = "") -> None:
        self.reason = reason
        self.index = index
        self.path = path
        place = "history" if index is None else f"history[{index}]"
        super().__init__(f"{place}{'.' if path else ''}{path}: {reason}")


class UnsupportedContentError(GolemError):
    """The request holds content that this model or provider cannot carry; nothing was sent."""


class ProviderError(GolemError):
    """Base of what goes wrong between golem and a model provider.

    `retryable`: sending the same request again may help. `partial`: the assistant message as
    far as it had come when a stream died, calls cut off included (they are evidence and are
    never executed); ``None`` when nothing had arrived.
    """

    retryable: bool = False
    partial: AssistantMessage | None = None


class APIError(ProviderError):
    """The provider answered with an error, as an HTTP status or inside a stream.

    `status` is the HTTP status (the provider's own number for an error inside a stream),
    `code` and `message` are the provider's words, `retry_after` is in seconds,
    `request_id` is what the provider's support asks for.
    """

    def __init__(
        self,
        message: str,
        *,
        status: int | None = None,
        code: str | None = None,
        retryable: bool = False,
        retry_after: float | None = None,
        request_id: str | None = None,
        partial: AssistantMessage | None = None,
    ) -> None:
        self.message = message
        self.status = status
        self.code = code
        self.retryable = retryable
        self.retry_after = retry_after
        self.request_id = request_id
        self.partial = partial
        facts = [str(status) if status is not None else "", code or ""]
        prefix = " ".join(fact for fact in facts if fact)
        super().__init__(f"{prefix}: {message}" if prefix else message)


class TransportError(ProviderError):
    """The connection failed, timed out, or a stream ended before its terminator."""

    def __init__(
        self, reason: str, *, retryable: bool = True, partial: AssistantMessage | None = None
    ) -> None:
        self.retryable = retryable
        self.partial = partial
        super().__init__(reason)


class ProtocolError(ProviderError):
    """The provider sent something that its own protocol does not allow, or too much of it."""

    def __init__(
        self, reason: str, *, retryable: bool = False, partial: AssistantMessage | None = None
    ) -> None:
        self.retryable = retryable
        self.partial = partial
        super().__init__(reason)


class RunError(GolemError):
    """A run that did not reach an answer. The reason is on ``__cause__``.

    `stage` says where it ended, `partial` is the evidence it had produced (``None`` when there
    was none; its `messages` resume with one more run), `run_id` and `conversation_id` are
    always set.
    """

    def __init__(
        self,
        reason: str,
        *,
        stage: Stage,
        run_id: str,
        conversation_id: str,
        partial: Partial | None = None,
    ) -> None:
        self.reason = reason
        self.stage: Stage = stage
        self.partial = partial
        self.run_id = run_id
        self.conversation_id = conversation_id
        super().__init__(f"{stage} stage: {reason}")


class SubAgentPausedError(GolemError):
    """An agent used as a tool paused; `pending` says what for. It has to be asked by itself."""

    def __init__(self, name: str, pending: Pending) -> None:
        self.name = name
        self.pending = pending
        waiting = ", ".join(c.tool_name for c in (*pending.approvals, *pending.external))
        super().__init__(f"sub-agent {name!r} paused, waiting for an answer to: {waiting}")


class ReplayError(GolemError):
    """Base of what the record of served runs cannot do; see `golem.web.replay`."""


class UnknownRunError(ReplayError):
    """The record has no run of that id: it never had one, or has forgotten it."""


class ReplayGapError(ReplayError):
    """Events were dropped at the record's bound that the reader had yet to get.

    `first` is the lowest `seq` that is still there: reading can go on ``after=first - 1``.
    """

    def __init__(self, first: int) -> None:
        self.first = first
        super().__init__(f"events before {first} have been dropped at the record's bound")


class ReplayFullError(ReplayError):
    """The record can take no further run at the moment."""


class ToolSignal(Exception):
    """Base of what a tool raises to say how its call ended; never a fault of golem."""

    def __init__(self, reason: str = "") -> None:
        self.reason = reason
        super().__init__(reason)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__.copy())  # as GolemError does


class ModelRetry(ToolSignal):
    """Refuse this call; the model reads `reason` and may call again with other arguments."""


class ToolFailed(ToolSignal):
    """A definitive failure: recorded as the call's result with ``failed`` set, the run goes on."""


class ToolCanceled(ToolSignal):
    """Stop the whole run here, closing every call of the batch that has no result."""


class ToolDeferred(ToolSignal):
    """Leave this call open: the run pauses, and is resumed with an answer to it.

    `kind` says what it waits for: somebody's ``approval`` (then the tool runs again, with
    ``ctx.approved``), or a result that comes from elsewhere (``external``).
    """

    def __init__(
        self, kind: Literal["approval", "external"] = "approval", reason: str = ""
    ) -> None:
        self.kind: Literal["approval", "external"] = kind
        super().__init__(reason)
