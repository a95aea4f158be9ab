"""Texts that are still coming, a tool call's arguments among them. Pure.

Every step costs what its piece costs, not what the text so far does: a stream may have a million
pieces.
"""

from __future__ import annotations

import re
from typing import Final

from golem import rawjson
from golem_adapters._toolkit.lenient import text

_BLANKS: Final = rawjson.BLANKS.decode()
_MARK: Final = re.compile(r'\\.?|["{}\[\]]', re.DOTALL)
"""What brackets and strings are told by; an escape with the character behind it, if it is there."""


class Halves:
    """Makes whole characters of pieces: half a surrogate pair waits for the piece with its other.

    What stays alone is U+FFFD.
    """

    __slots__ = ("waiting",)

    def __init__(self) -> None:
        self.waiting = ""

    def mended(self, piece: str) -> str:
        """What `piece` says, behind the half that came before."""
        if not self.waiting and piece.isascii():
            return piece
        piece, self.waiting = self.waiting + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self.waiting = piece[:-1], piece[-1]
        return text(piece)

    def rest(self) -> str:
        """What the half stands for whose other will not come; empty where none waits."""
        alone, self.waiting = self.waiting, ""
        return "\ufffd" if alone else ""


class Pieces:
    """A text that comes in pieces; `size` is how long it is so far."""

    __slots__ = ("_pieces", "size")

    def __init__(self, first: str = "") -> None:
        self._pieces: list[str] = [first]
        self.size = len(first)

    def add(self, piece: str) -> None:
        """Take in the next piece."""
        self._pieces.append(piece)
        self.size += len(piece)

    def says(self, text: str) -> bool:
        """Whether the text so far is `text`: a repetition of the whole, and no piece."""
        return self.size == len(text) and self.text == text

    @property
    def text(self) -> str:
        """The text so far."""
        return "".join(self._pieces)


class Mended:
    """Joins the halves of a character that was cut in two: JSON can spell each by itself.

    Gateways that count in UTF-16 cut there. A half whose other half does not come is U+FFFD.
    """

    __slots__ = ("_half",)

    def __init__(self) -> None:
        self._half = ""

    def taken(self, piece: str) -> str:
        """`piece` as far as it is whole, behind the half that was kept of the one before."""
        if not self._half and piece.isascii():
            return piece
        piece, self._half = self._half + piece, ""
        if piece and "\ud800" <= piece[-1] <= "\udbff":
            piece, self._half = piece[:-1], piece[-1]
        return rawjson.clean_text(piece)

    def rest(self) -> str:
        """What the end makes of a half that is still kept."""
        half, self._half = self._half, ""
        return "\ufffd" if half else ""


class ArgumentText:
    """The argument text of a call that is still coming, without white space around it."""

    __slots__ = ("_balance", "_blanks", "_pieces")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._blanks: list[str] = []
        self._balance = _Balance()

    def __bool__(self) -> bool:
        return bool(self._pieces)

    def taken(self, piece: str) -> str:
        """What of `piece` to give out now: white space around the whole text never is."""
        if not self._pieces:
            piece = piece.lstrip(_BLANKS)
        kept = piece.rstrip(_BLANKS)
        if not kept:
            if self._pieces and piece:
                self._blanks.append(piece)
            return ""
        given = "".join((*self._blanks, kept)) if self._blanks else kept
        self._blanks = [piece[len(kept) :]] if len(kept) < len(piece) else []
        self._pieces.append(given)
        return given

    @property
    def text(self) -> str:
        """What was given out so far."""
        return "".join(self._pieces)

    @property
    def whole(self) -> bool:
        """Whether the text so far is a complete object."""
        return self._balance.ends(self._pieces)


class _Balance:
    """Whether texts in pieces are one JSON object, each piece looked at once.

    Only behind the bracket that closes the first one can they be, and then never again: the
    strict look at all of the text is taken once.
    """

    __slots__ = ("_closed", "_depth", "_escaped", "_in_string", "_past", "_seen", "_valid")

    def __init__(self) -> None:
        self._seen = 0
        self._closed = False
        self._depth = 0
        self._in_string = False
        self._escaped = False
        self._past = False
        self._valid: bool | None = None

    def ends(self, pieces: list[str]) -> bool:
        """Whether `pieces`, those of the last look and maybe more, are one object."""
        for piece in pieces[self._seen :]:
            self._past = self._past or self._closed or not self._look(piece)
            self._closed = not self._depth and not self._in_string
        if len(pieces) > self._seen:
            self._seen, self._valid = len(pieces), None
        if self._past or not self._closed:
            return False
        if self._valid is None:
            self._valid = rawjson.is_object("".join(pieces).encode("utf-8", "replace"))
        return self._valid

    def _look(self, piece: str) -> bool:
        """Take in the brackets of `piece`; False where text stands behind the last of them."""
        start = 1 if self._escaped else 0
        self._escaped = False
        for mark in _MARK.finditer(piece, start):
            found = mark[0]
            if found[0] == "\\":
                self._escaped = len(found) == 1
            elif found == '"':
                self._in_string = not self._in_string
            elif not self._in_string:
                self._depth += 1 if found in "{[" else -1
                if self._depth <= 0 and mark.end() < len(piece):
                    return False
        return True
