"""Tools: typed functions that a model may ask to run, and what they may return.

A tool's schema comes from its annotations, and the same annotations decode and check the
arguments, so that what the model is told and what the function gets cannot differ. How a run
executes a batch of calls is in ``golem._run``; what a tool raises to end a call is in
``golem.errors``.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import Annotated, Any, Final, TypedDict, TypeVar, Unpack, cast, overload

import msgspec
from msgspec import Struct

from golem import rawjson
from golem.codec import encode_json
from golem.context import RunContext
from golem.docstrings import read_docstring
from golem.limits import check_number
from golem.messages import Part
from golem.model import ToolSpec, without_unspellable

F = TypeVar("F", bound=Callable[..., Any])

_NAME: Final = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider takes as a tool's name."""


class ToolResult(Struct, frozen=True):
    """A tool's result with media beside the text."""

    text: str = ""
    parts: tuple[Part, ...] = ()

    def __post_init__(self) -> None:
        """Raise TypeError for what is no text and for what are no parts."""
        text: object = self.text
        if not isinstance(text, str):
            raise TypeError(f"a ToolResult's text must be text, not {type(text).__name__}")
        for place, part in enumerate(self.parts):
            found: object = part
            if not isinstance(found, Part):
                raise TypeError(f"a ToolResult's part {place} is no Part: {type(part).__name__}")


class InvalidArgumentsError(ValueError):
    """Arguments that do not fit the tool's schema; the text is written for the model."""


class ToolOptions(TypedDict, total=False):
    """How a run treats the calls of a tool."""

    retries: int
    """How often the function may refuse its arguments (``ModelRetry``) in one run; 0."""
    timeout: float | None
    """Seconds for one call; the run's own ``Timeouts.tool`` where there is none."""
    sequential: bool
    """Nothing runs beside a call of this tool."""
    requires_approval: bool
    """Every call is deferred until somebody allows it."""


