"""The judges of Messages and Converse, and the checker that came with the field reports.

They share no line. What the checker finds in a request that somebody broke, the judges refuse.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from golem import Message, UserMessage
from golem.testing.judge import judge_anthropic, judge_bedrock
from golem.testing.strategies import ANY_HISTORY, HOSTILE_HISTORY
from tests.adapters import conversing, messaging
from tests.adapters.conversing import LLAMA
from tests.adapters.encoding import check
from tests.judge.anthropic_histories import without_media

JSON = dict[str, Any]
HISTORIES = (HOSTILE_HISTORY | ANY_HISTORY).map(
    lambda history: [UserMessage("begin"), *map(without_media, history)]
)
ONLY_GOLEMS = {"alternation", "starts_with_user", "names_valid", "id_pattern"}
"""What the checker asks of golem and Messages does not: neighbors of one role, a turn of the
assistant in front, names and ids of more than 64 characters."""


def without(body: JSON, place: int) -> None:
    """A message is lost."""
    del body["messages"][place % len(body["messages"])]


def swapped(body: JSON, place: int) -> None:
    """A message and the one before it change places."""
    messages = body["messages"]
    at = place % len(messages)
    messages[at], messages[at - 1] = messages[at - 1], messages[at]


def twice(body: JSON, place: int) -> None:
    """A message comes twice."""
    messages = body["messages"]
    at = place % len(messages)
    messages.insert(at, json.loads(json.dumps(messages[at])))


def a_block(body: JSON, place: int) -> tuple[list[Any], int]:
    """The content of some message, and a place in it."""
    message = body["messages"][place % len(body["messages"])]
    return message["content"], place % max(1, len(message["content"]))


def a_block_less(body: JSON, place: int) -> None:
    content, at = a_block(body, place)
    del content[at : at + 1]


def a_block_twice(body: JSON, place: int) -> None:
    content, at = a_block(body, place)
    content[at:at] = json.loads(json.dumps(content[at : at + 1]))


def turned(body: JSON, place: int) -> None:
    """The blocks of a message stand in the other order."""
    content, _ = a_block(body, place)
    content.reverse()


def changed(body: JSON, place: int) -> None:
    """A text is blank; an id or a name is another; arguments are no object."""
    content, at = a_block(body, place)
    odd = [" ", "", "a b", "x" * 200, "\ud800", 5][place % 6]
    for block in content[at : at + 1]:
        inner = next(iter(block.values()))
        target = inner if isinstance(inner, dict) else block
        names = ("text", "id", "tool_use_id", "toolUseId", "name", "input")
        for name in [name for name in names if name in target][:1]:
            target[name] = odd


DAMAGES: list[Callable[[JSON, int], None]] = [
    *(without, swapped, twice, a_block_less, a_block_twice, turned, changed),
]
DAMAGE = st.lists(st.tuples(st.sampled_from(DAMAGES), st.integers(0, 60)), min_size=1, max_size=3)


def damaged(body: JSON, damage: list[tuple[Callable[[JSON, int], None], int]]) -> JSON:
    for hurt, place in damage:
        if body["messages"]:
            hurt(body, place)
    return body


def complaints(provider: str, body: JSON) -> set[str]:
    """What the checker finds; what it cannot even read, it finds unreadable."""
    try:
        return set(check(provider, body))
    except (KeyError, TypeError, AttributeError):
        return {"unreadable"}


@given(history=HISTORIES, damage=DAMAGE)
@settings(max_examples=200)
def test_what_the_checker_finds_in_messages_the_judge_refuses(
    history: list[Message], damage: Any
) -> None:
    body = messaging.body_of(history)
    assert judge_anthropic(body) == []
    assert check("anthropic", body) == []
    broken = damaged(body, damage)
    found = complaints("anthropic", broken)
    merged = {"pairing"} if "alternation" in found else set[str]()  # to the API they are one turn
    if found - ONLY_GOLEMS - merged:
        assert judge_anthropic(broken) != []


@given(history=HISTORIES, damage=DAMAGE)
@settings(max_examples=200)
def test_what_the_checker_finds_in_converse_the_judge_refuses(
    history: list[Message], damage: Any
) -> None:
    body = conversing.body_of(history, model=LLAMA)
    assert judge_bedrock(body, model=LLAMA) == []
    assert check("bedrock", body) == []
    broken = damaged(body, damage)
    if complaints("bedrock", broken) - {"id_pattern"}:
        assert judge_bedrock(broken, model=LLAMA) != []
