"""What an answer says in golem's terms, whatever it is made of: blocks, parts or items. Pure.

Plain answers, streams and requests share one reading of it, so that a stored message can be held
against the native items that it came with.
"""

from __future__ import annotations

from typing import NamedTuple

from golem import rawjson
from golem.messages import AssistantMessage, Native, Part, Thinking, ToolCall
from golem_adapters._toolkit.calls import wire_tool_name

_BLANKS = rawjson.BLANKS.decode()


class Asked(NamedTuple):
    """A tool call as the wire has it: `id` may be missing, `name` is the wire's."""

    id: str
    name: str
    args: str

    def stands_for(self, call: ToolCall) -> bool:
        """Whether a stored call is this one, whatever id it had to be given."""
        return (
            self.name in (call.name, wire_tool_name(call.name))
            and (not self.id or call.id == self.id)
            and self.says(call)
        )

    def says(self, call: ToolCall) -> bool:
        """Whether a stored call has these arguments."""
        return ToolCall.of("", "", self.args).args == call.args


class Story(NamedTuple):
    """What an answer says, each kind of thing in the order in which it came."""

    content: str
    thinking: tuple[Thinking, ...]
    calls: tuple[Asked, ...]
    parts: tuple[Part, ...] = ()
    refusal: str = ""

    @property
    def thoughts(self) -> str:
        """All of the readable thinking."""
        return "".join(block.text for block in self.thinking)

    def is_told_by(self, message: AssistantMessage) -> bool:
        """Whether the ordinary fields of `message` still say the same; its parts aside."""
        return (
            self.content == message.content
            and self.thinking == message.thinking
            and len(self.calls) == len(message.tool_calls)
            and all(map(Asked.stands_for, self.calls, message.tool_calls))
        )


def native_of(message: AssistantMessage, provider: str) -> Native | None:
    """The native items of `message` that are `provider`'s own."""
    native = message.native
    return native if native is not None and native.provider == provider else None


def trimmed(args: str) -> str:
    """Argument text without the blanks around it."""
    return args.strip(_BLANKS)


def completed(args: str) -> str:
    """The argument text of a call that came whole; one without any has ``{}``."""
    return trimmed(args) or "{}"
