"""What tells the servers apart that speak Responses: one frozen record each. Data only.

Reading is tolerant for every server, so a record is about what a server *accepts*. The facts
come from the providers' documentation, recorded traffic and llama.cpp's own server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from golem_adapters._toolkit.calls import IdRule
from golem_adapters._toolkit.endpoint import record_named

CALL_IDS: Final = IdRule(r"[a-zA-Z0-9_-]{1,64}", length=29, prefix="call_")
"""A longer `call_id` is refused; punctuation breaks at stricter servers behind the same API."""

OWN_CALL_IDS: Final = IdRule(r"[a-zA-Z0-9_.:-]{1,64}", length=29, prefix="call_")
"""What a server gets back of its own: on AWS they look like ``resp_…:call_0``."""


@dataclass(frozen=True, slots=True)
class ResponsesDialect:
    """One server's way of speaking Responses. The defaults are the common way."""

    name: str
    """Stamped on thinking and native items, which only go back to the dialect of that name."""

    base_url: str = ""
    """Where the server is when the caller does not say; empty: the caller has to."""

    key_variables: tuple[str, ...] = ()
    """Environment variables that hold the key, first found wins; none: it needs no key."""

    base_url_variable: str = ""
    """The environment variable that replaces `base_url`."""

    key_header: str = "authorization"
    """The header of the key; ``authorization`` is sent as a Bearer token, others as it is."""

    system_role: str = "system"
    """The role of instructions, which stand in the input where the history has them."""

    ids: IdRule = CALL_IDS
    """Which call ids it takes."""

    encrypted_reasoning: bool = False
    """Whether encrypted reasoning has to be asked for; it is what goes back without state."""

    plain_reasoning: bool = True
    """Whether reasoning items without encrypted content may go back: servers that keep nothing
    read them, OpenAI looks for them in what it stored and refuses the request."""

    cache_key: str = ""
    """The member that says which requests begin alike; empty: there is none."""

    drops_tools_for_none: bool = False
    """Whether tools are left out for the choice `none`, which it does not obey."""

    structured_output: Literal["json_schema", "json_object", ""] = "json_schema"
    """What it enforces on an answer: a schema, merely JSON, or nothing."""

    media_in_results: bool = True
    """Whether a tool's result may hold images and documents; else they follow as a message."""

    file_urls: bool = True
    """Whether documents can be given by URL."""


OPENAI: Final = ResponsesDialect(
    "openai-responses",
    base_url="https://api.openai.com/v1",
    base_url_variable="OPENAI_BASE_URL",
    key_variables=("OPENAI_API_KEY",),
    encrypted_reasoning=True,
    plain_reasoning=False,
    cache_key="prompt_cache_key",
)

AZURE: Final = replace(
    OPENAI,
    name="azure-responses",
    base_url="",
    base_url_variable="AZURE_OPENAI_BASE_URL",
    key_variables=("AZURE_OPENAI_API_KEY",),
    key_header="api-key",
)

OPENROUTER: Final = ResponsesDialect(
    "openrouter-responses",
    base_url="https://openrouter.ai/api/v1",
    key_variables=("OPENROUTER_API_KEY",),
    encrypted_reasoning=True,
    cache_key="session_id",
    media_in_results=False,
)

XAI: Final = ResponsesDialect(
    "xai-responses",
    base_url="https://api.x.ai/v1",
    key_variables=("XAI_API_KEY",),
    encrypted_reasoning=True,
    plain_reasoning=False,
    cache_key="prompt_cache_key",
    media_in_results=False,
)

DEEPSEEK: Final = ResponsesDialect(
    "deepseek-responses",
    base_url="https://api.deepseek.com",
    key_variables=("DEEPSEEK_API_KEY",),
    structured_output="json_object",
    media_in_results=False,
)

OLLAMA: Final = ResponsesDialect(
    "ollama-responses", base_url="http://localhost:11434/v1", media_in_results=False
)

VLLM: Final = ResponsesDialect(
    "vllm-responses", base_url="http://localhost:8000/v1", media_in_results=False
)

LLAMA_CPP: Final = ResponsesDialect(
    "llama.cpp-responses",
    base_url="http://localhost:8080/v1",
    drops_tools_for_none=True,
    structured_output="",
    media_in_results=False,
)

DIALECTS: Final[Mapping[str, ResponsesDialect]] = MappingProxyType(
    {
        "openai": OPENAI,
        "azure": AZURE,
        "openrouter": OPENROUTER,
        "xai": XAI,
        "deepseek": DEEPSEEK,
        "ollama": OLLAMA,
        "vllm": VLLM,
        "llama.cpp": LLAMA_CPP,
    }
)
"""By the name that ``OpenAIResponses(dialect=…)`` takes."""


def dialect_named(name: str | ResponsesDialect) -> ResponsesDialect:
    """The record for `name`, or the record itself; a ValueError lists the known names."""
    return record_named(name, DIALECTS, ResponsesDialect)
