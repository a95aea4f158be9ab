"""Sealing: proof that this server wrote a message, in this place, with this content.

Each seal is an HMAC-SHA256 over the message's canonical JSON and its predecessor's code, carried in
the message itself (member ``seal``), so that a history may live with whoever it belongs to and
come back. It proves authorship and order to the holder of the key; it hides nothing, and a
history cut off at the end verifies (compare `SealReport.head` where that matters).

System messages are sealed by themselves, outside the chain: a run replaces those of its history
with its current instructions, and the chain must not depend on them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Iterable, Sequence
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from golem.codec import dump_message
from golem.errors import HistoryError
from golem.faults import named_faults
from golem.messages import MESSAGE_TYPES, Message, SystemMessage, not_a_message
from golem.rawjson import canonical

_DOMAIN: Final = b"golem-seal-1\x00"
_FIRST: Final = "first"
"""Stands for the predecessor of a conversation's first message."""
_ASIDE: Final = "aside"
"""Stands for the predecessor of every system message."""
_SHORTEST_KEY: Final = 16

Keys = bytes | Iterable[bytes]


class SealReport(Struct, frozen=True, rename="camel"):
    """What the seals of a history say. Falsy when nothing is wrong; indexes count as given.

    A message in `reordered` or `removed_before` is authentic itself: it is its place that is not
    the sealed one. `trimmed`: the history does not begin where the conversation did, which is
    no fault; it verifies from its cut on.
    """

    verified: Annotated[tuple[int, ...], Meta(description="written here, in sealed order")] = ()
    added: Annotated[tuple[int, ...], Meta(description="carry no seal")] = ()
    altered: Annotated[tuple[int, ...], Meta(description="carry a seal of something else")] = ()
    reordered: Annotated[tuple[int, ...], Meta(description="do not stand where sealed")] = ()
    removed_before: Annotated[
        tuple[int, ...], Meta(description="stand after a gap: what preceded them is gone")
    ] = ()
    trimmed: bool = False
    head: Annotated[str, Meta(description="the last verified seal; empty: none")] = ""

    def __bool__(self) -> bool:
        return bool(self.added or self.altered or self.reordered or self.removed_before)


def seal(history: Iterable[Message], keys: Keys) -> list[Message]:
    """`history` with a seal on every message.

    The caller vouches for the list as it stands. A message whose seal and place are right already
    is the same object, so sealing after every run costs what the run added. `keys` is one key or
    several: the first seals, all are known.

    Raises:
        HistoryError: A message carries a seal that no key made for it (verify before sealing), or
            is no message.
        ValueError: No key, or one shorter than 16 bytes.
    """
    known = _keys(keys)
    messages = list(history)
    with named_faults(messages):
        return _sealed(messages, known)


def _sealed(messages: Sequence[Message], known: Sequence[bytes]) -> list[Message]:
    sealed: list[Message] = []
    previous = _FIRST
    for index, message in enumerate(messages):
        mark = _read(message, index, known)
        if mark is None and message.seal:
            raise HistoryError("its seal was made for something else", index=index, path="seal")
        aside = isinstance(message, SystemMessage)
        # A first message that follows something is one of a trimmed history: it stays as it is.
        in_place = mark is not None and (aside or previous in (mark.previous, _FIRST))
        if mark is None or not in_place:
            before = _ASIDE if aside else previous
            mark = _Mark(before, _code(known[0], before, _content(message, index)))
            message = replace(message, seal=f"{mark.previous}.{mark.code}")
        if not aside:
            previous = mark.code
        sealed.append(message)
    return sealed


def verify(history: Iterable[Message], keys: Keys) -> SealReport:
    """Which messages the holder of the key wrote, and which were added, altered or moved.

    `keys` is one key or several (rotation): a seal by any of them counts.

    Raises:
        HistoryError: Something is no message.
        ValueError: No key, or one shorter than 16 bytes.
    """
    known = _keys(keys)
    messages = list(history)
    with named_faults(messages):
        return _report(messages, known)


def _report(messages: Sequence[Message], known: Sequence[bytes]) -> SealReport:
    marks = [_read(message, index, known) for index, message in enumerate(messages)]
    chain = [mark for mark in marks if mark is not None and mark.previous != _ASIDE]
    # An altered message still names the place it held: what followed it has not moved.
    present = {message.seal.rpartition(".")[2] for message in messages if message.seal}
    found: dict[str, list[int]] = {name: [] for name in _FINDINGS}
    previous: str | None = None
    for index, (message, mark) in enumerate(zip(messages, marks, strict=True)):
        if mark is None:
            found["altered" if message.seal else "added"].append(index)
            previous = message.seal.rpartition(".")[2] or previous
        elif mark.previous == _ASIDE:
            found["verified"].append(index)
        else:
            found[_place(mark, previous, present)].append(index)
            previous = mark.code
    return SealReport(
        **{name: tuple(places) for name, places in found.items()},
        trimmed=bool(chain) and chain[0].previous not in (_FIRST, *present),
        head=f"{chain[-1].previous}.{chain[-1].code}" if chain else "",
    )


_FINDINGS: Final = ("verified", "added", "altered", "reordered", "removed_before")


class _Mark(NamedTuple):
    """A seal that a known key made for the message that carries it."""

    previous: str
    code: str


def _place(mark: _Mark, previous: str | None, present: set[str]) -> str:
    if previous is None:  # the first sealed message here: the conversation's, or at a cut
        return "reordered" if mark.previous in present else "verified"
    if mark.previous == previous:
        return "verified"
    misplaced = mark.previous == _FIRST or mark.previous in present
    return "reordered" if misplaced else "removed_before"


def _read(message: Message, index: int, keys: Sequence[bytes]) -> _Mark | None:
    if type(message) not in _MESSAGES:
        raise not_a_message(message, index)
    previous, dot, code = message.seal.rpartition(".")
    if not dot:
        return None
    content = _content(message, index)
    given = code.encode("utf-8", "replace")
    matches = [hmac.compare_digest(given, _code(key, previous, content).encode()) for key in keys]
    return _Mark(previous, code) if any(matches) else None


def _code(key: bytes, previous: str, content: bytes) -> str:
    body = _DOMAIN + previous.encode("utf-8", "replace") + b"\x00" + content
    digest = hmac.new(key, body, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _content(message: Message, index: int) -> bytes:
    """The canonical bytes of everything but the seal, unknown members included."""
    try:
        return canonical(dump_message(replace(message, seal="")))
    except HistoryError as error:
        raise HistoryError(error.reason, index=index, path=error.path) from error
    except ValueError as error:  # a native item or unknown member that never was JSON
        raise HistoryError(str(error), index=index) from error


_MESSAGES: Final = frozenset(MESSAGE_TYPES.values())


def _keys(keys: Keys) -> list[bytes]:
    known = [keys] if isinstance(keys, bytes) else list(keys)
    if not known:
        raise ValueError("a key is needed")
    for key in known:
        if not isinstance(key, bytes) or len(key) < _SHORTEST_KEY:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"a key must be at least {_SHORTEST_KEY} bytes")
    return known
