"""Content blocks: the one reading that plain answers, streams and requests share. Pure.

A block is an object with one member, which is its kind: ``{"text": "…"}``. Here is what blocks
say in golem's terms, whether golem's own fields can stand for them when they have to go back,
and whether a stored message still says what its native blocks say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from golem.messages import AssistantMessage, Thinking
from golem_adapters._toolkit.lenient import NOTHING, members, objects, text, written
from golem_adapters._toolkit.reading import MISFITS, argument_text, verbatim_object
from golem_adapters._toolkit.story import Asked, Story, completed, native_of
from golem_adapters.bedrock.dialect import ALL_MEDIA

TEXT: Final = "text"
REASONING: Final = "reasoningContent"
TOOL_USE: Final = "toolUse"
TOOL_RESULT: Final = "toolResult"
CITED: Final = "citationsContent"
CACHE_POINT: Final = "cachePoint"

_KINDS: Final = (TEXT, TOOL_USE, REASONING, TOOL_RESULT, CITED, *sorted(ALL_MEDIA))
_RANKS: Final[Mapping[str, int]] = {REASONING: 0, TEXT: 1, TOOL_USE: 2}
"""The order in which golem writes its fields: thinking, the text, calls."""

_PLAIN_CALL: Final = frozenset({"toolUseId", "name", "input", "type"})
_IDLE_TYPES: Final = (None, "", "tool_use")
_PLAIN_THOUGHTS: Final = (
    {"reasoningText", "text", "signature"},
    {"reasoningText", "text"},
    {"redactedContent"},
)


class Block(NamedTuple):
    """A content block: the JSON it came as, its kind, and what stands under it.

    `args` is the argument text of a call, as the model wrote it; `alone` says that the block has
    no member but its kind.
    """

    raw: Raw
    kind: str
    value: Any
    args: str = ""
    alone: bool = True

    def word(self, name: str) -> str:
        """The text under `name` of what stands in the block, empty where there is none."""
        return text(members(self.value).get(name))

    @property
    def call(self) -> bool:
        """Whether it is a tool call that golem has to answer, and no server's own tool at work."""
        return self.kind == TOOL_USE and members(self.value).get("type") in _IDLE_TYPES


class _Use(Struct):
    input: Raw = NOTHING


class _Call(Struct):
    toolUse: _Use | None = None  # noqa: N815 - the wire's own name


_calls: Final = msgspec.json.Decoder(_Call)


def read_block(raw: Raw) -> Block | None:
    """The block in `raw`; None where it is no object, or nested past every use."""
    data, found = verbatim_object(raw)
    if not found:
        return None
    kind = next((name for name in _KINDS if name in found), next(iter(found)))
    value = found[kind]
    args = _args(data, value) if kind == TOOL_USE else ""
    return Block(Raw(data), kind, value, args, len(found) == 1)


def _args(data: bytes, value: object) -> str:
    """The verbatim text under `input`; a string there is the text of what is no object."""
    try:
        use = _calls.decode(data).toolUse
        return argument_text(use.input if use is not None else NOTHING)
    except MISFITS:
        return argument_text(written(members(value).get("input")))


def story(blocks: Iterable[Block], provider: str) -> Story:
    """What `blocks` of `provider` say. What the server's own tools did, only `native` keeps."""
    texts: list[str] = []
    thinking: list[Thinking] = []
    calls: list[Asked] = []
    for block in blocks:
        texts.append(told(block))
        thinking.extend(thought(block, provider))
        if block.call:
            calls.append(asked(block))
    return Story("".join(texts), tuple(thinking), tuple(calls))


def told(block: Block) -> str:
    """The text in `block` that is for the reader."""
    if block.kind == TEXT:
        return text(block.value)
    if block.kind == CITED:
        pieces = objects(members(block.value).get("content"))
        return "".join(text(piece.get("text")) for piece in pieces)
    return ""


def asked(block: Block) -> Asked:
    """The tool call in `block`; a completed call without argument text has ``{}``."""
    return Asked(block.word("toolUseId"), block.word("name"), completed(block.args))


def thought(block: Block, provider: str) -> tuple[Thinking, ...]:
    """The thinking in `block`, if it is some and says or proves anything."""
    if block.kind != REASONING:
        return ()
    if redacted := block.word("redactedContent"):
        return (Thinking(redacted=redacted, provider=provider),)
    readable = members(members(block.value).get("reasoningText"))
    said, signature = text(readable.get("text")), text(readable.get("signature"))
    if not said and not signature:
        return ()
    return (Thinking(said, signature=signature, provider=provider),)


# --- going back


def plain(blocks: Sequence[Block]) -> bool:
    """Whether golem's fields alone can say the same to the provider: thinking, a text, calls.

    Everything else has to go back as it came: other orders, several texts, citations, what the
    server's own tools did, blocks and members nobody knows.
    """
    rank = 0
    for block in blocks:
        place = _RANKS.get(block.kind)
        if place is None or not block.alone or not _plain_members(block):
            return False
        if _says_nothing(block):
            continue
        if place < rank or (place == rank == _RANKS[TEXT]):
            return False
        rank = place
    return True


def _plain_members(block: Block) -> bool:
    if block.kind == TEXT:
        return True
    found = members(block.value)
    used = {name for name, value in found.items() if value}
    if block.kind == TOOL_USE:
        return block.call and used <= _PLAIN_CALL
    return used | set(members(found.get("reasoningText"))) in (*_PLAIN_THOUGHTS, set[str]())


def _says_nothing(block: Block) -> bool:
    return block.kind != TOOL_USE and not told(block) and not thought(block, "")


def own_blocks(message: AssistantMessage, provider: str) -> list[Block]:
    """The native blocks of `message`; empty where they may not go back.

    They are `provider`'s own, and the message still says what they say.
    """
    native = native_of(message, provider)
    if native is None:
        return []
    blocks = [block for raw in native.items if (block := read_block(raw)) is not None]
    same = len(blocks) == len(native.items) and story(blocks, provider).is_told_by(message)
    return blocks if same else []
