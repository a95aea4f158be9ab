"""What every pass over histories keeps to: linear work, and reports that are plain values."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import pytest
from msgspec import Struct
from msgspec.structs import fields, replace

from golem import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    normalize_history,
)
from golem import history as history_package
from golem.history import Change, InvalidPart, Turn, UnsafePart, sanitize_history, seal, verify
from tests.history.checks import complaint, work
from tests.history.passes import CALL, KEY, PASSES, RESULT, USER, error_of

# Linear work, counted


class Reads(Sequence[Message]):
    """A history that counts how often a message is taken from it."""

    def __init__(self, messages: list[Message]) -> None:
        self.messages = messages
        self.reads = 0

    def __len__(self) -> int:
        return len(self.messages)

    def __getitem__(self, place: Any) -> Any:
        self.reads += 1
        return self.messages[place]


def sound(size: int) -> list[Message]:
    """Exchanges with a tool call each."""
    history: list[Message] = []
    for n in range(size // 4):
        call = AssistantMessage(tool_calls=(ToolCall.of(f"c{n}", "f", "{}"),))
        tool = ToolMessage("r", tool_call_id=f"c{n}", tool_name="f")
        history += [UserMessage("q", run_id="r"), call, tool, AssistantMessage("a")]
    return history


def damaged(size: int) -> list[Message]:
    """The same, everything answered at the very end, backwards, and once too often."""
    history = sound(size)
    results = [message for message in history if isinstance(message, ToolMessage)]
    others = [message for message in history if not isinstance(message, ToolMessage)]
    return [*others, *results[::-1], *results[:10]]


def one_turn(size: int) -> list[Message]:
    """One turn with a very great many calls, answered backwards."""
    ids = [f"c{n}" for n in range(size // 2)]
    calls = tuple(ToolCall.of(call_id, "f", "{}") for call_id in ids)
    results = [ToolMessage("r", tool_call_id=call_id, run_id="r") for call_id in ids]
    return [UserMessage("q", run_id="r"), AssistantMessage(tool_calls=calls), *results[::-1]]


def reused(size: int) -> list[Message]:
    """One id for everything."""
    call = AssistantMessage(tool_calls=(ToolCall.of("c", "f", "{}"),) * 3, run_id="r")
    return [UserMessage("q", run_id="r"), *[call, RESULT] * (size // 2)]


@pytest.mark.parametrize("make", [sound, damaged, one_turn, reused])
@pytest.mark.parametrize("name", [name for name in PASSES if name != "budget"])
def test_a_history_ten_times_as_long_is_ten_times_thework(
    name: str, make: Callable[[int], list[Message]]
) -> None:
    small, large = make(200), make(2000)

    def attempt(history: list[Message]) -> int:
        return work(lambda: error_of(PASSES[name], history))

    attempt(small)  # what is made once is made here
    assert attempt(large) <= 11 * attempt(small) + 100


@pytest.mark.parametrize("make", [sound, damaged, one_turn, reused])
@pytest.mark.parametrize("name", PASSES)
def test_each_message_is_read_once(name: str, make: Callable[[int], list[Message]]) -> None:
    history = Reads(make(400))
    error_of(PASSES[name], history)
    assert history.reads <= len(history) + 1


@pytest.mark.parametrize("order", [slice(None, None, -1), slice(1, None, 2)], ids=["back", "gaps"])
def test_verifying_a_history_in_disorder_is_linear(order: slice) -> None:
    """Comparisons of seals are counted: each message looks at its neighbour, not at all others."""

    class Counted(str):
        __slots__ = ()
        looked = 0

        def __eq__(self, other: object) -> bool:
            Counted.looked += 1
            return str.__eq__(self, other)

        __hash__ = str.__hash__

        def rpartition(self, separator: str, /) -> tuple[str, str, str]:
            first, dot, last = str.rpartition(self, separator)
            return Counted(first), dot, Counted(last)

    def looks(size: int) -> int:
        made = seal([UserMessage(str(n)) for n in range(size)], KEY)[order]
        Counted.looked = 0
        verify([replace(message, seal=Counted(message.seal)) for message in made], KEY)
        return Counted.looked

    assert looks(1000) <= 20 * looks(100)  # equal hashes cost a few more


def test_ten_times_the_messages_with_a_policy_are_ten_times_the_work() -> None:
    part = Part.image_url("http://user@b\u00fccher.example:80/a.png")

    def effort(size: int) -> int:
        history = [UserMessage(str(n), parts=(part, part)) for n in range(size)]
        return work(lambda: sanitize_history(history, block_private_hosts=True))

    effort(10)
    assert effort(1000) <= 11 * effort(100) + 100


@pytest.mark.parametrize("name", ["normalize", "sanitize", "trim nothing", "repair", "feed"])
def test_a_hundred_thousand_messages_pass(name: str) -> None:
    found = PASSES[name](sound(100_000))
    messages: Any = found[0] if isinstance(found, tuple) else found
    assert len(messages) == 100_000
    assert complaint(messages) == ""


# What every report is

REPORTS: list[Any] = [
    Change("moved", "c", "f", 3, 1),
    normalize_history([CALL, UserMessage("x"), RESULT, RESULT])[1],
    UnsafePart(1, "image", "file", "host"),
    InvalidPart(1, "image", "why"),
    sanitize_history([SystemMessage("s"), UserMessage("", parts=(Part.image_url("file:x"),))])[1],
    verify(seal([USER, CALL], KEY), KEY),
    Turn(0, CALL, (RESULT,), (1,)),
]


@pytest.mark.parametrize("report", REPORTS, ids=lambda report: type(report).__name__)
def test_a_report_is_a_frozen_value_with_camel_case_json_that_reads_back(report: Any) -> None:
    cls = type(report)
    first = fields(cls)[0].name
    with pytest.raises(AttributeError, match="immutable"):
        setattr(report, first, getattr(report, first))
    assert hash(report) == hash(replace(report))
    data = msgspec.json.encode(report)
    assert report == msgspec.json.decode(data, type=cls)
    names = {info.name for info in fields(cls)}
    expected = {re.sub("_(.)", lambda found: found[1].upper(), name) for name in names}
    assert expected == set(json.loads(data))


def test_every_report_that_the_package_exports_is_among_them() -> None:
    exported = [getattr(history_package, name) for name in dir(history_package)]
    structs = {kind for kind in exported if isinstance(kind, type) and issubclass(kind, Struct)}
    assert structs == set(map(type, REPORTS))
