"""A history with everything a seal covers, and the keys to seal it with."""

from __future__ import annotations

import msgspec

from golem import (
    AssistantMessage,
    Message,
    Native,
    Part,
    Thinking,
    ToolCall,
    ToolMessage,
    UnknownMembers,
    UserMessage,
)
from golem.history import seal

KEY = b"the server's key"
OTHER = b"somebody else's key"

FULL: list[Message] = [
    UserMessage("look", parts=(Part.image(b"\x01", "image/png"),), run_id="r1"),
    AssistantMessage(
        "hm",
        parts=(Part.image_url("https://a.example/"),),
        tool_calls=(ToolCall.of("c1", "f", '{ "b":1,\t"a":2.50 }'), ToolCall.of("c2", "g", '{"x')),
        thinking=(Thinking("think", signature="s", provider="p", id="t1"),),
        native=Native("p", (msgspec.Raw(b'{"x":[1,null]}'),)),
        conversation_id="k",
    ),
    ToolMessage("one", tool_call_id="c1", tool_name="f", failed=True),
    ToolMessage("two", tool_call_id="c2", tool_name="g"),
    AssistantMessage("done", unknown=UnknownMembers({"newer": b'{"a":[1,2]}'})),
    UserMessage("thanks"),
]
PLACES = range(len(FULL))


def sealed(history: list[Message] = FULL) -> list[Message]:
    """The history as the server hands it out."""
    return seal(history, KEY)
