"""Edits of a history by its application: forks, rewinds, corrections, merges.

Pure functions that never split a turn: an assistant message that stays keeps the results of its
calls, wherever they are stored, one that goes takes them along. What they return is repaired and
can be given to a run at once. Indexes count in the history as given.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain
from typing import cast

from msgspec import Struct

from golem.errors import HistoryError
from golem.faults import named_faults
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


class Turn(Struct, frozen=True):
    """One assistant message and the results of its calls (contract, *Words*).

    `index` and `result_indexes` are places in the history as given; a result that repair would
    drop belongs to no turn, and a call without a result has none here.
    """

    index: int
    message: AssistantMessage
    results: tuple[ToolMessage, ...] = ()
    result_indexes: tuple[int, ...] = ()


def turns(history: Iterable[Message]) -> Iterator[Turn]:
    """The turns of a history in order, each with the results that answer its calls.

    Pairs as repair does, so a damaged history has turns too. Raises HistoryError for something
    that is no message.
    """
    messages = list(history)
    pairs = pairing(messages)
    for index, message in enumerate(messages):
        if isinstance(message, AssistantMessage):
            places = tuple(pairs.get(index, ()))
            results = tuple(cast("ToolMessage", messages[place]) for place in places)
            yield Turn(index, message, results, places)


def fork_at(history: Iterable[Message], index: int) -> list[Message]:
    """The first `index` messages: where another branch begins.

    Run it with a fresh ``new_id()`` as conversation id. A turn that begins before `index` is kept
    whole. Raises HistoryError when there are fewer messages, or nothing would be left.
    """
    messages = list(history)
    if index:
        _message_at(messages, index - 1)
    return _upto(messages, index)


def rewind_to(history: Iterable[Message], target: int | str) -> list[Message]:
    """The history as it was when message `target`, or run `target` (an id), had just ended.

    Raises HistoryError when there is no such message or run.
    """
    messages = list(history)
    if isinstance(target, str):
        with named_faults(messages):
            places = [i for i, message in enumerate(messages) if message.run_id == target]
        if not target or not places:
            raise HistoryError(f"no message of run {_short(target)}")
        target = places[-1]
    _message_at(messages, target)
    return _upto(messages, target + 1)


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

    Raises HistoryError when there is no such message or it is no user message.
    """
    messages = list(history)
    message = _message_at(messages, index)
    if not isinstance(message, UserMessage):
        raise HistoryError("not a user message", index=index)
    edited = UserMessage(
        clean_text(content),
        parts=message.parts if parts is None else tuple(parts),
        conversation_id=message.conversation_id,
    )
    return [*_before(messages, index), edited]


def drop_turn(history: Iterable[Message], index: int) -> list[Message]:
    """The history without the turn that message `index` begins or belongs to.

    Raises HistoryError when there is no such message, it belongs to no turn, or nothing is left.
    """
    messages = list(history)
    _message_at(messages, index)
    for turn in turns(messages):
        places = {turn.index, *turn.result_indexes}
        if index in places:
            return _something(_keeping(messages, set(range(len(messages))) - places))
    raise HistoryError("belongs to no turn", index=index)


def merge(*histories: Iterable[Message]) -> list[Message]:
    """Branches of one conversation as one history.

    What all of them begin with comes once, then what each has beyond it, in the order given. Each
    is repaired by itself first, so that no branch answers the calls of another.
    """
    branches = [normalize_history(history)[0] for history in histories]
    shared = 0
    for level in zip(*branches, strict=False):
        if any(message != level[0] for message in level):
            break
        shared += 1
    # A turn that the branches answer differently is not common: back to where it begins.
    while shared and any(isinstance(message, ToolMessage) for message in _heads(branches, shared)):
        shared -= 1
    beginning = branches[0][:shared] if branches else []
    return [*beginning, *chain.from_iterable(branch[shared:] for branch in branches)]


def _heads(branches: Sequence[Sequence[Message]], place: int) -> Iterator[Message]:
    return (branch[place] for branch in branches if place < len(branch))


def _message_at(messages: Sequence[Message], index: int) -> Message:
    if not 0 <= index < len(messages):
        raise HistoryError(f"there is no message {index} in a history of {len(messages)}")
    return messages[index]


def _upto(messages: list[Message], end: int) -> list[Message]:
    return _something(_before(messages, end))


def _before(messages: list[Message], end: int) -> list[Message]:
    """What stands before `end`, with every result of the turns that begin there."""
    late = {place for turn in turns(messages) if turn.index < end for place in turn.result_indexes}
    return _keeping(messages, late.union(range(end)))


def _keeping(messages: Sequence[Message], places: Collection[int]) -> list[Message]:
    """The messages at these places, repaired.

    A result that answers nothing goes first: what is left may not find it another turn.
    """
    answering = set(chain.from_iterable(pairing(messages).values()))
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
