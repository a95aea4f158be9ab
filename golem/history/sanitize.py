"""Sanitizing: what a history from across a trust boundary may not bring along (contract §2.3).

It narrows reach, not trust: what passes is still somebody's claim. Runs never sanitize; the
boundary is the application's.
"""

from __future__ import annotations

import operator
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import TypeVar

from msgspec.structs import replace

from golem.codec import dump_message
from golem.errors import HistoryError
from golem.faults import messages_in, require_sound
from golem.glance import odd_places
from golem.history import urls
from golem.history.limits import at_least
from golem.history.repair import normalize_history
from golem.history.report import HistoryRepair, InvalidPart, SanitizeReport, UnsafePart
from golem.messages import (
    NO_MEMBERS,
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.rawjson import clean_text


def sanitize_history(
    history: Iterable[Message],
    *,
    allowed_hosts: Iterable[str] | None = None,
    block_private_hosts: bool = False,
    max_messages: int | None = None,
    max_bytes: int | None = None,
    strip_identity: bool = False,
    strip_thinking: bool = False,
    strip_seals: bool = False,
    drop_invalid_parts: bool = False,
) -> tuple[list[Message], SanitizeReport]:
    """`history` without what the other side of a trust boundary may not assert, and the report.

    System messages, ``native`` and unknown members go; URL parts go whose scheme is not http or
    https; a user message with nothing (left) in it goes; then pairing is repaired, which also
    closes calls that claim to await approval. A message that was changed loses its seal, which
    was made for something else. Content, thinking, failure flags, arguments, ids, inline data and
    the seals of other messages pass through, and an unchanged message is the same object.
    Deterministic and idempotent.

    Args:
        history: Any iterable of messages.
        allowed_hosts: The only hosts URL parts may name; ``.example.com`` allows what is below.
        block_private_hosts: Drop URL parts that name a private, loopback, link-local or metadata
            address in any spelling, or a local name. Names are not resolved.
        max_messages: More messages than this are refused, as soon as they are seen.
        max_bytes: A history whose JSON is longer than this is refused, as soon as that is seen.
        strip_identity: Remove run and conversation ids.
        strip_thinking: Remove thinking blocks.
        strip_seals: Remove seals: `seal` refuses a made-up one, and only `verify` can tell.
        drop_invalid_parts: Remove parts that no run sends (of an unknown kind, with both URL and
            data …). They are reported in any case.

    Raises:
        HistoryError: Something is no message or malformed, or a limit is exceeded.
        TypeError: Something in `allowed_hosts` is no text.
        ValueError: Something in `allowed_hosts` is no host; a limit is no integer, or negative.
    """
    sieve = _Sieve(
        allowed_hosts=None if allowed_hosts is None else _allowed(allowed_hosts),
        block_private_hosts=block_private_hosts,
        strip_identity=strip_identity,
        strip_thinking=strip_thinking,
        strip_seals=strip_seals,
        drop_invalid_parts=drop_invalid_parts,
    )
    messages, odd = _within(history, max_messages, max_bytes)
    repaired, repair = normalize_history(sieve.sift(messages, odd))
    return repaired, sieve.report(repair)


Said = UserMessage | AssistantMessage | ToolMessage
S = TypeVar("S", Part, Thinking, ToolCall)


class _Sieve:
    """One pass over a history: keeps what may stay and counts what may not."""

    def __init__(
        self,
        *,
        allowed_hosts: Sequence[str] | None,
        block_private_hosts: bool,
        strip_identity: bool,
        strip_thinking: bool,
        strip_seals: bool,
        drop_invalid_parts: bool,
    ) -> None:
        self._gaps: list[int] = []  # how many messages were kept before each that was not
        self._allowed_hosts = allowed_hosts
        self._block_private_hosts = block_private_hosts
        self._strip_identity = strip_identity
        self._strip_thinking = strip_thinking
        self._strip_seals = strip_seals
        self._drop_invalid_parts = drop_invalid_parts
        self._system_prompts = 0
        self._tool_results = self._native = self._unknown = self._identity = self._thinking = 0
        self._signed = self._unsealed = self._sealed = self._invalid = 0
        self._unsafe: list[UnsafePart] = []
        self._invalid_parts: list[InvalidPart] = []
        self._emptied: list[int] = []
        self._conversations: dict[str, None] = {}
        self._runs: dict[str, None] = {}

    def sift(self, messages: list[Message], odd: Iterable[int]) -> list[Message]:
        """What may stay of `messages`; those that are not `odd` have nothing that may not."""
        self._note_claims(messages)
        if self._strip_identity:
            odd = range(len(messages))
        kept: list[Message] = []
        start = 0
        for index in odd:
            kept += messages[start:index]
            start = index + 1
            message = self._take(index, messages[index])
            if message is None:
                self._gaps.append(len(kept))
            else:
                kept.append(message)
        return [*kept, *messages[start:]] if start else messages

    def _note_claims(self, messages: list[Message]) -> None:
        """Note whose messages they claim to be; neighbors mostly are of one run."""
        last_run = last_conversation = ""
        for message in messages:
            if message.run_id != last_run:
                last_run = message.run_id
                self._runs[last_run] = None
            if message.conversation_id != last_conversation:
                last_conversation = message.conversation_id
                self._conversations[last_conversation] = None
        self._tool_results = list(map(type, messages)).count(ToolMessage)

    def place(self, kept: int) -> int:
        """Where a message that was kept stood in the history as given."""
        return kept + bisect_right(self._gaps, kept)

    def _take(self, index: int, given: Message) -> Message | None:
        """What may stay of a message; None where it may not stay itself."""
        if isinstance(given, SystemMessage):
            self._system_prompts += 1
            return None
        message: Said = given
        if isinstance(message, AssistantMessage):
            message = self._assistant(message)
        message = self._common(index, message)
        if isinstance(message, UserMessage) and not message.content and not message.parts:
            self._emptied.append(index)
            return None
        return self._seal(message, changed=message is not given) if message.seal else message

    def _common(self, index: int, message: Said) -> Said:
        """What all roles have: parts, unknown members, ids."""
        if message.parts:
            parts = tuple(p for p in self._known(message.parts) if self._may_stay(index, p))
            if len(parts) != len(message.parts) or any(map(operator.is_not, parts, message.parts)):
                message = replace(message, parts=parts)
        if message.unknown is not NO_MEMBERS and message.unknown:
            self._unknown += len(message.unknown)
            message = replace(message, unknown=NO_MEMBERS)
        if self._strip_identity and (message.run_id or message.conversation_id):
            self._identity += 1
            return replace(message, run_id="", conversation_id="")
        return message

    def _assistant(self, message: AssistantMessage) -> AssistantMessage:
        if message.native is not None:
            self._native += 1
            message = replace(message, native=None)
        if message.tool_calls:
            calls = self._known(message.tool_calls)
            if calls is not message.tool_calls:
                message = replace(message, tool_calls=calls)
        if not message.thinking:
            return message
        self._signed += sum(1 for block in message.thinking if block.signature)
        if self._strip_thinking:
            self._thinking += len(message.thinking)
            return replace(message, thinking=())
        thinking = self._known(message.thinking)
        return message if thinking is message.thinking else replace(message, thinking=thinking)

    def _known(self, items: tuple[S, ...]) -> tuple[S, ...]:
        """The items without their unknown members; the same tuple when there are none."""
        for item in items:
            if item.unknown is not NO_MEMBERS and item.unknown:
                break
        else:
            return items
        self._unknown += sum(len(item.unknown) for item in items)
        return tuple(replace(item, unknown=NO_MEMBERS) if item.unknown else item for item in items)

    def _seal(self, message: Said, *, changed: bool) -> Said:
        """What was changed is not what was sealed; the rest only the holder of a key can judge."""
        if not changed and not self._strip_seals:
            self._sealed += 1
            return message
        self._unsealed += 1
        return replace(message, seal="")

    def _may_stay(self, index: int, part: Part) -> bool:
        return self._is_safe(index, part) and self._is_valid(index, part)

    def _is_valid(self, index: int, part: Part) -> bool:
        try:
            part.validate()
        except ValueError as error:
            reason = clean_text(str(error))
            self._invalid_parts.append(InvalidPart(index, clean_text(part.kind), reason))
            self._invalid += self._drop_invalid_parts
            return not self._drop_invalid_parts
        return True

    def _is_safe(self, index: int, part: Part) -> bool:
        if not part.url:
            return True
        scheme = urls.scheme(part.url)
        if scheme not in urls.SAFE_SCHEMES:
            self._unsafe.append(UnsafePart(index, clean_text(part.kind), scheme))
            return False
        if self._allowed_hosts is None and not self._block_private_hosts:
            return True
        host = urls.host(part.url)
        refused = self._allowed_hosts is not None and not urls.is_allowed(host, self._allowed_hosts)
        if refused or (self._block_private_hosts and urls.is_private(host)):
            self._unsafe.append(UnsafePart(index, clean_text(part.kind), scheme, host))
            return False
        return True

    def report(self, repair: HistoryRepair) -> SanitizeReport:
        if self._gaps and repair:
            changes = tuple(
                replace(c, input_index=self.place(c.input_index)) for c in repair.changes
            )
            repair = replace(repair, changes=changes)
        return SanitizeReport(
            system_prompts=self._system_prompts,
            unsafe_parts=tuple(self._unsafe),
            native_dropped=self._native,
            unknown_dropped=self._unknown,
            emptied=tuple(self._emptied),
            identity_dropped=self._identity,
            thinking_dropped=self._thinking,
            repair=repair,
            claimed_conversation_ids=_ids(self._conversations),
            claimed_run_ids=_ids(self._runs),
            tool_results=self._tool_results,
            signed_thinking=self._signed,
            seals_dropped=self._unsealed,
            claimed_seals=self._sealed,
            invalid_parts=tuple(self._invalid_parts),
            invalid_dropped=self._invalid,
        )


def _ids(claimed: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(clean_text, filter(None, claimed)))


def _within(
    history: Iterable[Message], max_messages: int | None, max_bytes: int | None
) -> tuple[list[Message], list[int]]:
    """The messages of `history`, all of them sound, and the places of those that want a look.

    It is read no further than the first limit that it exceeds.
    """
    for name, limit in (("max_messages", max_messages), ("max_bytes", max_bytes)):
        if limit is not None:
            at_least(name, limit, 0)
    given = messages_in(history)
    if max_bytes is not None:
        given = _measured(given, max_bytes)
    if max_messages is None:
        messages = list(given)
    else:
        messages = list(islice(given, min(max_messages, sys.maxsize - 1) + 1))
    within = messages if max_messages is None else messages[:max_messages]
    odd = odd_places(within, seal=None)
    for index in odd:
        require_sound(messages[index], index)
    if max_messages is not None and len(messages) > max_messages:
        raise HistoryError(f"more than {max_messages} messages")
    return messages, odd


def _measured(history: Iterable[Message], limit: int) -> Iterator[Message]:
    """The messages of `history`, as long as their JSON is no longer than `limit`."""
    size = len("[]")
    for index, message in enumerate(history):
        try:
            size += len(dump_message(message)) + (index > 0)
        except HistoryError as error:
            raise HistoryError(error.reason, index=index, path=error.path) from error
        if size > limit:
            raise HistoryError(f"at least {size} bytes of JSON, more than {limit}")
        yield message


def _allowed(names: Iterable[str]) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        names = (names,)
    return tuple(map(_allowed_host, names))


def _allowed_host(name: str) -> str:
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"allowed_hosts holds host names, not {name!r:.40}")
    below = name.startswith(".")
    bare = (
        name[1:-1] if name.startswith("[") and name.endswith("]") and ":" in name else name[below:]
    )
    normal = urls.normal_host(bare)
    if not normal or (below and ":" in normal):
        raise ValueError(f"not a host name: {name!r:.80}")
    return f".{normal}" if below else normal
