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
import re
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from typing import Annotated, Final, NamedTuple, cast

from msgspec import Meta, Struct
from msgspec.structs import replace

from golem.codec import dump_message, load_message
from golem.errors import HistoryError
from golem.faults import checked
from golem.glance import odd_places
from golem.messages import AssistantMessage, Message, SystemMessage
from golem.rawjson import canonical

_DOMAIN: Final = b"golem-seal-1\x00"
_FIRST: Final = "first"
"""Stands for the predecessor of a conversation's first message."""
_ASIDE: Final = "aside"
"""Stands for the predecessor of every system message."""
_SHORTEST_KEY: Final = 16

Key = bytes | bytearray | memoryview
Keys = Key | Iterable[Key]

_SEAL: Final = re.compile(r"(?:first|aside|[\w-]{43})\.[\w-]{43}", re.ASCII)


class SealReport(Struct, frozen=True, rename="camel"):
    """What the seals of a history say. Falsy when nothing is wrong; indexes count as given.

    A message in `reordered` or `removed_before` is authentic itself: it is its place that is not
    the sealed one. System messages have no place: one is authentic wherever it stands, and that
    one is gone or another conversation's was put in shows nowhere. `trimmed`: the conversation's
    first message is not there, which is no fault; the history verifies from its cut on.
    """

    verified: Annotated[tuple[int, ...], Meta(description="written here, in sealed order")] = ()
    added: Annotated[tuple[int, ...], Meta(description="carry no seal")] = ()
    altered: Annotated[tuple[int, ...], Meta(description="carry a seal of something else")] = ()
    reordered: Annotated[tuple[int, ...], Meta(description="do not stand where sealed")] = ()
    removed_before: Annotated[
        tuple[int, ...], Meta(description="stand after a gap: what preceded them is gone")
    ] = ()
    trimmed: bool = False
    head: Annotated[
        str, Meta(description="the last verified seal, system messages aside; empty: none")
    ] = ""

    def __bool__(self) -> bool:
        return bool(self.added or self.altered or self.reordered or self.removed_before)


def seal(history: Iterable[Message], keys: Keys) -> list[Message]:
    """`history` with a seal on every message.

    The caller vouches for the list as it stands. A message whose seal and place are right already
    is the same object, so sealing after every run costs what the run added. `keys` is one key or
    several: the first seals, all are known.

    Raises:
        HistoryError: A message carries a seal that no key made for it (verify before sealing, or
            drop it), is no message or malformed, or could not be loaded again once stored.
        ValueError: No key, or one that is no bytes or shorter than 16.
    """
    known = checked_keys(keys)
    return _sealed(checked(history), known)


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
            mark = _Mark(before, _code(known[0], before, _loadable(message, index)))
            message = replace(message, seal=f"{mark.previous}.{mark.code}")
        if not aside:
            previous = mark.code
        sealed.append(message)
    return sealed


def verify(history: Iterable[Message], keys: Keys) -> SealReport:
    """Which messages the holder of the key wrote, and which were added, altered or moved.

    `keys` is one key or several (rotation): a seal by any of them counts.

    Raises:
        HistoryError: Something is no message or malformed.
        ValueError: No key, or one that is no bytes or shorter than 16.
    """
    known = checked_keys(keys)
    return _report(checked(history), known)


def _report(messages: Sequence[Message], known: Sequence[bytes]) -> SealReport:
    marks = [_read(message, index, known) for index, message in enumerate(messages)]
    # An altered message still names the place it held: what followed it has not moved.
    claims = [_Mark.of(message.seal) for message in messages if _is_seal(message.seal)]
    present = {claim.code for claim in claims}
    found: dict[str, list[int]] = {name: [] for name in _FINDINGS}
    previous: str | None = None
    head = ""
    for index, (message, mark) in enumerate(zip(messages, marks, strict=True)):
        if mark is None:
            found["altered" if message.seal else "added"].append(index)
            previous = _Mark.of(message.seal).code if _is_seal(message.seal) else previous
        elif mark.previous == _ASIDE:
            found["verified"].append(index)
        else:
            place = _place(mark, previous, present)
            found[place].append(index)
            previous = mark.code
            head = message.seal if place == "verified" else head
    return SealReport(
        **{name: tuple(places) for name, places in found.items()},
        trimmed=any(mark is not None and mark.previous != _ASIDE for mark in marks)
        and all(claim.previous != _FIRST for claim in claims),
        head=head,
    )


