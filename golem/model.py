"""The port: all that a run knows of a model provider (contract §5).

An adapter implements `Model`: it turns a `Request` into what its provider speaks and back.
Nothing here knows HTTP, JSON bodies or any provider; nothing of golem above this module knows
them either.
"""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from typing import Any, Final, Literal, Protocol, cast, runtime_checkable

import msgspec
from msgspec import Struct

from golem.messages import AssistantMessage, Message
from golem.usage import Usage

FinishReason = Literal["stop", "length", "tool_call", "content_filter", "other"]
"""Why a model ended its turn; the provider's own word is in `Details.finish_reason`."""


class ToolSpec(Struct, frozen=True):
    """A tool as a model sees it: a name, what it does, the JSON Schema of its arguments.

    Raises ValueError, naming the place, for a schema with a number that JSON cannot spell.
    """

    name: str
    description: str
    schema: Mapping[str, Any]

    def __post_init__(self) -> None:
        _check_numbers(self.schema, f"tool {self.name!r}: schema")


class OutputSchema(Struct, frozen=True):
    """The JSON Schema that the model's answer has to follow, where the provider enforces one.

    Raises ValueError, naming the place, for a schema with a number that JSON cannot spell.
    """

    name: str
    schema: Mapping[str, Any]
    description: str = ""
    strict: bool = True

    def __post_init__(self) -> None:
        _check_numbers(self.schema, f"output {self.name!r}: schema")


class ToolChoice(Struct, frozen=True):
    """Which tool the model has to call: ``auto``, ``none``, ``required`` or the one in `name`."""

    mode: Literal["auto", "none", "required", "tool"] = "auto"
    name: str = ""


