"""Content blocks: the one reading that plain answers, streams and requests share. Pure.

An answer is a list of blocks (text, thinking, calls, what server-side tools did). Here is what
they say in golem's terms, whether golem's own fields can stand for them when they have to go
back, and whether a stored message still says what its native blocks say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from golem.messages import AssistantMessage, Thinking
from golem_adapters._toolkit.lenient import (
    NOTHING,
    is_object,
    members,
    read_json,
    text,
    written,
)
from golem_adapters._toolkit.reading import MISFITS, argument_text, verbatim_object
from golem_adapters._toolkit.story import Asked, Story, completed, native_of

TEXT: Final = "text"
THINKING: Final = "thinking"
REDACTED: Final = "redacted_thinking"
TOOL_USE: Final = "tool_use"
TOOL_RESULT: Final = "tool_result"
THOUGHTS: Final = (THINKING, REDACTED)

_DIRECT: Final = {"type": "direct"}
_PLAIN_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    TEXT: frozenset({"type", "text"}),
    THINKING: frozenset({"type", "thinking", "signature"}),
    REDACTED: frozenset({"type", "data"}),
    TOOL_USE: frozenset({"type", "id", "name", "input", "caller"}),
}
"""Members of blocks that golem's fields stand for; null and empty ones need not go back."""

_RANKS: Final[Mapping[str, int]] = {THINKING: 0, REDACTED: 0, TEXT: 1, TOOL_USE: 2}
"""The order in which golem writes its fields: thinking, the text, calls."""


class Block(NamedTuple):
    """A content block: the JSON it came as, and what is in it.

    `args` is the argument text of a call, as the model wrote it.
    """

    raw: Raw
    members: dict[str, Any]
    args: str

    @property
    def kind(self) -> str:
        """The type of the block; empty where it says none."""
        return text(self.members.get("type"))

    def word(self, name: str) -> str:
        """The text under `name`, empty where there is none."""
        return text(self.members.get(name))


class _Input(Struct):
    input: Raw = NOTHING


_inputs: Final = msgspec.json.Decoder(_Input)


def read_block(raw: Raw) -> Block | None:
    """The block in `raw`; None where it is no object, or nested past every use."""
    data, found = verbatim_object(raw)
    if not found:
        return None
    return Block(Raw(data), found, _args(data) if "input" in found else "")


def _args(data: bytes) -> str:
    """The verbatim text under `input`; a string there is the text of what is no object."""
    try:
        return argument_text(_inputs.decode(data).input)
    except MISFITS:
        return argument_text(written(members(read_json(data)).get("input")))


def story(blocks: Iterable[Block], provider: str) -> Story:
    """What `blocks` of `provider` say. What server-side tools did, only `native` keeps."""
    texts: list[str] = []
    thinking: list[Thinking] = []
    calls: list[Asked] = []
    for block in blocks:
        match block.kind:
            case "text":
                texts.append(block.word("text"))
            case "tool_use":
                calls.append(asked(block))
            case _:
                thinking.extend(thought(block, provider))
    return Story("".join(texts), tuple(thinking), tuple(calls))


def asked(block: Block) -> Asked:
    """The tool call in `block`; a completed call without argument text has ``{}``."""
    return Asked(block.word("id"), block.word("name"), completed(block.args))


def thought(block: Block, provider: str) -> tuple[Thinking, ...]:
    """The thinking in `block`, if it is some and says or proves anything."""
    if block.kind == REDACTED:
        data = block.word("data")
        return (Thinking(redacted=data, provider=provider),) if data else ()
    if block.kind != THINKING:
        return ()
    said, signature = block.word("thinking"), block.word("signature")
    if not said and not signature:
        return ()
    return (Thinking(said, signature=signature, provider=provider),)


# --- going back


def plain(blocks: Sequence[Block]) -> bool:
    """Whether golem's fields alone can say the same to the provider: thinking, a text, calls.

    Everything else has to go back as it came: other orders, several texts, citations, what
    server-side tools did, blocks and members nobody knows.
    """
    rank = 0
    for block in blocks:
        known = _PLAIN_MEMBERS.get(block.kind)
        if known is None or not known >= {name for name, value in block.members.items() if value}:
            return False
        if _says_nothing(block):
            continue
        place = _RANKS[block.kind]
        if place < rank or (place == rank == _RANKS[TEXT]):
            return False
        if block.kind == TOOL_USE and block.members.get("caller") not in (None, _DIRECT):
            return False
        rank = place
    return True


def _says_nothing(block: Block) -> bool:
    """Whether a block is empty, as a model's text is before a call that it says nothing to."""
    if block.kind == TEXT:
        return not block.word("text")
    return block.kind in THOUGHTS and not thought(block, "")


def own_blocks(message: AssistantMessage, provider: str) -> list[Block]:
    """The native blocks of `message`; empty where they may not go back.

    They are `provider`'s own, and the message still says what they say.
    """
    native = native_of(message, provider)
    if native is None or message.parts:
        return []
    blocks = [block for raw in native.items if (block := read_block(raw)) is not None]
    same = len(blocks) == len(native.items) and story(blocks, provider).is_told_by(message)
    return blocks if same else []


# --- server-side tools


def server_use(block: Block) -> str:
    """The id of a server-side tool's use; empty for every other block."""
    kind = block.kind
    return block.word("id") if kind.endswith("_tool_use") else ""


def server_result(block: Block) -> str:
    """The id of the use that a server-side tool's result answers; empty for other blocks."""
    return block.word("tool_use_id") if block.kind.endswith("_tool_result") else ""


def source_of(block: Block) -> str:
    """The id of the server-side tool's use that made a call; empty where the model made it."""
    caller = block.members.get("caller")
    return text(caller.get("tool_id")) if is_object(caller) else ""