class Tool:
    """A function the model may call. Make one with `tool`, or raw, with a schema of your own.

    ``Tool(name, function, schema=…, description=…)`` gives the function the decoded arguments as
    one dict named ``arguments``, unchecked beyond being a JSON object, behind the context where its
    first parameter is annotated `RunContext`. An async function runs in the run's own task
    (beside others, in one of its own), any other in a worker thread. The options are those of
    `ToolOptions`.

    Raises ValueError for a name that a provider would refuse, for an option out of range and for
    a number in the schema that JSON cannot spell (NaN), TypeError for an option there is not.
    """

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        schema: Mapping[str, Any],
        description: str = "",
        **options: Unpack[ToolOptions],
    ) -> None:
        if not _NAME.fullmatch(name):
            raise ValueError(f"tool name {name!r}: 1 to 64 letters, digits, _ or - are needed")
        check_options(f"tool {name!r}", options, ToolOptions.__optional_keys__)
        retries, timeout = options.get("retries", 0), options.get("timeout")
        check_number(f"tool {name!r}: retries", retries)
        if timeout is not None:
            check_number(f"tool {name!r}: timeout", timeout, positive=True)
        self.spec = ToolSpec(name, description, schema)
        self.function = function
        self.retries = retries
        self.timeout = timeout
        self.sequential = options.get("sequential", False)
        self.requires_approval = options.get("requires_approval", False)
        self.is_async = inspect.iscoroutinefunction(function)
        self.takes_context = _takes_context(function)
        self._arguments: type[Struct] | None = None

    def __repr__(self) -> str:
        return f"Tool({self.name!r})"

    @property
    def name(self) -> str:
        """The name the model calls it by."""
        return self.spec.name

    def bind(self, args: str) -> dict[str, Any]:
        """The function's keyword arguments from the model's argument text.

        A raw tool's are one dict under the name ``arguments``.

        Raises InvalidArgumentsError when they are no JSON object or do not fit.
        """
        text = rawjson.without_lone_surrogates(rawjson.clean_text(args).encode())
        if not rawjson.is_object(text.strip(rawjson.BLANKS)):
            raise InvalidArgumentsError("the arguments are not a valid JSON object")
        try:
            if self._arguments is None:
                return {"arguments": msgspec.json.decode(text, type=dict[str, Any])}
            bound = msgspec.json.decode(text, type=self._arguments)
        except msgspec.MsgspecError as error:
            raise InvalidArgumentsError(str(error)) from error
        return {name: getattr(bound, name) for name in bound.__struct_fields__}

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        **options: Unpack[ToolOptions],
    ) -> Tool:
        """The tool that `function` is: name, docstring and annotated parameters.

        Raises TypeError, naming the parameter, for what cannot have a schema.
        """
        called = name if name is not None else getattr(function, "__name__", "")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"tool {called!r}: a generator has no one result; return it instead")
        if not inspect.isroutine(function):  # a partial, an object: annotations are elsewhere
            kind = type(function).__name__
            which = f"tool {called!r}" if called else "a tool"
            raise TypeError(f"{which}: a {kind} is no function; wrap it in one{_rather(function)}")
        parameters = _parameters(function, called)
        documented = description if description is not None else inspect.getdoc(function) or ""
        summary, explained = read_docstring(documented)
        arguments = _arguments_type(called, parameters, explained)
        made = cls(
            called,
            function,
            schema=_schema(called, arguments),
            description=summary,
            **options,
        )
        made._arguments = arguments
        return made


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *, name: str | None = None, description: str | None = None, **options: Unpack[ToolOptions]
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    **options: Unpack[ToolOptions],
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a typed function a tool; used bare or with options (`ToolOptions`).

    The docstring's text is the description, and what it says of parameters (in Google, NumPy or
    reST style) describes them; annotations may be anything msgspec can decode,
    ``Annotated[…, msgspec.Meta(…)]`` included. A first parameter annotated `RunContext` gets the
    run's context and is not shown to the model.

    Raises TypeError, naming the parameter, for what cannot have a schema.
    """

    def make(function: Callable[..., Any]) -> Tool:
        return Tool.from_function(function, name=name, description=description, **options)

    return make if function is None else make(function)


def check_options(called: str, given: Mapping[str, object], known: Iterable[str]) -> None:
    """Raise TypeError for a keyword that is no option, which no signature would notice."""
    for name in given:
        if name not in known:
            raise TypeError(
                f"{called} has no option {name!r}; options are: {', '.join(sorted(known))}"
            )


def result_of(value: Any) -> ToolResult:
    """What a tool returned, as text and media: text as it is, anything else as JSON.

    Raises TypeError when JSON cannot carry it, ValueError for media that no run may send: once
    recorded, it would keep every later run of the conversation from starting.
    """
    if isinstance(value, ToolResult):
        for part in value.parts:
            part.validate()
        return ToolResult(rawjson.clean_text(value.text), tuple(value.parts))
    text = value if isinstance(value, str) else encode_json(value).decode()
    return ToolResult(rawjson.clean_text(text))


Parameter = tuple[str, Any, Any]
"""Name, annotation and default (`inspect.Parameter.empty`: required)."""


def _takes_context(function: Callable[..., Any]) -> bool:
    """Whether the first parameter of a function is annotated as the run's context."""
    try:
        first = next(iter(inspect.signature(function).parameters), "")
        hint = typing.get_type_hints(function).get(first)
    except (NameError, TypeError, ValueError):  # no function, or one whose annotations are broken
        return False
    return _is_context(hint)


def _is_context(hint: Any) -> bool:
    return RunContext in (hint, typing.get_origin(hint))


