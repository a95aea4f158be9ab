"""What of an answer comes in pieces: texts, and arguments that are streamed by path. Pure."""

from __future__ import annotations

import re
from typing import Any, Final

from golem import rawjson
from golem_adapters._toolkit.lenient import (
    is_array,
    is_object,
    members,
    objects,
    text,
    written,
)
from golem_adapters._toolkit.pieces import Halves
from golem_adapters.gemini.parts import CALL, SIGNATURE, THOUGHT, WirePart

_STEP: Final = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,4})\]|\['([^']*)'\]|\["([^"]*)"\]""")


class Run:
    """Texts (or thoughts) behind each other and without a signature: one part, in pieces."""

    __slots__ = ("_changed", "_first", "_halves", "_pieces", "kind")

    def __init__(self, first: WirePart) -> None:
        self.kind = first.kind
        self._first = first
        self._pieces: list[str] = []
        self._halves = Halves()
        self._changed = False  # a half character is not as it came

    def added(self, piece: str) -> str:
        """What `piece` says, behind half a character that came before."""
        said = self._halves.mended(piece)
        self._changed = self._changed or said != piece
        if said:
            self._pieces.append(said)
        return said

    def rest(self) -> str:
        """What half a character at the end of the pieces stands for."""
        rest = self._halves.rest()
        if rest:
            self._changed = True
            self._pieces.append(rest)
        return rest

    def built(self) -> WirePart:
        """The part as far as it has come; to the byte, where it came in one piece."""
        if len(self._pieces) == 1 and not self._changed:
            return self._first
        found: dict[str, Any] = {"text": "".join(self._pieces)}
        if self.kind == THOUGHT:
            found["thought"] = True
        return WirePart(written(found), found, self.kind)


class GrowingCall:
    """A call whose arguments Vertex streams by their place, as it does where it is asked to."""

    __slots__ = ("_args", "_continued", "_part", "_steps", "_tail", "closed")

    def __init__(self, part: WirePart) -> None:
        self._part = part
        self._args: dict[str, Any] = {}
        self._continued = ""
        self._steps: list[str | int] = []
        self._tail: list[str] = []  # pieces of the text at the end of `_steps`
        self.closed = False

    def add(self, part: WirePart) -> None:
        """Take in the next piece; it may be the last."""
        called = members(part.members.get("functionCall"))
        for piece in objects(called.get("partialArgs")):
            self._put(piece)
        if part is not self._part and part.word(SIGNATURE):
            self._part.members[SIGNATURE] = part.word(SIGNATURE)
        self.closed = not called.get("willContinue")

    def _put(self, piece: dict[str, Any]) -> None:
        path = text(piece.get("jsonPath"))
        value = next((piece[name] for name in _VALUES if name in piece), None)
        steps = [_step(*found) for found in _STEP.findall(path)]
        if not steps or isinstance(steps[0], int) or len(steps) > rawjson.MAX_DEPTH:
            return
        grows = bool(self._tail) and path == self._continued
        self._continued = path if piece.get("willContinue") else ""
        if isinstance(value, str):
            if not grows:
                self._settle()
                self._steps = steps
            self._tail.append(text(value))
        else:
            self._settle()
            _place(self._args, steps, value)

    def _settle(self) -> None:
        """Put the text that was coming where it belongs."""
        if self._tail:
            _place(self._args, self._steps, "".join(self._tail))
            self._tail = []

    def built(self) -> WirePart:
        """The call as far as it has come; arguments that were cut off are no object."""
        self._settle()
        args = bytes(written(self._args)).decode()
        called = members(self._part.members.get("functionCall"))
        found = {name: called[name] for name in ("id", "name") if called.get(name)}
        wire: dict[str, Any] = {"functionCall": {**found, "args": self._args}}
        if signature := self._part.word(SIGNATURE):
            wire[SIGNATURE] = signature
        return WirePart(written(wire), wire, CALL, args if self.closed else args[:-1])


_VALUES: Final = ("stringValue", "numberValue", "boolValue")
"""Where a value is; one that has none of these is null."""


def _step(name: str, index: str, quoted: str, also: str) -> str | int:
    return int(index) if index else name or quoted or also


def _place(args: dict[str, Any], steps: list[str | int], value: Any) -> None:
    """Put `value` into `args` at the end of `steps`, through objects and arrays that are there.

    An element that is not the next one, or one there is, has no place: nobody leaves gaps, and a
    few bytes would make an array of thousands.
    """
    place: Any = args
    for step, after in zip(steps, [*steps[1:], None], strict=True):
        if isinstance(step, int) and step > len(place):
            return
        if isinstance(step, int) and step == len(place):
            place.append(None)
        if after is None:
            place[step] = value
            return
        found: Any = place[step] if isinstance(step, int) else place.get(step)
        fits = is_array(found) if isinstance(after, int) else is_object(found)
        if not fits:
            place[step] = [] if isinstance(after, int) else {}
        place = place[step]
