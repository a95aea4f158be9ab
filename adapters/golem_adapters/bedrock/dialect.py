"""What tells the families of models behind Converse apart: one frozen record each. Data only.

Converse is one wire for all models, but each model refuses something of it. Reading is tolerant
for every family, so a record is about what a family *accepts*. The facts come from the service's
own model and documentation, refusals that others reported, and recorded traffic.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from golem_adapters._toolkit.calls import IdRule

CALL_IDS: Final = IdRule(r"[a-zA-Z0-9_-]{1,64}", length=32, prefix="tooluse_")
"""What every family takes as `toolUseId`; the service itself takes dots and colons too."""

EFFORT: Final = "{effort}"
"""Stands in `ConverseDialect.effort` where the effort goes."""

ALL_MEDIA: Final = frozenset({"image", "document", "video", "audio"})
_PICTURES: Final = frozenset({"image", "document"})
_CACHES: Final = frozenset({"system", "tools", "messages"})


@dataclass(frozen=True, slots=True)
class ConverseDialect:
    """One family's way of taking Converse. The defaults offend nobody."""

    name: str
    """Stamped on thinking and native blocks, which only go back to the family of that name."""

    system: bool = True
    """Whether it takes instructions; else they open the first message of the user."""

    media: frozenset[str] = ALL_MEDIA
    """The kinds of parts it takes from a user."""

    s3: frozenset[str] = ALL_MEDIA
    """The kinds of parts it takes from S3."""

    result_media: frozenset[str] = _PICTURES
    """The kinds of parts it takes inside a tool's result; others follow the results."""

    beside_results: frozenset[str] = frozenset()
    """The kinds of blocks it takes behind results in one turn; others get a turn of their own."""

    status: bool = True
    """Whether it takes the mark of a failed call."""

    choices: frozenset[str] = frozenset()
    """Which tool choices it takes beside ``auto``: ``any``, ``tool``."""

    effort: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The additional model request fields that `reasoning_effort` becomes; none: it has none."""

    structured_output: bool = False
    """Whether it holds an answer to a schema."""

    caches: frozenset[str] = frozenset()
    """Where it takes marks for prompt caches: ``system``, ``tools``, ``messages``."""


CLAUDE: Final = ConverseDialect(
    "bedrock-claude",
    media=_PICTURES,
    s3=frozenset({"document"}),
    beside_results=frozenset({"text", "image"}),
    choices=frozenset({"any", "tool"}),
    effort={"output_config": {"effort": EFFORT}},
    caches=_CACHES,
)

NOVA: Final = ConverseDialect(
    "bedrock-nova",
    media=_PICTURES | {"video"},
    result_media=frozenset({"image"}),
    beside_results=ALL_MEDIA | {"text"},
    choices=frozenset({"any", "tool"}),
    caches=frozenset({"system", "messages"}),
)

LLAMA: Final = ConverseDialect("bedrock-llama", media=_PICTURES)
MISTRAL: Final = ConverseDialect("bedrock-mistral", choices=frozenset({"any"}))
WRITER: Final = ConverseDialect("bedrock-writer", status=False)
QWEN: Final = ConverseDialect(
    "bedrock-qwen", effort={"reasoning_config": EFFORT}, structured_output=True
)
GPT_OSS: Final = ConverseDialect("bedrock-openai", effort={"reasoning_effort": EFFORT})

UNKNOWN: Final = ConverseDialect(
    "bedrock", choices=frozenset({"any", "tool"}), caches=_CACHES, structured_output=False
)
"""For a model whose name does not tell its family: the service has the last word."""

DIALECTS: Final[tuple[tuple[str, ConverseDialect], ...]] = (
    (
        r"anthropic\..*(opus|sonnet|haiku|fable|mythos)-(4-([5-9]|1\d)|[5-9])(?!\d)",
        replace(CLAUDE, structured_output=True),
    ),
    (r"anthropic\.", CLAUDE),
    (
        r"amazon\.nova-2-",
        replace(
            NOVA, effort={"reasoningConfig": {"type": "enabled", "maxReasoningEffort": EFFORT}}
        ),
    ),
    (r"amazon\.nova-", NOVA),
    (r"amazon\.titan-", ConverseDialect("bedrock-titan", system=False)),
    (r"meta\.", LLAMA),
    (r"mistral\.mistral-large-3-", replace(MISTRAL, structured_output=True)),
    (r"mistral\.(mistral-7b|mixtral)-", replace(MISTRAL, system=False)),
    (r"mistral\.", MISTRAL),
    (r"writer\.", WRITER),
    (r"cohere\.command-(text|light)-", ConverseDialect("bedrock-cohere", system=False)),
    (r"cohere\.", ConverseDialect("bedrock-cohere")),
    (r"ai21\.j2-", ConverseDialect("bedrock-ai21", system=False)),
    (r"ai21\.", ConverseDialect("bedrock-ai21")),
    (r"deepseek\.", ConverseDialect("bedrock-deepseek")),
    (r"qwen\.", QWEN),
    (r"openai\.", GPT_OSS),
    (r"nvidia\.", ConverseDialect("bedrock-nvidia", structured_output=True)),
    (r"zai\.", ConverseDialect("bedrock-zai", structured_output=True)),
)
"""Which family a model's name tells, the first that fits."""


def dialect_of(model: str) -> ConverseDialect:
    """The family of `model`: a name, with or without a region in front, or an ARN of one."""
    name = model.rpartition("/")[2].lower()
    for pattern, dialect in DIALECTS:
        if re.search(rf"(^|\.){pattern}", name):
            return dialect
    return UNKNOWN
