"""In what the models behind Messages differ: one frozen record for each group. Data only.

From §1.3 of the wire formats: what newer models refuse that older ones take, and the other way.
A name that nobody knows is held to what all models agree on, and may neither be given the
beginning of its answer nor instructions in the middle, which only some take.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct


class ModelRules(Struct, frozen=True, kw_only=True):
    """What a model takes."""

    budget: bool = True
    """Thinking with a budget (``{"type": "enabled"}``)."""

    sampling: bool = True
    """`temperature`, `top_p` and ``top_k``."""

    forced: bool = True
    """A tool choice that forces a call."""

    prefill: bool = False
    """The beginning of its own answer, as the last message."""

    system_messages: bool = False
    """Instructions between the messages."""


UNKNOWN: Final = ModelRules()
MODELS: Final[tuple[tuple[str, ModelRules], ...]] = (
    (
        r"fable|mythos",
        ModelRules(budget=False, sampling=False, forced=False, system_messages=True),
    ),
    (
        r"opus-(4-([89]|\d\d)|[5-9])(?!\d)",
        ModelRules(budget=False, sampling=False, system_messages=True),
    ),
    (r"opus-4-7(?!\d)|sonnet-[5-9](?!\d)", ModelRules(budget=False, sampling=False)),
    (r"claude-[23]|(opus|sonnet|haiku)-4(-[0-5])?(?!-?\d\d?(\D|$))", ModelRules(prefill=True)),
)
"""By what stands in a model's name, the first that fits."""


def rules_of(model: object) -> ModelRules:
    """The record of `model`."""
    name = model if isinstance(model, str) else ""
    return next((rules for pattern, rules in MODELS if re.search(pattern, name)), UNKNOWN)
