"""Output: what an answer may be, the three ways to ask for it, corrections, what is on its way."""

from __future__ import annotations

import datetime as dt
import enum
import json
from typing import Annotated, Any, Literal

import anyio.lowlevel
import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from golem import Agent, AssistantMessage, ModelRetry, RunError, Settings, ToolMessage, tool
from golem.events import OutputRejected, TextDelta, ToolCallDelta
from golem.history.repair import NO_RESULT
from golem.model import Details, Response
from golem.output import Output, partial_json
from golem.testing import FunctionModel, ScriptedModel
from tests.run.support import Recorder, asks, echo, well_formed


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Line(msgspec.Struct):
    start: Point
    end: Point


class Tree(msgspec.Struct):
    name: str
    children: list[Tree] = []


class Cat(msgspec.Struct, tag="cat"):
    lives: int


class Dog(msgspec.Struct, tag="dog"):
    tricks: list[str]


class Color(enum.Enum):
    RED = "red"


Score = Annotated[int, msgspec.Meta(ge=0, le=10)]


class Native(ScriptedModel):
    """A model whose provider enforces schemas."""

    native_output = True


MODES = ["native", "tool", "prompt"]


def answering(mode: str, *answers: str, name: str = "final_result", **options: Any) -> Any:
    """A model that gives these JSON texts as the mode asks for them."""
    if mode == "tool":
        return Native([asks((f"o{n}", name, text)) for n, text in enumerate(answers)])
    return Native(list(answers))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("output_type", "text", "value"),
    [
        (Point, '{"x": 1}', Point(1)),
        (Line, '{"start": {"x": 1}, "end": {"x": 2, "y": 3}}', Line(Point(1), Point(2, 3))),
        (Tree, '{"name": "a", "children": [{"name": "b"}]}', Tree("a", [Tree("b")])),
        (int, '{"result": 7}', 7),
        (list[Point], '{"result": [{"x": 1}]}', [Point(1)]),
        (Cat | Dog, '{"result": {"type": "dog", "tricks": ["sit"]}}', Dog(["sit"])),
        (Literal["a", "b"], '{"result": "b"}', "b"),
        (Color, '{"result": "red"}', Color.RED),
        (Score, '{"result": 10}', 10),
        (dt.date, '{"result": "2024-02-29"}', dt.date(2024, 2, 29)),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (tuple[int, str], '{"result": [1, "b"]}', (1, "b")),
        (int | None, '{"result": null}', None),
    ],
    ids=str,
)
async def test_any_type_msgspec_knows_can_be_the_output(
    output_type: Any, text: str, value: Any, mode: Any
) -> None:
    model = answering(mode, text)
    result = await Agent(model, output_type=output_type, output_mode=mode).run("p")
    assert value == result.output
    (request,) = model.requests
    schema = Output(output_type).schema.schema
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(text), schema)
    assert schema["type"] == "object"
    assert (mode == "native") == (request.output_schema is not None)
    assert (["final_result"] if mode == "tool" else []) == [spec.name for spec in request.tools]
    assert (mode == "prompt") == ("JSON Schema" in str(request.messages[0].content))


@pytest.mark.parametrize(("native", "expected"), [(True, "native"), (False, "tool")])
async def test_native_is_the_default_where_the_model_has_it(native: bool, expected: str) -> None:
    texts = ['{"x": 1}']
    model: Any = Native(texts) if native else ScriptedModel([asks(("1", "final_result", *texts))])
    result = await Agent(model, output_type=Point).run("p")
    assert Point(1) == result.output
    assert (expected == "native") == (model.requests[0].output_schema is not None)


async def test_the_model_of_a_run_decides_how_it_is_asked() -> None:
    plain = ScriptedModel([asks(("1", "final_result", '{"x": 2}'))])
    agent = Agent(Native(['{"x": 1}']), output_type=Point)
    assert Point(2) == (await agent.run("p", model=plain)).output
    assert Point(1) == (await agent.run("p")).output


@pytest.mark.parametrize("mode", ["native", "prompt"])
async def test_words_around_json_are_no_json_but_a_fence_is_taken_off(mode: Any) -> None:
    fenced = '```json\n{"x": 1}\n```\n'
    result = await Agent(Native([fenced]), output_type=Point, output_mode=mode).run("p")
    assert Point(1) == result.output
    with pytest.raises(RunError) as caught:
        await Agent(Native(['Here: {"x": 1}']), output_type=Point, output_mode=mode).run("p")
    assert caught.value.stage == "decode"


# Several types


