"""Coverage-guided fuzzing of stored history: any bytes through load, sanitize, normalize, dump.

    python fuzz/fuzz_history.py -max_total_time=600

Arguments are libFuzzer's. What it finds is written to the working directory as ``crash-*`` (give
such a file as the only argument to run it again); a finding becomes a test before it is fixed.
The laws are checked for every document that loads; one that does not has to say so in a
HistoryError. Input that begins with a zero byte chooses among messages, any other is a document.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import atheris

with atheris.instrument_imports(include=["golem"]):
    import golem
    from golem.history import SanitizeReport, sanitize_history, seal, verify

KEY = b"a key of at least 16 bytes"

# What a built document is made of

ROLES = ["system", "user", "assistant", "assistant", "tool", "tool"]
IDS = ["", "a", "a", "b", "\ud800", "i" * 300]
ARGS: list[Any] = [{}, {"x": 1}, '{"x":', "", None, 5, [], {"\ud800": 1e99}, '{"a":"\\ud800"}']
SCHEMES = ["http://", "HTTPS://", "file://", "http:", "//", "data:", " http://", "http:\\\\"]
HOSTS = [
    *("a.example", "127.0.0.1", "0x7f.1", "2130706433", "[::1]", "[::ffff:10.0.0.1%251]"),
    *("\u24dbocalhost", "l\u1d52calhost", "127\u30020.0.1", "xn--a", "-1.1", "a" * 300),
]
TAILS = [
    "",
    "/",
    ":80/x",
    "@b.example",
    "\\@b.example",
    "?q=%zz",
    "#%41",
    "%2f",
    " ",
    "\n",
    "\u2064",
]
KINDS = ["image", "document", "hologram"]


def document(data: bytes) -> bytes:
    """The stored history that the fuzzer's bytes stand for."""
    if data[:1] != b"\x00":
        return data
    choice = atheris.FuzzedDataProvider(data[1:])
    messages = [message(choice) for _ in range(choice.ConsumeIntInRange(0, 8))]
    return json.dumps(messages).encode()


def message(choice: atheris.FuzzedDataProvider) -> dict[str, Any]:
    """One message, any of whose members may be missing, unknown or odd."""
    members: dict[str, Any] = {
        "content": choice.ConsumeUnicode(4),
        "parts": some(choice, part),
        "toolCalls": some(choice, call),
        "toolCallId": choice.PickValueInList(IDS),
        "thinking": [{"text": choice.ConsumeUnicode(2), "signature": "s", "newer": [1]}],
        "native": {"provider": "p", "items": [choice.PickValueInList(ARGS)]},
        "runId": choice.PickValueInList(IDS),
        "conversationId": None,
        "seal": choice.ConsumeUnicode(3) + "." + choice.ConsumeUnicode(3),
        "newer": choice.PickValueInList(ARGS),
    }
    role = choice.PickValueInList(ROLES)
    return {"role": role} | {k: v for k, v in members.items() if choice.ConsumeBool()}


def some(choice: atheris.FuzzedDataProvider, make: Any) -> list[dict[str, Any]]:
    """Up to three of what `make` makes."""
    return [make(choice) for _ in range(choice.ConsumeIntInRange(0, 3))]


def part(choice: atheris.FuzzedDataProvider) -> dict[str, Any]:
    """A piece of media whose URL somebody may have tampered with."""
    pieces = [choice.PickValueInList(pool) for pool in (SCHEMES, HOSTS, TAILS)]
    place = choice.ConsumeIntInRange(0, len(pieces))
    pieces.insert(place, choice.ConsumeUnicode(3))
    return {"kind": choice.PickValueInList(KINDS), "url": "".join(pieces), "data": "AA=="}


def call(choice: atheris.FuzzedDataProvider) -> dict[str, Any]:
    """A tool call with arguments of any kind."""
    return {
        "id": choice.PickValueInList(IDS),
        "name": choice.ConsumeUnicode(2),
        "args": choice.PickValueInList(ARGS),
    }


# The laws


def test_one_input(data: bytes) -> None:
    """Whatever loads keeps the laws; whatever does not raises HistoryError."""
    stored = document(data)
    try:
        messages = golem.load_history(stored)
    except golem.HistoryError:
        return
    check_dump(messages)
    check_sanitize(messages)
    check_normalize(messages)
    check_seal(messages)


