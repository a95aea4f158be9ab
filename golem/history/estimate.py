"""A token count without a tokenizer: an estimate on the high side, for budgets.

Here stand a table of weights, measured once against real tokenizers (the guide *Bounding* has the
figures), and the rule what of a message counts. The port it fills is in ``golem.history.bounds``.
"""

from __future__ import annotations

import math
import string
from collections.abc import Iterator, Sequence
from typing import Any, Final

from golem.history.limits import at_least
from golem.messages import AssistantMessage, Message, ToolMessage

_UNIT: Final = 50
"""Weights are fiftieths of a token."""

_KINDS: Final = (
    # Frequent letters come in whole words, which are one token; letters that are rare in prose
    # tell of identifiers, encodings and other languages, of which a token holds little.
    ("adehilnorstu", 13),
    ("bcfgmpwy", 40),
    ("jkqvxz", 70),
    (string.ascii_uppercase, 45),
    (string.digits, 60),
    (string.punctuation, 63),
    (" ", 3),
    (map(chr, (*range(0x20), 0x7F)), 68),
)
_BEGINNINGS: Final = (
    (range(0xC2, 0xC8), 100),  # accented Latin letters, which also cut their word in two
    (range(0xC8, 0xE0), 70),  # Cyrillic, Greek, Arabic, Hebrew …
    (range(0xE0, 0xF0), 150),  # Chinese, Japanese, Korean, Indic and Thai scripts, symbols
    (range(0xF0, 0xF8), 200),  # emoji
)
"""First bytes of longer characters in UTF-8; the other bytes weigh nothing."""


def _weights() -> bytes:
    table = bytearray(256)
    for characters, weight in _KINDS:
        for character in characters:
            table[ord(character)] = weight
    for bytes_, weight in _BEGINNINGS:
        for byte in bytes_:
            table[byte] = weight
    return bytes(table)


_WEIGHTS: Final = _weights()


class EstimatedTokens:
    """A counter without a tokenizer: an estimate on the high side, fast and deterministic.

    Each character has a weight by its kind, so that prose, code, JSON, digits, ids, base64 and
    other scripts each come out somewhat above what real tokenizers make of them. All text counts:
    contents, names, arguments and ids of calls, thinking with signatures and redacted blocks, and
    of ``native`` what goes beyond the message's other members. Use the provider's own counter
    where a bound is hard.

    Args:
        bytes_per_token: Count UTF-8 bytes divided by this instead, for a tokenizer and a kind of
            text whose ratio is known.
        per_message: Tokens for the framing of each message and each call.
        per_part: Tokens for each piece of media, whatever its size.

    Raises:
        ValueError: `bytes_per_token` is no positive number; another one is no integer, or
            negative.
    """

    def __init__(
        self,
        *,
        bytes_per_token: float | None = None,
        per_message: int = 4,
        per_part: int = 1000,
    ) -> None:
        if bytes_per_token is not None and not _is_ratio(bytes_per_token):
            raise ValueError(f"bytes_per_token must be positive, got {bytes_per_token!r:.40}")
        at_least("per_message", per_message, 0)
        at_least("per_part", per_part, 0)
        self._bytes_per_token = bytes_per_token
        self._per_message = per_message
        self._per_part = per_part

    async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
        """The estimate; `tools` count by the text of their repr."""
        framing = sum(map(self._framing, messages))
        weight = sum(map(self._message, messages)) + sum(self._text(repr(tool)) for tool in tools)
        return framing + math.ceil(weight / (self._bytes_per_token or _UNIT))

    def _framing(self, message: Message) -> int:
        calls = len(message.tool_calls) if isinstance(message, AssistantMessage) else 0
        return self._per_message * (1 + calls) + self._per_part * len(getattr(message, "parts", ()))

    def _message(self, message: Message) -> int:
        weight = self._text("".join(_texts(message)))
        if isinstance(message, AssistantMessage) and message.native is not None:
            # Its maker gets this instead, everybody else the rest.
            return max(weight, sum(self._bytes(bytes(item)) for item in message.native.items))
        return weight

    def _text(self, text: str) -> int:
        return self._bytes(text.encode("utf-8", "surrogatepass"))

    def _bytes(self, data: bytes) -> int:
        return sum(data.translate(_WEIGHTS)) if self._bytes_per_token is None else len(data)


def _texts(message: Message) -> Iterator[str]:
    yield message.content
    if isinstance(message, ToolMessage):
        yield message.tool_call_id
        yield message.tool_name
    if isinstance(message, AssistantMessage):
        for call in message.tool_calls:
            yield from (call.id, call.name, call.args, call.signature)
        for block in message.thinking:
            yield from (block.text, block.signature, block.redacted)


def _is_ratio(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < math.inf
