"""What the machine asks its driver to do, and what comes of it. Values only."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from golem.deferral import DeferralKind
from golem.errors import Stage
from golem.messages import AssistantMessage, Message, Part, ToolCall
from golem.rawjson import clean_text


class CallModel(Struct, frozen=True):
    """Send `messages` to the model; reply with `Machine.model_replied`."""

    turn: int
    messages: Sequence[Message]


class RunTools(Struct, frozen=True):
    """Run the calls of one turn; reply with `Machine.tools_replied`.

    The batch from `Machine.tools_started` says which calls run together; it is told of every
    call that is entered and of every outcome. `approved`: somebody has allowed these calls.
    """

    turn: int
    calls: Sequence[ToolCall]
    approved: bool = False


class DecodeOutput(Struct, frozen=True):
    """Make a value of the answer; reply with `Machine.output_accepted` or `output_rejected`.

    The answer is the message's text, or `call`, a call of an output tool.
    """

    answer: AssistantMessage
    call: ToolCall | None = None


Command = CallModel | RunTools | DecodeOutput


class RunFailure(Exception):
    """The run cannot go on: at which stage, and why (``__cause__``: the error behind it)."""

    def __init__(self, stage: Stage, reason: str, cause: BaseException | None = None) -> None:
        self.stage: Stage = stage
        self.reason = reason
        super().__init__(reason)
        self.__cause__ = cause


def describe(error: BaseException) -> str:
    """An error in words, also where it brought none or cannot say."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - a foreign error whose text is broken too
        said = ""
    return clean_text(said) or type(error).__name__


def error_type(error: BaseException | None) -> str:
    """The class of an error, by name; empty for none."""
    return "" if error is None else type(error).__name__


class Returned(Struct, frozen=True):
    """The tool returned."""

    text: str
    parts: tuple[Part, ...] = ()

    def describe(self) -> str:
        """Nothing went wrong."""
        return ""


class Failed(Struct, frozen=True):
    """The tool says that it failed for good (`golem.errors.ToolFailed`)."""

    reason: str

    def describe(self) -> str:
        """What went wrong, in words."""
        return self.reason or "the tool failed"


class Rejected(Struct, frozen=True):
    """The call must be corrected by the model, who reads `text`.

    It counts against `budget` rejections of the tool in this run; `by_tool`: by the tool itself
    (``ModelRetry``), else by golem before anything ran.
    """

    reason: str
    text: str
    budget: int
    by_tool: bool

    def describe(self) -> str:
        """What went wrong, in words."""
        return f"rejected: {self.reason}"


class Deferred(Struct, frozen=True):
    """The call waits for somebody (`golem.errors.ToolDeferred`, ``requires_approval``)."""

    kind: DeferralKind
    reason: str

    def describe(self) -> str:
        """Why there is no result."""
        return f"waits for {self.kind}"


class Canceled(Struct, frozen=True):
    """The tool stops the run (`golem.errors.ToolCanceled`)."""

    reason: str

    def describe(self) -> str:
        """What went wrong, in words."""
        return f"canceled the run: {self.reason}"


class Crashed(Struct, frozen=True):
    """The tool raised anything else; `abandoned`: its worker thread may still be running."""

    error: Exception
    abandoned: bool = False

    def describe(self) -> str:
        """What went wrong, in words."""
        return describe(self.error)


Outcome = Returned | Failed | Rejected | Deferred | Canceled | Crashed
