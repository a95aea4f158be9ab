"""What the servers of Gemini and the generations of its models refuse, as data.

The judge's own record of the facts, independent of what the adapter believes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from msgspec import Struct

from golem.testing.judge.gemini_proto import AI_STUDIO, VERTEX, Fields

NAME: Final = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
NAME_TEXT: Final = (
    "[FIELD_INVALID] Invalid function name. Must start with a letter or an underscore. Must be a-z,"
    " A-Z, 0-9, or contain underscores (_), dots (.), colons (:), or dashes (-), with a maximum"
    " length of 128."
)
MOST_FUNCTIONS: Final = 512
RESULT_TYPES: Final = frozenset(
    {"image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"}
)
"""The types of media that the results of functions may hold."""

_GENERATION: Final = re.compile(r"(?:gemini|gemma|learnlm)-(\d+)")
_LEARN: Final = (
    "Learn more: https://cloud.google.com/vertex-ai/generative-ai/docs/model-reference/gemini"
)


class Words(Struct, frozen=True):
    """What the two servers say in other words."""

    no_contents: str
    no_parts: str


class GeminiRules(Struct, frozen=True, kw_only=True):
    """What one model takes at one server."""

    vertex: bool
    messages: Mapping[str, Fields]
    words: Words
    newest: bool
    """Whether the model is of the third generation or a newer one."""

    @property
    def checks_signatures(self) -> bool:
        """Whether the calls of the current turn have to be signed."""
        return self.newest

    @property
    def media_in_results(self) -> bool:
        """Whether results of functions may hold media."""
        return self.newest

    @property
    def schema_beside_tools(self) -> bool:
        """Whether an answer in JSON may be asked for beside functions."""
        return self.newest

    @property
    def thinking_levels(self) -> bool:
        """Whether the model knows levels of thinking."""
        return self.newest


_STUDIO_WORDS: Final = Words(
    no_contents="* GenerateContentRequest.contents: contents is not specified\n",
    no_parts="* GenerateContentRequest.{place}.parts: contents.parts must not be empty.\n",
)
_VERTEX_WORDS: Final = Words(
    no_contents=(
        "Unable to submit request because at least one contents field is required. "
        "Add a value to the parameter and try again. " + _LEARN
    ),
    no_parts=(
        "Unable to submit request because it must include at least one parts field, which describes"
        " the prompt input. " + _LEARN
    ),
)
DIALECTS: Final = ("gemini", "vertex")
"""The servers there are rules for."""


def gemini_rules(model: str, dialect: str) -> GeminiRules:
    """The rules for `model`, by its name, at a server; ValueError for an unknown server."""
    if dialect not in DIALECTS:
        raise ValueError(f"no rules for {dialect!r}; known are {', '.join(DIALECTS)}")
    vertex = dialect == "vertex"
    found = _GENERATION.search(model)
    return GeminiRules(
        vertex=vertex,
        messages=VERTEX if vertex else AI_STUDIO,
        words=_VERTEX_WORDS if vertex else _STUDIO_WORDS,
        newest=not found or int(found[1]) >= 3,
    )
