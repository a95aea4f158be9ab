"""One walk over a history, writing it message by message; what that is like on every wire. Pure.

`Walk` is for any wire. `TurnWalk` is for those whose turns alternate: there a turn is everything
that one side says before the other does, in entries, and what no such wire takes (a blank
message, a history that begins with the model) goes out in words that stand for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from golem.messages import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from golem.wire.notes import note, placed, refuse
from golem_adapters._toolkit.body import Wire
from golem_adapters._toolkit.calls import CallIds
from golem_adapters._toolkit.noting import AS_USER, medium, note_parts, note_sound

OPENING: Final = "(The conversation so far:)"
"""What a user is given to say where a history begins with the model or with nobody, or with a blank
answer: without a message behind it there would be none at all, and what stands once has to stay."""

GO_ON: Final = "Continue."
"""What a user is given to say where a history ends with words of the model."""

SAID_NOTHING: Final = "(no text)"
"""Stands for a user's blank message, which is refused; left out, its neighbors would run
together, or the request would end with the model's words."""

FAILED: Final = "The tool failed."
"""Stands for the text of a failed call that has none."""

USER: Final = "user"

E = TypeVar("E")


class Walk:
    """Writes the messages of one history, in order; subclasses give the methods that raise here.

    A *batch* is an assistant turn and the results of its calls. Media that cannot stand where
    they belong wait for its end, and follow it as the user's.
    """

    def __init__(self, ids: CallIds, where: str) -> None:
        self._ids = ids
        self._where = where  # as errors name the wire: "in Converse (nova)"
        self._media: list[Wire] = []

    def walked(self, messages: Iterable[Message]) -> None:
        """Write all of `messages`.

        Raises UnsupportedContentError for a part that the wire cannot carry.
        """
        for index, message in placed(messages):
            if not isinstance(message, ToolMessage):
                self._end_batch()
            match message:
                case SystemMessage():
                    self._system(message)
                case UserMessage():
                    self._user(index, message)
                case AssistantMessage():
                    self._assistant(index, message)
                case ToolMessage():
                    self._result(index, message)
        self._end_batch()

    def _carried(self, index: int, parts: Iterable[Part], among: tuple[Part, ...]) -> list[Wire]:
        """The wire's `parts`, which are numbered as they stand `among` the message's."""
        found: list[Wire] = []
        for part in parts:
            wire = self._medium(part)
            if isinstance(wire, str):
                member = f"parts[{among.index(part)}]"
                refuse(index, member, medium(part), f"{wire} {self._where}")
                continue
            found.append(wire)
        return found

    def _attach(self, label: str, media: list[Wire]) -> None:
        """Let `media` follow the batch, behind the words that say what they belong to."""
        self._media += [self._text(label), *media]

    def _attach_made(self, index: int, message: AssistantMessage) -> None:
        """Let media that a model made follow its turn."""
        if parts := made_parts(message):
            note_parts(parts, message.parts)
            media = self._carried(index, parts, message.parts)
            self._attach("Part of the answer above:", media)

    def _taken_media(self) -> list[Wire]:
        """The media that waited, which wait no more."""
        media, self._media = self._media, []
        return media

    # --- the adapter's own

    def _system(self, message: SystemMessage) -> None:
        """Write instructions."""
        raise NotImplementedError

    def _user(self, index: int, message: UserMessage) -> None:
        """Write what a user says."""
        raise NotImplementedError

    def _assistant(self, index: int, message: AssistantMessage) -> None:
        """Write a model's turn, which begins a batch."""
        raise NotImplementedError

    def _result(self, index: int, message: ToolMessage) -> None:
        """Write the result of a call of the batch."""
        raise NotImplementedError

    def _end_batch(self) -> None:
        """Write what the batch still lacks, and what waits for its end."""
        raise NotImplementedError

    def _text(self, words: str) -> Wire:
        """A text on the wire."""
        raise NotImplementedError

    def _medium(self, part: Part) -> Wire | str:
        """A part on the wire, or why it cannot be carried."""
        raise NotImplementedError


def made_parts(message: AssistantMessage) -> tuple[Part, ...]:
    """The media of a model's turn that go back.

    The transcript of a spoken answer is its content: the sound need not.
    """
    parts = tuple(p for p in message.parts if not (p.kind == "audio" and message.content))
    note_sound(parts, message.parts)
    return parts


def label_of(message: ToolMessage, wire_id: str) -> str:
    """The words before media of a result that follow it."""
    return f"Attached to the result of {message.tool_name or 'the tool'} ({wire_id}):"


# --- turns that alternate


@dataclass(slots=True)
class Turn(Generic[E]):
    """Everything that one side says before the other does."""

    role: str
    entries: list[E] = field(default_factory=list[E])


class TurnWalk(Walk, Generic[E]):
    """A `Walk` that writes turns; an entry is what a turn consists of, `_entry` makes it."""

    def __init__(self, ids: CallIds, where: str) -> None:
        super().__init__(ids, where)
        self.system: list[Wire] = []
        self.turns: list[Turn[E]] = []

    def _say(self, role: str, entries: list[E]) -> None:
        if not self.turns or self.turns[-1].role != role:
            self.turns.append(Turn(role))
        self.turns[-1].entries += entries

    def _system(self, message: SystemMessage) -> None:
        """Instructions; behind the conversation's beginning they stand where they were given.

        In front of it they would change what caches know of everything that follows.
        """
        if not message.content.strip():
            return
        if self.turns or not self._takes_system():
            note("flattened", "content", "instructions", AS_USER)
            self._say(USER, [self._said(message.content)])
        else:
            self.system.append(self._text(message.content))

    def _takes_system(self) -> bool:
        """Whether instructions have a place of their own."""
        return True

    def _user(self, index: int, message: UserMessage) -> None:
        entries = [self._said(message.content)] if message.content.strip() else []
        entries += map(self._entry, self._carried(index, message.parts, message.parts))
        if not entries and not message.parts:
            note("flattened", "content", "blank text", f"goes out as {SAID_NOTHING!r}")
        self._say(USER, entries or [self._said(SAID_NOTHING)])

    def _say_media(self) -> None:
        """Let the user say the media that waited for the end of the batch."""
        if media := self._taken_media():
            self._say(USER, list(map(self._entry, media)))

    def _said(self, words: str) -> E:
        """The entry of a text."""
        return self._entry(self._text(words))

    def _entry(self, wire: Wire) -> E:
        """The entry of a text or of a medium."""
        raise NotImplementedError


def alternating(turns: Iterable[Turn[E]], opening: E) -> list[Turn[E]]:
    """`turns` without empty ones, whose neighbors are one, and the user first."""
    found: list[Turn[E]] = []
    for turn in turns:
        if turn.entries and found and found[-1].role == turn.role:
            found[-1].entries += turn.entries
        elif turn.entries:
            found.append(Turn(turn.role, list(turn.entries)))
    if not found or found[0].role != USER:
        found.insert(0, Turn(USER, [opening]))
    return found
