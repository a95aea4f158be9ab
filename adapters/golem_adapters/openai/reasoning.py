"""Reasoning in Chat Completions: read into thinking blocks, and given back to who made it.

Servers send it as `reasoning`, `reasoning_content`, thinking chunks in `content`, or as
`reasoning_details` whose signed and encrypted items have to go back unmodified. The last kind
is kept as native items, in one spelling (members sorted, nulls left out), which a plain and a
streamed answer reach alike.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from msgspec import Raw

from golem.messages import AssistantMessage, Native, Thinking
from golem_adapters._toolkit.bounds import Room, room_for
from golem_adapters._toolkit.lenient import clean, count_of, objects, text
from golem_adapters.openai.dialect import ChatDialect

Detail = dict[str, Any]

_FRAGMENTS: Final = ("text", "summary", "data")
"""Members that a stream sends in pieces; of the others the last word counts."""

_PLAIN: Final = ""
"""The type of a block that no details describe."""


_LOOK_BACK: Final = 32
"""Blocks among which a late signature finds its own."""


class _Block:
    """A block that may still be coming: what is known of it, and what comes in pieces."""

    __slots__ = ("known", "pieces")

    def __init__(self, type: str) -> None:
        self.known: Detail = {"type": type}
        self.pieces: dict[str, list[str]] = {}

    def add(self, detail: Detail) -> None:
        """Take in the next item of it."""
        for name, value in detail.items():
            if name in _FRAGMENTS:
                self.pieces.setdefault(name, []).append(value)
            else:
                self.known[name] = value

    def goes_on_with(self, detail: Detail) -> bool:
        """Whether `detail` can be an item of this block."""
        known = self.known
        return known["type"] == detail["type"] and all(
            known.get(name) == detail.get(name) or None in (known.get(name), detail.get(name))
            for name in ("index", "id")
        )

    def built(self) -> Detail:
        """The block as far as it has come."""
        return self.known | {name: "".join(pieces) for name, pieces in self.pieces.items()}


class Reasoning:
    """Collects the reasoning of one answer, whole or in pieces; true once there is any."""

    __slots__ = ("_blocks", "_provider", "_room", "_signature")

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._blocks: list[_Block] = []
        self._room = Room()
        self._signature = ""

    def __bool__(self) -> bool:
        return bool(self._blocks or self._signature)

    def add_text(self, piece: str) -> None:
        """A piece of reasoning without details."""
        last = self._blocks[-1] if self._blocks else None
        if last is None or last.known["type"] != _PLAIN:
            last = self._new(_PLAIN)
        last.add({"text": piece})

    def add_details(self, details: list[Any], *, whole: bool) -> str:
        """Items of `reasoning_details`; `whole`: each is complete. Returns their text."""
        texts: list[str] = []
        for detail in map(_cleaned, objects(details)):
            texts.append(_text(detail))
            self._room.take_count(count_of(detail))
            block = None if whole else self._continued(detail)
            (block or self._new(detail["type"])).add(detail)
        return "".join(texts)

    def add_signature(self, signature: str) -> None:
        """Proof of reasoning whose text the provider hides."""
        self._signature = signature

    def thinking(self) -> tuple[Thinking, ...]:
        """The blocks as they are stored; empty ones are left out."""
        blocks = _thinking([block.built() for block in self._blocks], self._provider)
        if self._signature:
            blocks += (Thinking(signature=self._signature, provider=self._provider),)
        return blocks

    def native(self) -> Native | None:
        """The details, where thinking blocks cannot give them back: signed, encrypted, named."""
        built = (block.built() for block in self._blocks if block.known["type"] != _PLAIN)
        details = list(built)
        if not any(block.get("signature") or block.get("data") for block in details):
            return None
        try:
            items = tuple(Raw(msgspec.json.encode(block, order="sorted")) for block in details)
        except (OverflowError, RecursionError):
            return None  # a number or nesting that no JSON of ours can hold is no detail
        return Native(self._provider, items)

    def _new(self, type: str) -> _Block:
        room_for(len(self._blocks), "blocks of reasoning")
        block = _Block(type)
        self._blocks.append(block)
        return block

    def _continued(self, detail: Detail) -> _Block | None:
        """The block that `detail` goes on with.

        Text only ever continues the last block, so that blocks keep the order in which the
        text was given out; a signature may come late.
        """
        back = 1 if _text(detail) else _LOOK_BACK
        candidates = reversed(self._blocks[-back:])
        return next((block for block in candidates if block.goes_on_with(detail)), None)


def _cleaned(given: Detail) -> Detail:
    try:
        known = clean(given)
    except RecursionError:  # nested past every use: what can be read is kept
        known = {name: text(value) for name, value in given.items() if isinstance(value, str)}
    detail = {
        name: value
        for name, value in known.items()
        if value is not None and (name not in _FRAGMENTS or isinstance(value, str))
    }
    detail["type"] = text(detail.get("type")) or "reasoning.text"
    return detail


def own_reasoning(message: AssistantMessage, provider: str) -> str:
    """The readable reasoning of `message` that `provider` itself wrote."""
    return "".join(block.text for block in message.thinking if block.provider == provider)


def own_signature(message: AssistantMessage, provider: str) -> str:
    """The signature of reasoning whose text `provider` hid, if there is one."""
    for block in message.thinking:
        if block.provider == provider and block.signature and not block.text:
            return block.signature
    return ""


def reasoning_details(message: AssistantMessage, provider: str) -> list[Raw]:
    """The details to send back: `provider`'s own, as long as the thinking is what they say."""
    native = message.native
    if native is None or native.provider != provider:
        return []
    try:
        details = [msgspec.json.decode(bytes(item), type=dict[str, Any]) for item in native.items]
    except msgspec.MsgspecError:
        return []
    if not all(isinstance(detail.get("type"), str) for detail in details):
        return []
    mine = [block for block in message.thinking if block.provider == provider]
    told = list(_thinking(details, provider))
    # Blocks without details may stand between; what the details say must all still be there.
    if [block for block in mine if block in told] != told:
        return []
    return list(native.items)


def sent_reasoning(
    message: AssistantMessage, turn: dict[str, Any], dialect: ChatDialect
) -> list[int]:
    """Which thinking blocks of `message` are in the `turn` that was written for it."""
    name = dialect.name
    own = [n for n, block in enumerate(message.thinking) if block.provider == name]
    if details := turn.get("reasoning_details"):
        read = [msgspec.json.decode(bytes(item), type=dict[str, Any]) for item in details]
        told = _thinking(read, name)
        return [n for n in own if message.thinking[n] in told]
    readable = dialect.reasoning_out == "chunks" and isinstance(turn.get("content"), list)
    if readable or turn.get(dialect.reasoning_out):
        return [n for n in own if message.thinking[n].text]
    if "extra_content" in turn:
        signature = own_signature(message, name)
        return [n for n in own if message.thinking[n].signature == signature][:1]
    return []


def _thinking(blocks: list[Detail], provider: str) -> tuple[Thinking, ...]:
    stored: list[Thinking] = []
    for block in blocks:
        said, signature, name = _text(block), text(block.get("signature")), text(block.get("id"))
        if said or signature:
            stored.append(Thinking(said, signature=signature, provider=provider, id=name))
        elif data := text(block.get("data")):
            stored.append(Thinking(redacted=data, provider=provider, id=name))
    return tuple(stored)


def _text(block: Detail) -> str:
    return text(block.get("text")) or text(block.get("summary"))
