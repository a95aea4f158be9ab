"""Model adapters of golem: one class per provider, each importable from here.

Loading is lazy, so that one provider's adapter does not pay for the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from golem_adapters.anthropic.model import Anthropic as Anthropic
    from golem_adapters.azure.model import AzureOpenAI as AzureOpenAI
    from golem_adapters.bedrock.model import Bedrock as Bedrock
    from golem_adapters.bedrock.sigv4 import AWSCredentials as AWSCredentials
    from golem_adapters.gemini.model import Gemini as Gemini
    from golem_adapters.openai.model import OpenAI as OpenAI
    from golem_adapters.openai_responses.model import OpenAIResponses as OpenAIResponses

__all__ = [
    "AWSCredentials",
    "Anthropic",
    "AzureOpenAI",
    "Bedrock",
    "Gemini",
    "OpenAI",
    "OpenAIResponses",
]

_HOME = {
    "AWSCredentials": "golem_adapters.bedrock.sigv4",
    "Anthropic": "golem_adapters.anthropic.model",
    "AzureOpenAI": "golem_adapters.azure.model",
    "Bedrock": "golem_adapters.bedrock.model",
    "Gemini": "golem_adapters.gemini.model",
    "OpenAI": "golem_adapters.openai.model",
    "OpenAIResponses": "golem_adapters.openai_responses.model",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = globals()[name] = getattr(import_module(_HOME[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
