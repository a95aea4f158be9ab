"""Arguments of calls on wires that have them as JSON."""

from __future__ import annotations

import json
import sys

import pytest
from hypothesis import given

from golem.messages import ToolCall
from golem_adapters._toolkit.calls import embedded_args, wire_args
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
