"""Passes over histories: repair, sanitizing, the boundary."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Sequence

import histories
import peers
from rows import Row, timed, times_as_long, times_faster
from timing import compare

import golem
from golem import AssistantMessage, Message
from golem.corpus import sanitize_lines


def measure(messages: int, rounds: int) -> list[Row]:
    """Repair and sanitizing of `messages`, clean and with one in twenty damaged."""
    clean = golem.load_history(histories.read(messages))
    damaged = golem.load_history(histories.read(messages, damage=0.05))
    if any(a is not b for a, b in zip(golem.repair(clean), clean, strict=True)):
        raise SystemExit("repair does not give back the objects of a clean history")
    return [
        _repair_clean(clean, rounds),
        _repair_damaged(damaged, rounds),
        _sanitize("clean history", clean, rounds),
        _sanitize("5 % damaged", damaged, rounds),
        _streaming(damaged, rounds),
        *_boundaries(min(messages // 10, 1_000), rounds),
        _boundary("clean history", clean, rounds),
        _boundary("5 % damaged", damaged, rounds),
    ]


def _boundaries(messages: int, rounds: int) -> list[Row]:
    """The same for conversations as long as servers get them, which stay in the caches."""
    clean = golem.load_history(histories.read(messages))
    damaged = golem.load_history(histories.read(messages, damage=0.05))
    return [
        _boundary(f"{messages:,} messages, clean", clean, rounds),
        _boundary(f"{messages:,} messages, 5 % damaged", damaged, rounds),
    ]


def _loop(messages: Sequence[Message]) -> int:
    """The floor: what any pass that looks for turns with calls has to do."""
    turns = 0
    for message in messages:
        if type(message) is AssistantMessage and message.tool_calls:
            turns += 1
    return turns


def _repairers(history: list[Message]) -> dict[str, Callable[[], object]]:
    contestants: dict[str, Callable[[], object]] = {
        "loop with a type check": lambda: _loop(history),
        "golem": lambda: list(golem.repair(history)),
        "golem with its report": lambda: golem.normalize_history(history),
    }
    if peers.there("pydantic-ai"):
        repair = peers.module("pydantic_ai.messages").repair_messages
        models = peers.pydantic_messages(history)
        contestants["pydantic-ai"] = lambda: repair(models)
    if peers.there("openai-agents"):
        drop = peers.module("agents.run_internal.items").drop_orphan_function_calls
        items = peers.agents_items(history)
        contestants["openai-agents"] = lambda: drop(items)
    if peers.there("litellm"):
        peers.module("litellm").modify_params = True
        logging.getLogger("LiteLLM").setLevel(logging.ERROR)  # it logs each repair
        factory = peers.module("litellm.litellm_core_utils.prompt_templates.factory")
        dicts = peers.chat_messages(history)
        contestants["litellm"] = lambda: factory.sanitize_messages_for_tool_calling(dicts)
    return contestants


def _repair_clean(clean: list[Message], rounds: int) -> Row:
    found = compare(_repairers(clean), rounds, len(clean))
    goals = [
        times_as_long(found, "golem", "loop with a type check", 3.2),
        times_faster(found, "golem", "pydantic-ai", 15),
        times_faster(found, "golem", "openai-agents", 10),
        times_faster(found, "golem", "litellm", 30),
    ]
    return timed("repair, clean history", "ns/message", found, goals, "the same objects back")


def _repair_damaged(damaged: list[Message], rounds: int) -> Row:
    found = compare(_repairers(damaged), rounds, len(damaged))
    goals = [
        times_as_long(found, "golem", "loop with a type check", 10),
        times_faster(found, "golem", "pydantic-ai", 8),
        times_faster(found, "golem with its report", "pydantic-ai", 5),
    ]
    return timed("repair, 5 % damaged", "ns/message", found, goals)


def _sanitize(title: str, history: list[Message], rounds: int) -> Row:
    contestants: dict[str, Callable[[], object]] = {
        "golem": lambda: golem.sanitize_history(history)
    }
    if peers.there("pydantic-ai"):
        sanitize = peers.module("pydantic_ai.messages").sanitize_messages
        models = peers.pydantic_messages(history)
        contestants["pydantic-ai"] = lambda: sanitize(models)
    found = compare(contestants, rounds, len(history))
    goals = [times_faster(found, "golem", "pydantic-ai", 15)]
    note = "golem's repairs too, which pydantic-ai's leaves to the run"
    return timed(f"sanitize, {title}", "ns/message", found, goals, note)


def _streaming(damaged: list[Message], rounds: int) -> Row:
    async def source() -> AsyncIterator[Message]:
        for message in damaged:
            yield message

    async def read() -> None:
        async for _ in golem.arepair(source()):
            pass

    with asyncio.Runner() as runner:
        found = compare(
            {
                "list": lambda: list(golem.repair(damaged)),
                "iterator": lambda: list(golem.repair(iter(damaged))),
                "async iterator": lambda: runner.run(read()),
            },
            rounds,
            len(damaged),
        )
    goals = [
        times_as_long(found, "iterator", "list", 4),
        times_as_long(found, "async iterator", "list", 7),
    ]
    return timed("streaming repair, 5 % damaged", "ns/message", found, goals)


def _boundary(title: str, history: list[Message], rounds: int) -> Row:
    data = golem.dump_history(history)

    def step_by_step() -> bytes:
        return golem.dump_history(golem.sanitize_history(golem.load_history(data))[0])

    def at_once() -> bytes:
        (line,) = sanitize_lines([data])
        return line

    if step_by_step() != at_once():
        raise SystemExit("the ways over the boundary do not lead to the same")
    contestants: dict[str, Callable[[], object]] = {
        "golem": at_once,
        "golem, load, sanitize, dump": step_by_step,
    }
    if peers.there("pydantic-ai"):
        m = peers.module("pydantic_ai.messages")
        adapter = m.ModelMessagesTypeAdapter
        theirs = adapter.dump_json(peers.pydantic_messages(history))
        contestants["pydantic-ai"] = lambda: adapter.dump_json(
            m.sanitize_messages(adapter.validate_json(theirs))
        )
    found = compare(contestants, rounds, len(history))
    goals = [times_faster(found, "golem", "pydantic-ai", 20)]
    note = "golem: `sanitize_lines`, which checks members once"
    return timed(f"boundary: bytes, sanitize, bytes, {title}", "ns/message", found, goals, note)
