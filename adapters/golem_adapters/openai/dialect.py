"""What tells the servers apart that speak Chat Completions: one frozen record each.

Data only. `request` and `response` read the record; nothing here knows what they do with it.
Reading is tolerant for every server (all spellings of reasoning, usage and errors are known
everywhere), so a record is about what a server *accepts*. The facts come from the providers'
documentation and recorded traffic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Final, Literal

from golem_adapters._toolkit.calls import IdRule
from golem_adapters._toolkit.endpoint import record_named

CHAT_IDS: Final = IdRule(r"[a-zA-Z0-9_-]{1,40}", length=29, prefix="call_")
"""40 characters is the shortest limit in the field; punctuation breaks when a conversation
moves on to a stricter provider."""

MISTRAL_IDS: Final = IdRule(r"[a-zA-Z0-9]{9}", length=9)

KIMI_IDS: Final = IdRule(r"[a-zA-Z0-9_.:-]{1,64}", length=29, prefix="call_")
"""Kimi's own ids look like ``functions.name:0`` and it answers better when they come back."""


@dataclass(frozen=True, slots=True)
class ChatDialect:
    """One server's way of speaking Chat Completions. The defaults are the common way."""

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

    max_tokens: str = "max_tokens"
    """The field that bounds the answer."""

    seed: str = "seed"
    """The field of the sampling seed."""

    system_role: str = "system"
    """The role of instructions."""

    one_system_message: bool = False
    """Whether the leading system messages have to be one."""

    between_tool_and_user: str = ""
    """Text of the assistant turn a server wants between a result and a user or system message;
    empty: either may follow directly."""

    ids: IdRule = CHAT_IDS
    """Which call ids it takes."""

    reasoning_out: Literal["", "reasoning", "reasoning_content", "chunks"] = ""
    """The member that carries the model's own reasoning back; empty: it is not taken back."""

    reasoning_back: Literal["calls", "always"] = "calls"
    """On which assistant turns it goes back: those with calls, or all."""

    reasoning_required: bool = False
    """Whether a turn with calls must carry the member, empty where no reasoning is stored."""

    reasoning_details: bool = False
    """Whether signed and encrypted `reasoning_details` are kept and go back unmodified."""

    google_signatures: bool = False
    """Whether thought signatures go back in ``extra_content.google``."""

    reasoning_effort: Literal["reasoning_effort", "reasoning"] = "reasoning_effort"
    """How the effort is asked for: as a word, or as ``{"reasoning": {"effort": …}}``."""

    cache_key: str = ""
    """The member that says which requests begin alike; empty: there is none."""

    cache_key_header: str = ""
    """The header that says the same, at servers that have it there."""

    tool_choice_words: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Words for `auto`, `none`, `required` that differ."""

    drops_tools_for_none: bool = False
    """Whether tools are left out for the choice `none`, which it does not obey."""

    structured_output: Literal["json_schema", "json_object"] = "json_schema"
    """What it enforces on an answer: a schema, or merely JSON."""

    stream_options: bool = True
    """Whether usage at the end of a stream has to be asked for."""

    file_urls: bool = False
    """Whether documents can be given by URL."""

    files: bool = True
    """Whether documents can be given at all."""

    document_part: Literal["file", "document_url"] = "file"
    """The content part that carries a document."""

    videos: bool = False
    """Whether videos can be given, as ``video_url`` parts."""

    headers: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Headers beside the key's."""


OPENAI: Final = ChatDialect(
    "openai",
    base_url="https://api.openai.com/v1",
    base_url_variable="OPENAI_BASE_URL",
    key_variables=("OPENAI_API_KEY",),
    max_tokens="max_completion_tokens",
    cache_key="prompt_cache_key",
)

AZURE: Final = replace(
    OPENAI,
    name="azure",
    base_url="",
    base_url_variable="AZURE_OPENAI_BASE_URL",
    key_variables=("AZURE_OPENAI_API_KEY",),
    key_header="api-key",
    files=False,
)

GROQ: Final = ChatDialect(
    "groq",
    base_url="https://api.groq.com/openai/v1",
    key_variables=("GROQ_API_KEY",),
    reasoning_out="reasoning",
    files=False,
)

