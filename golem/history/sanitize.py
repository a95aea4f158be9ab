"""Sanitizing: what a history from across a trust boundary may not bring along (contract §2.3).

It narrows reach, not trust: what passes is still somebody's claim. Runs never sanitize; the
boundary is the application's.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, TypeVar

from msgspec import Meta, Struct
from msgspec.structs import replace

from golem.codec import dump_history
from golem.errors import HistoryError
from golem.faults import named_faults
from golem.history import urls
from golem.history.repair import normalize_history
from golem.history.report import NOTHING_REPAIRED, HistoryRepair
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
    not_a_message,
)


class UnsafePart(Struct, frozen=True, gc=False, rename="camel"):
    """A dropped URL part: the message in the history as given, its kind, what was refused."""

    message_index: int
    kind: str
    scheme: Annotated[str, Meta(description="lower-cased; empty: none, or an unparsable URL")]
    host: Annotated[str, Meta(description="the host, where a host policy refused it")] = ""


class SanitizeReport(Struct, frozen=True, rename="camel"):
    """What sanitizing dropped, and what it noticed and does not judge.

    Falsy when nothing was dropped, repaired or truncated. Indexes count in the history as given.
    """

    system_prompts: Annotated[int, Meta(description="system messages dropped")] = 0
    unsafe_parts: tuple[UnsafePart, ...] = ()
    native_dropped: Annotated[int, Meta(description="messages whose native was dropped")] = 0
    unknown_dropped: Annotated[int, Meta(description="unknown members dropped, any depth")] = 0
    emptied: Annotated[
        tuple[int, ...], Meta(description="user messages removed: nothing was left in them")
    ] = ()
    identity_dropped: Annotated[int, Meta(description="messages stripped of their ids")] = 0
    thinking_dropped: Annotated[int, Meta(description="thinking blocks dropped")] = 0
    repair: HistoryRepair = NOTHING_REPAIRED
    claimed_conversation_ids: tuple[str, ...] = ()
    claimed_run_ids: tuple[str, ...] = ()
    tool_results: Annotated[int, Meta(description="results the history claims")] = 0
    signed_thinking: Annotated[int, Meta(description="thinking blocks with a signature")] = 0

    def __bool__(self) -> bool:
        return bool(
            self.system_prompts
            or self.unsafe_parts
            or self.native_dropped
            or self.unknown_dropped
            or self.emptied
            or self.identity_dropped
            or self.thinking_dropped
            or self.repair
        )


def sanitize_history(
    history: Iterable[Message],
    *,
    allowed_hosts: Iterable[str] | None = None,
    block_private_hosts: bool = False,
    max_messages: int | None = None,
    max_bytes: int | None = None,
    strip_identity: bool = False,
    strip_thinking: bool = False,
) -> tuple[list[Message], SanitizeReport]:
    """`history` without what the other side of a trust boundary may not assert, and the report.

    System messages, ``native`` and unknown members go; URL parts go whose scheme is not http or
    https; a user message with nothing (left) in it goes; then pairing is repaired, which also
    closes calls that claim to await approval. Content, thinking, failure flags, arguments, ids
    and inline data pass through, and an unchanged message is the same object. Deterministic and
    idempotent.

    Args:
        history: Any iterable of messages.
        allowed_hosts: The only hosts URL parts may name; ``.example.com`` allows what is below.
        block_private_hosts: Drop URL parts that name a private, loopback, link-local or metadata
            address in any spelling, or a local name. Names are not resolved.
        max_messages: More messages than this are refused before any work.
        max_bytes: A history whose JSON is longer than this is refused before any work.
        strip_identity: Remove run and conversation ids.
        strip_thinking: Remove thinking blocks.

    Raises:
        HistoryError: Something is no message or malformed, or a limit is exceeded.
        ValueError: Something in `allowed_hosts` is no host.
    """
    hosts = None if allowed_hosts is None else _allowed(allowed_hosts)
    messages = _within(history, max_messages, max_bytes)
    sieve = _Sieve(hosts, block_private_hosts, strip_identity, strip_thinking)
    with named_faults(messages):
        for index, message in enumerate(messages):
            sieve.take(index, message)
    repaired, repair = normalize_history(sieve.kept)
    return repaired, sieve.report(repair)


M = TypeVar("M", UserMessage, AssistantMessage, ToolMessage)
S = TypeVar("S", Part, Thinking, ToolCall)


class _Sieve:
    """One pass over a history: keeps what may stay and counts what may not."""

    def __init__(
        self,
        allowed_hosts: Sequence[str] | None,
        block_private_hosts: bool,
        strip_identity: bool,
        strip_thinking: bool,
    ) -> None:
        self.kept: list[Message] = []
        self._places: list[int] = []  # of each kept message, in the history as given
        self._allowed_hosts = allowed_hosts
        self._block_private_hosts = block_private_hosts
        self._strip_identity = strip_identity
        self._strip_thinking = strip_thinking
        self._system_prompts = 0
        self._native = self._unknown = self._identity = self._thinking = 0
        self._tool_results = self._signed = 0
        self._unsafe: list[UnsafePart] = []
        self._emptied: list[int] = []
        self._conversations: dict[str, None] = {}
        self._runs: dict[str, None] = {}

    def take(self, index: int, message: Message) -> None:
        if isinstance(message, SystemMessage):
            self._system_prompts += 1
            return
        if isinstance(message, UserMessage):
            message = self._common(index, message)
            if not message.content and not message.parts:
                self._emptied.append(index)
                return
        elif isinstance(message, AssistantMessage):
            message = self._assistant(self._common(index, message))
        elif type(message) is ToolMessage:
            self._tool_results += 1
            message = self._common(index, message)
        else:
            raise not_a_message(message, index)
        self.kept.append(message)
        self._places.append(index)

    def _common(self, index: int, message: M) -> M:
        """What all roles share: parts, unknown members, ids."""
        if message.parts:
            parts = tuple(p for p in self._known(message.parts) if self._is_safe(index, p))
            if len(parts) != len(message.parts) or any(
                new is not old for new, old in zip(parts, message.parts, strict=True)
            ):
                message = replace(message, parts=parts)
        if message.unknown is not NO_MEMBERS and message.unknown:
            self._unknown += len(message.unknown)
            message = replace(message, unknown=NO_MEMBERS)
        if not message.run_id and not message.conversation_id:
            return message
        if self._strip_identity:
            self._identity += 1
            return replace(message, run_id="", conversation_id="")
        if message.run_id:
            self._runs[message.run_id] = None
        if message.conversation_id:
            self._conversations[message.conversation_id] = None
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
        if self._strip_thinking:
            self._thinking += len(message.thinking)
            return replace(message, thinking=())
        self._signed += sum(1 for block in message.thinking if block.signature)
        thinking = self._known(message.thinking)
        return message if thinking is message.thinking else replace(message, thinking=thinking)

    def _known(self, items: tuple[S, ...]) -> tuple[S, ...]:
        """The items without their unknown members; the same tuple when there are none."""
        if all(item.unknown is NO_MEMBERS or not item.unknown for item in items):
            return items
        self._unknown += sum(len(item.unknown) for item in items)
        return tuple(replace(item, unknown=NO_MEMBERS) if item.unknown else item for item in items)

    def _is_safe(self, index: int, part: Part) -> bool:
        if not part.url:
            return True
        scheme = urls.scheme(part.url)
        if scheme not in urls.SAFE_SCHEMES:
            self._unsafe.append(UnsafePart(index, part.kind, scheme))
            return False
        if self._allowed_hosts is None and not self._block_private_hosts:
            return True
        host = urls.host(part.url)
        refused = self._allowed_hosts is not None and not urls.is_allowed(host, self._allowed_hosts)
        if refused or (self._block_private_hosts and urls.is_private(host)):
            self._unsafe.append(UnsafePart(index, part.kind, scheme, host))
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
            claimed_conversation_ids=tuple(self._conversations),
            claimed_run_ids=tuple(self._runs),
            tool_results=self._tool_results,
            signed_thinking=self._signed,
        )


def _within(
    history: Iterable[Message], max_messages: int | None, max_bytes: int | None
) -> list[Message]:
    messages: list[Message] = []
    for message in history:
        messages.append(message)
        if max_messages is not None and len(messages) > max_messages:
            raise HistoryError(f"more than {max_messages} messages")
    if max_bytes is not None and (size := len(dump_history(messages))) > max_bytes:
        raise HistoryError(f"{size} bytes of JSON, more than {max_bytes}")
    return messages


def _allowed(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(map(_allowed_host, (names,) if isinstance(names, str) else names))


def _allowed_host(name: str) -> str:
    dot = "." if name.startswith(".") else ""
    normal = urls.normal_host(name.removeprefix("."))
    if not normal:
        raise ValueError(f"not a host name: {name!r}")
    return dot + normal
