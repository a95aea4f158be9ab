"""Tools: the schema a model is told, what their functions get, what may come back."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import json
import math
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, NewType, Optional, TypedDict, Union

import jsonschema
import msgspec
import pytest

from golem import Agent, Part, RunContext, RunError, Tool, ToolResult, tool
from golem.output import Output
from golem.testing import ScriptedModel
from golem.tools import InvalidArgumentsError, result_of
from tests.run.support import asks


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Point(msgspec.Struct):
    x: int
    y: int = 0


class Node(msgspec.Struct):
    value: int
    next: Optional[Node] = None  # noqa: UP045 - the spelling of many programs


class Cat(msgspec.Struct, tag=True):
    lives: int


class Dog(msgspec.Struct, tag=True):
    good: bool


class Address(TypedDict, total=False):
    street: str


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Box:
    size: int


UserId = NewType("UserId", int)


def making(hint: Any) -> Tool:
    """A tool whose one parameter `value` is annotated so."""

    def take(value: Any) -> Any:
        return value

    take.__annotations__ = {"value": hint, "return": Any}
    return tool(take)


TYPES: dict[str, tuple[Any, str, Any]] = {
    "str": (str, '"é"', "é"),
    "int": (int, "-7", -7),
    "float": (float, "1", 1.0),
    "bool": (bool, "true", True),
    "none": (None, "null", None),
    "bytes": (bytes, '"AQI="', b"\x01\x02"),
    "datetime": (
        dt.datetime,
        '"2024-01-02T03:04:05"',
        dt.datetime(2024, 1, 2, 3, 4, 5),
    ),
    "date": (dt.date, '"2024-01-02"', dt.date(2024, 1, 2)),
    "time": (dt.time, '"03:04:05"', dt.time(3, 4, 5)),
    "timedelta": (dt.timedelta, '"PT60S"', dt.timedelta(minutes=1)),
    "uuid": (uuid.UUID, f'"{uuid.UUID(int=7)}"', uuid.UUID(int=7)),
    "decimal": (decimal.Decimal, '"1.50"', decimal.Decimal("1.50")),
    "any": (Any, '{"a":[1]}', {"a": [1]}),
    "list": (list[int], "[1,2]", [1, 2]),
    "set": (set[str], '["a"]', {"a"}),
    "frozenset": (frozenset[int], "[1]", frozenset([1])),
    "tuple": (tuple[int, str], '[1,"a"]', (1, "a")),
    "tuple of any length": (tuple[int, ...], "[1,2,3]", (1, 2, 3)),
    "dict": (dict[str, float], '{"a":1.5}', {"a": 1.5}),
    "literal": (Literal["a", 7], '"a"', "a"),
    "union": (int | str | None, '"a"', "a"),
    "optional": (Union[int, None], "null", None),  # noqa: UP007
    "enum": (Color, '"red"', Color.RED),
    "int enum": (Level, "2", Level.HIGH),
    "struct": (Point, '{"x":1}', Point(1)),
    "recursive struct": (Node, '{"value":1,"next":{"value":2}}', Node(1, Node(2))),
    "tagged structs": (Cat | Dog, '{"type":"Dog","good":true}', Dog(good=True)),
    "nested": (dict[str, list[Point]], '{"a":[{"x":1,"y":2}]}', {"a": [Point(1, 2)]}),
    "dataclass": (Box, '{"size":3}', Box(3)),
    "typed dict": (Address, '{"street":"x"}', {"street": "x"}),
    "named tuple": (Pair, '[1,"a"]', Pair(1, "a")),
    "new type": (UserId, "7", 7),
    "constrained": (Annotated[int, msgspec.Meta(ge=1, le=9)], "5", 5),
}


@pytest.mark.parametrize(("hint", "text", "value"), TYPES.values(), ids=TYPES.keys())
def test_what_the_schema_allows_is_what_the_function_gets(hint: Any, text: str, value: Any) -> None:
    """For every type msgspec knows: the schema is valid, accepts the arguments, they decode."""
    made = making(hint)
    schema = json.loads(json.dumps(made.spec.schema))
    jsonschema.Draft202012Validator.check_schema(schema)
    args = f'{{"value":{text}}}'
    jsonschema.validate(json.loads(args), schema)
    assert {"value": value} == made.bind(args)
    assert (schema["type"], schema["required"]) == ("object", ["value"])


@pytest.mark.parametrize(
    ("hint", "text", "complaint"),
    [
        (int, '"seven"', "Expected `int`, got `str` - at `$.value`"),
        (int, "1.5", "Expected `int`, got `float` - at `$.value`"),
        (Point, '{"y":1}', "missing required field `x` - at `$.value`"),
        (list[Point], '[{"x":1},{"x":"a"}]', "got `str` - at `$.value[1].x`"),
        (Literal["a", "b"], '"c"', "Invalid enum value 'c' - at `$.value`"),
        (Color, '"green"', "Invalid enum value 'green' - at `$.value`"),
        (Annotated[int, msgspec.Meta(ge=1)], "0", "Expected `int` >= 1 - at `$.value`"),
        (Annotated[str, msgspec.Meta(max_length=2)], '"abc"', "length <= 2 - at `$.value`"),
        (dt.date, '"tomorrow"', "Invalid RFC3339 encoded date - at `$.value`"),
        (Cat | Dog, '{"type":"Cow"}', "Invalid value 'Cow' - at `$.value.type`"),
    ],
)
def test_a_binding_error_says_what_was_expected_and_where(
    hint: Any, text: str, complaint: str
) -> None:
    """The text goes to the model, who has to be able to act on it."""
    with pytest.raises(InvalidArgumentsError) as caught:
        making(hint).bind(f'{{"value":{text}}}')
    assert complaint in str(caught.value)


@pytest.mark.parametrize("args", ["", "   ", "{", '{"value":1', "[]", "7", "null", '{"value":NaN}'])
def test_arguments_that_are_no_json_object_are_named_as_such(args: str) -> None:
    with pytest.raises(InvalidArgumentsError, match="not a valid JSON object"):
        making(float).bind(args)


def test_a_missing_argument_is_named() -> None:
    with pytest.raises(InvalidArgumentsError, match="missing required field `value`"):
        making(int).bind("{}")


def test_white_space_and_lone_surrogates_in_arguments_are_no_error() -> None:
    assert making(str).bind(' \n{"value": "a\\ud800b"}\n') == {"value": "a\ufffdb"}
    assert making(str).bind('{"value": "a\ud800"}') == {"value": "a\ufffd"}
    assert making(str).bind('{"value": "\\ud83d\\ude00"}') == {"value": "😀"}


# The schema


def test_names_defaults_and_docstring_make_the_schema() -> None:
    @tool
    def book(
        city: str,
        nights: Annotated[int, msgspec.Meta(ge=1)] = 2,
        *,
        tags: list[str] | None = None,
    ) -> str:
        """Book a room.

        More about it.

        Args:
            city: Where to,
                in full.
            nights (int): How long.

        Returns:
            The booking: never shown.
        """
        return city

    assert book.name == "book"
    assert book.spec.description == "Book a room.\n\nMore about it."
    assert book.spec.schema == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where to, in full."},
            "nights": {"type": "integer", "minimum": 1, "default": 2, "description": "How long."},
            "tags": {"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}
            | {"default": None},
        },
        "required": ["city"],
    }
    assert book.bind('{"city":"x"}') == {"city": "x", "nights": 2, "tags": None}


def test_a_generator_is_no_tool() -> None:
    async def later(n: int) -> AsyncIterator[int]:
        yield n

    def now(n: int) -> Iterator[int]:
        yield n

    for function in (later, now):
        with pytest.raises(TypeError, match="a generator has no one result"):
            tool(function)


@pytest.mark.parametrize(
    ("text", "parts", "said"),
    [(5, (), "text must be text, not int"), ("a", ("b",), "part 0 is no Part: str")],
)
def test_what_is_no_result_is_named_where_it_is_made(text: Any, parts: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        ToolResult(text, parts)


def test_a_tool_without_parameters_takes_an_empty_object() -> None:
    @tool
    def now() -> str:
        return "now"

    assert now.spec.schema == {"type": "object", "properties": {}, "required": []}
    assert now.bind("{}") == {}


def test_options_win_over_function_and_docstring() -> None:
    @tool(name="other", description="Short.", retries=3)
    def named() -> str:
        """Long."""
        return ""

    assert (named.name, named.spec.description, named.retries) == ("other", "Short.", 3)


def test_the_context_is_not_shown_to_the_model() -> None:
    @tool
    def bare(ctx: RunContext, n: int) -> int:
        return n

    @tool
    def typed(ctx: RunContext[Any], n: int) -> int:
        return n

    for made in (bare, typed):
        assert {"n"} == set(made.spec.schema["properties"])
        assert made.takes_context


def test_nested_types_are_defined_beside_the_inlined_root() -> None:
    schema = making(list[Node]).spec.schema
    assert schema["properties"]["value"]["items"] == {"$ref": "#/$defs/Node"}
    assert "Node" in schema["$defs"]


def test_a_tool_may_be_named_like_one_of_its_types() -> None:
    def take(value: Point) -> int:
        return value.x

    made = tool(name="Point")(take)
    jsonschema.validate({"value": {"x": 1}}, made.spec.schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"value": {"x": "a"}}, made.spec.schema)
    assert {"value": Point(1)} == made.bind('{"value":{"x":1}}')


def test_a_mutable_default_is_copied_for_every_call() -> None:
    @tool
    def collect(into: list[str] = ["first"], at: Point = Point(1)) -> str:  # noqa: B006, B008
        into.append("more")
        return ",".join(into)

    for _ in range(2):
        bound = collect.bind("{}")
        assert {"into": ["first"], "at": Point(1)} == bound
        assert collect.function(**bound) == "first,more"


class Range(msgspec.Struct):
    top: float = math.inf
    bottom: Annotated[float, msgspec.Meta(examples=[math.nan, 1.5])] = 0.0


def test_a_default_that_json_cannot_spell_is_the_functions_alone() -> None:
    """As `null` it would tell the model of a default that is no number."""

    @tool
    def find(within: Range, limit: float = math.inf) -> str:
        return f"{within.top} {within.bottom} {limit}"

    schema: Any = find.spec.schema
    assert schema["properties"]["limit"] == {"type": "number"}
    named = schema["$defs"]["Range"]["properties"]
    assert named["top"] == {"type": "number"}
    assert named["bottom"] == {"type": "number", "examples": [1.5], "default": 0.0}
    assert find.function(**find.bind('{"within": {}}')) == "inf 0.0 inf"
    told = Output(Range).schema.schema["properties"]
    assert told == named


def test_callables_of_every_kind_can_be_tools() -> None:
    class Shop:
        def price(self, item: str) -> str:
            return item

    def scale(value: int, factor: int) -> int:
        return value * factor

    assert tool(Shop().price).bind('{"item":"x"}') == {"item": "x"}
    assert Tool("raw", scale, schema={}).bind('{"a":1}')["arguments"] == {"a": 1}


# What is refused


def unannotated(value) -> str:  # type: ignore[no-untyped-def]
    return ""


def variadic(*values: int) -> str:
    return ""


def keywords(**values: int) -> str:
    return ""


def positional(value: int, /) -> str:
    return ""


def context_behind(value: int, context: RunContext) -> str:
    return ""


def a_function(first: int, value: Callable[[], int]) -> str:
    return ""


def two_untagged(first: int, value: Point | Node) -> str:
    return ""


def foreign(value: threading.Lock) -> str:
    return ""


def an_object(value: Called) -> str:
    return ""


def unwritable(value: int = object()) -> str:  # type: ignore[assignment]
    return ""


def unresolved(value: Nowhere) -> str:  # type: ignore[name-defined]  # noqa: F821
    return ""


def context_by_name(*, context: RunContext, value: int) -> str:
    return ""


class Called:
    def __call__(self, value: int) -> str:
        return ""


def wrong_default(value: int = "a") -> str:  # type: ignore[assignment]
    return ""


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (unannotated, "'value' has no annotation"),
        (variadic, r"\*values"),
        (keywords, r"\*\*values"),
        (positional, "value"),
        (context_behind, "must be the first parameter, not 'context'"),
        (context_by_name, "the RunContext is given by position"),
        (a_function, "parameter 'value' has no schema: .*Callable"),
        (two_untagged, "parameter 'value' has no schema: .*tagged"),
        (foreign, "parameter 'value' has no schema"),
        (an_object, "has no schema: type <class .*Called'> is not supported; dataclasses, .* are$"),
        (unwritable, "parameter 'value' has no schema"),
        (unresolved, "Nowhere"),
        (functools.partial(positional, 1), "a partial is no function"),
        (Called(), "a tool: a Called is no function; wrap it in one$"),
        (Agent(ScriptedModel([])), r"or give agent\.as_tool\(name, description\)$"),
        (wrong_default, "parameter 'value' has a default of another type"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_signature_that_cannot_have_a_schema_is_refused_by_name(
    function: Any, named: str
) -> None:
    with pytest.raises(TypeError, match=named) as caught:
        tool(function)
    assert getattr(function, "__name__", "") in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["", "a b", "é", "x" * 65, "a.b", "<lambda>"])
def test_a_name_that_a_provider_would_refuse_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="tool name"):
        Tool(name, len, schema={})


def test_negative_retries_are_refused() -> None:
    with pytest.raises(ValueError, match="retries"):
        Tool("x", len, schema={}, retries=-1)


# Running


async def run_one(made: Tool, args: str = "{}") -> str:
    """What the model reads after calling the tool once."""
    result = await Agent(ScriptedModel([asks(("1", made.name, args)), "x"])).run("p", tools=[made])
    return result.messages[2].content


async def test_async_tools_run_inline_and_sync_ones_in_a_worker_thread() -> None:
    where: list[int] = []

    @tool
    async def inline() -> str:
        where.append(threading.get_ident())
        return ""

    @tool
    def threaded() -> str:
        where.append(threading.get_ident())
        return ""

    await run_one(inline)
    await run_one(threaded)
    here = threading.get_ident()
    assert [ident == here for ident in where] == [True, False]


async def test_an_async_function_behind_a_sync_wrapper_is_awaited() -> None:
    """As a decorator that knows nothing of async leaves it."""

    async def answer(n: int) -> int:
        return n + 1

    @tool
    def wrapped(n: int) -> Any:
        return answer(n)

    assert await run_one(wrapped, '{"n":7}') == "8"


async def test_a_raw_tool_gets_the_decoded_object_unchecked() -> None:
    def take(arguments: dict[str, Any]) -> str:
        return repr(arguments)

    made = Tool("take", take, schema={"type": "object", "required": ["a"]}, description="d")
    assert await run_one(made, '{"b":[1,null]}') == "{'b': [1, None]}"
    assert (
        made.spec.description,
        made.spec.schema,
    ) == ("d", {"type": "object", "required": ["a"]})


async def test_a_raw_tool_may_know_its_run() -> None:
    async def take(ctx: RunContext[str], arguments: dict[str, Any]) -> str:
        return f"{ctx.deps} {ctx.call_id} {arguments}"

    made = Tool("take", take, schema={"type": "object"})
    model = ScriptedModel([asks(("c1", "take", '{"a":1}')), "done"])
    result = await Agent(model, tools=[made]).run("p", deps="mine")
    assert result.messages[2].content == "mine c1 {'a': 1}"


RESULTS: dict[str, tuple[Any, str]] = {
    "text": ("as it is", "as it is"),
    "empty": ("", ""),
    "none": (None, "null"),
    "number": (7, "7"),
    "list": ([1, "é"], '[1,"é"]'),
    "dict": ({"a": 1}, '{"a":1}'),
    "struct": (Point(1, 2), '{"x":1,"y":2}'),
    "dataclass": (Box(3), '{"size":3}'),
    "date": (dt.date(2024, 1, 2), '"2024-01-02"'),
    "enum": (Color.RED, '"red"'),
    "nan": (float("nan"), "null"),
    "infinity inside": ({"a": [float("inf"), -float("inf")]}, '{"a":[null,null]}'),
    "lone surrogate": ("a\ud800b", "a\ufffdb"),
    "lone surrogate inside": ({"a": "\ud800"}, '{"a":"\ufffd"}'),
    "control characters": ("\x00\x1b[0m", "\x00\x1b[0m"),
}


@pytest.mark.parametrize(("value", "text"), RESULTS.values(), ids=RESULTS.keys())
def test_a_result_is_its_text_or_its_json(value: Any, text: str) -> None:
    assert ToolResult(text) == result_of(value)


def test_media_go_beside_the_text() -> None:
    part = Part.image(b"x", "image/png")
    parts: Any = [part]
    assert ToolResult("a\ufffd", (part,)) == result_of(ToolResult("a\ud800", parts))


def generated() -> Iterator[int]:
    yield 1


@pytest.mark.parametrize("value", [object(), generated(), {1: object()}, len, 1j], ids=repr)
async def test_a_result_that_json_cannot_carry_ends_the_run_at_stage_tool(value: Any) -> None:
    @tool
    async def give() -> Any:
        return value

    with pytest.raises(RunError) as caught:
        await run_one(give)
    assert caught.value.stage == "tool"
    assert isinstance(caught.value.__cause__, TypeError)


async def test_a_type_whose_own_validation_breaks_ends_the_run_at_stage_tool() -> None:
    class Broken(msgspec.Struct):
        n: int

        def __post_init__(self) -> None:
            raise KeyError("a bug, and no complaint about n")

    async def take(value: Any) -> str:
        return ""

    take.__annotations__ = {"value": Broken, "return": str}
    with pytest.raises(RunError) as caught:
        await run_one(tool(take), '{"value":{"n":1}}')
    assert caught.value.stage == "tool"
    assert isinstance(caught.value.__cause__, KeyError)


async def test_a_complaint_of_a_types_own_validation_goes_to_the_model() -> None:
    class Even(msgspec.Struct):
        n: int

        def __post_init__(self) -> None:
            if self.n % 2:
                raise ValueError("n must be even")

    async def take(value: Any) -> str:
        return ""

    take.__annotations__ = {"value": Even, "return": str}
    text = await run_one(tool(take), '{"value":{"n":1}}')
    assert "rejected: n must be even - at `$.value`." in text


@pytest.mark.parametrize(
    ("given", "expected"), [("{}", None), ('{"limit": null}', None), ('{"limit": 3}', 3)]
)
def test_a_default_of_none_lets_the_model_leave_it_out(given: str, expected: object) -> None:
    @tool
    def search(limit: int = None) -> str:  # type: ignore[assignment]  # noqa: RUF013
        return ""

    assert search.bind(given) == {"limit": expected}
    assert {"type": "null"} in search.spec.schema["properties"]["limit"]["anyOf"]
