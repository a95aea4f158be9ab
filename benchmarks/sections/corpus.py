"""A JSONL corpus, file to file, on one core; against pipelines that do the same by hand."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import histories
import peers
from rows import Row, timed, times_faster
from timing import compare

import golem
from golem.corpus import normalize_jsonl, normalize_lines

Messages = list[dict[str, Any]]
MESSAGES = 20
"""Messages of a conversation, about."""


def measure(conversations: int, rounds: int) -> list[Row]:
    """Conversations of 20 messages, one in twenty of them damaged."""
    lines = list(_lines(conversations))
    for given, made in zip(lines, normalize_lines(lines), strict=True):
        damaged = golem.normalize_history(golem.load_history(given))[1]
        if not damaged and made is not given:
            raise SystemExit("a clean line is not given back as it was")
    with tempfile.TemporaryDirectory() as place:
        source, target = Path(place, "corpus.jsonl"), Path(place, "out.jsonl")
        source.write_bytes(b"".join(lines))
        contestants: dict[str, Callable[[], object]] = {
            "golem": lambda: normalize_jsonl(source, target),
            "json": lambda: _by_hand(source, target, json.loads, _dumps),
        }
        if peers.there("orjson"):
            orjson = peers.module("orjson")
            contestants["orjson"] = lambda: _by_hand(source, target, orjson.loads, orjson.dumps)
        if peers.there("pydantic-ai"):
            theirs = Path(place, "theirs.jsonl")
            theirs.write_bytes(b"".join(_their_lines(lines)))
            contestants["pydantic-ai"] = lambda: _pydantic_ai(theirs, target)
        found = compare(contestants, rounds, sum(map(len, lines)))
    goals = [
        times_faster(found, "golem", "json", 5),
        times_faster(found, "golem", "orjson", 1.6),
        times_faster(found, "golem", "pydantic-ai", 30),
    ]
    speeds = ", ".join(f"{name} {1e-6 / timing.cpu:.0f} MB/s" for name, timing in found.items())
    note = f"{conversations:,} conversations, {speeds}, of golem's JSON"
    return [timed("JSONL corpus, file to file, one core", "ns/byte", found, goals, note)]


def _lines(conversations: int) -> list[bytes]:
    return [
        histories.conversation(MESSAGES, damage=0.1 if n % 20 == 0 else 0, seed=n) + b"\n"
        for n in range(conversations)
    ]


def _dumps(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _by_hand(
    source: Path, target: Path, loads: Callable[[bytes], Messages], dumps: Callable[[Any], bytes]
) -> None:
    """What applications write: dicts, results paired by id, a report for what was damaged."""
    with (
        source.open("rb") as lines,
        target.open("wb") as out,
        io.BytesIO() as reports,
        io.BytesIO() as rejects,
    ):
        for number, line in enumerate(lines, 1):
            try:
                history = loads(line)
            except ValueError as error:
                rejects.write(dumps({"line": number, "reason": str(error)}) + b"\n")
                continue
            repaired, changes = _repair_dicts(history)
            if changes:
                reports.write(dumps({"line": number, "changes": changes}) + b"\n")
            out.write(dumps(repaired) + b"\n")


def _repair_dicts(history: Messages) -> tuple[Messages, list[tuple[str, str]]]:
    """Pair by id over the whole conversation: no ids used again, no order within a batch."""
    changes: list[tuple[str, str]] = []
    results: dict[str, dict[str, Any]] = {}
    for message in history:
        if message["role"] == "tool":
            call_id = message["toolCallId"]
            if call_id in results:
                changes.append(("dropped", call_id))
            else:
                results[call_id] = message
    repaired: Messages = []
    for message in history:
        if message["role"] == "tool":
            continue
        repaired.append(message)
        for call in message.get("toolCalls", ()):
            call_id = call["id"]
            if not isinstance(call["args"], dict):
                changes.append(("truncated", call_id))
            result = results.pop(call_id, None)
            if result is None:
                changes.append(("synthesized", call_id))
                result = {"role": "tool", "content": "no result", "toolCallId": call_id}
            repaired.append(result)
    changes += [("dropped", call_id) for call_id in results]
    return repaired, changes


def _their_lines(lines: list[bytes]) -> list[bytes]:
    adapter = peers.module("pydantic_ai.messages").ModelMessagesTypeAdapter
    return [
        adapter.dump_json(peers.pydantic_messages(golem.load_history(line))) + b"\n"
        for line in lines
    ]


def _pydantic_ai(source: Path, target: Path) -> None:
    m = peers.module("pydantic_ai.messages")
    adapter = m.ModelMessagesTypeAdapter
    with source.open("rb") as lines, target.open("wb") as out:
        for line in lines:
            repaired = m.repair_messages(adapter.validate_json(line))
            out.write(adapter.dump_json(repaired) + b"\n")
