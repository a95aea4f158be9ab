"""What a run's answer has to be: its types, how the model is told, how text becomes a value.

Text is the answer itself. Any other type is asked for in one of three modes: *native* (the
provider enforces a schema), *tool* (the model calls an output tool) or *prompt* (the schema
stands in the instructions). What happens to a rejected answer is decided in ``golem._run``.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, Literal, NamedTuple, cast

import msgspec

from golem import rawjson
from golem.errors import ModelRetry
from golem.messages import ToolCall
from golem.model import OutputSchema, ToolSpec, without_unspellable
from golem.tools import no_schema

OutputMode = Literal["native", "tool", "prompt"]
Decoder = Callable[[str], Any | Awaitable[Any]]
"""Makes a value of the model's text. Raise ``ModelRetry`` to have the answer corrected."""

OUTPUT_NAME: Final = "final_result"
ARRIVED: Final = "Result recorded."
"""Closes the call of an output tool."""

_TOOL_NOTE: Final = "Give the final result. Calling this ends the task."
_PROMPT_NOTE: Final = (
    "Answer with JSON only, without any text around it. It has to follow this JSON Schema:\n"
)


class Shape(NamedTuple):
    """One type an answer may have, and how it is spelled in JSON."""

    name: str
    type: Any
    schema: dict[str, Any]
    wrapped: bool  # in an object with the one member `result`: providers want objects

    @property
    def has_result(self) -> bool:
        """Whether an object of this type may have a member of that name itself."""
        properties = self.schema.get("properties", {})
        return "result" in properties or bool(self.schema.get("additionalProperties"))

    def decode(self, data: bytes) -> Any:
        """The value in `data`; raises what msgspec raises for what does not fit."""
        if self.wrapped:
            try:
                members = msgspec.json.decode(data, type=dict[str, msgspec.Raw])
            except msgspec.ValidationError:
                members = {}  # the bare value: what was asked for, but for its wrapping
            data = bytes(members.get("result", data))
        return msgspec.json.decode(data, type=self.type)


class Output:
    """The output side of an agent; immutable.

    `types` is `str`, a type msgspec can decode, or several; `str` among several lets the model
    answer in plain words too. `decoder` replaces decoding altogether.

    Raises TypeError, naming it, for a type that cannot have a schema, ValueError for no type at
    all and for a `name` that a provider would refuse.
    """

    def __init__(
        self,
        types: Any = str,
        *,
        decoder: Decoder | None = None,
        name: str = OUTPUT_NAME,
    ) -> None:
        if not name or len(name) > 64 or _NO_NAME.search(name):
            raise ValueError(f"output name {name!r}: 1 to 64 letters, digits, _ or - are needed")
        several = isinstance(types, (list, tuple))
        given = list(cast("Sequence[Any]", types)) if several else [types]
        if not given:
            raise ValueError("output_type is empty: at least one type is needed")
        self.takes_text = str in given
        structured = [kind for kind in given if kind is not str]
        names = _names(structured, name)
        self.shapes = tuple(map(_shape, structured, names))
        self.decoder = decoder
        self._names = {shape.name for shape in self.shapes}

    @property
    def is_text(self) -> bool:
        """Whether the model's words are the output as they are."""
        return not self.shapes and self.decoder is None

    @property
    def structured(self) -> bool:
        """Whether an answer that was cut off cannot be decoded as if it were whole."""
        return bool(self.shapes) or self.decoder is not None

    @functools.cached_property
    def tools(self) -> tuple[ToolSpec, ...]:
        """The output tools of tool mode, one for each type."""
        return tuple(ToolSpec(shape.name, _TOOL_NOTE, shape.schema) for shape in self.shapes)

    @functools.cached_property
    def schema(self) -> OutputSchema:
        """The one schema of native and prompt mode."""
        if len(self.shapes) == 1:
            return OutputSchema(self.shapes[0].name, self.shapes[0].schema)
        # Made together, so that different types of one name keep definitions of their own.
        roots, definitions = _components([shape.type for shape in self.shapes])
        choices = [
            _wrapped(root) if shape.wrapped else root
            for shape, root in zip(self.shapes, roots, strict=True)
        ]
        schema = {"anyOf": choices, **({"$defs": definitions} if definitions else {})}
        return OutputSchema(OUTPUT_NAME, schema, strict=False)

    @property
    def instructions(self) -> str:
        """What prompt mode adds to the instructions."""
        return _PROMPT_NOTE + msgspec.json.encode(self.schema.schema).decode()

    def is_output_name(self, name: str) -> bool:
        """Whether the tool of that name is an output tool."""
        return name in self._names

    def is_output_call(self, call: ToolCall) -> bool:
        """Whether a call gives the result, in tool mode."""
        return call.name in self._names

    def unwrapped(self, value: Any, name: str = "") -> Any:
        """Some decoded JSON of an answer without the object that was put around it.

        `name`: the output tool that gave it. Without one any of the types may be meant: the first
        that can be, as in decoding.
        """
        shapes = [shape for shape in self.shapes if name in ("", shape.name)]
        if not isinstance(value, dict) or not any(shape.wrapped for shape in shapes):
            return cast("Any", value)
        members = cast("dict[str, Any]", value)
        if "result" not in members:
            return members or None
        meant = next((shape for shape in shapes if shape.wrapped or shape.has_result), None)
        return members if meant is None or not meant.wrapped else members["result"]

    async def decode(self, text: str) -> Any:
        """The value of an answer in words.

        Raises ModelRetry with a reason the model can act on when it does not fit.
        """
        if self.decoder is not None:
            return await _awaited(self.decoder(text))
        if not self.shapes:
            return text
        try:
            return _first(self.shapes, _without_fence(text))
        except ModelRetry:
            if self.takes_text:
                return text
            raise

    async def decode_call(self, call: ToolCall) -> Any:
        """The value that a call of an output tool gives. Raises ModelRetry as `decode` does."""
        if self.decoder is not None:
            return await _awaited(self.decoder(call.args))
        shapes = [shape for shape in self.shapes if shape.name == call.name]
        return _first(shapes, call.args)


