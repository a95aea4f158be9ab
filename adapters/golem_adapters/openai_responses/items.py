"""Output items: the one reading that plain answers, streams and requests share. Pure.

An answer is a list of items (messages, reasoning, calls, what hosted tools did). Here is what
they say in golem's terms, whether golem's own fields can stand for them when they have to go
back, and whether a stored message still says what its native items say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Raw

from golem.messages import AssistantMessage, Part, Thinking
from golem_adapters._toolkit.lenient import is_array, is_object, objects, text
from golem_adapters._toolkit.story import Asked, Story, native_of, trimmed
from golem_adapters.openai_responses.media import generated_image
from golem_adapters.openai_responses.shapes import read_item

Item = dict[str, Any]

MESSAGE: Final = "message"
REASONING: Final = "reasoning"
FUNCTION_CALL: Final = "function_call"
CUSTOM_CALL: Final = "custom_tool_call"
IMAGE_CALL: Final = "image_generation_call"
CALLS: Final = (FUNCTION_CALL, CUSTOM_CALL)

PARAGRAPH: Final = "\n\n"
"""Stands between the parts of one reasoning item, each of which has a heading of its own."""

_UNFINISHED: Final = ("in_progress", "incomplete")
_PLAIN_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    MESSAGE: frozenset({"type", "id", "role", "status", "content"}),
    FUNCTION_CALL: frozenset({"type", "id", "call_id", "name", "arguments", "status"}),
}
"""Members of items that golem's fields stand for, or that need not go back."""

_PLAIN_TEXT: Final = frozenset({"type", "text", "logprobs"})


def story(items: Iterable[Item], provider: str) -> Story:
    """What `items` of `provider` say."""
    texts: list[str] = []
    refusals: list[str] = []
    thinking: list[Thinking] = []
    calls: list[Asked] = []
    parts: list[Part] = []
    for item in items:
        match kind(item):
            case "message":
                texts.append(message_text(item))
                refusals.extend(text(part.get("refusal")) for part in _content(item))
            case "reasoning":
                thinking.extend(_thinking(item, provider))
            case "function_call" | "custom_tool_call":
                calls.append(asked(item))
            case "image_generation_call":
                if image := generated_image(item):
                    parts.append(image)
            case _:
                pass  # what a hosted tool did, or an item nobody knows: kept in native
    return Story("".join(texts), tuple(thinking), tuple(calls), tuple(parts), "".join(refusals))


def kind(item: Item) -> str:
    """The type of `item`; a message may come without one."""
    return text(item.get("type")) or (MESSAGE if "role" in item else "")


def message_text(item: Item) -> str:
    """The text of a message item, its refusal included."""
    if isinstance(item.get("content"), str):
        return text(item["content"])
    return "".join(
        text(part.get("text")) or text(part.get("refusal")) or text(part.get("transcript"))
        for part in _content(item)
    )


def reasoning_text(item: Item) -> str:
    """The readable text of a reasoning item: its summary and, where it is open, its content."""
    said = [text(part.get("text")) for part in objects(item.get("summary"))]
    said += [text(part.get("text")) for part in objects(item.get("content"))]
    return PARAGRAPH.join(filter(None, said))


def asked(item: Item) -> Asked:
    """The tool call in `item`."""
    name = text(item.get("call_id")) or text(item.get("id"))
    if kind(item) == CUSTOM_CALL:
        return Asked(name, text(item.get("name")), trimmed(text(item.get("input"))))
    given = item.get("arguments")
    if is_object(given) or is_array(given):
        given = json.dumps(given, separators=(",", ":"))
    args = trimmed(text(given))
    if not args and item.get("status") not in _UNFINISHED:
        args = "{}"  # a completed call without argument text
    return Asked(name, text(item.get("name")), args)


def _content(item: Item) -> list[Item]:
    return objects(item.get("content"))


def _thinking(item: Item, provider: str) -> tuple[Thinking, ...]:
    said, sealed = reasoning_text(item), text(item.get("encrypted_content"))
    name = text(item.get("id"))
    if said:
        return (Thinking(said, signature=sealed, provider=provider, id=name),)
    if sealed:
        return (Thinking(redacted=sealed, provider=provider, id=name),)
    return ()


# --- going back


def plain(items: Sequence[Item]) -> bool:
    """Whether golem's fields alone can say the same to the provider: a text, then calls.

    Everything else has to go back as it came: reasoning, text after a call, several messages,
    phases, annotations, refusals, what hosted tools did, items and members nobody knows.
    """
    for place, item in enumerate(items):
        known = _PLAIN_MEMBERS.get(kind(item))
        if known is None or not known >= {name for name, value in item.items() if value}:
            return False
        if kind(item) == MESSAGE and (place or not _plain_message(item)):
            return False
    return True


def _plain_message(item: Item) -> bool:
    if item.get("role", "assistant") != "assistant":
        return False
    parts = item.get("content")
    if not is_array(parts) or len(parts) > 1:
        return isinstance(parts, str)
    return all(
        is_object(part)
        and part.get("type") in ("output_text", "text")
        and {name for name, value in part.items() if value} <= _PLAIN_TEXT
        for part in parts
    )


def own_items(message: AssistantMessage, provider: str) -> list[tuple[Raw, Item]]:
    """The native items of `message` with what is in them; empty where they may not go back.

    They are `provider`'s own, and the message still says what they say.
    """
    native = native_of(message, provider)
    if native is None:
        return []
    pairs = [(raw, read_item(raw)) for raw in native.items]
    told = story((item for _, item in pairs), provider)
    same = (
        all(kind(item) for _, item in pairs)
        and told.parts == message.parts
        and told.is_told_by(message)
    )
    return pairs if same else []


def sealed_reasoning(message: AssistantMessage, provider: str) -> Item | None:
    """The reasoning item for `provider`'s own sealed thinking of a message without items.

    Only where all of it is of one item: of several nobody knows what each of them led to.
    """
    if message.native is not None:
        return None  # the items are there and do not fit: the turn was changed
    own = [b for b in message.thinking if b.provider == provider and (b.signature or b.redacted)]
    if not own or len({block.id for block in own}) > 1 or (len(own) > 1 and not own[0].id):
        return None
    mine = [b for b in message.thinking if b.provider == provider and b.id == own[0].id]
    summary = [{"type": "summary_text", "text": block.text} for block in mine if block.text]
    sealed = own[0].signature or own[0].redacted
    return {"type": REASONING, "summary": summary, "encrypted_content": sealed}


def sent_thinking(
    message: AssistantMessage, provider: str, *, came: bool, sealed: bool
) -> Sequence[int]:
    """Which thinking blocks are in what was written for `message`.

    `came`: its items, as they came; `sealed`: reasoning is among what was written.
    """
    if came:
        return range(len(message.thinking)) if sealed else ()
    own = sealed_reasoning(message, provider) if sealed else None
    if own is None:
        return ()
    carriers = [b for b in message.thinking if b.provider == provider]
    proof = next(b for b in carriers if b.signature or b.redacted)
    return [
        number
        for number, block in enumerate(message.thinking)
        if block.provider == provider and block.id == proof.id
    ]
