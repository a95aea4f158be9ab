"""The record: reading and writing it, what knowing of newer members costs, what it weighs."""

from __future__ import annotations

import gc
import json
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import histories
import msgspec
import peers
from msgspec import Raw, Struct
from rows import Goal, Row, timed, times_as_long, times_faster
from timing import compare

import golem
from golem import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from golem.messages import Native, Part, Thinking


def measure(messages: int, rounds: int) -> list[Row]:
    """Decode, encode, forward compatibility, memory, collection pauses."""
    data = histories.read(messages)
    history = golem.load_history(data)
    if golem.dump_history(history) != data:
        raise SystemExit("the codec does not give back what it read: nothing to measure")
    rows = [_decode(data, history, messages, rounds), _encode(data, history, messages, rounds)]
    return [*rows, _forward(data, messages, rounds), *_weights(messages)]


def _decode(data: bytes, history: list[golem.Message], messages: int, rounds: int) -> Row:
    text = data.decode()
    contestants: dict[str, Callable[[], object]] = {
        "golem": lambda: golem.load_history(data),
        "json": lambda: json.loads(text),
    }
    if peers.there("orjson"):
        orjson = peers.module("orjson")
        contestants["orjson"] = lambda: orjson.loads(data)
    if peers.there("pydantic-ai"):
        adapter = peers.module("pydantic_ai.messages").ModelMessagesTypeAdapter
        theirs = adapter.dump_json(peers.pydantic_messages(history))
        contestants["pydantic-ai"] = lambda: adapter.validate_json(theirs)
    if peers.there("langchain"):
        lc = peers.module("langchain_core.messages")
        as_text = json.dumps(lc.messages_to_dict(peers.langchain_messages(history)))
        contestants["langchain"] = lambda: lc.messages_from_dict(json.loads(as_text))
    found = compare(contestants, rounds, messages)
    goals = [
        times_faster(found, "golem", "pydantic-ai", 15),
        times_faster(found, "golem", "langchain", 20),
        times_faster(found, "golem", "orjson", 1.4),
        times_faster(found, "golem", "json", 2),
    ]
    return timed(
        f"decode {messages:,} messages", "µs/message", found, goals, "json, orjson: to dicts"
    )


def _encode(data: bytes, history: list[golem.Message], messages: int, rounds: int) -> Row:
    dicts = json.loads(data)
    contestants: dict[str, Callable[[], object]] = {
        "golem": lambda: golem.dump_history(history),
        "json": lambda: json.dumps(dicts, ensure_ascii=False, separators=(",", ":")),
    }
    if peers.there("orjson"):
        orjson = peers.module("orjson")
        contestants["orjson"] = lambda: orjson.dumps(dicts)
    if peers.there("pydantic-ai"):
        adapter = peers.module("pydantic_ai.messages").ModelMessagesTypeAdapter
        models = peers.pydantic_messages(history)
        contestants["pydantic-ai"] = lambda: adapter.dump_json(models)
    if peers.there("langchain"):
        lc = peers.module("langchain_core.messages")
        theirs = peers.langchain_messages(history)
        contestants["langchain"] = lambda: json.dumps(lc.messages_to_dict(theirs))
    found = compare(contestants, rounds, messages)
    goals = [
        times_faster(found, "golem", "pydantic-ai", 25),
        times_faster(found, "golem", "json", 4),
        times_as_long(found, "golem", "orjson", 1.6),
    ]
    return timed(f"encode {messages:,} messages", "µs/message", found, goals)


# Forward compatibility: against the same structs without it


def _without(cls: type[Struct], **types: Any) -> type[Struct]:
    """The struct without a place for unknown members, which it skips."""
    config = cls.__struct_config__
    fields: list[Any] = []
    for info in msgspec.structs.fields(cls):
        if info.name != "unknown":
            default = () if info.required else (info.default,)
            fields.append((info.name, types.get(info.name, info.type), *default))
    return msgspec.defstruct(
        cls.__name__, fields, namespace={"__post_init__": cls.__dict__["__post_init__"]}
        if "__post_init__" in cls.__dict__ else None,
        frozen=True, gc=False, rename="camel" if cls is not ToolCall else {"raw": "args"},
        tag_field=config.tag_field, tag=config.tag, kw_only=True,
    )  # fmt: skip


def _forward(data: bytes, messages: int, rounds: int) -> Row:
    part, thinking = _without(Part), _without(Thinking)
    call, native = _without(ToolCall, raw=Raw), _without(Native)
    types: dict[str, Any] = {
        "parts": tuple[part, ...],  # type: ignore[valid-type]
        "thinking": tuple[thinking, ...],  # type: ignore[valid-type]
        "tool_calls": tuple[call, ...],  # type: ignore[valid-type]
        "native": native | None,
    }
    plain: Any = _without(SystemMessage, **types)
    for cls in (UserMessage, AssistantMessage, ToolMessage):
        plain |= _without(cls, **types)
    decoder = msgspec.json.Decoder(list[plain])
    newer = data.replace(b'"role":"user"', b'"role":"user","newer":1', messages // 20)
    found = compare(
        {
            "golem": lambda: golem.load_history(data),
            "structs that lose members": lambda: decoder.decode(data),
            "golem, 5 % with a newer member": lambda: golem.load_history(newer),
        },
        rounds,
        messages,
    )
    goals = [times_as_long(found, "golem", "structs that lose members", 1.1)]
    return timed("forward compatibility", "µs/message", found, goals, "decoding again")


# What messages weigh


def _weights(messages: int) -> list[Row]:
    count = min(5 * messages, 50_000)
    data = histories.read(count)
    loaders: dict[str, Callable[[], object]] = {"golem": lambda: golem.load_history(data)}
    loaders["json"] = lambda: json.loads(data)
    if peers.there("pydantic-ai"):
        adapter = peers.module("pydantic_ai.messages").ModelMessagesTypeAdapter
        theirs = adapter.dump_json(peers.pydantic_messages(golem.load_history(data)))
        loaders["pydantic-ai"] = lambda: adapter.validate_json(theirs)
    memory = {name: _held(load) / count for name, load in loaders.items()}
    pauses = {name: _pause(load) for name, load in loaders.items()}
    return [
        Row(
            "memory of a message",
            "B/message",
            {name: (value, None) for name, value in memory.items()},
            [_share(memory, "golem", "pydantic-ai", 0.6)],
        ),
        Row(
            f"full collection with {count:,} messages held",
            "ms",
            {name: (value * 1e3, None) for name, value in pauses.items()},
            [_share(pauses, "golem", "pydantic-ai", 1 / 50)],
        ),
    ]


def _share(values: dict[str, float], ours: str, peer: str, at_most: float) -> Goal:
    value = values[ours] / values[peer] if peer in values else None
    return Goal(f"{ours} / {peer}", value, at_most)


def _held(load: Callable[[], object]) -> int:
    load()
    gc.collect()
    tracemalloc.start()
    kept = load()
    gc.collect()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    del kept
    return size


def _pause(load: Callable[[], object]) -> float:
    """Seconds of a full collection while the messages are held, and nothing else is looked at."""
    gc.collect()
    gc.freeze()
    kept = load()
    times: list[float] = []
    for _ in range(7):
        started = time.perf_counter()
        gc.collect()
        times.append(time.perf_counter() - started)
    gc.unfreeze()
    del kept
    return statistics.median(times)
