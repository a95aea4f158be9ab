"""Whether a stored history needs a pass at all, told from a look that settles nothing.

Most conversations of a corpus are sound, and what is sound is given back as the bytes it came in.
The look is one decode by msgspec into the contract's own structs, with the same strictness: types,
UTF-8 and unknown members are judged as `golem.load_history` judges them. Only the arguments of
calls are held raw and looked at here, since the check that makes a `ToolCall` costs more than all
the rest.

Where `skim` or `history_of` has None, that is no verdict: it sends the line to the pass itself,
which knows every rule. What was read for the look becomes the history that the pass gets, so that
nothing is read twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, cast

import msgspec
from msgspec import Raw, Struct

from golem import rawjson
from golem.messages import (
    AssistantMessage,
    Message,
    Native,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)

_SMALL: Final = 2 * rawjson.MAX_DEPTH
"""An object of fewer characters cannot be nested too deep."""

_BRACE: Final = "{"
"""No JSON value begins with a greater character, and none but an object with this one."""


class SkimmedCall(Struct, frozen=True, gc=False, omit_defaults=True, forbid_unknown_fields=True):
    """A `ToolCall` whose arguments nobody has looked at."""

    id: str
    name: str
    args: Raw
    signature: str = ""


class SkimmedAssistant(
    Struct,
    frozen=True,
    gc=False,
    omit_defaults=True,
    forbid_unknown_fields=True,
    rename="camel",
    tag_field="role",
    tag="assistant",
):
    """An `AssistantMessage` with such calls; the other members are the contract's."""

    content: str = ""
    parts: tuple[Part, ...] = ()
    tool_calls: tuple[SkimmedCall, ...] = ()
    thinking: tuple[Thinking, ...] = ()
    native: Native | None = None
    run_id: str = ""
    conversation_id: str = ""
    seal: str = ""


Skimmed = SystemMessage | UserMessage | SkimmedAssistant | ToolMessage

_decode = msgspec.json.Decoder(list[Skimmed]).decode
_REFUSED: Final = (msgspec.MsgspecError, RecursionError, UnicodeError)


def skim(line: bytes) -> list[Skimmed] | None:
    """The messages in `line`; None where there is anything that only `load_history` may read."""
    try:
        return _decode(line)
    except _REFUSED:
        return None


def first_unsound(messages: list[Skimmed]) -> Skimmed | None:
    """The first of `messages` that repair has to look at; None where it would find nothing.

    What stands before it is sound: every call has an id and a JSON object, and the results of
    each turn stand right behind it in the order of its calls (contract §2.1). It asks for tools,
    or is a result that answers nothing before it.
    """
    message: Skimmed | None = None
    ahead = iter(messages)
    results = cast("Iterator[ToolMessage]", ahead)
    try:
        for message in ahead:
            if type(message) is SkimmedAssistant:
                for call in message.tool_calls:
                    if next(results).tool_call_id != call.id or not call.id:
                        return message
                    args = bytes(call.args).decode()
                    if args < _BRACE:
                        return message
                    if len(args) >= _SMALL and not rawjson.is_object(bytes(call.args)):
                        return message
            elif type(message) is ToolMessage:
                return message
    except (StopIteration, AttributeError, UnicodeDecodeError):
        # Nothing comes next; or what is no result, and has no such id; or the text is none.
        return message
    return None


def history_of(messages: list[Skimmed]) -> list[Message] | None:
    """`messages` as `load_history` would have read them; None where it may see more in the line.

    Arguments that are not UTF-8 are such a case, which it reads with more patience.
    """
    try:
        return [_settled(m) if isinstance(m, SkimmedAssistant) else m for m in messages]
    except _REFUSED:
        return None


def _settled(message: SkimmedAssistant) -> AssistantMessage:
    calls = [ToolCall(c.id, c.name, c.args, c.signature) for c in message.tool_calls]
    return AssistantMessage(
        message.content,
        parts=message.parts,
        tool_calls=tuple(calls),
        thinking=message.thinking,
        native=message.native,
        run_id=message.run_id,
        conversation_id=message.conversation_id,
        seal=message.seal,
    )