def partial_json(text: str) -> Any:
    """The value that a beginning of JSON text amounts to; None while there is none.

    What is open is closed where it is; a member without a value and a number or word that may go
    on are left out. For showing what is on its way, never for acting on it.
    """
    text = _FENCE.sub("", text)
    best, closers, expecting, position = "", "", "value", 0
    while match := _PIECE.match(text, position):
        kind, position = match.lastgroup or "", match.end()
        piece = match[kind]
        if kind == "mark":
            expecting = "key" if piece == "," and closers.startswith("}") else "value"
            continue
        if kind == "open":
            closers = ("}" if piece == "{" else "]") + closers
            expecting = "key" if piece == "{" else "value"
        elif kind == "close":
            if not closers.startswith(piece):
                break
            closers = closers[1:]
        elif expecting == "key":
            continue
        elif kind == "cut":
            best = text[: match.start(kind)] + _CUT_ESCAPE.sub("", piece) + '"' + closers
            break
        elif kind == "scalar" and position == len(text):
            break
        best = text[:position] + closers
    try:
        return msgspec.json.decode(rawjson.without_lone_surrogates(best.encode()))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None


_PIECE: Final = re.compile(
    r"\s*(?:(?P<open>[{\[])|(?P<close>[}\]])|(?P<mark>[,:])"
    r'|(?P<string>"(?:[^"\\]|\\.)*+")|(?P<cut>"(?:[^"\\]|\\.)*+\\?\Z)'
    r"|(?P<scalar>[^\s{}\[\],:\"]+))",
    re.DOTALL,
)
_CUT_ESCAPE: Final = re.compile(
    r"(?:\\u[dD][89abAB][0-9a-fA-F]{2})?(?:\\(?:u[0-9a-fA-F]{0,3})?)?\Z"
)
"""An escape that is not all there, or the first half of a pair."""


_NO_NAME: Final = re.compile(r"[^a-zA-Z0-9_-]+")
"""What no provider takes in a tool's name."""


def _names(kinds: Sequence[Any], name: str) -> list[str]:
    """A name for each type, all different: `name` itself where there is one type."""
    if len(kinds) == 1:
        return [name]
    names: list[str] = []
    for kind in kinds:
        label = getattr(kind, "__name__", None) or str(kind)
        called = f"{name}_{_NO_NAME.sub('_', label).strip('_')}"[:60]
        numbered = (f"{called}_{number}" for number in itertools.count(2))
        names.append(next(n for n in itertools.chain([called], numbered) if n not in names))
    return names


def _shape(kind: Any, name: str) -> Shape:
    try:
        msgspec.json.Decoder(kind)
        schema = _inlined(kind)
    except (TypeError, ValueError, NameError) as error:
        raise TypeError(f"output type {kind!r} cannot have a schema: {no_schema(error)}") from error
    wrapped = schema.get("type") != "object"
    if wrapped:
        definitions = schema.pop("$defs", None)
        schema = _wrapped(schema)
        if definitions:
            schema["$defs"] = definitions
    return Shape(name, kind, schema, wrapped)


def _wrapped(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": {"result": schema}, "required": ["result"]}


def _inlined(kind: Any) -> dict[str, Any]:
    """The JSON Schema of a type with its root in place, the rest under ``$defs``."""
    (root,), definitions = _components([kind])
    if set(root) == {"$ref"}:
        own = cast("str", root["$ref"]).removeprefix("#/$defs/")
        root = definitions[own]
        if f'"#/$defs/{own}"' not in msgspec.json.encode([*definitions.values()]).decode():
            del definitions[own]
    return {**root, **({"$defs": definitions} if definitions else {})}


def _components(kinds: Sequence[Any]) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    roots, components = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    return without_unspellable(list(roots)), without_unspellable(dict(components))


def _first(shapes: Sequence[Shape], text: str) -> Any:
    """The first of the types that the text fits; else the complaint of the first."""
    data = rawjson.without_lone_surrogates(rawjson.clean_text(text).encode())
    complaint = ""
    for shape in shapes:
        try:
            return shape.decode(data)
        except (msgspec.MsgspecError, RecursionError) as error:
            complaint = complaint or _complaint(error)
    raise ModelRetry(complaint)


def _complaint(error: Exception) -> str:
    """What msgspec says; of a text that is no JSON at all it would say that it was truncated."""
    words = isinstance(error, msgspec.DecodeError) and not isinstance(
        error, msgspec.ValidationError
    )
    return f"not JSON: {error}" if words else str(error)


_FENCE: Final = re.compile(r"\A\s*```[a-zA-Z]*\s*|\s*```\s*\Z")


def _without_fence(text: str) -> str:
    """The text without the Markdown fence that models like to put around JSON."""
    return _FENCE.sub("", text)


async def _awaited(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value
