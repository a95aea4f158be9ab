"""Requests as the adapters write them, held to the rules of each server."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from golem import AssistantMessage, Message
from golem.model import Request, Response
from golem.testing.judge import (
    ChatProvider,
    Provider,
    ResponsesProvider,
    Violation,
    judge_chat,
    judge_responses,
)
from golem.testing.judge.chat_servers import RULES
from golem.testing.judge.responses_servers import RULES as RESPONSES_RULES
from golem_adapters.openai.dialect import dialect_named
from golem_adapters.openai.response import decode_response as decode_chat
from golem_adapters.openai_responses.dialect import dialect_named as responses_dialect
from golem_adapters.openai_responses.response import decode_response as decode_responses
from tests.adapters.encoding import encode, encode_responses

CHAT = sorted(RULES)
RESPONSES = sorted(RESPONSES_RULES)


def judged_chat(messages: Sequence[Message], dialect: str, **members: Any) -> list[Violation]:
    """What the server of `dialect` refuses of a Chat Completions request for `messages`."""
    return judge_chat(json.loads(encode(messages, dialect=dialect, **members)), dialect=dialect)


def judged_responses(
    messages: Sequence[Message],
    dialect: str,
    made_with: Mapping[str, str] | None = None,
    **members: Any,
) -> list[Violation]:
    """The same for Responses, from a server that made some of these items."""
    data = encode_responses(messages, dialect=dialect, **members)
    return judge_responses(json.loads(data), dialect=dialect, made_with=made_with)


def answer_of(
    provider: Provider, said: AssistantMessage, turn: int
) -> tuple[AssistantMessage, Mapping[str, str]]:
    """What the adapter makes of an answer that says `said`, and which items hang together.

    The answer of another turn has other ids.
    """
    asked = {"model": "m", "input": str(turn), "include": ["reasoning.encrypted_content"]}
    body = provider.answer(asked, Response(said))
    given: dict[str, Any] = {"request": Request(()), "headers": {}, "secret": ""}
    data = json.dumps(body).encode()
    if isinstance(provider, ResponsesProvider):
        dialect = responses_dialect(provider.rules.name)
        message = decode_responses(data, dialect=dialect, **given).message
    else:
        assert isinstance(provider, ChatProvider)
        message = decode_chat(data, dialect=dialect_named(provider.rules.name), **given).message
    return message, provider.links(body)


SERVERS: dict[str, Callable[..., list[Violation]]] = {
    **{f"chat-{name}": partial(judged_chat, dialect=name) for name in CHAT},
    **{f"responses-{name}": partial(judged_responses, dialect=name) for name in RESPONSES},
}
"""Every server there are rules for: what it refuses of some messages."""