_FINDINGS: Final = ("verified", "added", "altered", "reordered", "removed_before")


class _Mark(NamedTuple):
    """A seal that a known key made for the message that carries it."""

    previous: str
    code: str

    @classmethod
    def of(cls, text: str) -> _Mark:
        """What a seal says, whoever wrote it."""
        previous, _, code = text.rpartition(".")
        return cls(previous, code)


def _is_seal(text: str) -> bool:
    """Whether `text` has the form of a seal: of anything else no key can have made it."""
    return _SEAL.fullmatch(text) is not None


def _place(mark: _Mark, previous: str | None, present: set[str]) -> str:
    if previous is None:  # the first sealed message here: the conversation's, or at a cut
        return "reordered" if mark.previous in present else "verified"
    if mark.previous == previous:
        return "verified"
    misplaced = mark.previous == _FIRST or mark.previous in present
    return "reordered" if misplaced else "removed_before"


def _read(message: Message, index: int, keys: Sequence[bytes]) -> _Mark | None:
    if not _is_seal(message.seal):
        return None
    import hmac  # dear to load, with all of OpenSSL, for who seals nothing

    mark = _Mark.of(message.seal)
    content = _content(message, index)
    given = mark.code.encode()
    codes = [_code(key, mark.previous, content).encode() for key in keys]
    matches = [hmac.compare_digest(given, code) for code in codes]  # all, in constant time
    return mark if any(matches) else None


def _code(key: bytes, previous: str, content: bytes) -> str:
    import hashlib
    import hmac

    body = _DOMAIN + previous.encode() + b"\x00" + content
    digest = hmac.new(key, body, hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _loadable(message: Message, index: int) -> bytes:
    """The canonical bytes of a message that can be stored and loaded again."""
    with _placed(index):
        load_message(dump_message(message))
    return _content(message, index)


def _content(message: Message, index: int) -> bytes:
    """The canonical bytes of everything but the seal, unknown members included."""
    bare = replace(message, seal="")
    with _placed(index):
        written = dump_message(bare)
        return written if _is_golems_own(bare) else canonical(written)


def _is_golems_own(message: Message) -> bool:
    """Whether all of a message is written by golem: it embeds no JSON in another's spelling."""
    asks = isinstance(message, AssistantMessage) and message.tool_calls
    return not asks and not odd_places((message,))


@contextmanager
def _placed(index: int) -> Generator[None]:
    """Name the message at fault: a native item or unknown member of it never was JSON."""
    try:
        yield
    except HistoryError as error:
        raise HistoryError(error.reason, index=index, path=error.path) from error
    except ValueError as error:
        raise HistoryError(str(error), index=index) from error


def checked_keys(keys: Keys) -> list[bytes]:
    """The keys, checked: at least one, each of at least 16 bytes. Raises ValueError."""
    one = isinstance(keys, (bytes, bytearray, memoryview, str)) or not isinstance(keys, Iterable)
    given: list[object] = [keys] if one else list(cast("Iterable[object]", keys))
    if not given:
        raise ValueError("a key is needed")
    return [_checked_key(key) for key in given]


def _checked_key(key: object) -> bytes:
    if not isinstance(key, (bytes, bytearray, memoryview)):
        raise ValueError(f"a key is bytes, not {type(key).__name__}")
    held = bytes(cast("Key", key))
    if len(held) < _SHORTEST_KEY:
        raise ValueError(f"a key must be at least {_SHORTEST_KEY} bytes")
    return held