class Settings(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """Sampling and reasoning settings; ``None`` leaves a setting to the provider.

    `max_tokens` bounds the answer, `temperature`, `top_p`, `seed` and the penalties are the
    provider's, `stop` ends the answer at one of these texts, `reasoning_effort` is the
    provider's word for it, `parallel_tool_calls` lets the model ask for several calls in one
    turn, `prompt_cache_key` tells which requests begin alike, so that they reach the cache of
    the one before (it changes no answer: a provider without such a key never sees it),
    `extra_body` is merged into the request body as it is.

    An unknown name is a TypeError that says it; a name that a provider's API does not have is
    refused by that adapter, before anything is sent.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    presence_penalty: float | None = None
    frequency_penalty: float | None = None
    reasoning_effort: str | None = None
    parallel_tool_calls: bool | None = None
    prompt_cache_key: str | None = None
    extra_body: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        """Raise TypeError or ValueError, naming it, for a value that no provider could take."""
        for name, wanted, fits in _VALUES:
            value: object = getattr(self, name)
            if value is not None and not fits(value):
                raise TypeError(f"settings.{name} must be {wanted}, not {value!r}")
        if self.max_tokens is not None and self.max_tokens < 1:
            raise ValueError(f"settings.max_tokens must be at least 1, not {self.max_tokens!r}")
        extra: object = self.extra_body
        if extra is not None and not isinstance(extra, Mapping):
            raise TypeError(f"settings.extra_body must be a mapping, not {type(extra).__name__}")
        _check_numbers(extra, "settings.extra_body")
        msgspec.structs.force_setattr(self, "stop", stop_texts(self.stop))


def stop_texts(stop: object) -> tuple[str, ...]:
    """One text or several, as the several; TypeError for anything else."""
    several = isinstance(stop, Iterable) and not isinstance(stop, str)
    found: tuple[Any, ...] = tuple(cast("Any", stop) if several else [stop])
    if not all(isinstance(text, str) for text in found):
        raise TypeError(f"settings.stop must be a text, or several, not {stop!r}")
    return found


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    """Whether JSON can spell `value` as a number."""
    return _is_whole(value) or (isinstance(value, float) and math.isfinite(value))


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_switch(value: object) -> bool:
    return isinstance(value, bool)


_NUMBERS: Final = (
    *("max_tokens", "temperature", "top_p", "seed"),
    *("presence_penalty", "frequency_penalty"),
)
_VALUES: Final[Sequence[tuple[str, str, Callable[[object], bool]]]] = (
    *((name, "a finite number", _is_number) for name in _NUMBERS),
    *((name, "a whole number", _is_whole) for name in ("max_tokens", "seed")),
    *((name, "a text", _is_text) for name in ("reasoning_effort", "prompt_cache_key")),
    ("parallel_tool_calls", "True or False", _is_switch),
)
"""What each setting has to be, in words and as a test."""

_DEEPEST: Final = 256


def _check_numbers(value: object, name: str) -> None:
    """Raise ValueError where a NaN or an infinity is in `value`: it would be sent as null."""
    if place := _no_number_in(value, name, name):
        raise ValueError(f"{place} is no number that JSON can spell")


def _no_number_in(value: Any, place: str, name: str, depth: int = 0) -> str:
    """Where in `value` a NaN or an infinity is; empty: nowhere."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else place
    inside: Iterable[tuple[str, Any]] = ()
    if isinstance(value, Mapping):
        inside = ((f"{place}.{key}", item) for key, item in cast("Any", value).items())
    elif isinstance(value, (list, tuple)):
        inside = ((f"{place}[{n}]", item) for n, item in enumerate(cast("Any", value)))
    if depth > _DEEPEST:
        raise ValueError(f"{name} is nested more than {_DEEPEST} deep")
    found = (_no_number_in(item, at, name, depth + 1) for at, item in inside)
    return next(filter(None, found), "")


def without_unspellable(schema: Any) -> Any:
    """A schema made from types, without what no JSON can spell: a default that is an infinity.

    To a model it is advice; the function that decodes what the model sent has the default itself.
    """
    if isinstance(schema, dict):
        named = cast("dict[str, Any]", schema).items()
        return {name: without_unspellable(item) for name, item in named if _spellable(item)}
    if isinstance(schema, list):
        return [without_unspellable(item) for item in cast("Any", schema) if _spellable(item)]
    return schema


def _spellable(value: object) -> bool:
    return not isinstance(value, float) or math.isfinite(value)


class Request(Struct, frozen=True):
    """One request to a model: a repaired history and what goes with it."""

    messages: Sequence[Message]
    tools: Sequence[ToolSpec] = ()
    output_schema: OutputSchema | None = None
    tool_choice: ToolChoice | None = None
    settings: Settings | None = None


class Details(Struct, frozen=True, omit_defaults=True, rename="camel"):
    """What a provider says about a response beside its content.

    `finish_reason` and `finish_message` are the provider's own words, `response_id` and
    `request_id` are what its support asks for, `model` is the model that really answered.
    """

    response_id: str = ""
    request_id: str = ""
    model: str = ""
    finish_reason: str = ""
    finish_message: str = ""


class Response(Struct, frozen=True):
    """A complete answer of a model: one turn."""

    message: AssistantMessage
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    details: Details = Details()


class TextDelta(Struct, frozen=True, gc=False):
    """A piece of the answer's text, never empty."""

    text: str


class ThinkingDelta(Struct, frozen=True, gc=False):
    """A piece of the model's reasoning, never empty."""

    text: str


class ToolCallDelta(Struct, frozen=True, gc=False):
    """A piece of a tool call. `index` counts the calls of this turn from 0.

    `id` and `name` are in the first piece of a call and may be empty after it; `args` is the
    next fragment of the argument text.
    """

    index: int
    id: str = ""
    name: str = ""
    args: str = ""


Delta = TextDelta | ThinkingDelta | ToolCallDelta


@runtime_checkable
class Model(Protocol):
    """A model at some provider. Immutable; shared by any number of runs and event loops.

    Three members are optional. ``native_output``: True where the provider enforces a
    `Request.output_schema`. ``batches(request)``: as `stream`, with deltas that came together in
    one sequence, so that a run waits once for what came at once. ``check(messages)``: a
    `golem.portability.HistoryCheck` of a repaired history, for `golem.check_history`.

    Both methods raise `golem.errors.ProviderError` for what goes wrong with the provider and
    `golem.errors.UnsupportedContentError` before anything is sent. Both give the same response
    for the same answer of the provider.
    """

    async def generate(self, request: Request) -> Response:
        """The complete answer."""
        ...

    def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        """The answer as it comes: deltas, then exactly one `Response`, last.

        The deltas concatenated are the response's text, thinking and calls. Closing the
        iterator (``aclose()``) closes the connection. A stream that ends without the provider's
        terminator raises `golem.errors.TransportError` and yields no response.
        """
        ...
