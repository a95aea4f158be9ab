"""Calls on the wire: arguments as JSON, names that fit, ids for calls without one."""

from __future__ import annotations

import json
import re
import sys

import pytest
from hypothesis import given

from golem.messages import AssistantMessage, Message, ToolCall, UserMessage
from golem_adapters._toolkit.calls import (
    MintedIds,
    embedded_args,
    stored_tool_names,
    wire_args,
    wire_tool_name,
)
from tests.strategies import ARGS

LARGEST = sys.float_info.max


@pytest.mark.parametrize(
    ("args", "sent"),
    [
        ('{"a":1e999}', {"a": LARGEST}),
        ('{"a":[-1E+400,{"b":1e0000309}]}', {"a": [-LARGEST, {"b": LARGEST}]}),
        ('{"a":' + "9" * 400 + "}", {"a": LARGEST}),
        ('{"a":-' + "9" * 9000 + "}", {"a": -LARGEST}),
    ],
    ids=["exponent", "nested", "digits", "many digits"],
)
def test_a_number_past_every_range_is_the_largest_one(args: str, sent: object) -> None:
    assert sent == json.loads(embedded_args(ToolCall.of("1", "f", args)))


@pytest.mark.parametrize("args", ['{"a": 1e308}', '{"hash": "7e123"}', '{"a":1.50, "a":1E0}', "{"])
def test_all_other_arguments_stay_as_they_are_written(args: str) -> None:
    call = ToolCall.of("1", "f", args)
    assert wire_args(call) == embedded_args(call)


@given(ARGS)
def test_what_is_embedded_is_strict_json_for_every_reader(args: str) -> None:
    value = json.loads(embedded_args(ToolCall.of("1", "f", args)))
    assert json.dumps(value, allow_nan=False)


# --- names and ids

STARTS_WITH_A_LETTER = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")


@pytest.mark.parametrize("name", ["f", "_f", "9lives", "-x", "9" * 80, "", "a.b", "é", "-", "\n"])
def test_a_tool_name_fits_the_rule_of_its_provider_and_comes_back(name: str) -> None:
    wire = wire_tool_name(name, STARTS_WITH_A_LETTER)
    assert STARTS_WITH_A_LETTER.fullmatch(wire)
    assert stored_tool_names([name], STARTS_WITH_A_LETTER).get(wire, wire) == name


def test_names_that_are_made_differ() -> None:
    names = ["9", "_9", "-9", "é", "è", "9" * 80, "9" * 81]
    assert len({wire_tool_name(name, STARTS_WITH_A_LETTER) for name in names}) == len(names)


def minted(*messages: Message, count: int = 2) -> list[str]:
    ids = MintedIds(messages)
    return [ids.minted(index) for index in range(count)]


def test_minted_ids_are_a_pure_function_of_the_request() -> None:
    asked = UserMessage("q", run_id="r")
    assert minted(asked) == minted(asked)
    assert len(set(minted(asked) + minted(UserMessage("q", run_id="s")))) == 4
    assert all(re.fullmatch(r"call_[a-zA-Z0-9]{21}", made) for made in minted(asked))
    assert minted(count=1) == minted(count=1)


def test_minted_ids_are_new_in_the_conversation() -> None:
    """Also where requests look alike: a view of the history, always of the same length."""
    asked = UserMessage("q")
    (first,) = minted(asked, count=1)
    answer = AssistantMessage(tool_calls=(ToolCall.of(first, "f", "{}"),))
    assert first not in minted(answer, asked, count=1)
    assert first not in minted(answer, asked, asked, count=1)
    ids = MintedIds([asked])
    ids.taken(first)
    assert ids.minted(0) != first
