"""In what the servers that speak Responses differ: one record of rules each. Data only."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct

from golem.testing.judge.word_rules import RESPONSES_WORDS, Words


class ResponsesRules(Struct, frozen=True, kw_only=True):
    """What one server takes. The defaults are OpenAI's."""

    name: str
    adjacent_results: bool = False
    """Whether nothing but calls and results may stand between a call and its result."""

    sealed_reasoning: bool = True
    """Whether reasoning that the server did not store needs its encrypted content."""

    item_prefixes: bool = True
    """Whether the ids of items begin with what kind of item they are."""

    text_results: bool = False
    """Whether results are text only."""

    counts: bool = True
    """Whether it tells how many tokens a prompt has."""

    words: Words = RESPONSES_WORDS
    """The words that may stand in members of the body; none: it is not known to check."""

    key_header: str = "authorization"


RULES: Final[Mapping[str, ResponsesRules]] = MappingProxyType(
    {
        rules.name: rules
        for rules in (
            ResponsesRules(name="openai"),
            ResponsesRules(name="azure", key_header="api-key"),
            ResponsesRules(
                name="deepseek",
                adjacent_results=True,
                sealed_reasoning=False,
                item_prefixes=False,
                text_results=True,
                counts=False,
                words=MappingProxyType({}),
            ),
        )
    }
)


def responses_rules_named(name: str | ResponsesRules) -> ResponsesRules:
    """The rules of a server by name, or the record itself; a ValueError lists the known names."""
    if isinstance(name, ResponsesRules):
        return name
    if name not in RULES:
        raise ValueError(f"no rules for {name!r}; known are {', '.join(sorted(RULES))}")
    return RULES[name]
