"""Transcripts go out sealed for the identity that they are for. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence

from msgspec.structs import replace

from golem.events import RunFinished, RunPaused, Terminal
from golem.history.seal import seal
from golem.messages import Message, ToolMessage


def identity_keys(keys: Sequence[bytes], identity: str) -> list[bytes]:
    """The keys as they seal for this identity: what one caller was given is no other's to bring."""
    text = b"golem-web-seal-1\x00" + identity.encode("utf-8", "surrogatepass")
    return [hmac.digest(key, text, hashlib.sha256) for key in keys]


def sealed(event: Terminal, keys: Sequence[bytes]) -> Terminal:
    """The terminal event with a seal on each message of its transcript.

    Results of an unfinished batch are sealed behind the transcript, so that a client may bring
    both. Raises HistoryError for a message that could not be loaded again.
    """
    if isinstance(event, (RunFinished, RunPaused)):
        whole = _seals(event.result.messages, keys)
        new = [whole.get(id(message), message) for message in event.result.new_messages]
        messages = [whole[id(message)] for message in event.result.messages]
        return replace(event, result=replace(event.result, messages=messages, new_messages=new))
    partial = event.partial
    if partial is None:
        return event
    whole = _seals(partial.resume_messages, keys)
    batch = [whole[id(result)] for result in partial.batch_results]
    return replace(
        event,
        partial=replace(
            partial,
            messages=[whole[id(message)] for message in partial.messages],
            new_messages=[whole.get(id(message), message) for message in partial.new_messages],
            batch_results=[result for result in batch if isinstance(result, ToolMessage)],
        ),
    )


def _seals(messages: list[Message], keys: Sequence[bytes]) -> dict[int, Message]:
    """The sealed messages, by which message each is of."""
    return {id(old): new for old, new in zip(messages, seal(messages, keys), strict=True)}
