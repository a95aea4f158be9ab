"""Whether a stored history needs a pass at all, told from a look that makes nothing of it.

Most conversations of a corpus are sound, and what is sound is given back as the bytes it came in.
The look is one decode by msgspec into the contract's own structs, with the same strictness: types,
UTF-8 and unknown members are judged as `golem.load_history` judges them. Only calls are held raw
and looked at here, since the check that makes a `ToolCall` costs more than all the rest.

False is no verdict: it sends the line to the pass itself, which knows every rule.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import Raw, Struct

from golem import rawjson
from golem.messages import Native, Part, SystemMessage, Thinking, ToolMessage, UserMessage

_SMALL: Final = 2 * rawjson.MAX_DEPTH
"""An object of fewer bytes cannot be nested too deep."""

_BRACE: Final = ord("{")


class SkimmedCall(Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """A `ToolCall` whose arguments nobody has looked at."""

    id: str
    name: str
    args: Raw
    signature: str = ""


class SkimmedAssistant(
    Struct,
    frozen=True,
    gc=False,
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


_decode = msgspec.json.Decoder(
    list[SystemMessage | UserMessage | SkimmedAssistant | ToolMessage]
).decode


def is_sound(line: bytes) -> bool:
    """Whether normalizing the history in `line` would change nothing and notice nothing.

    True where every call has an id and a JSON object, and the results of each turn stand right
    behind it in the order of its calls (contract §2.1), in a document without a flaw.
    """
    try:
        messages = _decode(line)
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return False
    ahead = iter(messages)
    for message in ahead:
        if type(message) is SkimmedAssistant:
            for call in message.tool_calls:
                result = next(ahead, None)
                if type(result) is not ToolMessage or result.tool_call_id != call.id:
                    return False
                args = bytes(call.args)
                if not call.id or args[0] != _BRACE:
                    return False
                plain = len(args) < _SMALL and (args.isascii() or rawjson.is_utf8(args))
                if not plain and not rawjson.is_object(args):
                    return False
        elif type(message) is ToolMessage:
            return False
    return True
