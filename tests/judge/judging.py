"""Requests as the adapters write them, held to the rules of each server."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from golem import Message
from golem.testing.judge import Violation, judge_chat, judge_responses
from golem.testing.judge.chat_servers import RULES
from golem.testing.judge.responses_servers import RULES as RESPONSES_RULES
from tests.adapters.encoding import encode, encode_responses

CHAT = sorted(RULES)
RESPONSES = sorted(RESPONSES_RULES)


def judged_chat(messages: Sequence[Message], dialect: str, **members: Any) -> list[Violation]:
    """What the server of `dialect` refuses of a Chat Completions request for `messages`."""
    return judge_chat(json.loads(encode(messages, dialect=dialect, **members)), dialect=dialect)


def judged_responses(messages: Sequence[Message], dialect: str, **members: Any) -> list[Violation]:
    """The same for Responses."""
    data = encode_responses(messages, dialect=dialect, **members)
    return judge_responses(json.loads(data), dialect=dialect)


SERVERS: dict[str, Callable[..., list[Violation]]] = {
    **{f"chat-{name}": partial(judged_chat, dialect=name) for name in CHAT},
    **{f"responses-{name}": partial(judged_responses, dialect=name) for name in RESPONSES},
}
"""Every server there are rules for: what it refuses of some messages."""
