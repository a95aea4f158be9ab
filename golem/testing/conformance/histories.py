"""Histories that stored conversations come to, and that an adapter has to make requests of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from golem.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.testing.conformance.subject import Subject

_LONG: Final = "call_" + "x" * 100
_IDS: Final = ("a", "a", "", "", _LONG + "1", _LONG + "2", "functions.f:0", "fc_1|call_1", "\ud800")
_NAMES: Final = ("f", "get weather", "", "x" * 100, "na\u00efve", "a.b", "1", "-", "\ud800")
_ARGS: Final = ("{}", "", '{"a": ', "[1]", "null", '{"a":"\\ud800"}', '{"a":1,"a":2}', " {} ", "x")
_TEXTS: Final = (
    "",
    " ",
    "\n",
    "\x00",
    "\ud800",
    "data: [DONE]\n\n",
    "\u2028\ufeff",
    '"}]}',
    "text",
)


def histories(subject: Subject) -> Iterator[tuple[str, list[Message]]]:
    """Histories that stored conversations come to, by what is special about them."""
    begin = UserMessage("begin")
    yield "odd texts", [begin, *(m for text in _TEXTS for m in _said(text))]
    yield "turns in a row", [begin, UserMessage("b"), *(AssistantMessage(c) for c in "cd"), begin]
    yield "system messages anywhere", [SystemMessage("s"), begin, SystemMessage("t"), begin]
    yield "thinking of others", [begin, *_thoughts(), begin]
    if "tools" in subject.lacks:
        return
    one = turn("", ("a",), subject)
    for last in (UserMessage("u"), SystemMessage("s"), AssistantMessage("a")):
        yield f"a {type(last).__name__} after a result", [begin, *one, last, begin]
    yield "the same id in later turns", [begin, *one, *one, begin, *one]
    yield "odd ids", [begin, *turn("", _IDS, subject), begin]
    yield "odd ids over turns", [begin, *(m for name in _IDS for m in turn("x", (name,), subject))]
    calls = tuple(ToolCall.of(f"c{n}", name, "{}") for n, name in enumerate(_NAMES))
    yield "odd names", [begin, AssistantMessage(tool_calls=calls), begin]
    calls = tuple(ToolCall.of(f"c{n}", "f", args) for n, args in enumerate(_ARGS))
    yield "odd arguments", [begin, AssistantMessage(tool_calls=calls), begin]
    failed = [ToolMessage(text, tool_call_id="a", tool_name="f", failed=True) for text in _TEXTS]
    yield "failures", [begin, *(m for result in failed for m in (one[0], result))]
    results = [ToolMessage(text, tool_call_id="a", tool_name="f") for text in _TEXTS]
    yield "odd results", [begin, *(m for result in results for m in (one[0], result))]


def _said(text: str) -> list[Message]:
    return [UserMessage(text), AssistantMessage(text)]


def _thoughts() -> Iterator[Message]:
    for provider in ("", "anthropic", "openai", "openai-responses", "gemini", "bedrock"):
        block = Thinking("hm", signature="c2ln", provider=provider, id="rs_1")
        yield AssistantMessage("", thinking=(block,))
        yield AssistantMessage("said", thinking=(block, Thinking("", signature="c2ln")))


def turn(text: str, ids: Sequence[str], subject: Subject) -> list[Message]:
    """A turn with calls of these ids and their results; only its text where there are no tools."""
    if "tools" in subject.lacks:
        return [AssistantMessage(text or "text")]
    calls = tuple(ToolCall.of(name, "f", '{"a": 1}') for name in ids)
    return [AssistantMessage(text, tool_calls=calls), *_results(ids)]


def _results(ids: Sequence[str]) -> list[ToolMessage]:
    return [
        ToolMessage(f"result {n}", tool_call_id=name, tool_name="f") for n, name in enumerate(ids)
    ]
