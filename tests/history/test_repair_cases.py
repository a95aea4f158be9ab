"""Repair and normalization on the executable cases: conformance vectors and field reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from golem import (
    AssistantMessage,
    HistoryRepair,
    Message,
    ToolMessage,
    dump_history,
    normalize_history,
)
from golem.history.repair import NO_RESULT
from tests import cases
from tests.cases import Case

CONTRADICTIONS: dict[str, str] = {}
"""Cases that `cases.messages` can load but that contradict the contract, each with the reason."""

Result = tuple[list[Message], list[Message], HistoryRepair]
"""The history of a case, what it was repaired to, and the report."""


# The conformance vectors


@pytest.mark.parametrize("case", cases.vectors("normalize"), ids=cases.name_of)
def test_vector(case: Case) -> None:
    """Messages, report and second pass are what the Go sibling gives for the same history."""
    history, expected = _history(case), case["expected"]
    assert {"messages", "report", "secondPass"} >= expected.keys()
    messages, report = normalize_history(history)
    assert cases.messages(expected["messages"]) == messages
    assert expected["report"] == _named(report, expected["report"])

    second = expected["secondPass"]
    assert {"unchanged", "report", "messages"} >= second.keys()
    again, repeated = normalize_history(messages)
    assert second["unchanged"] == (again == messages)
    assert second["report"] == _named(repeated, second["report"])
    if "messages" in second:
        assert cases.messages(second["messages"]) == again


def _history(case: Case) -> list[Message]:
    name = cases.name_of(case)
    if name in CONTRADICTIONS:
        pytest.skip(CONTRADICTIONS[name])
    try:
        return cases.messages(case["input"]["messages"] if "input" in case else case["messages"])
    except cases.NotApplicableError as reason:
        pytest.skip(f"our contract has no such message: {reason}")


def _named(report: HistoryRepair, names: Case) -> dict[str, list[str]]:
    return {name: list(getattr(report, name)) for name in names}


# The field reports

FIELD_REPORTS = cases.field_reports("repair", "normalize")


@pytest.mark.parametrize("case", FIELD_REPORTS, ids=cases.name_of)
def test_field_report(case: Case) -> None:
    """A conversation that broke somebody's program comes out sound, with the right report."""
    history = _history(case)
    messages, report = normalize_history(history)
    for name, wanted in case["expect"].items():
        CHECKS[name]((history, messages, report), wanted)  # an unknown expectation is an error


def _shape(result: Result, wanted: list[Any]) -> None:
    given = [_turn(message) for message in result[1]]
    for item in wanted:
        group = item if isinstance(item, list) else [item]
        head, given = given[: len(group)], given[len(group) :]
        assert sorted(group) == sorted(head)
    assert given == []


def _turn(message: Message) -> str:
    if isinstance(message, ToolMessage):
        return f"tool:{message.tool_call_id}{'*' if message.content == NO_RESULT else ''}"
    role = str(message.__struct_config__.tag)
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    return f"{role}({','.join(call.id for call in calls)})" if calls else role


def _report(result: Result, wanted: dict[str, list[str]]) -> None:
    for name, ids in wanted.items():
        assert sorted(ids) == sorted(getattr(result[2], name))


def _unchanged(result: Result, wanted: bool) -> None:
    history, messages, _ = result
    same = len(history) == len(messages) and all(map(lambda a, b: a is b, history, messages))
    assert wanted == same


def _idempotent(result: Result, wanted: bool) -> None:
    again, report = normalize_history(result[1])
    assert wanted == (again == result[1])
    assert report.truncated == result[2].truncated
    assert report.synthesized + report.dropped + report.moved == ()


def _twice_equal_bytes(result: Result, wanted: bool) -> None:
    once = dump_history(normalize_history(result[0])[0])
    assert wanted == (once == dump_history(normalize_history(result[0])[0]))


def _fillers(result: Result) -> list[ToolMessage]:
    known = {id(message) for message in result[0]}
    added = [message for message in result[1] if id(message) not in known]
    assert all(isinstance(message, ToolMessage) for message in added)
    return [message for message in added if isinstance(message, ToolMessage)]


def _neutral_fillers(result: Result, wanted: bool) -> None:
    assert wanted
    for filler in _fillers(result):
        assert not filler.failed
        assert filler.content == NO_RESULT


def _no_timestamps(result: Result, wanted: bool) -> None:
    assert wanted
    for filler in _fillers(result):
        members = json.loads(dump_history([filler]))[0]
        assert {"role", "content", "toolCallId", "toolName"} >= members.keys()


def _content_kept(result: Result, wanted: dict[str, str]) -> None:
    kept = {m.tool_call_id: m.content for m in result[1] if isinstance(m, ToolMessage)}
    assert wanted.items() <= kept.items()


def _content_order(result: Result, wanted: list[str]) -> None:
    texts = iter(message.content for message in result[1])
    assert all(any(text in content for content in texts) for text in wanted)


def _content_present(result: Result, wanted: list[str]) -> None:
    texts = [message.content for message in result[1]]
    assert all(any(text in content for content in texts) for text in wanted)


def _calls_answered(result: Result, wanted: bool) -> None:
    assert wanted == (not _pairing(result[1])[0])


def _no_orphans(result: Result, wanted: bool) -> None:
    assert wanted == (not _pairing(result[1])[1])


def _pairing(messages: list[Message]) -> tuple[list[str], list[str]]:
    """Calls without a result in their own batch, and results without a call there."""
    dangling: list[str] = []
    orphans: list[str] = []
    pending: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id in pending:
                pending.remove(message.tool_call_id)
            else:
                orphans.append(message.tool_call_id)
            continue
        dangling += filter(None, pending)
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        pending = [call.id for call in calls]
    return dangling + list(filter(None, pending)), orphans


def _arguments_verbatim(result: Result, wanted: dict[str, str]) -> None:
    calls = [c for m in result[1] if isinstance(m, AssistantMessage) for c in m.tool_calls]
    assert wanted.items() <= {call.id: call.args for call in calls}.items()


def _checked_by_running(result: Result, wanted: object) -> None:
    """`noException`: reaching this is the check; `maxSeconds`: benchmarks measure, tests do not."""
    assert wanted


CHECKS: dict[str, Callable[[Result, Any], None]] = {
    "shape": _shape,
    "report": _report,
    "unchanged": _unchanged,
    "idempotent": _idempotent,
    "twiceEqualBytes": _twice_equal_bytes,
    "synthesizedNeutral": _neutral_fillers,
    "noTimestamps": _no_timestamps,
    "contentKept": _content_kept,
    "contentOrder": _content_order,
    "contentPresent": _content_present,
    "everyCallAnswered": _calls_answered,
    "noDangling": _calls_answered,
    "noOrphans": _no_orphans,
    "argumentsVerbatim": _arguments_verbatim,
    "noException": _checked_by_running,
    "maxSeconds": _checked_by_running,
}
