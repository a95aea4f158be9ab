"""What tells apart the servers that speak Gemini, and the models behind them. Data only.

The facts come from Google's documentation and SDK and from recorded traffic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, NamedTuple

from golem_adapters._toolkit.calls import IdRule
from golem_adapters._toolkit.endpoint import record_named

PROVIDER: Final = "gemini"
"""Stamped on thinking and native parts, at AI Studio and at Vertex: the models are the same."""

CALL_IDS: Final = IdRule(r"[a-zA-Z0-9_-]{1,64}", length=26, prefix="call_")
"""Which call ids go out as they are. Gemini takes any; these every provider takes."""

TOOL_NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}")
"""Which tool names go out as they are: they begin with a letter or an underscore."""


@dataclass(frozen=True, slots=True)
class GeminiDialect:
    """One server's way of speaking Gemini."""

    name: str

    base_url: str = ""
    """Where the server is when the caller does not say; empty: it depends on the location."""

    base_url_variable: str = ""
    """The environment variable that replaces `base_url`."""

    key_variables: tuple[str, ...] = ()
    """Environment variables that hold the key, first found wins."""

    version: str = "v1beta"
    """The version of the API where neither the caller nor the address names one."""

    vertex: bool = False
    """Whether models lie in projects and locations, and the server's own tools leave no parts."""


AI_STUDIO: Final = GeminiDialect(
    "gemini",
    base_url="https://generativelanguage.googleapis.com",
    base_url_variable="GOOGLE_GEMINI_BASE_URL",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
)

VERTEX: Final = GeminiDialect(
    "vertex",
    base_url_variable="GOOGLE_VERTEX_BASE_URL",
    version="v1beta1",
    vertex=True,
)

DIALECTS: Final[Mapping[str, GeminiDialect]] = MappingProxyType(
    {dialect.name: dialect for dialect in (AI_STUDIO, VERTEX)}
)
"""By the name that ``Gemini(dialect=…)`` takes."""


def dialect_named(name: str | GeminiDialect) -> GeminiDialect:
    """The record for `name`, or the record itself; a ValueError lists the known names."""
    return record_named(name, DIALECTS, GeminiDialect)


class Traits(NamedTuple):
    """What a generation of models takes; the defaults are Gemini 3 and everything newer."""

    media_in_results: bool = True
    """Whether a tool's result may hold media."""

    schema_beside_tools: bool = True
    """Whether it follows an output schema in a request that offers tools too."""

    checks_signatures: bool = True
    """Whether it refuses a turn whose first call has no thought signature."""

    thinking_levels: bool = True
    """Whether it is told how much to think in levels; else in a budget of tokens."""


_OLD: Final = Traits(
    media_in_results=False,
    schema_beside_tools=False,
    checks_signatures=False,
    thinking_levels=False,
)
_GENERATION: Final = re.compile(r"(?:gemini|gemma|learnlm)-(\d+)")


def traits_of(model: str) -> Traits:
    """What `model` takes, by its name; a name without a number is that of the newest."""
    found = _GENERATION.search(model)
    return _OLD if found and int(found[1]) < 3 else Traits()