MISTRAL: Final = ChatDialect(
    "mistral",
    base_url="https://api.mistral.ai/v1",
    key_variables=("MISTRAL_API_KEY",),
    seed="random_seed",
    between_tool_and_user="OK.",
    ids=MISTRAL_IDS,
    reasoning_out="chunks",
    reasoning_back="always",
    file_urls=True,
    document_part="document_url",
    cache_key="prompt_cache_key",
    tool_choice_words=MappingProxyType({"required": "any"}),
    stream_options=False,
)

DEEPSEEK: Final = ChatDialect(
    "deepseek",
    base_url="https://api.deepseek.com",
    key_variables=("DEEPSEEK_API_KEY",),
    reasoning_out="reasoning_content",
    reasoning_required=True,
    structured_output="json_object",
    files=False,
)

OPENROUTER: Final = ChatDialect(
    "openrouter",
    base_url="https://openrouter.ai/api/v1",
    key_variables=("OPENROUTER_API_KEY",),
    reasoning_out="reasoning",
    reasoning_back="always",
    reasoning_details=True,
    reasoning_effort="reasoning",
    cache_key="session_id",
    file_urls=True,
    videos=True,
)

XAI: Final = ChatDialect(
    "xai",
    base_url="https://api.x.ai/v1",
    key_variables=("XAI_API_KEY",),
    max_tokens="max_completion_tokens",
    reasoning_out="reasoning_content",
    reasoning_back="always",  # its cache misses where the reasoning does not come back
    cache_key_header="x-grok-conv-id",
    files=False,
)

TOGETHER: Final = ChatDialect(
    "together",
    base_url="https://api.together.xyz/v1",
    key_variables=("TOGETHER_API_KEY",),
    reasoning_out="reasoning",
    files=False,
    videos=True,
)

FIREWORKS: Final = ChatDialect(
    "fireworks",
    base_url="https://api.fireworks.ai/inference/v1",
    key_variables=("FIREWORKS_API_KEY",),
    reasoning_out="reasoning_content",
    cache_key="prompt_cache_key",
    files=False,
)

CEREBRAS: Final = ChatDialect(
    "cerebras",
    base_url="https://api.cerebras.ai/v1",
    key_variables=("CEREBRAS_API_KEY",),
    max_tokens="max_completion_tokens",
    reasoning_out="reasoning",
    files=False,
)

OLLAMA: Final = ChatDialect("ollama", base_url="http://localhost:11434/v1", files=False)

VLLM: Final = ChatDialect(
    "vllm",
    base_url="http://localhost:8000/v1",
    one_system_message=True,
    files=False,
    videos=True,
)

LLAMA_CPP: Final = ChatDialect(
    "llama.cpp",
    base_url="http://localhost:8080/v1",
    drops_tools_for_none=True,
    files=False,
)

ZAI: Final = ChatDialect(
    "zai",
    base_url="https://api.z.ai/api/paas/v4",
    key_variables=("ZAI_API_KEY",),
    reasoning_out="reasoning_content",
    structured_output="json_object",
    files=False,
    videos=True,
)

MOONSHOT: Final = ChatDialect(
    "moonshot",
    base_url="https://api.moonshot.ai/v1",
    key_variables=("MOONSHOT_API_KEY",),
    ids=KIMI_IDS,
    reasoning_out="reasoning_content",
    cache_key="prompt_cache_key",
    tool_choice_words=MappingProxyType({"required": "auto"}),  # it rejects "required"
    files=False,
)

GEMINI: Final = ChatDialect(
    "gemini-compat",
    base_url="https://generativelanguage.googleapis.com/v1beta/openai",
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    google_signatures=True,
    files=False,
)

DIALECTS: Final[Mapping[str, ChatDialect]] = MappingProxyType(
    {
        dialect.name: dialect
        for dialect in (
            OPENAI,
            AZURE,
            GROQ,
            MISTRAL,
            DEEPSEEK,
            OPENROUTER,
            XAI,
            TOGETHER,
            FIREWORKS,
            CEREBRAS,
            OLLAMA,
            VLLM,
            LLAMA_CPP,
            ZAI,
            MOONSHOT,
            GEMINI,
        )
    }
    | {"kimi": MOONSHOT, "z.ai": ZAI}
)
"""By the name that ``OpenAI(dialect=…)`` takes."""


def dialect_named(name: str | ChatDialect) -> ChatDialect:
    """The record for `name`, or the record itself; a ValueError lists the known names."""
    return record_named(name, DIALECTS, ChatDialect)
