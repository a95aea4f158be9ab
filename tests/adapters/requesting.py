"""Laws of request encoders that hold on every wire."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import structs

from golem.errors import UnsupportedContentError
from golem.messages import AssistantMessage, Message, ToolMessage

Encode = Callable[..., bytes]


def edited(message: AssistantMessage) -> AssistantMessage:
    """`message`, which no longer says what its native items say."""
    return structs.replace(message, content=message.content + "!")


def check_sent_or_refused(
    broken: Callable[[list[Message]], object], history: list[Message]
) -> None:
    """A stored history breaks no rule of the wire, or is refused, naming the message."""
    refused = ""
    try:
        assert not broken(history)
    except UnsupportedContentError as error:
        refused = str(error)
    assert not refused or refused.startswith("messages[")


def check_beginnings(
    encode: Encode,
    repaired: Sequence[Message],
    closing: bytes,
    *,
    asking: bool = False,
    opened: bool = False,
) -> None:
    """The bytes of a shorter request stand at the front of a longer one's, but for `closing`.

    Inside of a batch nothing is compared, it is sent whole; and with `asking` nothing that ends
    with the model's words, where this wire has the user say something; with `opened` nothing of
    which nothing goes out, where the user opens in its place.
    """
    whole = encode(repaired, repaired=False)
    for end, message in enumerate(repaired):
        before = repaired[:end]
        if isinstance(message, ToolMessage) or (asking and not _asks(before)):
            continue
        part = encode(before, repaired=False)
        if opened and part == encode([], repaired=False):
            continue
        assert whole.startswith(part.removesuffix(closing))


def _asks(history: Sequence[Message]) -> bool:
    """Whether a request for `history` is one that runs send: it ends with the user's side."""
    return not isinstance(history[-1], AssistantMessage) if history else False