async def test_each_of_several_types_has_an_output_tool_of_its_own() -> None:
    model = ScriptedModel([asks(("1", "final_result_Line", '{"start":{"x":1},"end":{"x":2}}'))])
    result = await Agent(model, output_type=[Point, Line]).run("p")
    assert Line(Point(1), Point(2)) == result.output
    names = [spec.name for spec in model.requests[0].tools]
    assert names == ["final_result_Point", "final_result_Line"]


@pytest.mark.parametrize("mode", ["native", "prompt"])
async def test_several_types_without_tools_are_one_schema(mode: Any) -> None:
    line = '{"start": {"x": 1}, "end": {"x": 2}}'
    model = Native([line])
    agent = Agent(model, output_type=[Point, Line, int], output_mode=mode)
    assert Line(Point(1), Point(2)) == (await agent.run("p")).output
    schema = Output([Point, Line, int]).schema.schema
    for text in (line, '{"x": 1}', '{"result": 7}'):
        jsonschema.validate(json.loads(text), schema)


def test_types_of_one_name_keep_names_and_definitions_of_their_own() -> None:
    def other(kind: Any) -> Any:
        return msgspec.defstruct("Box", [("inner", msgspec.defstruct("Inner", [("v", kind)]))])

    output = Output([other(int), other(str), list[int], list[str]])
    names = [spec.name for spec in output.tools]
    assert len(names) == len(set(names)) == 4
    validator = jsonschema.Draft202012Validator(output.schema.schema)
    assert validator.is_valid({"inner": {"v": 1}})
    assert validator.is_valid({"inner": {"v": "s"}})
    assert not validator.is_valid({"inner": {"v": None}})


@pytest.mark.parametrize("label", ["x" * 80, "λ"])
def test_an_output_tools_name_is_one_that_providers_take(label: str) -> None:
    kinds = [msgspec.defstruct("Box", [("n", int)]), msgspec.defstruct("Box", [("n", str)])]
    for kind in kinds:
        kind.__name__ = label
    for spec in Output(kinds).tools:
        assert spec.name.isascii()
        assert len(spec.name) <= 64


async def test_plain_text_among_the_types_lets_the_model_answer_in_words() -> None:
    script = ["in words"]
    agent = Agent(Native(script), output_type=[str, Point])
    assert (await agent.run("p")).output == "in words"
    called = Native([asks(("1", "final_result", '{"x": 1}'))])
    assert Point(1) == (await agent.run("p", model=called)).output
    with pytest.raises(ValueError, match="plain text"):
        Agent(Native(script), output_type=[str, Point], output_mode="native")


@pytest.mark.parametrize("types", [(), []])
def test_no_type_at_all_is_refused_at_once(types: Any) -> None:
    with pytest.raises(ValueError, match="output_type is empty"):
        Agent(Native([]), output_type=types)


@pytest.mark.parametrize("words", ["no", "In words.", "{"])
async def test_words_in_place_of_json_are_called_that(words: str) -> None:
    with pytest.raises(RunError, match=r"^decode stage: not JSON: "):
        await Agent(Native([words]), output_type=Point).run("p")
    with pytest.raises(RunError, match=r"^decode stage: Expected `int`, got `str` - at `\$\.x`$"):
        await Agent(Native(['{"x": "1"}']), output_type=Point).run("p")


@pytest.mark.parametrize("wrong", [object, [Point, object], lambda: 1])
def test_a_type_without_a_schema_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(TypeError, match="cannot have a schema") as caught:
        Agent(Native([]), output_type=wrong)
    assert "\n" not in str(caught.value)
    assert "schema_hook" not in str(caught.value)  # an option of msgspec's, and none of ours


@pytest.mark.parametrize("name", ["", "my result", "réponse", "x" * 65])
def test_an_output_name_that_no_provider_takes_is_refused_at_once(name: str) -> None:
    with pytest.raises(ValueError, match="output name"):
        Agent(Native([]), output_type=Point, output_name=name)


def test_a_tool_may_not_have_the_output_tools_name() -> None:
    @tool
    async def final_result() -> str:
        return ""

    with pytest.raises(ValueError, match="final_result"):
        Agent(Native([]), output_type=Point, tools=[final_result])
    Agent(Native([]), output_type=Point, tools=[final_result], output_name="answer")
    Agent(Native([]), tools=[final_result])


