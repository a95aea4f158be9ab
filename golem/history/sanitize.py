"""Sanitizing: what a history from across a trust boundary may not bring along (contract §2.3).

It narrows reach, not trust: what passes is still somebody's claim. Runs never sanitize; the
boundary is the application's.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from golem.codec import dump_message
from golem.errors import HistoryError
from golem.faults import check, checked
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
    for index, message in enumerate(_within(history, max_messages, max_bytes)):
        sieve.take(index, message)
    repaired, repair = normalize_history(sieve.kept)
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
        self.kept: list[Message] = []
        self._places: list[int] = []  # of each kept message, in the history as given
        self._allowed_hosts = allowed_hosts
        self._block_private_hosts = block_private_hosts
        self._strip_identity = strip_identity
        self._strip_thinking = strip_thinking
        self._strip_seals = strip_seals
        self._drop_invalid_parts = drop_invalid_parts
        self._system_prompts = 0
        self._native = self._unknown = self._identity = self._thinking = 0
        self._tool_results = self._signed = self._unsealed = self._sealed = self._invalid = 0
        self._unsafe: list[UnsafePart] = []
        self._invalid_parts: list[InvalidPart] = []
        self._emptied: list[int] = []
        self._conversations: dict[str, None] = {}
        self._runs: dict[str, None] = {}

    def take(self, index: int, given: Message) -> None:
        if given.run_id:
            self._runs[given.run_id] = None
        if given.conversation_id:
            self._conversations[given.conversation_id] = None
        if isinstance(given, SystemMessage):
            self._system_prompts += 1
            return
        message: Said = given
        if isinstance(message, AssistantMessage):
            if message.tool_calls or message.thinking or message.native is not None:
                message = self._assistant(message)
        elif isinstance(message, ToolMessage):
            self._tool_results += 1
        if message.parts or message.unknown is not NO_MEMBERS or self._strip_identity:
            message = self._common(index, message)
        if isinstance(message, UserMessage) and not message.content and not message.parts:
            self._emptied.append(index)
            return
        if message.seal:
            message = self._seal(message, changed=message is not given)
        self.kept.append(message)
        self._places.append(index)

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
        changes = tuple(
            replace(change, input_index=self._places[change.input_index])
            for change in repair.changes
        )
        return SanitizeReport(
            system_prompts=self._system_prompts,
            unsafe_parts=tuple(self._unsafe),
            native_dropped=self._native,
            unknown_dropped=self._unknown,
            emptied=tuple(self._emptied),
            identity_dropped=self._identity,
            thinking_dropped=self._thinking,
            repair=replace(repair, changes=changes) if changes else repair,
            claimed_conversation_ids=tuple(map(clean_text, self._conversations)),
            claimed_run_ids=tuple(map(clean_text, self._runs)),
            tool_results=self._tool_results,
            signed_thinking=self._signed,
            seals_dropped=self._unsealed,
            claimed_seals=self._sealed,
            invalid_parts=tuple(self._invalid_parts),
            invalid_dropped=self._invalid,
        )


def _within(
    history: Iterable[Message], max_messages: int | None, max_bytes: int | None
) -> list[Message]:
    """The checked messages of `history`, read no further than the first limit that it exceeds."""
    for name, limit in (("max_messages", max_messages), ("max_bytes", max_bytes)):
        if limit is not None:
            at_least(name, limit, 0)
    if max_messages is None and max_bytes is None:
        return checked(history)
    messages: list[Message] = []
    size = len("[]")
    for index, message in enumerate(history):
        if index == max_messages:
            raise HistoryError(f"more than {max_messages} messages")
        check((message,), index)
        if max_bytes is not None:
            size += len(dump_message(message)) + (index > 0)
            if size > max_bytes:
                raise HistoryError(f"at least {size} bytes of JSON, more than {max_bytes}")
        messages.append(message)
    return messages


def _allowed(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_allowed_host, (names,) if isinstance(names, str) else names))


def _allowed_host(name: str) -> str:
    if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"allowed_hosts holds host names, not {name!r:.40}")
    below = name.startswith(".")
    bare = (
        name[1:-1] if name.startswith("[") and name.endswith("]") and ":" in name else name[below:]
    )
    normal = urls.normal_host(bare)
    if not normal or (below and ":" in normal):
        raise ValueError(f"not a host name: {name!r}")
    return f".{normal}" if below else normal
