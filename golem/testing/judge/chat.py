"""The judge of Chat Completions and of the servers that speak it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from golem.messages import ToolCall
from golem.model import FinishReason, Response
from golem.testing.judge.answers import counted, default_said, minted, pieces_of, with_ids
from golem.testing.judge.chat_rules import judge_chat
from golem.testing.judge.chat_servers import ChatRules, rules_named
from golem.testing.judge.findings import JSON, Violation, elements, members
from golem.testing.judge.misbehave import Misbehavior
from golem.testing.judge.openai_words import CREATED, UNREADABLE, failed, refused_key
from golem.testing.judge.provider import Provider, Said
from golem.testing.judge.reply import event
from golem.testing.judge.server import DEFAULT_KEY, Answers, Judge
from golem.usage import Usage

DONE: Final = b"data: [DONE]\n\n"

_WORDS: Final[Mapping[FinishReason, str]] = {
    "stop": "stop",
    "length": "length",
    "tool_call": "tool_calls",
    "content_filter": "content_filter",
    "other": "stop",
}


class ChatJudge(Judge):
    """A server that speaks Chat Completions and refuses what the provider refuses.

    ``async with ChatJudge() as judge: OpenAI("m", base_url=judge.base_url, api_key=judge.key)``.
    See `golem.testing.judge.server.Judge` for what can be asked of it.

    Args:
        answers: what to answer: always the same, one item for each request, or a function of the
            request's body; beyond them, and by default, what a helpful model would.
        misbehave: what to do wrong; one for every request, or a sequence, one for each.
        dialect: whose rules: ``openai``, ``azure``, ``mistral``, ``deepseek``, ``groq`` …
        key: the key that requests must carry.
    """

    def __init__(
        self,
        answers: Answers = (),
        misbehave: Misbehavior | Sequence[Misbehavior | None] | None = None,
        *,
        dialect: str | ChatRules = "openai",
        key: str = DEFAULT_KEY,
    ) -> None:
        super().__init__(ChatProvider(dialect), answers, misbehave, key=key)


class ChatProvider(Provider):
    """Chat Completions as its judge sees it, at the server of `dialect`."""

    path = "/chat/completions"
    unreadable = UNREADABLE

    def __init__(self, dialect: str | ChatRules = "openai") -> None:
        self.rules = rules_named(dialect)
        self.key_header = self.rules.key_header

    def judge(self, body: Any, made_with: Mapping[str, str]) -> list[Violation]:
        """What is wrong with a body."""
        return judge_chat(body, dialect=self.rules)

    def default(self, body: JSON) -> Said:
        """What a helpful model answers."""
        wanted = members(body.get("response_format"))
        last = members((elements(body.get("messages")) or [None])[-1])
        return default_said(
            elements(body.get("tools")),
            body.get("tool_choice"),
            members(wanted.get("json_schema")).get("schema"),
            asked=last.get("role") == "user",
            wants_json=wanted.get("type") == "json_object",
        )

    # --- answers

    def answer(self, body: JSON, said: Response) -> JSON:
        """A completion that says `said`."""
        said = self._with_ids(body, said)
        message: JSON = {"role": "assistant", **self._spoken(said)}
        if said.message.tool_calls:
            message["tool_calls"] = [_call(call) for call in said.message.tool_calls]
        finish = _WORDS[said.finish_reason]
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": finish}
        whole = self._frame(body, "chat.completion")
        return {**whole, "choices": [choice], "usage": _usage(counted(body, said))}

    def events(self, body: JSON, said: Response) -> Sequence[bytes]:
        """The chunks of the same completion."""
        said = self._with_ids(body, said)
        frame = self._frame(body, "chat.completion.chunk")
        usage = {"usage": _usage(counted(body, said))}
        finish = _WORDS[said.finish_reason]
        if self.rules.shape == "mistral":
            end = [{**frame, "choices": [_choice({"content": ""}, finish)], **usage}]
        else:
            end = [{**frame, "choices": [_choice({}, finish)]}]
            if members(body.get("stream_options")).get("include_usage"):
                end.append({**frame, "choices": [], **usage})
        deltas = [{"role": "assistant", "content": ""}, *self._deltas(said)]
        chunks = [{**frame, "choices": [_choice(delta)]} for delta in deltas]
        return [*map(event, chunks), *map(event, end), DONE]

    def _deltas(self, said: Response) -> Iterable[JSON]:
        for piece in pieces_of("".join(block.text for block in said.message.thinking)):
            if self.rules.reasoning == "chunks":
                yield {"content": [_thought(piece)]}
            elif self.rules.reasoning:
                yield {self.rules.reasoning: piece}
        for piece in pieces_of(said.message.content):
            yield {"content": piece}
        for index, call in enumerate(said.message.tool_calls):
            whole = {**_call(call), "index": index}
            if self.rules.shape == "mistral":  # it sends calls whole
                yield {"tool_calls": [whole]}
                continue
            begun = {"name": call.name, "arguments": ""}
            yield {"tool_calls": [{**whole, "function": begun}]}
            for piece in pieces_of(call.args):
                yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}

    def _spoken(self, said: Response) -> JSON:
        text = said.message.content
        thought = "".join(block.text for block in said.message.thinking)
        if self.rules.reasoning == "chunks" and thought:
            spoken = [{"type": "text", "text": text}] if text else []
            return {"content": [_thought(thought), *spoken]}
        spoken_text: JSON = {"content": text or None}
        if self.rules.reasoning and thought:
            spoken_text[self.rules.reasoning] = thought
        if self.rules.name == "openai":
            spoken_text |= {"refusal": None, "annotations": []}
        return spoken_text

    def _frame(self, body: JSON, kind: str) -> JSON:
        frame = {
            "id": f"chatcmpl-{minted(body, 'completion', 29)}",
            "object": kind,
            "created": CREATED,
            "model": body.get("model"),
        }
        if self.rules.name == "openai":
            frame |= {"service_tier": "default", "system_fingerprint": "fp_07871e2ad8"}
        return frame

    def _with_ids(self, body: JSON, said: Response) -> Response:
        mistral = self.rules.shape == "mistral"
        ids = [
            minted(body, f"call {index}", 9) if mistral else f"call_{minted(body, f'call {index}')}"
            for index in range(len(said.message.tool_calls))
        ]
        return with_ids(said, ids)

    # --- failures

    def failure(self, message: str, status: int, code: str | None = None) -> JSON:
        """The body of an error."""
        return failed(message, status, code, self.rules.shape)

    def failing_event(self, message: str, code: str | None = None) -> bytes:
        """A data line with an error and no choices; Groq names it."""
        body = failed(message, 500, code)
        return event(body, "error" if self.rules.name == "groq" else "")

    def text_event(self, text: str) -> bytes:
        """A chunk that brings `text`."""
        frame = {"id": "chatcmpl-more", "object": "chat.completion.chunk", "created": CREATED}
        return event({**frame, "model": "m", "choices": [_choice({"content": text})]})

    def refused_key(self, key: str) -> Violation:
        """The answer to a wrong key."""
        return refused_key(key, self.rules.name)


def _choice(delta: JSON, finish: str | None = None) -> JSON:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _call(call: ToolCall) -> JSON:
    function = {"name": call.name, "arguments": call.args}
    return {"id": call.id, "type": "function", "function": function}


def _thought(text: str) -> JSON:
    return {"type": "thinking", "thinking": [{"type": "text", "text": text}]}


def _usage(usage: Usage) -> JSON:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens, "audio_tokens": 0},
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens,
            "audio_tokens": 0,
            "accepted_prediction_tokens": 0,
            "rejected_prediction_tokens": 0,
        },
    }
