"""Google's thought signatures, which a stored call carries without its maker's name. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from golem.messages import AssistantMessage, ToolCall

_BASE64: Final = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


def sendable(signature: str) -> bool:
    """Whether a signature can be one of Gemini's, whose are base64; others break the request."""
    letters = len(signature.rstrip("="))
    padded = len(signature) - letters in (0, -letters % 4)
    return letters % 4 != 1 and padded and _BASE64.fullmatch(signature) is not None


def is_googles(message: AssistantMessage, call: ToolCall, makers: Collection[str]) -> bool:
    """Whether the signature of `call` can be Google's: nothing of its turn names another maker.

    A call does not say who signed it; thinking and native items do. `makers` are Google's names.
    """
    named = {block.provider for block in message.thinking}
    if message.native is not None:
        named.add(message.native.provider)
    return sendable(call.signature) and named <= {"", *makers}
