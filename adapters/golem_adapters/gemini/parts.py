"""Content parts: the one reading that plain answers, streams and requests share. Pure.

An answer is a list of parts (text, thoughts, calls, media, what server-side tools did), any of
which may carry a thought signature that has to go back in the very same part. Here is what they
say in golem's terms, whether golem's own fields can stand for them when they have to go back,
and whether a stored message still says what its native parts say.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from msgspec import Raw, Struct

from golem.messages import AssistantMessage, Part, Thinking, ToolCall
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters._toolkit.lenient import NOTHING, members, read_json, text, written
from golem_adapters._toolkit.reading import MISFITS, argument_text, verbatim_object
from golem_adapters._toolkit.signatures import sendable
from golem_adapters._toolkit.story import Asked, Story, completed, native_of
from golem_adapters.gemini.dialect import PROVIDER, TOOL_NAME
from golem_adapters.gemini.media import content_part, medium_in

TEXT: Final = "text"
THOUGHT: Final = "thought"
CALL: Final = "call"
MEDIUM: Final = "medium"
OTHER: Final = ""

SIGNATURE: Final = "thoughtSignature"
SERVER_TOOLS: Final = ("toolCall", "toolResponse")
"""Parts of what the server's own tools did, which only AI Studio knows."""

_RANKS: Final[Mapping[str, int]] = {THOUGHT: 0, TEXT: 1, MEDIUM: 2, CALL: 3}
"""The order in which golem writes its fields: thoughts, the text, media, calls."""

_PLAIN_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    TEXT: frozenset({"text"}),
    THOUGHT: frozenset({"text", "thought", SIGNATURE}),
    CALL: frozenset({"functionCall", SIGNATURE}),
    MEDIUM: frozenset({"inlineData", "fileData"}),
}
"""Members of parts that golem's fields stand for; null, false and empty ones need not go back."""

_CALL_MEMBERS: Final = frozenset({"id", "name", "args"})


class WirePart(NamedTuple):
    """A part of a content: the JSON it came as, and what is in it.

    `args` is the argument text of a call, as the model wrote it.
    """

    raw: Raw
    members: dict[str, Any]
    kind: str
    args: str = ""

    def word(self, name: str) -> str:
        """The text under `name`, empty where there is none."""
        return text(self.members.get(name))

    @property
    def bare(self) -> bool:
        """Whether it is a text or thought and nothing else."""
        known = self.kind in (TEXT, THOUGHT)
        return known and {name for name, value in self.members.items() if value} <= _BARE


_BARE: Final = frozenset({"text", "thought"})


class _Function(Struct):
    args: Raw = NOTHING


class _Called(Struct, rename="camel"):
    function_call: _Function


_called: Final = msgspec.json.Decoder(_Called)


def read_part(raw: Raw) -> WirePart | None:
    """The part in `raw`; None where it is no object, or nested past every use."""
    data, found = verbatim_object(raw)
    if not found:
        return None
    kind = _kind_of(found)
    return WirePart(Raw(data), found, kind, _args(data) if kind == CALL else "")


def _kind_of(found: dict[str, Any]) -> str:
    if isinstance(found.get("functionCall"), dict):
        return CALL
    if isinstance(found.get("text"), str):
        return THOUGHT if found.get("thought") else TEXT
    return MEDIUM if not found.get("thought") and medium_in(found) is not None else OTHER


def _args(data: bytes) -> str:
    """The verbatim text of a call's arguments; a string there is the text of what is no object."""
    try:
        return argument_text(_called.decode(data).function_call.args)
    except MISFITS:
        called = members(members(read_json(data)).get("functionCall"))
        return argument_text(written(called.get("args")))


def story(parts: Iterable[WirePart]) -> Story:
    """What `parts` say. What server-side tools did, only `native` keeps."""
    texts: list[str] = []
    thinking: list[Thinking] = []
    calls: list[Asked] = []
    media: list[Part] = []
    for part in parts:
        match part.kind:
            case "text":
                texts.append(part.word("text"))
            case "call":
                calls.append(asked(part))
            case "thought":
                thinking.extend(thought(part))
            case "medium":
                media.extend(filter(None, [medium_in(part.members)]))
            case _:
                pass
    return Story("".join(texts), tuple(thinking), tuple(calls), tuple(media))


def asked(part: WirePart) -> Asked:
    """The tool call in `part`; a completed call without argument text has ``{}``."""
    called = members(part.members.get("functionCall"))
    return Asked(text(called.get("id")), text(called.get("name")), completed(part.args))


def thought(part: WirePart) -> tuple[Thinking, ...]:
    """The thinking in `part`, if it says or proves anything."""
    said, signature = part.word("text"), part.word(SIGNATURE)
    if not said and not signature:
        return ()
    return (Thinking(said, signature=signature, provider=PROVIDER),)


# --- going back


def plain(parts: Sequence[WirePart]) -> bool:
    """Whether golem's fields alone can say the same to the provider: thoughts, a text, calls.

    Everything else has to go back as it came: other orders, several texts, a signature on a
    text, what server-side tools did, parts and members nobody knows.
    """
    place = -1
    for part in parts:
        if not _told_by_fields(part):
            return False
        rank = _RANKS[part.kind]
        if rank < place or rank == place == _RANKS[TEXT]:
            return False
        place = rank
    return True


def _told_by_fields(part: WirePart) -> bool:
    there = {name for name, value in part.members.items() if value}
    known = _PLAIN_MEMBERS.get(part.kind)
    if known is None or not known >= there:
        return False
    if SIGNATURE in there and not sendable(part.word(SIGNATURE)):
        return False
    if part.kind == CALL:
        called = members(part.members["functionCall"])
        return {name for name, value in called.items() if value} <= _CALL_MEMBERS
    if part.kind == MEDIUM:
        medium = medium_in(part.members)
        return medium is not None and content_part(medium) == part.members
    return True


def own_parts(message: AssistantMessage, *, vertex: bool = False) -> list[WirePart]:
    """The native parts of `message`; empty where they may not go back.

    They are Gemini's own, the server knows their kinds, and the message still says what they
    say.
    """
    native = native_of(message, PROVIDER)
    if native is None:
        return []
    parts = [part for raw in native.items if (part := read_part(raw)) is not None]
    if vertex and any(name in part.members for part in parts for name in SERVER_TOOLS):
        return []
    told = story(parts)
    same = (
        len(parts) == len(native.items)
        and told.content == message.content
        and told.thinking == message.thinking
        and told.parts == message.parts
        and _same_calls(told.calls, message.tool_calls)
    )
    return parts if same else []


def _same_calls(told: Sequence[Asked], calls: Sequence[ToolCall]) -> bool:
    """Whether stored calls are those of parts, whatever ids they had to be given.

    One without an id had to be given one, and so had one whose id was another call's before.
    """
    free = {""}
    for said, call in zip(told, calls, strict=False):
        named = said.name in (call.name, wire_tool_name(call.name, TOOL_NAME))
        known = said.id in free or call.id == said.id
        if not (named and known and said.says(call)):
            return False
        free.add(said.id)
    return len(told) == len(calls)
