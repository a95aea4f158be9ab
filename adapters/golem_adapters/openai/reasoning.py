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
from golem_adapters._toolkit.lenient import clean, objects, text
from golem_adapters.openai.dialect import ChatDialect

Detail = dict[str, Any]

_FRAGMENTS: Final = ("text", "summary", "data")
"""Members that a stream sends in pieces; of the others the last word counts."""

_PLAIN: Final = ""
"""The type of a block that no details describe."""


class Reasoning:
    """Collects the reasoning of one answer, whole or in pieces."""

    __slots__ = ("_blocks", "_provider", "_signature")

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._blocks: list[Detail] = []
        self._signature = ""

    def add_text(self, piece: str) -> None:
        """A piece of reasoning without details."""
        if not self._blocks or self._blocks[-1]["type"] != _PLAIN:
            self._blocks.append({"type": _PLAIN, "pieces": []})
        self._blocks[-1]["pieces"].append(piece)

    def add_details(self, details: list[Any], *, whole: bool) -> str:
        """Items of `reasoning_details`; `whole`: each is complete. Returns their text."""
        texts: list[str] = []
        for detail in map(_cleaned, objects(details)):
            texts.append(_text(detail))
            block = None if whole else self._continued(detail)
            if block is None:
                self._blocks.append(detail)
            else:
                for name, value in detail.items():
                    block[name] = text(block.get(name)) + value if name in _FRAGMENTS else value
        return "".join(texts)

    def add_signature(self, signature: str) -> None:
        """Proof of reasoning whose text the provider hides."""
        self._signature = signature

    def thinking(self) -> tuple[Thinking, ...]:
        """The blocks as they are stored; empty ones are left out."""
        blocks = _thinking(self._blocks, self._provider)
        if self._signature:
            blocks += (Thinking(signature=self._signature, provider=self._provider),)
        return blocks

    def native(self) -> Native | None:
        """The details, where thinking blocks cannot give them back: signed, encrypted, named."""
        details = [block for block in self._blocks if block["type"] != _PLAIN]
        if not any(block.get("signature") or block.get("data") for block in details):
            return None
        try:
            items = tuple(Raw(msgspec.json.encode(block, order="sorted")) for block in details)
        except (OverflowError, RecursionError):
            return None  # a number or nesting that no JSON of ours can hold is no detail
        return Native(self._provider, items)

    def _continued(self, detail: Detail) -> Detail | None:
        """The block that `detail` goes on with.

        Text only ever continues the last block, so that blocks keep the order in which the
        text was given out; a signature may come late.
        """
        candidates = self._blocks[-1:] if _text(detail) else self._blocks[::-1]
        for block in candidates:
            same = all(
                block.get(name) == detail.get(name) or None in (block.get(name), detail.get(name))
                for name in ("index", "id")
            )
            if same and block["type"] == detail["type"]:
                return block
        return None


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
    if block["type"] == _PLAIN:
        return "".join(block["pieces"])
    return text(block.get("text")) or text(block.get("summary"))
