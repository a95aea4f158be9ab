"""Conversations begun with one provider, damaged, and continued with another under its judge."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from golem import (
    Agent,
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
    dump_message,
    normalize_history,
)

from .damage import DAMAGES, damaged
from .providers import PROVIDERS, ask, begun_with, finished, look

SEEDS: Final = range(6 * len(DAMAGES))


class Passage(NamedTuple):
    """One conversation's way from a provider to another: what was sent and what came of it."""

    history: list[Message]
    """What was supplied, already repaired."""
    body: Any
    """The request's JSON."""
    refusals: list[str]


async def passages(begin: str, go_on: str) -> list[Passage]:
    """Every damaged conversation begun with the one, and how the other took it."""
    begun = [await begun_with(begin, streamed=streamed) for streamed in (False, True)]
    found: list[Passage] = []
    provider = PROVIDERS[go_on]
    async with provider.judge(lambda body: "Here I am.") as judge:
        agent = Agent(provider.model(judge), tools=[look, ask], instructions="Go on.", retry=None)
        for seed in SEEDS:
            history = damaged(begun[seed % 2], seed)
            before = len(judge.violations)
            await finished(agent, "And now?", streamed=seed % 3 == 0, history=history)
            refusals = [str(violation) for violation in judge.violations[before:]]
            found.append(Passage(normalize_history(history)[0], judge.requests[-1].json, refusals))
    return found


# What has to arrive, and what must not


def visible(history: list[Message]) -> Iterator[str]:
    """Every text of a history that a reader would see, and every call's name."""
    for message in history:
        if isinstance(message, (UserMessage, AssistantMessage, ToolMessage)):
            yield message.content
        if isinstance(message, AssistantMessage):
            yield from (call.name for call in message.tool_calls)


def private(history: list[Message]) -> set[str]:
    """What only the provider that made it may get back: signatures, and what native items hold."""
    found: set[str] = set()
    for message in history:
        if isinstance(message, SystemMessage):
            continue
        tree = msgspec.json.decode(dump_message(message))
        found |= set(_members(tree, ("signature", "redacted", "thoughtSignature")))
        native = tree.get("native", {}).get("items", [])
        found |= set(_members(native, ("id", "encrypted_content", "data", "redactedContent")))
    calls = {
        call.id
        for message in history
        if isinstance(message, AssistantMessage)
        for call in message.tool_calls
    }
    return {text for text in found if len(text) > 5} - calls


def _members(tree: Any, names: tuple[str, ...]) -> Iterator[str]:
    """The texts of members with these names, however deep."""
    if isinstance(tree, list):
        for item in tree:
            yield from _members(item, names)
    elif isinstance(tree, dict):
        for name, value in tree.items():
            if name in names and isinstance(value, str):
                yield value
            yield from _members(value, names)


def texts(tree: Any) -> Iterator[str]:
    """Every text in a request's body."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, Mapping):
        for value in tree.values():
            yield from texts(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from texts(item)


def missing(passage: Passage) -> list[str]:
    """What a reader of the history sees, and the provider was not sent."""
    sent = "\n".join(texts(passage.body))
    return [text for text in visible(passage.history) if text.strip() not in sent]


def leaked(passage: Passage) -> list[str]:
    """What another provider had signed or numbered, and this one was sent all the same."""
    sent = json.dumps(passage.body, ensure_ascii=False)
    return sorted(text for text in private(passage.history) if text in sent)


async def cell(begin: str, go_on: str) -> tuple[int, list[str]]:
    """How many conversations were taken, and what is wrong with them."""
    faults: list[str] = []
    found = await passages(begin, go_on)
    for seed, passage in zip(SEEDS, found, strict=True):
        faults += [f"{begin} -> {go_on}, seed {seed}: {text}" for text in passage.refusals]
        faults += [f"{begin} -> {go_on}, seed {seed}: lost {text!r}" for text in missing(passage)]
        if begin != go_on:
            faults += [
                f"{begin} -> {go_on}, seed {seed}: foreign {text[:60]!r}"
                for text in leaked(passage)
            ]
    return len(found), faults
