"""Edits of a history by its application: forks, rewinds, corrections.

Pure functions that never split a turn: an assistant message that stays keeps the results of its
calls, wherever they are stored, one that goes takes them along. What they return is repaired and
can be given to a run at once. Indexes count in the history as given. Joining histories is in
``golem.history.merge``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import cast

from msgspec import Struct

from golem.errors import HistoryError
from golem.faults import checked
from golem.history.repair import normalize_history, pairing
from golem.messages import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from golem.rawjson import clean_text


class Turn(Struct, frozen=True, rename="camel"):
    """One assistant message and the results of its calls (contract, *Words*).

    `index` and `result_indexes` are places in the history as given; a result that repair would
    drop belongs to no turn, and a call without a result has none here. As JSON with
    ``golem.codec.encode_json``, which messages with unknown members need.
    """

    index: int
    message: AssistantMessage
    results: tuple[ToolMessage, ...] = ()
    result_indexes: tuple[int, ...] = ()


def turns(history: Iterable[Message]) -> Iterator[Turn]:
    """The turns of a history in order, each with the results that answer its calls.

    Pairs as repair does, so a damaged history has turns too; a history without assistant messages
    has none. Raises HistoryError for something that is no message, or malformed, when the first
    turn is asked for.
    """
    messages = checked(history)
    pairs = pairing(messages)
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            places = tuple(pairs.get(index, ()))
            results = tuple(cast("ToolMessage", messages[place]) for place in places)
            yield Turn(index, message, results, places)


def fork_at(history: Iterable[Message], index: int) -> list[Message]:
    """The first `index` messages: where another branch begins.

    Run it with a fresh ``new_id()`` as conversation id. A turn that begins before `index` is kept
    whole.

    Raises:
        HistoryError: There are fewer messages, nothing would be left, or something is no message
            or malformed.
        TypeError: `index` is no integer.
    """
    _integer("index", index)
    messages = checked(history)
    if index:
        _message_at(messages, index - (index > 0))
    return _something(_before(messages, index))


def rewind_to(history: Iterable[Message], target: int | str) -> list[Message]:
    """The history as it was when message `target`, or run `target` (an id), had just ended.

    Raises:
        HistoryError: There is no such message or run, nothing would be left, or something is no
            message or malformed.
        TypeError: `target` is neither an integer nor text.
    """
    if not isinstance(target, str):
        _integer("target", target)
    messages = checked(history)
    if isinstance(target, str):
        places = [place for place, message in enumerate(messages) if message.run_id == target]
        if not target or not places:
            raise HistoryError(f"no message of run {_short(target)}")
        target = places[-1]
    _message_at(messages, target)
    return _something(_before(messages, target + 1))


def edit_user(
    history: Iterable[Message],
    index: int,
    content: str,
    *,
    parts: Sequence[Part] | None = None,
) -> list[Message]:
    """The history up to user message `index`, which now says `content`.

    What followed answered something else and goes. `parts` replace the message's media when
    given. The message keeps its conversation and loses what vouched for its old text (run id,
    seal, unknown members). Continue with ``agent.run(None, history=…)``.

    Raises:
        HistoryError: There is no such message, it is no user message, or something is no message
            or malformed.
        TypeError: `index` is no integer, `content` is no text, or something in `parts` no `Part`.
        ValueError: A run may not send something in `parts`.
    """
    _integer("index", index)
    if not isinstance(content, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"content must be str, not {type(content).__name__}")
    media = None if parts is None else _media(parts)
    messages = checked(history)
    message = _message_at(messages, index)
    if not isinstance(message, UserMessage):
        raise HistoryError("not a user message", index=index)
    edited = UserMessage(
        clean_text(content),
        parts=message.parts if media is None else media,
        conversation_id=message.conversation_id,
    )
    return [*_before(messages, index), edited]


def drop_turn(history: Iterable[Message], index: int) -> list[Message]:
    """The history without the turn that message `index` begins or belongs to.

    Raises:
        HistoryError: There is no such message, it belongs to no turn, nothing would be left, or
            something is no message or malformed.
        TypeError: `index` is no integer.
    """
    _integer("index", index)
    messages = checked(history)
    _message_at(messages, index)
    pairs = pairing(messages)
    asking = {place: turn for turn, places in pairs.items() for place in places}
    turn = asking.get(index, index)
    if not isinstance(messages[turn], AssistantMessage):
        raise HistoryError("belongs to no turn", index=index)
    dropped = {turn, *pairs.get(turn, ())}
    return _something(_keeping(messages, set(range(len(messages))) - dropped, pairs))


def _message_at(messages: Sequence[Message], index: int) -> Message:
    if not 0 <= index < len(messages):
        raise HistoryError(f"there is no message {index} in a history of {len(messages)}")
    return messages[index]


def _before(messages: list[Message], end: int) -> list[Message]:
    """What stands before `end`, with every result of the turns that begin there."""
    pairs = pairing(messages)
    late = {place for turn, places in pairs.items() if turn < end for place in places}
    return _keeping(messages, late.union(range(end)), pairs)


def _keeping(
    messages: Sequence[Message], places: Collection[int], pairs: Mapping[int, Sequence[int]]
) -> list[Message]:
    """The messages at these places, repaired.

    A result that answers nothing goes first: what is left may not find it another turn.
    """
    answering = set(chain.from_iterable(pairs.values()))
    kept = [
        message
        for place, message in enumerate(messages)
        if place in places and (place in answering or not isinstance(message, ToolMessage))
    ]
    return normalize_history(kept)[0]


def _something(messages: list[Message]) -> list[Message]:
    """`messages`, unless a run would have nothing of them to send: it replaces system messages."""
    if all(isinstance(message, SystemMessage) for message in messages):
        raise HistoryError("nothing is left of the history")
    return messages


def _short(text: str) -> str:
    return repr(text if len(text) <= 64 else f"{text[:64]}…")


def _integer(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{name} must be an integer, not {value!r:.40}")


def _media(parts: Iterable[object]) -> tuple[Part, ...]:
    if not isinstance(parts, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise TypeError(f"parts must be a sequence of Part, not {type(parts).__name__}")
    media: list[Part] = []
    for place, part in enumerate(parts):
        if not isinstance(part, Part):
            raise TypeError(f"parts[{place}] must be a Part, not {type(part).__name__}")
        try:
            part.validate()
        except ValueError as error:
            raise ValueError(f"parts[{place}]: {error}") from error
        media.append(part)
    return tuple(media)
