"""What a provider says, inside golem's errors: without secrets, no longer than it helps. Pure."""

from __future__ import annotations

from typing import Final

from golem.errors import APIError
from golem_adapters._toolkit.failures import phrase

Secrets = str | tuple[str, ...]
"""What must not be in an error's text: the key, or all that proves a request's sender."""

_LONGEST_MESSAGE: Final = 10_000
"""Characters of a message. Some servers list every field that does not validate, others send back
all that they were sent."""

_LONGEST_CODE: Final = 256

_SHORTEST_SECRET: Final = 8
"""Shorter keys are placeholders ("none", "ollama"); blanking them would garble the text."""


def api_error(
    secrets: Secrets,
    message: str,
    *,
    status: int | None,
    code: str,
    retryable: bool,
    wait: float | None = None,
    request_id: str,
) -> APIError:
    """The error that says what the provider said; without a `message`, the words of its status."""
    return APIError(
        quoted(secrets, message or phrase(status)),
        status=status,
        code=named(secrets, code),
        retryable=retryable,
        retry_after=wait,
        request_id=named(secrets, request_id),
    )


def excerpt(data: bytes, secrets: Secrets) -> str:
    """The beginning of `data`, for an error's text."""
    # Blanked before it is cut: no part of a key is left at the cut.
    words = blanked(secrets, data[: 64 * 1024].decode("utf-8", "replace"))
    return repr(words[:80] + ("…" if len(words) > 80 else ""))


def quoted(secrets: Secrets, words: str) -> str:
    """`words` of a provider for an error's text: without secrets, and no longer than they help."""
    words = blanked(secrets, words)
    return words if len(words) <= _LONGEST_MESSAGE else words[:_LONGEST_MESSAGE] + "…"


def named(secrets: Secrets, name: str) -> str | None:
    """A code or an id of a provider, likewise; None for none."""
    return blanked(secrets, name)[:_LONGEST_CODE] or None


def blanked(secrets: Secrets, words: str) -> str:
    """`words` with `secrets` blanked: servers (and debug proxies) quote what they were sent."""
    for secret in (secrets,) if isinstance(secrets, str) else secrets:
        if len(secret) >= _SHORTEST_SECRET:
            words = words.replace(secret, "[key]")
    return words
