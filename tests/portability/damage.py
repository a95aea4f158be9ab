"""What happens to stored conversations: each a function of a history and of chance."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from msgspec.structs import replace

from golem import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    dump_history,
    load_history,
)

Damage = Callable[[list[Message], Random], list[Message]]


def _results(history: list[Message]) -> list[int]:
    return [place for place, message in enumerate(history) if isinstance(message, ToolMessage)]


def loses_a_result(history: list[Message], chance: Random) -> list[Message]:
    """A process died before it wrote one."""
    place = chance.choice(_results(history))
    return history[:place] + history[place + 1 :]


def loses_a_turn(history: list[Message], chance: Random) -> list[Message]:
    """The results are there, and who asked for them is not."""
    asking = [
        place
        for place, message in enumerate(history)
        if isinstance(message, AssistantMessage) and message.tool_calls
    ]
    place = chance.choice(asking)
    return history[:place] + history[place + 1 :]


def repeats_a_result(history: list[Message], chance: Random) -> list[Message]:
    """A retried write."""
    message = history[chance.choice(_results(history))]
    place = chance.randrange(len(history) + 1)
    return [*history[:place], message, *history[place:]]


def delays_a_result(history: list[Message], chance: Random) -> list[Message]:
    """Written when others had spoken."""
    place = chance.choice(_results(history))
    rest = history[:place] + history[place + 1 :]
    return [*rest, history[place]]


def cuts_arguments(history: list[Message], chance: Random) -> list[Message]:
    """A stream died inside a call."""
    changed = list(history)
    place = next(
        place
        for place in chance.sample(range(len(history)), len(history))
        if isinstance(message := history[place], AssistantMessage) and message.tool_calls
    )
    message = history[place]
    assert isinstance(message, AssistantMessage)
    *before, last = message.tool_calls
    cut = ToolCall.of(last.id, last.name, last.args[: chance.randrange(len(last.args))])
    changed[place] = replace(message, tool_calls=(*before, cut))
    return changed


def is_cut_off(history: list[Message], chance: Random) -> list[Message]:
    """Nothing was written from some moment on."""
    return history[: chance.randrange(2, len(history))]


def gets_hostile_ids(history: list[Message], chance: Random) -> list[Message]:
    """Ids that some other system made up, on the calls and their results alike."""
    odd = chance.choice(["a b/c", "☺" * 3, "x" * 300, "toolu_", "call_1\n", "chatcmpl-tool-é"])

    def spelled(message: Message) -> Message:
        if isinstance(message, ToolMessage):
            return replace(message, tool_call_id=odd + message.tool_call_id)
        if isinstance(message, AssistantMessage):
            calls = tuple(replace(call, id=odd + call.id) for call in message.tool_calls)
            return replace(message, tool_calls=calls)
        return message

    return [spelled(message) for message in history]


def is_spoken_into(history: list[Message], chance: Random) -> list[Message]:
    """Messages of others between a call and its result."""
    place = chance.choice(_results(history))
    said: list[Message] = [UserMessage("Hurry!"), SystemMessage("Be slow."), AssistantMessage("")]
    return [*history[:place], *chance.sample(said, 2), *history[place:]]


def is_stored(history: list[Message], chance: Random) -> list[Message]:
    """Written and read again: nothing happens to it."""
    del chance
    return load_history(dump_history(history))


DAMAGES: Final[tuple[Damage, ...]] = (
    is_stored,
    loses_a_result,
    loses_a_turn,
    repeats_a_result,
    delays_a_result,
    cuts_arguments,
    is_cut_off,
    gets_hostile_ids,
    is_spoken_into,
)


def damaged(history: list[Message], seed: int) -> list[Message]:
    """The history after one, two or three of these, the first by turns: equal for equal seeds."""
    chance = Random(seed)
    for damage in (DAMAGES[seed % len(DAMAGES)], *chance.choices(DAMAGES, k=seed // 9 % 3)):
        try:
            history = damage(history, chance)
        except (IndexError, StopIteration, ValueError):
            continue  # nothing left that it could happen to
    return history
