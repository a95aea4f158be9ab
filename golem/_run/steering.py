"""What is said to a run while it goes on, until it can join its transcript. Pure."""

from __future__ import annotations

from golem._run.rules import SayWhen
from golem.messages import UserMessage


class Steering:
    """User messages that wait for the next legal place, or for when the run would be over.

    `joined`: some of them have come to it; from then on they are part of the evidence.
    """

    def __init__(self) -> None:
        self.joined = False
        self._waiting: dict[SayWhen, list[UserMessage]] = {"next_turn": [], "idle": []}

    @property
    def unsaid(self) -> list[UserMessage]:
        """What was to be said and has not joined."""
        return [*self._waiting["next_turn"], *self._waiting["idle"]]

    @property
    def waits(self) -> bool:
        """Whether there is any such message."""
        return bool(self._waiting["next_turn"] or self._waiting["idle"])

    def enqueue(self, message: UserMessage, when: SayWhen) -> None:
        """One more."""
        self._waiting[when].append(message)

    def take(self, when: SayWhen) -> list[UserMessage]:
        """What can be said now; it joins."""
        waiting, self._waiting[when] = self._waiting[when], []
        self.joined = self.joined or bool(waiting)
        return waiting