# Corrections


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_rejected_answer_stays_and_the_model_reads_why(mode: Any, streamed: bool) -> None:
    recorder = Recorder()
    model = answering(mode, '{"x": "one"}', '{"x": 1}')
    agent = Agent(
        model, output_type=Point, output_mode=mode, output_retries=1, on_event=recorder, max_turns=1
    )
    if streamed:
        async with agent.stream("p") as stream:
            async for _ in stream:
                pass
        result: Any = stream.result
    else:
        result = await agent.run("p")
    assert (Point(1), 2) == (result.output, result.requests)
    rejected, told = result.new_messages[1:3]
    assert isinstance(rejected, AssistantMessage)
    reason = "Expected `int`, got `str` - at `$.x`"
    if mode == "tool":
        assert isinstance(told, ToolMessage)
        assert (
            f"Your result was rejected: {reason}. "
            "Correct the arguments and call final_result again." == told.content
        )
        assert result.messages[-1].content == "Result recorded."
    else:
        assert (
            f"Your previous response was rejected: {reason}. Correct it and respond again."
            == told.content
        )
    assert result.run_id == told.run_id
    rounds = [event for event in recorder.events if isinstance(event, OutputRejected)]
    assert [(1, reason)] == [(event.round, event.reason) for event in rounds]
    turns = [event.turn for event in recorder.events if event.kind == "model_started"]
    assert turns == [0, 0]  # they restart
    well_formed(recorder.events)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("budget", [0, 1, 2])
async def test_corrections_have_a_budget(mode: Any, budget: int) -> None:
    model = answering(mode, *['{"x": "one"}'] * 9)
    agent = Agent(model, output_type=Point, output_mode=mode, output_retries=budget)
    with pytest.raises(RunError) as caught:
        await agent.run("p")
    assert ("decode", budget + 1) == (caught.value.stage, len(model.requests))
    assert isinstance(caught.value.__cause__, ModelRetry)


async def test_a_correction_may_use_tools_again() -> None:
    script = ["no json", asks(("1", "echo")), '{"x": 1}']
    agent = Agent(Native(script), output_type=Point, output_retries=1, tools=[echo], max_turns=2)
    assert Point(1) == (await agent.run("p")).output


# Decoders


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_a_decoder_makes_the_output_of_the_text(asynchronous: bool) -> None:
    def decode(text: str) -> int:
        if not text.isdigit():
            raise ModelRetry("want a digit \ud800")
        return int(text)

    async def later(text: str) -> int:
        await anyio.lowlevel.checkpoint()
        return decode(text)

    agent = Agent(
        Native(["seven", "7"]), decoder=later if asynchronous else decode, output_retries=1
    )
    result = await agent.run("p")
    assert result.output == 7
    assert "want a digit \ufffd" in result.messages[2].content


async def test_a_decoder_gets_an_output_calls_arguments_as_they_are() -> None:
    model = ScriptedModel([asks(("1", "answer", '{"x":1.0}'))])
    agent = Agent(
        model, output_type=Point, output_mode="tool", output_name="answer", decoder=lambda t: t
    )
    assert (await agent.run("p")).output == '{"x":1.0}'


# Turns that are no whole answer


@pytest.mark.parametrize("reason", ["length", "content_filter"])
async def test_what_was_cut_off_is_text_with_its_reason_and_never_structured(reason: Any) -> None:
    cut = Response(AssistantMessage('{"x": 1}'), finish_reason=reason)
    result = await Agent(Native([cut])).run("p")
    assert ('{"x": 1}', reason) == (result.output, result.finish_reason)
    with pytest.raises(RunError, match=r"cut off|withheld") as caught:
        await Agent(Native([cut]), output_type=Point).run("p")
    assert caught.value.stage == "decode"
    mended = Agent(Native([cut, '{"x": 2}']), output_type=Point, output_retries=1)
    assert Point(2) == (await mended.run("p")).output
    call = Response(asks(("1", "final_result", '{"x": 1}')), finish_reason=reason)
    with pytest.raises(RunError, match=r"cut off|withheld"):
        await Agent(ScriptedModel([call]), output_type=Point).run("p")


async def test_a_turn_that_the_provider_paused_is_sent_back_as_it_is() -> None:
    paused = Response(AssistantMessage("searching"), details=Details(finish_reason="pause_turn"))
    model = ScriptedModel([paused, "found"])
    result = await Agent(model).run("p")
    assert (result.output, result.requests) == ("found", 2)
    assert [m.content for m in model.requests[1].messages] == ["p", "searching"]
    with pytest.raises(RunError, match="turn limit"):
        await Agent(ScriptedModel([paused] * 9), max_turns=3).run("p")


# Calls beside an output call


