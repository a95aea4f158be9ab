"""In what the families of models behind Converse differ: one frozen record each. Data only.

From §1.5 of the wire formats, refusals that were recorded or reported, and recorded requests that
were taken. A model whose name tells nothing is held to what every family takes of turns, and may
be given whatever some family has.
"""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

MEDIA: Final = frozenset({"image", "document", "video", "audio"})
_CHOICES: Final = frozenset({"auto", "any", "tool"})


class FamilyRules(Struct, frozen=True, kw_only=True):
    """What a family takes. The defaults are what all take of turns, and all that any takes else."""

    system: bool = True
    """Instructions."""

    user_first: bool = True
    """Whether the user has to begin the conversation."""

    alternates: bool = True
    """Whether messages of one role may not be neighbors."""

    media: frozenset[str] = MEDIA
    """Media in a user's message."""

    s3: frozenset[str] = MEDIA
    """Media from S3."""

    result_media: frozenset[str] = MEDIA
    """Media inside a tool's result."""

    beside_results: frozenset[str] = frozenset()
    """What may stand in one message with results."""

    status: bool = True
    """The mark of a failed result."""

    choices: frozenset[str] = _CHOICES
    """Tool choices."""

    schema: bool = True
    """An output schema."""

    marks: bool = True
    """Marks for prompt caches."""

    signed: bool = False
    """Whether thinking has to be signed."""


_PICTURES: Final = frozenset({"image", "document"})

CLAUDE: Final = FamilyRules(
    user_first=False,
    media=_PICTURES,
    s3=frozenset({"document"}),
    result_media=_PICTURES,
    beside_results=frozenset({"text", "image", "document"}),
    signed=True,
)
NOVA: Final = FamilyRules(
    media=_PICTURES | {"video"},
    result_media=frozenset({"image"}),
    beside_results=MEDIA | {"text"},
    schema=False,
)
_AUTO: Final = frozenset({"auto"})
_AUTO_OR_ANY: Final = frozenset({"auto", "any"})
_PLAIN: Final = FamilyRules(schema=False, marks=False)
_MISTRAL: Final = FamilyRules(marks=False, choices=_AUTO_OR_ANY)

UNKNOWN: Final = FamilyRules()
FAMILIES: Final[tuple[tuple[str, FamilyRules], ...]] = (
    (r"anthropic\.", CLAUDE),
    (r"amazon\.nova", NOVA),
    (r"amazon\.titan-", replace(_PLAIN, system=False, alternates=False)),
    (r"meta\.", replace(_PLAIN, media=_PICTURES, choices=_AUTO)),
    (r"mistral\.(mistral-7b|mixtral)-", replace(_MISTRAL, system=False, schema=False)),
    (r"mistral\.mistral-large-3-", _MISTRAL),
    (r"mistral\.", replace(_MISTRAL, schema=False)),
    (r"writer\.", replace(_PLAIN, status=False, choices=_AUTO)),
    (r"qwen\.", FamilyRules(user_first=False, marks=False)),
    (r"(nvidia|zai)\.", FamilyRules(marks=False)),
    (r"(openai|deepseek|cohere|ai21)\.", _PLAIN),
)
"""By what a model's name tells, the first that fits."""


_NAME: Final = re.compile(
    r"((us|us-gov|eu|apac|jp|au|ca|global)\.)?(?!(us|us-gov|eu|apac|jp|au|ca|global)\.)"
    r"[a-z0-9]+\.[a-z0-9.-]+(:\d+(:\w+)?)?"
)
"""A model's id: a region or none, a provider, a name, a version. Both recorded refusals of an
identifier (a letter for the version, no provider behind the region) break it."""


def known_form(model: str) -> bool:
    """Whether `model` may be an identifier: of this form, an ARN, or a name of one's own."""
    name = unquote(model)
    return name.startswith("arn:") or "." not in name or _NAME.fullmatch(name) is not None


def rules_of(model: str) -> FamilyRules:
    """The record of `model`: a name as it stands in a path, a region in front or not, or an ARN."""
    name = unquote(model).rpartition("/")[2].lower()
    for pattern, rules in FAMILIES:
        if re.search(rf"(^|\.){pattern}", name):
            return rules
    return UNKNOWN
