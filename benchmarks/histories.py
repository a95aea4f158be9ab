"""Synthetic agent histories: the same bytes for the same arguments, on every machine.

The mix: user text of about 200 characters, assistant text of about 400, in three of five
exchanges an assistant turn with two tool calls (arguments of about 120 bytes, results of about
300 characters), identity stamps on every message. Of a hundred words one is quoted, every other
hundred has a letter beyond ASCII, and answers and results break their lines every 25 words.
`damage` is the share of messages that is
broken, in equal parts: result missing, result repeated, result of an unknown call, arguments cut
off. Each kind strikes any call: of twenty messages with a `damage` of 0.05 one is broken, and so
is a third of the turns with calls.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

TEXT = """
the agent reads each record and checks whether the total of a run stays below its limit
before calling another tool so that results remain stable when a stream is cut short by
the network or a user cancels then history repair closes what is open with a neutral text
invoice ledger balance quarter revenue report draft review branch merge server region weather
"""
WORDS = TEXT.split()
TOOLS = ("search_orders", "get_weather", "read_file", "query_ledger", "send_draft")


def history(messages: int, *, damage: float = 0.0, seed: int = 7) -> bytes:
    """A stored history of exactly `messages` messages, as compact JSON."""
    writer = _Writer(random.Random(seed), damage)
    record: list[dict[str, Any]] = []
    while len(record) < messages:
        record += writer.exchange()
    return json.dumps(record[:messages], ensure_ascii=False, separators=(",", ":")).encode()


def read(messages: int, *, damage: float = 0.0) -> bytes:
    """`conversation`, made by a process of its own.

    What is read into a heap that made it would lie scattered over it, and no two runs alike.
    """
    program = [sys.executable, __file__, str(messages), str(damage)]
    return subprocess.run(program, check=True, capture_output=True).stdout


def conversation(messages: int, *, damage: float = 0.0, seed: int = 7) -> bytes:
    """A stored conversation of whole exchanges, `messages` at least, as compact JSON."""
    writer = _Writer(random.Random(seed), damage)
    record: list[dict[str, Any]] = []
    while len(record) < messages:
        record += writer.exchange()
    return json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


class _Writer:
    def __init__(self, chance: random.Random, damage: float) -> None:
        self.chance = chance
        self.damage = damage
        self.calls = 0
        self.conversation = self.id()

    def exchange(self) -> list[dict[str, Any]]:
        """A question, perhaps a batch of two tool calls, an answer."""
        record: list[dict[str, Any]] = [{"role": "user", "content": self.text(200)}]
        if self.chance.random() < 0.6:
            calls = [self.call(), self.call()]
            record.append({"role": "assistant", "toolCalls": calls})
            for call in calls:
                record += self.results(call)
        record.append({"role": "assistant", "content": self.text(400, "\n")})
        run = self.id()
        for message in record:
            message |= {"runId": run, "conversationId": self.conversation}
        return record

    def call(self) -> dict[str, Any]:
        self.calls += 1
        args = {
            "query": self.text(60),
            "limit": self.chance.randrange(50),
            "filter": {"open": True},
        }
        return {"id": f"call_{self.calls:08}", "name": self.chance.choice(TOOLS), "args": args}

    def results(self, call: dict[str, Any]) -> list[dict[str, Any]]:
        result = {
            "role": "tool",
            "content": self.text(300, "\n"),
            "toolCallId": call["id"],
            "toolName": call["name"],
        }
        if self.strikes():
            text = json.dumps(call["args"])
            call["args"] = text[: len(text) // 2]
        if self.strikes():
            return []
        results = [result]
        if self.strikes():
            results.append(dict(result))
        if self.strikes():
            results.append(result | {"toolCallId": f"lost_{self.calls:08}"})
        return results

    def strikes(self) -> bool:
        """Whether this call is damaged in one of the four ways; 1.2 calls in 3.8 messages are."""
        return self.damage > 0 and self.chance.random() < self.damage * 3.8 / 1.2 / 4

    def text(self, length: int, after_some: str = "") -> str:
        words: list[str] = []
        size = 0
        while size < length:
            words.append(self.word() + after_some * (self.chance.random() < 0.04))
            size += len(words[-1]) + 1
        return " ".join(words)

    def word(self) -> str:
        draw = self.chance.random()
        if draw < 0.005:
            return "café"
        if draw < 0.008:
            return "a<b & c>d"
        word = self.chance.choice(WORDS)
        return f'"{word}"' if draw < 0.018 else word

    def id(self) -> str:
        digits = f"{self.chance.getrandbits(128):032x}"
        return f"{digits[:8]}-{digits[8:12]}-7{digits[13:16]}-8{digits[17:20]}-{digits[20:]}"


if __name__ == "__main__":
    count, share = sys.argv[1:]
    sys.stdout.buffer.write(conversation(int(count), damage=float(share)))
