"""What the machine asks its driver to do, and what comes back. Values only."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from golem.messages import Message, Part, ToolCall


class CallModel(Struct, frozen=True):
    """Send `messages` to the model; reply with `Machine.model_replied`."""

    turn: int
    messages: Sequence[Message]


class RunTools(Struct, frozen=True):
    """Run the calls of one turn; reply with `Machine.tools_replied`.

    Each call is announced with `Machine.tool_started` and its outcome is reported with
    `Machine.tool_finished`, in call order; one that decides the batch ends it.
    """

    turn: int
    calls: Sequence[ToolCall]


Command = CallModel | RunTools


def describe(error: BaseException) -> str:
    """An error in words, also where it brought none or cannot say."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - a foreign error whose text is broken too
        said = ""
    return said or type(error).__name__


class Returned(Struct, frozen=True):
    """The tool returned."""

    text: str
    parts: tuple[Part, ...] = ()


class Failed(Struct, frozen=True):
    """The tool says that it failed for good (`golem.errors.ToolFailed`)."""

    reason: str

    def describe(self) -> str:
        """What went wrong, in words."""
        return self.reason or "the tool failed"


class Rejected(Struct, frozen=True):
    """The call must be corrected by the model, who reads `text`.

    It counts against `budget` rejections of tool `name` in this run; `by_tool`: by the tool itself
    (``ModelRetry``), else by golem before anything ran.
    """

    reason: str
    text: str
    budget: int
    by_tool: bool

    def describe(self) -> str:
        """What went wrong, in words."""
        return f"rejected: {self.reason}"


class Canceled(Struct, frozen=True):
    """The tool stops the run (`golem.errors.ToolCanceled`)."""

    reason: str

    def describe(self) -> str:
        """What went wrong, in words."""
        return f"canceled the run: {self.reason}"


class Crashed(Struct, frozen=True):
    """The tool raised anything else."""

    error: Exception

    def describe(self) -> str:
        """What went wrong, in words."""
        return describe(self.error)


Outcome = Returned | Failed | Rejected | Canceled | Crashed
