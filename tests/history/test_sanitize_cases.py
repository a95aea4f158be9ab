"""Sanitizing as the executable cases have it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from golem import (
    AssistantMessage,
    HistoryError,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
    load_history,
)
from golem.history import SanitizeReport, sanitize_history
from golem.history.repair import NO_RESULT
from golem.messages import MESSAGE_TYPES
from tests import cases
from tests.cases import Case
from tests.history.checks import complaint, same

Result = tuple[list[Message], list[Message], SanitizeReport]
"""The history of a case, what sanitizing left of it, and the report."""


def _as_vectors_have_it(report: SanitizeReport) -> Case:
    """The members that the Go sibling's report has too."""
    return {
        "systemPrompts": report.system_prompts,
        "unsafeParts": [
            {"kind": part.kind, "messageIndex": part.message_index, "scheme": part.scheme}
            for part in report.unsafe_parts
        ],
        "repair": {
            name: list(getattr(report.repair, name))
            for name in ("synthesized", "dropped", "truncated")
        },
    }


@pytest.mark.parametrize("case", cases.vectors("sanitize"), ids=cases.name_of)
def test_vector(case: Case) -> None:
    """Messages, report and second pass are what the Go sibling gives for the same history."""
    expected = case["expected"]
    assert {"messages", "report", "secondPass"} == expected.keys()
    messages, report = sanitize_history(cases.messages(case["input"]["messages"]))
    assert cases.messages(expected["messages"]) == messages
    assert expected["report"] == _as_vectors_have_it(report)
    again, repeated = sanitize_history(messages)
    assert {"unchanged", "report"} == expected["secondPass"].keys()
    assert expected["secondPass"]["unchanged"] == same(messages, again)
    assert expected["secondPass"]["report"] == _as_vectors_have_it(repeated)


def _loadable(case: Case) -> bool:
    return all(message["role"] in MESSAGE_TYPES for message in case["messages"])


REPORTS = cases.field_reports("sanitize")


@pytest.mark.parametrize("case", [*filter(_loadable, REPORTS)], ids=cases.name_of)
def test_field_report(case: Case) -> None:
    history = cases.messages(case["messages"])
    messages, report = sanitize_history(history)
    for name, wanted in case["expect"].items():
        CHECKS[name]((history, messages, report), wanted)  # an unknown expectation is an error


def test_a_role_of_more_authority_never_gets_as_far_as_sanitizing() -> None:
    """An unknown role is refused where the history is read, as these reports allow."""
    refused = [case for case in REPORTS if not _loadable(case)]
    assert [case["id"] for case in refused] == ["san-02"]
    for case in refused:
        with pytest.raises(HistoryError, match='unknown role "developer"'):
            load_history(json.dumps(case["messages"]))


def _shape(result: Result, wanted: list[str]) -> None:
    def turn(message: Message) -> str:
        if isinstance(message, ToolMessage):
            return f"tool:{message.tool_call_id}{'*' if message.content == NO_RESULT else ''}"
        role = str(message.__struct_config__.tag)
        calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
        return f"{role}({','.join(call.id for call in calls)})" if calls else role

    assert wanted == [turn(message) for message in result[1]]


def _urls(messages: list[Message]) -> list[str]:
    return [p.url for m in messages if not isinstance(m, SystemMessage) for p in m.parts if p.url]


def _unsafe_parts(result: Result, wanted: list[Case]) -> None:
    assert wanted == _as_vectors_have_it(result[2])["unsafeParts"]


def _all_unsafe_dropped(result: Result, wanted: bool) -> None:
    safe = all(url.lower().startswith(("http://", "https://")) for url in _urls(result[1]))
    assert wanted == safe


def _parts_left(result: Result, wanted: dict[str, list[str]]) -> None:
    for index, kinds in wanted.items():
        message = result[1][int(index)]
        assert isinstance(message, UserMessage)
        text = ["text"] if message.content else []
        assert kinds == [*text, *(part.kind for part in message.parts)]


def _unchanged(result: Result, wanted: bool) -> None:
    assert wanted == same(result[0], result[1])
    assert wanted != bool(result[2])


def _idempotent(result: Result, wanted: bool) -> None:
    again, report = sanitize_history(result[1])
    assert wanted == same(result[1], again)
    assert {change.kind for change in report.repair.changes} <= {"truncated"}


def _no_role(result: Result, wanted: list[str]) -> None:
    assert not {str(m.__struct_config__.tag) for m in result[1]} & set(wanted)


def _keeps(result: Result, wanted: list[str]) -> None:
    assert set(wanted) <= {message.content for message in result[1]}


def _no_pending_approval(result: Result, wanted: bool) -> None:
    assert wanted == (complaint(result[1]) == "")


def _repair_report(result: Result, wanted: dict[str, list[str]]) -> None:
    for name, ids in wanted.items():
        assert sorted(ids) == sorted(getattr(result[2].repair, name))


CHECKS: dict[str, Callable[[Result, Any], None]] = {
    "shape": _shape,
    "report": _repair_report,
    "systemPrompts": lambda result, wanted: _equal(wanted, result[2].system_prompts),
    "unsafeParts": _unsafe_parts,
    "unsafeCount": lambda result, wanted: _equal(wanted, len(result[2].unsafe_parts)),
    "allUnsafeDropped": _all_unsafe_dropped,
    "keptUrls": lambda result, wanted: _equal(wanted, _urls(result[1])),
    "partsLeft": _parts_left,
    "removedEmptyUserAt": lambda result, wanted: _equal(tuple(wanted), result[2].emptied),
    "unchanged": _unchanged,
    "idempotent": _idempotent,
    "noRole": _no_role,
    "keeps": _keeps,
    "noPendingApproval": _no_pending_approval,
}


def _equal(expected: object, actual: object) -> None:
    assert expected == actual
