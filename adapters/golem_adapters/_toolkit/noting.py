"""What adapters note about messages in the same words (`golem.wire.notes`). Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from golem.messages import AssistantMessage, Part, Thinking, ToolCall
from golem.portability import FindingKind
from golem.wire.notes import note, noting
from golem_adapters._toolkit.calls import TOOL_NAME, wire_args, wire_tool_name

BEHIND: Final = "stands in a user's message behind the turn"
NO_TEXT: Final = "blank, which is no message here"
LOOSE: Final = "cannot stand where it does in this history"
UNSIGNED: Final = "without a signature nobody takes it back"
AS_USER: Final = "instructions behind the beginning stand there as the user's words"


def note_calls(
    calls: Sequence[ToolCall],
    wire_ids: Sequence[str],
    *,
    names: re.Pattern[str] = TOOL_NAME,
    args: Callable[[ToolCall], str] = wire_args,
    signed: Collection[int] = (),
) -> None:
    """What becomes of a turn's calls; `signed` are those whose signatures go out."""
    if not noting():
        return
    for number, (call, wire_id) in enumerate(zip(calls, wire_ids, strict=True)):
        place = f"toolCalls[{number}]"
        if call.id != wire_id:
            note("renamed", f"{place}.id", repr(call.id), f"goes out as {wire_id!r}")
        if (name := wire_tool_name(call.name, names)) != call.name:
            note("renamed", f"{place}.name", repr(call.name), f"goes out as {name!r}")
        if call.signature and number not in signed:
            why = "thought signatures mean nothing here, or are of another provider"
            note("dropped", f"{place}.signature", "thought signature", why)
        if call.truncated and call.args.strip():
            why = 'no JSON object: goes out as {"truncated_args": "…"}'
            note("flattened", f"{place}.args", "arguments", why)
        elif not call.truncated and args(call) != call.args:
            why = "half characters and numbers past a double's range are replaced"
            note("flattened", f"{place}.args", "arguments", why)


def note_thinking(message: AssistantMessage, sent: Collection[int], provider: str) -> None:
    """Which thinking of a turn is left out: all but the blocks that are `sent`."""
    if not noting():
        return
    for number, block in enumerate(message.thinking):
        if number not in sent:
            note("dropped", f"thinking[{number}]", "thinking", why_dropped(block, provider))


def why_dropped(block: Thinking, provider: str) -> str:
    """Why thinking is not sent to `provider`."""
    if block.provider == provider:
        return "the provider does not take it back here"
    maker = block.provider or "nobody who is named"
    return f"made by {maker}, and only its maker can read it"


def note_native(message: AssistantMessage, provider: str, *, sent: bool) -> None:
    """What becomes of a turn's native items."""
    native = message.native
    if native is None or sent or not noting():
        return
    if native.provider != provider:
        why = f"made by {native.provider or 'nobody who is named'}; the fields beside tell the turn"
    else:
        why = "the message no longer says what they say, or they cannot stand here"
    note("dropped", "native", f"{len(native.items)} native items", why)


def note_parts(
    parts: Iterable[Part],
    among: Sequence[Part],
    kind: FindingKind = "flattened",
    why: str = BEHIND,
) -> None:
    """What becomes of some `parts` `among` a message's, which say their numbers."""
    if not noting():
        return
    some = list(parts)
    for number, part in enumerate(among):
        if part in some:
            note(kind, f"parts[{number}]", medium(part), why)


def note_sound(parts: Iterable[Part], among: Sequence[Part]) -> None:
    """Which spoken answers are left out, because their transcript is sent."""
    if noting():
        kept = list(parts)
        left_out = [part for part in among if part not in kept]
        note_parts(left_out, among, "dropped", "its transcript is the content, which is sent")


def medium(part: Part) -> str:
    """A part as notes name it, without what it holds or where it leads to."""
    return f"{part.kind} {part.media_type}" if part.media_type else f"{part.kind} part"
