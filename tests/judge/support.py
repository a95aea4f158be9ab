"""All APIs with their adapters and judges, and what tests ask of each."""

from __future__ import annotations

import pickle
import traceback
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import pytest

from golem.errors import ProviderError
from golem.messages import AssistantMessage, ToolCall, UserMessage
from golem.model import Request, Response
from golem.testing.judge import (
    AnthropicJudge,
    BedrockJudge,
    ChatJudge,
    GeminiJudge,
    Judge,
    ResponsesJudge,
)
from golem_adapters import Anthropic, Bedrock, Gemini, OpenAI, OpenAIResponses

ASK = Request([UserMessage("hi")])
TEXT = "One two three four five six seven."
ANSWER = AssistantMessage(
    TEXT,
    tool_calls=(ToolCall.of("call_1", "f", '{"a": "b c d"}'), ToolCall.of("call_2", "g", "{}")),
)


@dataclass(frozen=True)
class API:
    """One API: who judges it and who speaks it."""

    name: str
    judge_type: Callable[..., Judge]
    model_type: Callable[..., Any]

    def judge(self, wrong: Any = None, *answers: Any) -> Judge:
        """A judge that does `wrong`, and always answers `ANSWER` unless told otherwise."""
        return self.judge_type(answers or (lambda body: ANSWER), wrong)

    def model(self, judge: Judge, **options: Any) -> Any:
        """The adapter's model at this judge."""
        options.setdefault("api_key", judge.key)
        return self.model_type("m", base_url=judge.base_url, **options)


APIS = {
    api.name: api
    for api in (
        API("anthropic", AnthropicJudge, Anthropic),
        API("bedrock", BedrockJudge, Bedrock),
        API("chat", ChatJudge, OpenAI),
        API("gemini", GeminiJudge, Gemini),
        API("responses", ResponsesJudge, OpenAIResponses),
    )
}


def over(*names: str) -> pytest.MarkDecorator:
    """Has a test that takes an `api` run over these; without, it runs over all."""
    return pytest.mark.parametrize("api", [APIS[name] for name in names], ids=names)


OPENAI = ("chat", "responses")
CLAUDES = ("anthropic", "bedrock")
with_ids = over(*CLAUDES, *OPENAI)
"""Over all but Gemini, which streams calls whole, has no terminator, and no header to wait by."""

both_ways = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])


async def read(model: Any, request: Request = ASK) -> Response:
    """The response of a streamed answer."""
    last = None
    async with aclosing(model.stream(request)) as items:
        async for item in items:
            last = item
    assert isinstance(last, Response)
    return last


async def outcome(model: Any) -> tuple[Response | None, ProviderError | None]:
    """What a stream came to: the answer or the error."""
    try:
        return await read(model), None
    except ProviderError as error:
        return None, error


async def failure(
    model: Any, judge: Judge, *, stream: bool, request: Request = ASK
) -> ProviderError:
    """The error, which nowhere shows the key."""
    with pytest.raises(ProviderError) as caught:
        await (read(model, request) if stream else model.generate(request))
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value) + repr(model)
    assert judge.key not in shown
    assert judge.key.encode() not in pickle.dumps(caught.value)
    return caught.value
