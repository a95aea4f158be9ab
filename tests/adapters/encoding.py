"""Encodes histories for Chat Completions, the way a run would: repaired first."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from golem.history import repair
from golem.messages import Message
from golem.model import Request, Settings
from golem_adapters.openai.dialect import ChatDialect, dialect_named
from golem_adapters.openai.request import encode_request
from golem_adapters.openai_responses import request as responses_request
from golem_adapters.openai_responses.dialect import ResponsesDialect
from golem_adapters.openai_responses.dialect import dialect_named as responses_dialect

_PLACE = Path(__file__).parents[1] / "data" / "cases" / "wire_invariants.py"


def _loaded() -> Any:
    spec = importlib.util.spec_from_file_location("wire_invariants", _PLACE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


check: Callable[[str, dict[str, Any]], list[str]] = _loaded().check
"""The provider's rules on a request body, as the field reports came with them."""


def encode(
    history: Iterable[Message],
    *,
    dialect: str | ChatDialect = "openai",
    stream: bool = False,
    settings: Settings | None = None,
    repaired: bool = True,
    **members: Any,
) -> bytes:
    """The request body for `history`."""
    messages = list(repair(history)) if repaired else list(history)
    return encode_request(
        Request(messages, **members),
        model="m",
        settings=settings or Settings(),
        dialect=dialect_named(dialect),
        stream=stream,
    )


def body_of(history: Iterable[Message], **options: Any) -> dict[str, Any]:
    """The request body for `history`, decoded."""
    body: dict[str, Any] = json.loads(encode(history, **options))
    return body


def wire(history: Iterable[Message], **options: Any) -> list[dict[str, Any]]:
    """The messages of the request for `history`."""
    messages: list[dict[str, Any]] = body_of(history, **options)["messages"]
    return messages


def encode_responses(
    history: Iterable[Message],
    *,
    dialect: str | ResponsesDialect = "openai",
    stream: bool = False,
    settings: Settings | None = None,
    repaired: bool = True,
    **members: Any,
) -> bytes:
    """The body of the Responses request for `history`."""
    messages = list(repair(history)) if repaired else list(history)
    return responses_request.encode_request(
        Request(messages, **members),
        model="m",
        settings=settings or Settings(),
        dialect=responses_dialect(dialect),
        stream=stream,
    )


def items(history: Iterable[Message], **options: Any) -> list[dict[str, Any]]:
    """The input items of the Responses request for `history`."""
    found: list[dict[str, Any]] = json.loads(encode_responses(history, **options))["input"]
    return found