def _parameters(function: Callable[..., Any], called: str) -> list[Parameter]:
    """The parameters the model fills in; the context comes before them, if at all."""
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        signature = inspect.signature(function)
    except (NameError, TypeError, ValueError) as error:
        raise TypeError(f"tool {called!r}: cannot read its annotations: {error}") from error
    found: list[Parameter] = []
    for position, parameter in enumerate(signature.parameters.values()):
        hint = hints.get(parameter.name, inspect.Parameter.empty)
        if _is_context(hint):
            if position:
                raise TypeError(
                    f"tool {called!r}: the RunContext must be the first parameter, "
                    f"not {parameter.name!r}"
                )
            if parameter.kind is parameter.KEYWORD_ONLY:
                raise TypeError(f"tool {called!r}: the RunContext is given by position")
            continue
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise TypeError(f"tool {called!r}: parameter {parameter} has no name to call it by")
        if hint is inspect.Parameter.empty:
            raise TypeError(f"tool {called!r}: parameter {parameter.name!r} has no annotation")
        found.append((parameter.name, hint, parameter.default))
    return found


def _arguments_type(
    called: str, parameters: list[Parameter], explained: Mapping[str, str]
) -> type[Struct]:
    fields: list[Any] = []
    for name, hint, default in parameters:
        if explanation := explained.get(name):
            hint = Annotated[hint, msgspec.Meta(description=explanation)]
        if default is None and not _accepts(hint, None):
            hint = _or_none(hint)  # what such a signature is meant to say
        field = (name, hint, *_default(default))
        _check(called, name, field)
        if default is not inspect.Parameter.empty and not _accepts(hint, default):
            raise TypeError(f"tool {called!r}: parameter {name!r} has a default of another type")
        fields.append(field)
    return msgspec.defstruct(called or "arguments", fields, kw_only=True)


def _default(default: Any) -> tuple[Any, ...]:
    """A parameter's default as msgspec takes it: nothing, the value, or copies of a mutable one."""
    if default is inspect.Parameter.empty:
        return ()
    try:
        hash(default)
    except TypeError:
        return (msgspec.field(default_factory=functools.partial(copy.deepcopy, default)),)
    return (default,)


def _or_none(hint: Any) -> Any:
    return hint | None


def _accepts(hint: Any, value: object) -> bool:
    """Whether a model could have given that value for a parameter of that annotation."""
    try:
        msgspec.convert(msgspec.to_builtins(value), hint)
    except msgspec.ValidationError:
        return False
    except TypeError:  # what cannot have a schema is refused as that
        return True
    return True


def _check(called: str, name: str, field: tuple[Any, ...]) -> None:
    """Raise TypeError, naming the parameter, when it cannot have a schema or be decoded."""
    try:
        alone = msgspec.defstruct("arguments", [field], kw_only=True)
        msgspec.json.schema(alone)
        msgspec.json.Decoder(alone)
    except (TypeError, ValueError, NameError) as error:
        reason = no_schema(error)
        raise TypeError(f"tool {called!r}: parameter {name!r} has no schema: {reason}") from error


def no_schema(error: Exception) -> str:
    """Why there is no schema, in a line; of msgspec's advice only what can be followed here."""
    reason = " ".join(str(error).split())
    if "schema_hook" not in reason:
        return reason
    _, _, last = reason.rpartition("` ")
    return f"{last}; dataclasses, TypedDicts and msgspec Structs are"


def _rather(function: object) -> str:
    """What an agent given for a tool is told; the tools know nothing else of agents."""
    return ", or give agent.as_tool(name, description)" if hasattr(function, "as_tool") else ""


def _schema(called: str, arguments: type[Struct]) -> dict[str, Any]:
    """The JSON Schema of the arguments, its root inlined as providers want it."""
    try:
        (root,), components = msgspec.json.schema_components(
            [arguments], ref_template="#/$defs/{name}"
        )
    except (TypeError, ValueError, NameError) as error:  # of several parameters together
        raise TypeError(f"tool {called!r} cannot have a schema: {no_schema(error)}") from error
    schema = dict(components.pop(cast("str", root["$ref"]).removeprefix("#/$defs/")))
    schema.pop("title", None)
    made = {**schema, "$defs": components} if components else schema
    return cast("dict[str, Any]", without_unspellable(made))
