"""What the servers that speak Chat Completions refuse: one record of rules each. Data only.

The judge's own record of the facts, independent of what any adapter believes: where the two
disagree, one of them is wrong, and a test says so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from golem.testing.judge.openai_words import BodyShape
from golem.testing.judge.word_rules import CHAT_WORDS, Words

ANY_ID: Final = re.compile(r".+", re.DOTALL)
SAFE_ID: Final = re.compile(r"[a-zA-Z0-9_-]+")
KIMI_ID: Final = re.compile(r"[a-zA-Z0-9_.:-]+")
MISTRAL_ID: Final = re.compile(r"[a-zA-Z0-9]{9}")

_SAMPLING: Final = frozenset(
    {"temperature", "top_p", "presence_penalty", "frequency_penalty", "stop", "n"}
)
_COMMON: Final = _SAMPLING | {
    "model",
    "messages",
    "stream",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
    "response_format",
    "max_tokens",
    "seed",
    "user",
    "logprobs",
    "top_logprobs",
    "logit_bias",
}
_OPENAI: Final = _COMMON | {
    "stream_options",
    "max_completion_tokens",
    "reasoning_effort",
    "verbosity",
    "service_tier",
    "prompt_cache_key",
    "prompt_cache_options",
    "prompt_cache_retention",
    "safety_identifier",
    "metadata",
    "store",
    "prediction",
    "modalities",
    "audio",
    "moderation",
    "web_search_options",
    "functions",
    "function_call",
}
_EFFORT: Final = {"stream_options", "reasoning_effort"}
_IMAGES: Final = frozenset({"text", "image_url"})
_WORDS: Final = frozenset({"none", "auto", "required"})


class ChatRules(Struct, frozen=True, kw_only=True):
    """What one server takes. The defaults are those of a common compatible server."""

    name: str
    shape: BodyShape = "openai"
    body: frozenset[str] = frozenset(_COMMON | _EFFORT)
    """Members of the body."""

    roles: tuple[str, ...] = ("system", "developer", "user", "assistant", "tool")
    ids: re.Pattern[str] = SAFE_ID
    longest_id: int = 64
    user_parts: frozenset[str] = _IMAGES | {"input_audio"}
    tool_parts: frozenset[str] = frozenset({"text"})
    assistant_parts: frozenset[str] = frozenset({"text", "refusal"})
    assistant_members: frozenset[str] = frozenset()
    """Members of assistant messages beside OpenAI's own: where it takes reasoning back."""

    call_members: frozenset[str] = frozenset()
    file_urls: bool = False
    tool_choices: frozenset[str] = _WORDS
    tool_type: str | None = None
    """What a tool is that does not say it; None: it has to."""

    hosted_tools: str = ""
    """How the types of the server's own tools begin."""

    empty_content: bool = False
    """Whether content may be an array of nothing."""

    after_tool: frozenset[str] | None = None
    """The roles that may follow a tool's result; None: any."""

    one_system_message: bool = False
    reasoning_with_calls: str = ""
    """The member that every assistant message with calls must have."""

    arguments_may_be_objects: bool = False
    response_formats: frozenset[str] = frozenset({"text", "json_object", "json_schema"})
    words: Words = MappingProxyType({})
    """The words that may stand in members of the body, where the server is known to check."""

    openai_words: bool = False
    """Whether it checks metadata, an image's detail and the mode of allowed tools as OpenAI."""

    key_header: str = "authorization"
    reasoning: str = ""
    """Where its answers carry reasoning: the member's name, or ``chunks``; empty: nowhere."""