async def test_the_first_output_call_ends_the_run_and_the_others_are_closed() -> None:
    ran: list[str] = []

    @tool
    async def act() -> str:
        ran.append("act")
        return ""

    calls = [
        ("1", "act"), ("2", "final_result", '{"x": 1}'), ("3", "act"),
        ("4", "final_result", '{"x": 2}'),
    ]  # fmt: skip
    result = await Agent(ScriptedModel([asks(*calls)]), output_type=Point, tools=[act]).run("p")
    assert (Point(1), [], 0) == (result.output, ran, result.tool_calls)
    closed = [m.content for m in result.messages if isinstance(m, ToolMessage)]
    assert closed == [NO_RESULT, "Result recorded.", NO_RESULT, NO_RESULT]
    again = await Agent(ScriptedModel(["x"])).run("q", history=result.messages)
    assert not again.repair


async def test_settings_and_tools_go_along_with_an_output_schema() -> None:
    model = Native(['{"x": 1}'])
    settings = Settings(temperature=0.5)
    await Agent(model, output_type=Point, tools=[echo], settings=settings).run("p")
    (request,) = model.requests
    assert (settings, ["echo"]) == (request.settings, [spec.name for spec in request.tools])


# What is on its way


@pytest.mark.parametrize("mode", MODES)
async def test_partial_output_grows_into_the_output(mode: Any) -> None:
    text = '{"start": {"x": 10, "y": 20}, "end": {"x": 3}}'
    seen: list[Any] = []
    agent = Agent(answering(mode, text), output_type=Line, output_mode=mode)
    async with agent.stream("p") as stream:
        assert stream.partial_output is None
        async for event in stream:
            if isinstance(event, (TextDelta, ToolCallDelta)):
                seen.append(stream.partial_output)
    assert json.loads(text) == seen[-1]
    assert any(isinstance(part, dict) and "end" not in part for part in seen)
    sizes = [len(json.dumps(part)) for part in seen if part is not None]
    assert sorted(sizes) == sizes


async def test_partial_output_of_text_is_the_text_so_far() -> None:
    seen: list[Any] = []
    async with Agent(ScriptedModel(["a longer answer"])).stream("p") as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                seen.append(stream.partial_output)
    assert seen == ["a longer", "a longer answer"]


async def test_partial_output_of_a_wrapped_type_is_unwrapped() -> None:
    async with Agent(Native(['{"result": [1, 2, 3]}']), output_type=list[int]).stream(
        "p"
    ) as stream:
        async for event in stream:
            if isinstance(event, TextDelta):
                found = stream.partial_output
    assert found == [1, 2, 3]


class Report(msgspec.Struct):
    result: int
    note: str = ""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("types", "place", "text", "found"),
    [
        ([int, list[int]], 1, '{"result": [1, 2, 3]}', [1, 2, 3]),
        ([list[str], int], 0, '{"result": ["a", "b"]}', ["a", "b"]),
        ([Point, list[int]], 1, '{"result": [1]}', [1]),
        ([Point, list[int]], 0, '{"x": 1, "y": 2}', {"x": 1, "y": 2}),
        ([Report, int], 0, '{"result": 5, "note": "x"}', {"result": 5, "note": "x"}),
        ([dict[str, int], int], 0, '{"result": 5 }', {"result": 5}),
        ([list[int]], 0, '{"result": [7, 8] }', [7, 8]),
    ],
)
async def test_partial_output_of_several_types_is_unwrapped_as_the_output_is(
    types: Any, place: int, text: str, found: Any, mode: Any
) -> None:
    agent = Agent(ScriptedModel([]), output_type=types, output_mode=mode)
    name = agent._output.shapes[place].name
    model = Native([asks(("1", name, text)) if mode == "tool" else text])
    seen: list[Any] = []
    async with agent.stream("p", model=model) as stream:
        async for event in stream:
            if isinstance(event, (TextDelta, ToolCallDelta)):
                seen.append(stream.partial_output)
    assert found == seen[-1]
    assert stream.result is not None
    assert found == msgspec.to_builtins(stream.result.output)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)


@given(JSON, st.integers(0, 200), st.booleans())
def test_any_beginning_of_json_amounts_to_something_or_to_nothing(
    value: Any, length: int, ascii_only: bool
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    partial_json(text[:length])  # never raises
    if isinstance(value, (dict, list, str)):
        assert value == partial_json(text)


async def test_partial_output_is_never_the_decoders_business() -> None:
    """Decoding runs once, on the whole answer."""
    decoded: list[str] = []
    agent = Agent(ScriptedModel(["a longer answer"]), decoder=lambda t: decoded.append(t) or t)
    async with agent.stream("p") as stream:
        async for _ in stream:
            _ = stream.partial_output
    assert decoded == ["a longer answer"]


async def test_a_function_model_answers_what_it_is_asked() -> None:
    model = FunctionModel(lambda request: f"{len(request.messages)} messages")
    assert (await Agent(model).run("p")).output == "1 messages"
