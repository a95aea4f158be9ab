"""Histories in which Anthropic, Bedrock and all the others had a part, for Hypothesis.

An answer of the provider whose judge is asked is drawn as the blocks it came in, so that what it
signed is known: such thinking, and no other, may go back.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec import Raw, structs

from golem import (
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
from golem.testing.strategies import ANY_HISTORY, HOSTILE_HISTORY
from tests.strategies import ARGS, ODD_TEXT

Blocks = list[dict[str, Any]]

IDS = st.sampled_from(["", "", "a", "a", "b", "call_1", "x" * 90 + "1", "x" * 90 + "2", "f.g:0"])
ODD_IDS = IDS | st.sampled_from(["é", "a\n", "\ud800", "fc_1|call_1", "toolu_1", "tooluse_1"])
NAMES = st.sampled_from(["", "f", "get weather", "a.b", "x" * 80, "\ud800", "f\n", "naïve", "f"])
OTHERS = st.sampled_from(["openai", "openai-responses", "gemini", "mistral", "deepseek", "x", ""])
MEDIA = st.lists(
    st.sampled_from(
        [
            Part.image(b"x", "image/png"),
            Part.document(b"x", "application/pdf"),
            Part.document(b"x", "text/plain"),
            Part.document(b"\xff\xfe", "text/csv"),
        ]
    ),
    max_size=2,
).map(tuple)
FOREIGN_THOUGHTS = st.lists(
    st.builds(Thinking, text=ODD_TEXT, signature=st.sampled_from(["", "foreign"]), provider=OTHERS)
    | st.builds(Thinking, redacted=st.just("foreign"), provider=OTHERS),
    max_size=2,
).map(tuple)
CALLS = st.lists(st.builds(ToolCall.of, ODD_IDS, NAMES, ARGS, ODD_TEXT), max_size=3).map(tuple)
NATIVES = st.none() | OTHERS.map(lambda name: Native(name, (Raw(b'{"text":"foreign"}'),)))
FOREIGN: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, ODD_TEXT),
    st.builds(UserMessage, ODD_TEXT, parts=MEDIA),
    st.builds(
        AssistantMessage,
        ODD_TEXT,
        tool_calls=CALLS,
        thinking=FOREIGN_THOUGHTS,
        parts=MEDIA,
        native=NATIVES,
    ),
    st.builds(
        ToolMessage,
        ODD_TEXT,
        tool_call_id=ODD_IDS,
        tool_name=NAMES,
        parts=MEDIA,
        failed=st.booleans(),
    ),
    st.builds(ToolMessage, ODD_TEXT, tool_call_id=ODD_IDS),
)


class Answered(NamedTuple):
    """An answer of the provider's own, and whether somebody changed its text afterwards."""

    blocks: Blocks
    edited: bool


class Told(NamedTuple):
    """A history, and what its provider's answers said of their thinking."""

    messages: list[Message]
    made_with: Mapping[str, str]


def told(
    pieces: Sequence[Message | Answered],
    signed: Callable[[dict[str, Any], str], dict[str, Any]],
    message_of: Callable[[Blocks], AssistantMessage],
    thoughts_of: Callable[[Blocks], Mapping[str, str]],
) -> Told:
    """The history that `pieces` stand for; `signed` gives a block of thinking its signature."""
    messages: list[Message] = []
    made_with: dict[str, str] = {}
    for place, piece in enumerate(pieces):
        if not isinstance(piece, Answered):
            messages.append(piece)
            continue
        blocks = [signed(b, f"b3du{place:02}{n:02}") for n, b in enumerate(piece.blocks)]
        made_with |= thoughts_of(blocks)
        message = message_of(blocks)
        if piece.edited:
            message = structs.replace(message, content=message.content + "!")
        messages.append(message)
    return Told(messages, made_with)


def conversations(blocks: st.SearchStrategy[Blocks]) -> st.SearchStrategy[list[Any]]:
    """Pieces for `told`: answers of these blocks between messages of everybody else."""
    own: st.SearchStrategy[Any] = st.builds(Answered, blocks, st.sampled_from([False, False, True]))
    mixed = st.lists(FOREIGN | own | own, max_size=7)
    strangers = (HOSTILE_HISTORY | ANY_HISTORY).map(
        lambda history: list(map(without_media, history))
    )
    return mixed | strangers | st.tuples(strangers, mixed).map(lambda both: [*both[0], *both[1]])


def without_media(message: Message) -> Message:
    """The message without parts by address, which not every provider fetches."""
    if isinstance(message, SystemMessage):
        return message
    return structs.replace(message, parts=tuple(part for part in message.parts if part.data))
