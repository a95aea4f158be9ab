"""Tool calls in Chat Completions streams, in all the ways in which servers cut them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from golem.model import Request, ToolCallDelta, ToolSpec
from golem_adapters._toolkit.calls import wire_tool_name
from golem_adapters.openai.dialect import dialect_named
from tests.adapters.driving import (
    CALLS,
    bytewise,
    delta,
    drive,
    events,
    piece,
)


def calls_of(*chunks: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """Name and arguments of the calls that these pieces make, however the stream is cut."""
    data = events(*[delta(tool_calls=pieces) for pieces in chunks], CALLS)
    outcome = drive([data])
    assert outcome.shape == drive(bytewise(data)).shape
    assert outcome.told == outcome.said
    _, _, calls = outcome.said
    ids = [call[0] for call in calls]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    return [(name, args) for _, name, args in calls]


ONE = [("f", '{"a":1}')]
TWO = [("f", '{"a":1}'), ("g", '{"b":2}')]


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param([[piece(0, "x", "f", '{"a":')], [piece(0, args="1}")]], ONE, id="by index"),
        pytest.param([[piece(0, "x", "f", '{"a":1}')]], ONE, id="whole"),
        pytest.param(
            [
                [piece(0, "x", "f", '{"a"'), piece(1, "y", "g", '{"b"')],
                [piece(1, args=":2}")],
                [piece(0, args=":1}")],
            ],
            TWO,
            id="interleaved",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":1}')], [piece(0, "y", "g", '{"b":2}')]],
            TWO,
            id="a new id at the same index",
        ),
        pytest.param(
            [
                [piece(0, "x", "f", '{"a"')],
                [piece(0, args=":1}")],
                [piece(0, "y", "g")],
                [piece(0, args='{"b":2}')],
            ],
            TWO,
            id="a new id at the same index, in pieces",
        ),
        pytest.param(
            [[piece(0, "", "f", '{"a":1}')], [piece(0, "", "g", '{"b":2}')]],
            TWO,
            id="no ids, every index 0",
        ),
        pytest.param(
            [[piece(None, "x", "f", '{"a":')], [piece(None, "x", args="1}")]], ONE, id="by id"
        ),
        pytest.param(
            [
                [piece(None, "x", "f", '{"a"')],
                [piece(None, "y", "g", '{"b"')],
                [piece(None, "x", args=":1}")],
                [piece(None, "y", args=":2}")],
            ],
            TWO,
            id="by id, interleaved",
        ),
        pytest.param(
            [[piece(None, "x", "f", '{"a":')], [piece(args="1}")]], ONE, id="the last call"
        ),
        pytest.param(
            [[piece(name="f", args='{"a":1}')], [piece(name="g", args='{"b":2}')]],
            TWO,
            id="neither index nor id",
        ),
        pytest.param(
            [[piece(name="f", args='{"a":1}'), piece(name="g", args='{"b":2}')]],
            TWO,
            id="neither, in one chunk",
        ),
        pytest.param(
            [
                [piece(name="f", args='{"a"'), piece(name="g", args='{"b"')],
                [piece(args=":1}"), piece(args=":2}")],
            ],
            TWO,
            id="by place",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":')], [piece(0, "x", "f", "1}")]],
            ONE,
            id="id and name repeated",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":')], [piece(0, "z", args="1}")]],
            ONE,
            id="a random id in every piece",
        ),
        pytest.param(
            [[piece(None, "x", "f", '{"a":')], [piece(None, "z", args="1}")]],
            ONE,
            id="the same without index",
        ),
        pytest.param(
            [[piece(0, None, "f", '{"a":')], [piece(0, None, "f", "1}")]],
            ONE,
            id="the name repeated",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":')], [piece(0, "", "", "1}")]],
            ONE,
            id="empty id and name after the first",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a":1}')], [piece(1, "x", "g", '{"b":2}')]],
            TWO,
            id="one id for two calls",
        ),
        pytest.param(
            [[piece(0, "x", "f")], [piece(0, args='{"a":1}')], [piece(1, "y", "g", '{"b":2}')]],
            TWO,
            id="name first",
        ),
        pytest.param(
            [[piece(0, "x", args='{"a":')], [piece(0, name="f", args="1}")]], ONE, id="name late"
        ),
        pytest.param(
            [[piece(3, "x", "f", '{"a":1}')], [piece(7, "y", "g", '{"b":2}')]],
            TWO,
            id="indexes with gaps",
        ),
        pytest.param([[piece(0, "x", "f", {"a": 1})]], ONE, id="arguments as an object"),
        pytest.param([[piece(0, "x", "f")]], [("f", "{}")], id="no arguments"),
        pytest.param([[piece(0, "x", "f", "")]], [("f", "{}")], id="empty arguments"),
        pytest.param(
            [[piece(0, "x", "f", " ")], [piece(0, args="\n")]], [("f", "{}")], id="blank arguments"
        ),
        pytest.param(
            [[piece(0, "x", "f", " ")], [piece(0, args='\n{"a":1}')], [piece(0, args=" \n")]],
            ONE,
            id="blanks around",
        ),
        pytest.param(
            [[piece(0, "x", "f", '{"a": ')], [piece(0, args=' "b "')], [piece(0, args=" }")]],
            [("f", '{"a":  "b " }')],
            id="blanks inside",
        ),
        pytest.param([[piece(0, "x", "f", '{"a":')]], [("f", '{"a":')], id="cut off"),
        pytest.param(
            [[piece(0, "x", "f", '{"a":1}')], [piece(0, "", "", "")]],
            ONE,
            id="an empty piece at the end",
        ),
        pytest.param(
            [[{"id": "", "function": {"name": "", "arguments": ""}}]], [], id="nothing at all"
        ),
        pytest.param(
            [[{"index": "0", "id": 5, "function": {"name": "f", "arguments": '{"a":1}'}}]],
            ONE,
            id="index and id of other types",
        ),
        pytest.param(
            [[{"index": 0, "id": "x", "type": "custom", "custom": {"name": "f", "input": "free"}}]],
            [("f", "free")],
            id="a free-text tool",
        ),
        pytest.param([[None, piece(0, "x", "f", '{"a":1}')]], ONE, id="null among them"),
    ],
)
def test_pieces_become_calls(
    chunks: list[list[dict[str, Any]]], expected: list[tuple[str, str]]
) -> None:
    assert expected == calls_of(*chunks)


@pytest.mark.parametrize("reason", ["length", "content_filter", "max_tokens", "SAFETY"])
@pytest.mark.parametrize("name", ["tool_calls", "message"])
def test_a_call_that_was_cut_before_its_arguments_is_not_one_without_any(
    reason: str, name: str
) -> None:
    pieces = [piece(0, "x", "f"), piece(1, "y", "delete_all")]
    if name == "tool_calls":
        outcome = drive([events(delta(tool_calls=pieces), delta(reason))])
    else:
        choice = {"message": {"tool_calls": pieces}, "finish_reason": reason}
        outcome = drive([json.dumps({"choices": [choice]}).encode()])
    assert outcome.told == outcome.said
    assert [call.args for call in outcome.message.tool_calls] == ["{}", ""]
    assert outcome.message.tool_calls[1].truncated


WEATHER = [("get.weather", "{}")]
MAPPED = wire_tool_name("get.weather")


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param(
            [[piece(0, "x", "loo")], [piece(0, name="k")], [piece(0, name="_up")]],
            [("look_up", "{}")],
            id="by index",
        ),
        pytest.param(
            [[piece(0, "x", "look"), piece(1, "y", "sa")], [piece(1, "y", "ve", '{"a":1}')]],
            [("look", "{}"), ("save", '{"a":1}')],
            id="the second of two",
        ),
        pytest.param(
            [[piece(0, "x", "loo")], [piece(0, "x", "look")], [piece(0, "x", "look_up", "{}")]],
            [("look_up", "{}")],
            id="all of it so far",
        ),
        pytest.param([[piece(name="sa")], [piece(name="ve")]], [("save", "{}")], id="by nothing"),
        pytest.param(
            [[piece(0, "x", MAPPED[:5])], [piece(0, name=MAPPED[5:])]], WEATHER, id="a mapped name"
        ),
        pytest.param(
            [[piece(0, "x")], [piece(0, name="sa")], [piece(0, name="ve", args="{}")]],
            [("save", "{}")],
            id="late",
        ),
        pytest.param(
            [[piece(0, None, "save")], [piece(0, None, "look")]],
            [("save", "{}"), ("look", "{}")],
            id="two tools without arguments under one index",
        ),
        pytest.param(
            [[piece(0, "x", "no_tool")], [piece(0, args='{"a":1}')]],
            [("no_tool", '{"a":1}')],
            id="a tool there is not",
        ),
        pytest.param(
            [[piece(0, "x", "no_")], [piece(0, name="tool")]], [("no_tool", "{}")], id="nor in bits"
        ),
    ],
)
def test_a_name_in_pieces_is_one_name(
    chunks: list[list[dict[str, Any]]], expected: list[tuple[str, str]]
) -> None:
    tools = [ToolSpec(name, "", {}) for name in ("look", "look_up", "save", "get.weather")]
    data = events(*[delta(tool_calls=pieces) for pieces in chunks], CALLS)
    for cuts in ([data], bytewise(data)):
        outcome = drive(cuts, request=Request((), tools=tools))
        assert outcome.told == outcome.said
        assert [(name, args) for _, name, args in outcome.said[2]] == expected
    whole = data.split(b"\n\n")
    for count in range(len(whole)):
        begun = b"".join(event + b"\n\n" for event in whole[:count])
        outcome = drive([begun], request=Request((), tools=tools))
        assert outcome.told == outcome.said


def test_a_call_in_the_old_form_is_a_call() -> None:
    data = events(
        delta(function_call={"name": "f", "arguments": ""}),
        delta(function_call={"arguments": '{"a":'}),
        delta(function_call={"arguments": "1}"}),
        delta("function_call"),
    )
    outcome = drive([data])
    assert outcome.told == outcome.said
    assert [(name, args) for _, name, args in outcome.said[2]] == ONE
    assert outcome.response
    assert outcome.response.finish_reason == "tool_call"


def test_the_first_piece_of_a_call_brings_its_arguments_along() -> None:
    outcome = drive([events(delta(tool_calls=[piece(0, "x", "f", "{}")]), CALLS)])
    assert outcome.deltas == [ToolCallDelta(0, "x", "f", "{}")]


def test_a_tool_whose_name_the_wire_does_not_take_gets_its_own_back() -> None:
    request = Request((), tools=[ToolSpec("get.weather", "", {})])
    name = json.loads(_body(request))["tools"][0]["function"]["name"]
    assert name != "get.weather"
    outcome = drive([events(delta(tool_calls=[piece(0, "x", name, "{}")]), CALLS)], request=request)
    assert outcome.deltas == [ToolCallDelta(0, "x", "get.weather", "{}")]
    assert outcome.message.tool_calls[0].name == "get.weather"


def _body(request: Request) -> bytes:
    from golem.model import Settings
    from golem_adapters.openai.request import encode_request

    return encode_request(
        request, model="m", settings=Settings(), dialect=dialect_named("openai"), stream=True
    )
