"""What repair has to do, a second time: the contract's §2.1 as plain searches over the history.

Slow and declarative, with no state carried along: every question is answered by looking at the
whole history again. The engine is compared with it; it must never be written like the engine.
"""

from __future__ import annotations

from golem import AssistantMessage, Change, Message, ToolCall, ToolMessage
from golem.history.repair import NO_RESULT


def calls_of(message: Message) -> tuple[ToolCall, ...]:
    return message.tool_calls if isinstance(message, AssistantMessage) else ()


def turn_before(history: list[Message], place: int, call_id: str) -> int | None:
    """Rule 4: the latest turn before `place` that asks with this id."""
    turns = [
        index
        for index in range(place)
        if any(call.id == call_id for call in calls_of(history[index]))
    ]
    return turns[-1] if turns else None


def batch_of(history: list[Message], place: int) -> int | None:
    """The turn in whose batch `place` lies: only results stand between."""
    while place and isinstance(history[place - 1], ToolMessage):
        place -= 1
    return place - 1 if place and calls_of(history[place - 1]) else None


def asked_by(history: list[Message], place: int) -> int | None:
    """The turn that the result at `place` would answer, whether or not it is answered already."""
    message = history[place]
    assert isinstance(message, ToolMessage)
    if message.tool_call_id:
        return turn_before(history, place, message.tool_call_id)
    return batch_of(history, place)


def is_kept(history: list[Message], place: int) -> bool:
    """Rules 1, 3 and 6: whether the result at `place` answers a call that is still open there."""
    turn = asked_by(history, place)
    if turn is None:
        return False
    call_id = history[place].tool_call_id
    calls = [call for call in calls_of(history[turn]) if call.id == call_id]
    earlier = [
        other
        for other in range(turn + 1, place)
        if isinstance(history[other], ToolMessage)
        and history[other].tool_call_id == call_id
        and asked_by(history, other) == turn
    ]
    return len(earlier) < len(calls)


def answers(history: list[Message], turn: int) -> list[int]:
    """The places of the results that stay with `turn`, in order; late ones come last by nature."""
    return [
        place
        for place in range(turn + 1, len(history))
        if isinstance(history[place], ToolMessage)
        and asked_by(history, place) == turn
        and is_kept(history, place)
    ]


def unanswered(history: list[Message], turn: int) -> list[ToolCall]:
    """The calls of `turn` without a result; of an id repeated in it, the last ones (rule 4)."""
    ids = [history[place].tool_call_id for place in answers(history, turn)]
    calls = calls_of(history[turn])
    return [
        call
        for nth, call in enumerate(calls)
        if call.id and sum(other.id == call.id for other in calls[:nth]) >= ids.count(call.id)
    ]


def repaired(history: list[Message]) -> tuple[list[Message], list[Change]]:
    """The repaired history and every change, those of one message in no particular order."""
    output: list[Message] = []
    changes: list[Change] = []
    for place, message in enumerate(history):
        if isinstance(message, ToolMessage):
            if not is_kept(history, place):
                changes.append(
                    Change("dropped", message.tool_call_id, message.tool_name, place, None)
                )
            continue
        output.append(message)
        for call in calls_of(message):
            if call.truncated:
                changes.append(Change("truncated", call.id, call.name, place, len(output) - 1))
        for call in unanswered(history, place):
            changes.append(Change("synthesized", call.id, call.name, place, len(output)))
            output.append(ToolMessage(NO_RESULT, tool_call_id=call.id, tool_name=call.name))
        for result in answers(history, place) if calls_of(message) else ():
            found = history[result]
            assert isinstance(found, ToolMessage)
            if batch_of(history, result) != place:
                changes.append(
                    Change("moved", found.tool_call_id, found.tool_name, result, len(output))
                )
            output.append(found)
    return output, changes


def oldest_open(history: list[Message]) -> int | None:
    """The first turn with an unanswered call whose id no later turn has taken over."""
    for place in range(len(history)):
        for call in unanswered(history, place):
            if turn_before(history, len(history), call.id) == place:
                return place
    return None
