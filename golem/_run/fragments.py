"""What an answer on its way has said so far: evidence, should its stream die. Pure."""

from __future__ import annotations

from golem.errors import ProtocolError
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
        """A piece of the answer has come. Raises ProtocolError for what is none."""
        if isinstance(delta, TextDelta):
            self._text.append(_checked(delta.text))
        elif isinstance(delta, ThinkingDelta):
            self._thinking.append(_checked(delta.text))
        elif isinstance(delta, ToolCallDelta):  # pyright: ignore[reportUnnecessaryIsInstance]
            for text in (delta.id, delta.name, delta.args):
                _checked(text)
            self.calls.append(delta)
        else:
            raise ProtocolError(f"the model gave a fragment that is none: {type(delta).__name__}")

    @property
    def text(self) -> str:
        """What it has said."""
        return clean_text("".join(self._text))

    @property
    def thinking(self) -> str:
        """What it has thought."""
        return clean_text("".join(self._thinking))


def _checked(text: str) -> str:
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ProtocolError(f"the model gave a fragment of {type(text).__name__}, not of text")
    return text