def check_dump(messages: list[golem.Message]) -> None:
    """What dump writes is JSON, loads to the same messages and is a fixed point."""
    written = golem.dump_history(messages)
    json.loads(written)
    read = golem.load_history(written)
    holds("load(dump(x)) == x", read == messages)
    holds("dump(load(b)) == b", golem.dump_history(read) == written)


def check_sanitize(messages: list[golem.Message]) -> None:
    """A second pass changes nothing and reports nothing but truncated arguments again."""
    for strict in (False, True):
        clean, _ = sanitize_history(messages, block_private_hosts=strict)
        again, report = sanitize_history(clean, block_private_hosts=strict)
        holds("sanitized stays as it is", same(clean, again))
        holds("sanitized has nothing to report", not tells_of_change(report))
        check_dump(clean)


def check_normalize(messages: list[golem.Message]) -> None:
    """Repair is idempotent, and streams to the same result."""
    repaired, _ = golem.normalize_history(messages)
    again, report = golem.normalize_history(repaired)
    holds("repaired stays as it is", same(repaired, again))
    holds("repaired has no findings", all(c.kind == "truncated" for c in report.changes))
    holds("streaming is the same", list(golem.repair(iter(messages))) == repaired)
    check_dump(repaired)


def check_seal(messages: list[golem.Message]) -> None:
    """Verifying never fails, and what was sealed verifies after storage."""
    verify(messages, KEY)
    sealed = seal([message for message in messages if not message.seal], KEY)
    stored = golem.load_history(golem.dump_history(sealed))
    holds("sealed verifies", not verify(stored, KEY))
    holds("sealed stays as it is", same(sealed, seal(sealed, KEY)))


def tells_of_change(report: SanitizeReport) -> bool:
    """Whether a report tells of anything but truncated arguments."""
    if any(change.kind != "truncated" for change in report.repair.changes):
        return True
    return bool(report) and not report.repair


def same(one: list[golem.Message], other: list[golem.Message]) -> bool:
    """Whether two histories are the same objects in the same order."""
    return len(one) == len(other) and all(a is b for a, b in zip(one, other, strict=True))


def holds(law: str, kept: bool) -> None:
    """Stop at a law that is not kept."""
    if not kept:
        raise AssertionError(law)


# Running

SEEDS = (
    [{"role": "user", "content": "hi", "parts": [{"kind": "image", "url": "https://a.example/"}]}],
    [{"role": "user", "parts": [{"kind": "image", "url": "file:///x", "data": "AA==", "x": 1}]}],
    [
        {"role": "system", "content": "s", "unknown": {"a": [1, 2.50, "\ud800"]}},
        {"role": "assistant", "toolCalls": [{"id": "a", "name": "f", "args": {"x": 1}}]},
        {"role": "tool", "toolCallId": "a", "toolName": "f", "content": "r", "failed": True},
        {"role": "tool", "toolCallId": "b", "content": "lost"},
        {"role": "assistant", "toolCalls": [{"id": "a", "name": "f", "args": '{"x":', "y": 1}]},
        {"role": "user", "content": "later", "runId": "r", "conversationId": "c", "seal": "a.b"},
        {"role": "tool", "toolCallId": "a", "toolName": "f", "content": "late"},
        {"role": "assistant", "thinking": [{"text": "t", "signature": "s", "provider": "p"}]},
        {"role": "assistant", "native": {"provider": "p", "items": [{"type": "x"}, None]}},
    ],
)


def main() -> None:
    """Fuzz from the seeds, with the corpus and options of the command line."""
    with tempfile.TemporaryDirectory() as corpus:
        documents = [json.dumps(seed).encode() for seed in SEEDS]
        built = [bytes(n * step % 256 for n in range(512)) for step in (3, 7, 61, 101)]
        for number, content in enumerate([*documents, *built]):
            (Path(corpus) / str(number)).write_bytes(content)
        given = sys.argv[1:]
        alone = any(Path(argument).is_file() for argument in given)
        atheris.Setup([*sys.argv, *([] if alone else [corpus])], test_one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