OPENAI: Final = ChatRules(
    name="openai",
    body=_OPENAI,
    ids=ANY_ID,
    longest_id=40,
    user_parts=_IMAGES | {"input_audio", "file"},
    assistant_members=frozenset({"annotations"}),
    words=CHAT_WORDS,
    openai_words=True,
)
RULES: Final[Mapping[str, ChatRules]] = MappingProxyType(
    {
        rules.name: rules
        for rules in (
            OPENAI,
            replace(
                OPENAI, name="azure", user_parts=_IMAGES | {"input_audio"}, key_header="api-key"
            ),
            ChatRules(
                name="mistral",
                shape="mistral",
                body=frozenset(
                    (_COMMON - {"seed", "user", "logprobs", "top_logprobs", "logit_bias"})
                    | {"random_seed", "prompt_mode", "safe_prompt", "prediction", "metadata"}
                    | {"reasoning_effort", "prompt_cache_key"}
                ),
                roles=("system", "user", "assistant", "tool"),
                ids=MISTRAL_ID,
                longest_id=9,
                user_parts=_IMAGES | {"input_audio", "file", "document_url"},
                tool_parts=_IMAGES,
                assistant_parts=frozenset({"text", "thinking", "reference"}),
                assistant_members=frozenset({"prefix"}),
                tool_choices=_WORDS | {"any"},
                tool_type="function",
                empty_content=True,
                after_tool=frozenset({"assistant", "tool"}),
                arguments_may_be_objects=True,
                reasoning="chunks",
            ),
            ChatRules(
                name="deepseek",
                body=frozenset(_COMMON | _EFFORT | {"thinking"}),
                roles=("system", "user", "assistant", "tool"),
                assistant_members=frozenset({"reasoning_content", "prefix"}),
                reasoning_with_calls="reasoning_content",
                response_formats=frozenset({"text", "json_object"}),
                words=MappingProxyType({"reasoning_effort": ("low", "high", "max")}),
                reasoning="reasoning_content",
            ),
            ChatRules(
                name="groq",
                body=frozenset(
                    _OPENAI | {"reasoning_format", "include_reasoning", "search_settings"}
                ),
                assistant_members=frozenset({"reasoning"}),
                reasoning="reasoning",
            ),
            ChatRules(
                name="openrouter",
                body=frozenset(
                    _OPENAI
                    | {"reasoning", "provider", "models", "transforms", "usage", "session_id"}
                ),
                user_parts=_IMAGES | {"input_audio", "file", "video_url"},
                assistant_members=frozenset({"reasoning", "reasoning_details"}),
                file_urls=True,
                hosted_tools="openrouter:",
                reasoning="reasoning",
            ),
            ChatRules(
                name="vllm",
                user_parts=_IMAGES | {"input_audio", "video_url"},
                assistant_members=frozenset({"reasoning", "reasoning_content"}),
                one_system_message=True,
                reasoning="reasoning",
            ),
            ChatRules(name="ollama", reasoning="reasoning"),
            ChatRules(name="llama.cpp", reasoning="reasoning_content"),
            ChatRules(
                name="zai",
                body=frozenset(_COMMON | _EFFORT | {"thinking"}),
                user_parts=_IMAGES | {"input_audio", "video_url"},
                assistant_members=frozenset({"reasoning_content"}),
                reasoning="reasoning_content",
            ),
            ChatRules(
                name="xai",
                body=frozenset(_COMMON | _EFFORT | {"max_completion_tokens"}),
                assistant_members=frozenset({"reasoning_content"}),
                reasoning="reasoning_content",
            ),
            ChatRules(
                name="together",
                user_parts=_IMAGES | {"input_audio", "video_url"},
                assistant_members=frozenset({"reasoning"}),
                reasoning="reasoning",
            ),
            ChatRules(
                name="fireworks",
                body=frozenset(_COMMON | _EFFORT | {"prompt_cache_key"}),
                assistant_members=frozenset({"reasoning_content"}),
                reasoning="reasoning_content",
            ),
            ChatRules(
                name="cerebras",
                body=frozenset(_COMMON | _EFFORT | {"max_completion_tokens"}),
                assistant_members=frozenset({"reasoning"}),
                reasoning="reasoning",
            ),
            ChatRules(
                name="moonshot",
                body=frozenset(_COMMON | _EFFORT | {"prompt_cache_key"}),
                ids=KIMI_ID,
                assistant_members=frozenset({"reasoning_content", "partial"}),
                tool_choices=frozenset({"none", "auto"}),
                reasoning="reasoning_content",
            ),
            ChatRules(
                name="gemini-compat",
                assistant_members=frozenset({"extra_content"}),
                call_members=frozenset({"extra_content"}),
            ),
        )
    }
)
"""By name; the names are those of golem's own adapter.

Of xAI, Together, Fireworks and Cerebras no refusals are on record: they are held to the common
rules, and to the members that their documentation knows.
"""


def rules_named(name: str | ChatRules) -> ChatRules:
    """The rules of a server by name, or the record itself; a ValueError lists the known names."""
    if isinstance(name, ChatRules):
        return name
    if name not in RULES:
        raise ValueError(f"no rules for {name!r}; known are {', '.join(sorted(RULES))}")
    return RULES[name]
