"""A glance at a history: which messages are surely sound.

Structs do not check what Python puts into them, so every pass over a history begins here, and
much of what a pass costs is spent here. Messages of exactly the types that the codec gives them,
which practically all are, cost a few comparisons each. What differs from them is looked at member
by member, in ``golem.faults``.
"""

from __future__ import annotations

from operator import length_hint
from typing import Any, Final

from golem.messages import NO_MEMBERS, AssistantMessage, ToolCall, ToolMessage, UserMessage

Messages = list[Any] | tuple[Any, ...]

_NONE: Final = ()
"""What a message without parts, calls or thinking has: there is but one empty tuple."""


def odd_places(messages: Messages, *, seal: type | None = str) -> list[int]:
    """The places of the messages that do not tell at a glance that they are sound, in order.

    All others have exactly the types that the codec gives them, and neither media nor thinking nor
    ``native`` nor unknown members; they are no system messages, nor a user's without text. With
    `seal` None they bear no seal either.

    Spelled out by role, for one place that reads several types of struct costs twice as much. A
    seal is compared with the one empty text before its type is asked for.
    """
    # At this pace it pays to look up once what is asked for again and again.
    kind, text, none, no_members, empty = type, str, _NONE, NO_MEMBERS, ""
    odd: list[int] = []
    ahead, last = iter(messages), len(messages) - 1
    for message in ahead:
        role = kind(message)  # pyright: ignore[reportUnknownVariableType]
        if role is AssistantMessage:
            if (
                kind(message.content) is text
                and kind(message.run_id) is text
                and kind(message.conversation_id) is text
                and (message.seal is empty or kind(message.seal) is seal)
                and message.unknown is no_members
                and message.parts is none
                and message.thinking is none
                and message.native is None
                and (message.tool_calls is none or _are_plain(message.tool_calls))
            ):
                continue
        elif role is ToolMessage:
            if (
                kind(message.content) is text
                and kind(message.tool_call_id) is text
                and kind(message.tool_name) is text
                and kind(message.run_id) is text
                and kind(message.conversation_id) is text
                and (message.failed is False or message.failed is True)
                and (message.seal is empty or kind(message.seal) is seal)
                and message.unknown is no_members
                and message.parts is none
            ):
                continue
        elif role is UserMessage and (
            kind(message.content) is text
            and message.content is not empty
            and kind(message.run_id) is text
            and kind(message.conversation_id) is text
            and (message.seal is empty or kind(message.seal) is seal)
            and message.unknown is no_members
            and message.parts is none
        ):
            continue
        odd.append(last - length_hint(ahead))
    return odd


def _are_plain(calls: Any) -> bool:
    """Whether calls have the types that the codec gives them; their text was checked when made."""
    items: tuple[Any, ...] = calls
    if type(calls) is not tuple:
        return False
    text, no_members, empty = str, NO_MEMBERS, ""
    for call in items:
        if (
            type(call) is not ToolCall
            or type(call.id) is not text
            or type(call.name) is not text
            or (call.signature is not empty and type(call.signature) is not text)
            or call.unknown is not no_members
        ):
            return False
    return True
