"""Members that hold one of a few words, and metadata: what OpenAI's own servers take. Pure.

From OpenAI's own client and documentation; servers that speak the same API take words of their
own (Groq's service tier ``on_demand``), so that each record of rules has its lists.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from golem.testing.judge.findings import JSON, is_object, members, one_of
from golem.testing.judge.openai_words import Findings

Words = Mapping[str, tuple[str, ...]]
"""For the place of a member (``reasoning.effort``) the words that may stand there."""

EFFORTS: Final = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
IMAGE_DETAILS: Final = ("auto", "low", "high", "original")
FILE_DETAILS: Final = ("auto", "low", "high")
PHASES: Final = ("commentary", "final_answer")
_ALLOWED_MODES: Final = ("auto", "required")

_VERBOSITY: Final = ("low", "medium", "high")
_TIERS: Final = ("auto", "default", "flex", "scale", "priority", "fast")
_CACHING: Final[Words] = {"service_tier": _TIERS, "prompt_cache_retention": ("in_memory", "24h")}

CHAT_WORDS: Final[Words] = MappingProxyType(
    {"reasoning_effort": EFFORTS, "verbosity": _VERBOSITY, **_CACHING}
)
RESPONSES_WORDS: Final[Words] = MappingProxyType(
    {
        "reasoning.effort": EFFORTS,
        "reasoning.summary": ("auto", "concise", "detailed"),
        "reasoning.context": ("auto", "current_turn", "all_turns"),
        "text.verbosity": _VERBOSITY,
        "truncation": ("auto", "disabled"),
        **_CACHING,
    }
)

_MOST_PAIRS: Final = 16
_LONGEST_KEY: Final = 64
_LONGEST_VALUE: Final = 512


def judge_words(body: JSON, words: Words, findings: Findings) -> None:
    """Every member of `words` holds one of its words, or nothing."""
    for place, supported in words.items():
        *path, name = place.split(".")
        holder = body
        for step in path:
            holder = members(holder.get(step))
        judge_word(holder.get(name), place, supported, findings)


def judge_word(value: object, place: str, supported: tuple[str, ...], findings: Findings) -> None:
    """One of the words that are `supported`, or nothing."""
    if value is not None and not one_of(value, supported):
        findings.wrong_value("word", place, value, supported)


def judge_mode(mode: object, place: str, findings: Findings) -> None:
    """How the tools that are allowed may be used: the choice has to say."""
    if mode is None:
        findings.missing(place)
    else:
        judge_word(mode, place, _ALLOWED_MODES, findings)


def judge_metadata(metadata: object, findings: Findings) -> None:
    """At most 16 pairs of texts, the names up to 64 and the values up to 512 characters long."""
    if metadata is None:
        return
    if not is_object(metadata):
        findings.wrong_type("metadata", "an object", metadata)
        return
    if len(metadata) > _MOST_PAIRS:
        text = (
            f"Invalid 'metadata': too many properties. Expected an object with at most"
            f" {_MOST_PAIRS} properties, but got an object with {len(metadata)} properties instead."
        )
        findings.add("metadata", "metadata", text, code="object_above_max_properties")
    for name, value in metadata.items():
        place = f"metadata.{name}"
        if len(name) > _LONGEST_KEY:
            findings.length("metadata", place, name, _LONGEST_KEY)
        if not isinstance(value, str):
            findings.wrong_type(place, "a string", value)
        elif len(value) > _LONGEST_VALUE:
            findings.length("metadata", place, value, _LONGEST_VALUE)
