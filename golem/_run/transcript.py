"""The transcript of a run: what it started from, the turn it completes, what it adds. Pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from golem._run.resume import Resumption
from golem.messages import AssistantMessage, Message, ToolMessage, UserMessage

M = TypeVar("M", UserMessage, AssistantMessage, ToolMessage)


class Added(NamedTuple):
    """A message that has joined the transcript, and where it stands in it."""

    place: int
    message: Message


class Transcript:
    """Messages in order; what the run adds is stamped with its ids, what it was given is not.

    `head` is what the run starts from. Of a resumed run it holds the pending turn with a result
    for each call behind its asking message; those are taken into a slot of their own, which
    `complete_turn` fills again.
    """

    def __init__(
        self,
        head: Sequence[Message],
        run_id: str,
        conversation_id: str,
        resumption: Resumption | None = None,
    ) -> None:
        self._head = list(head)
        self._run_id = run_id
        self._conversation_id = conversation_id
        self._added: list[Message] = []
        self._untold: deque[Added] = deque()
        self._unwritten: deque[Message] = deque()
        self._slot = len(self._head)
        self._slotted: list[ToolMessage] = []
        self._resolved: list[Message] = []
        self._resumption = resumption
        if resumption is not None:
            self._open_slot(resumption)

    @property
    def messages(self) -> list[Message]:
        """All of it, as the next request would carry it."""
        if self._resumption is None:
            return self._head + self._added
        slot = self._slot
        return [*self._head[:slot], *self._slotted, *self._head[slot:], *self._added]

    @property
    def new_messages(self) -> list[Message]:
        """What the run has added: answers to pending calls first, then in order."""
        return self._resolved + self._added

    @property
    def resolved(self) -> bool:
        """Whether the pending turn of a resumed run has got results."""
        return bool(self._resolved)

    @property
    def untold(self) -> deque[Added]:
        """The messages that have joined, for whoever tells of them to take out."""
        return self._untold

    @property
    def unwritten(self) -> deque[Message]:
        """The messages that have joined, for whoever stores them to take out."""
        return self._unwritten

    def add(self, messages: Iterable[M]) -> list[M]:
        """Messages join at the end; as they stand there."""
        end = self._end
        stamped = [self._joining(message, end + n) for n, message in enumerate(messages)]
        self._added += stamped
        return stamped

    def add_results(self, made: Mapping[int, ToolMessage]) -> dict[int, int]:
        """Results of a batch, by place in it, join at the end; where each stands now."""
        end = self._end
        self.add(made.values())
        return {place: end + n for n, place in enumerate(made)}

    def complete_turn(self, made: Mapping[int, ToolMessage]) -> dict[int, int]:
        """The pending turn gets its results, in call order: those it had, the answers, `made`.

        `made` is by place among the calls that ran; one that got no result is pending still.
        Where each stands now.
        """
        resumption = self._resumption
        if resumption is None:
            raise TypeError("there is no pending turn")
        ran = {place: n for n, place in enumerate(resumption.approved)}
        stands: dict[int, int] = {}
        self._slotted = []
        for place, had in enumerate(resumption.results):
            result = had if had is not None else made.get(ran[place])
            if result is None:
                continue
            index = self._slot + len(self._slotted)
            if had is None:
                stands[ran[place]] = index
            if had is None or place in resumption.answered:
                result = self._joining(result, index)
                self._resolved.append(result)
            self._slotted.append(result)
        return stands

    def answers(self) -> list[ToolMessage]:
        """The answers that have not joined yet, stamped."""
        resumption = self._resumption
        if resumption is None or self._resolved:
            return []
        answered = [resumption.results[place] for place in sorted(resumption.answered)]
        return [self.stamp(answer) for answer in answered if answer is not None]

    def stamp(self, message: M) -> M:
        """The message with the run's ids."""
        return replace(message, run_id=self._run_id, conversation_id=self._conversation_id)

    @property
    def _end(self) -> int:
        return len(self._head) + len(self._slotted) + len(self._added)

    def _joining(self, message: M, place: int) -> M:
        """The message with the run's ids, to stand there; to be told and written."""
        stamped = self.stamp(message)
        self._untold.append(Added(place, stamped))
        self._unwritten.append(stamped)
        return stamped

    def _open_slot(self, resumption: Resumption) -> None:
        asking = [n for n, message in enumerate(self._head) if message is resumption.asking]
        self._slot = asking[-1] + 1
        del self._head[self._slot : self._slot + len(resumption.calls)]
        self._slotted = [
            result
            for place, result in enumerate(resumption.results)
            if result is not None and place not in resumption.answered
        ]
