"""What tells the servers apart that speak Messages: one frozen record each. Data only.

Reading is tolerant for every server, so a record is about what a server *accepts*. The facts
come from the providers' documentation, recorded traffic and llama.cpp's own server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from golem_adapters._toolkit.calls import IdRule
from golem_adapters._toolkit.endpoint import record_named

CALL_IDS: Final = IdRule(r"[a-zA-Z0-9_-]{1,64}", length=30, prefix="toolu_")
"""What `tool_use.id` has to match; the length is what servers behind the same API take."""

VERSION: Final = "2026-10-21"
"""The newest version of the API."""

FIRST_VERSION: Final = "2023-06-01"
"""The version that every compatible server knows, and the last one with sampling settings."""


@dataclass(frozen=True, slots=True)
class MessagesDialect:
    """One server's way of speaking Messages. The defaults are the common way."""

    name: str
    """Stamped on thinking and native blocks, which only go back to the dialect of that name."""

    base_url: str = ""
    """Where the server is when the caller does not say, without ``/v1``; empty: the caller has
    to."""

    key_variables: tuple[str, ...] = ()
    """Environment variables that hold the key, first found wins; none: it needs no key."""

    base_url_variable: str = ""
    """The environment variable that replaces `base_url`."""

    key_header: str = "x-api-key"
    """The header of the key; ``authorization`` is sent as a Bearer token, others as it is."""

    version: str = FIRST_VERSION
    """The ``anthropic-version`` to send where the caller names none."""

    last_sampling_version: str = ""
    """The last version that takes temperature, top_p and top_k; empty: all do."""

    ids: IdRule = CALL_IDS
    """Which call ids it takes."""

    unsigned_thinking: bool = True
    """Whether thinking without a signature may go back; Anthropic refuses it."""

    drops_tools_for_none: bool = False
    """Whether tools are left out for the choice `none`, which it does not obey."""

    structured_output: bool = False
    """Whether it holds an answer to a schema."""


ANTHROPIC: Final = MessagesDialect(
    "anthropic",
    base_url="https://api.anthropic.com",
    base_url_variable="ANTHROPIC_BASE_URL",
    key_variables=("ANTHROPIC_API_KEY",),
    version=VERSION,
    last_sampling_version=FIRST_VERSION,
    unsigned_thinking=False,
    structured_output=True,
)

DEEPSEEK: Final = MessagesDialect(
    "deepseek-messages",
    base_url="https://api.deepseek.com/anthropic",
    key_variables=("DEEPSEEK_API_KEY",),
)

OLLAMA: Final = MessagesDialect("ollama-messages", base_url="http://localhost:11434")

LLAMA_CPP: Final = MessagesDialect(
    "llama.cpp-messages", base_url="http://localhost:8080", drops_tools_for_none=True
)

DIALECTS: Final[Mapping[str, MessagesDialect]] = MappingProxyType(
    {"anthropic": ANTHROPIC, "deepseek": DEEPSEEK, "ollama": OLLAMA, "llama.cpp": LLAMA_CPP}
)
"""By the name that ``Anthropic(dialect=…)`` takes."""


def dialect_named(name: str | MessagesDialect) -> MessagesDialect:
    """The record for `name`, or the record itself; a ValueError lists the known names."""
    return record_named(name, DIALECTS, MessagesDialect)
