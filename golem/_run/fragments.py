"""What an answer on its way has said so far: evidence, should its stream die. Pure."""

from __future__ import annotations

from golem.model import Delta, TextDelta, ThinkingDelta, ToolCallDelta
from golem.rawjson import clean_text


class Fragments:
    """The pieces of one answer, put together as far as they go."""

    def __init__(self) -> None:
        self.calls: list[ToolCallDelta] = []
        self._text: list[str] = []
        self._thinking: list[str] = []

    def __bool__(self) -> bool:
        return bool(self.calls or self._text or self._thinking)

    def add(self, delta: Delta) -> None:
        """A piece of the answer has come."""
        if isinstance(delta, TextDelta):
            self._text.append(delta.text)
        elif isinstance(delta, ThinkingDelta):
            self._thinking.append(delta.text)
        else:
            self.calls.append(delta)

    @property
    def text(self) -> str:
        """What it has said."""
        return clean_text("".join(self._text))

    @property
    def thinking(self) -> str:
        """What it has thought."""
        return clean_text("".join(self._thinking))
