"""The judge of Anthropic's Messages API, counts of tokens included."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from golem.messages import AssistantMessage, Thinking
from golem.model import FinishReason, Response
from golem.testing.judge.answers import (
    arguments,
    counted,
    default_said,
    minted,
    pieces_of,
    spelled,
    with_ids,
)
from golem.testing.judge.anthropic_rules import VERSIONS, judge_anthropic
from golem.testing.judge.anthropic_tools import runs_at_server
from golem.testing.judge.anthropic_turns import thoughts_of, turns_of
from golem.testing.judge.anthropic_words import UNREADABLE, failed, refused_key
from golem.testing.judge.findings import JSON, Violation, elements, members
from golem.testing.judge.misbehave import Misbehavior
from golem.testing.judge.provider import Provider, Said
from golem.testing.judge.reply import Reply, event, plain
from golem.testing.judge.server import DEFAULT_KEY, Answers, Judge
from golem.usage import Usage

PATH: Final = "/v1/messages"
COUNT_PATH: Final = "/v1/messages/count_tokens"
LARGEST: Final = 32 * 1024 * 1024
"""Most bytes of a request."""

PING: Final = event({"type": "ping"}, "ping")

_WORDS: Final[Mapping[FinishReason, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_call": "tool_use",
    "content_filter": "refusal",
    "other": "pause_turn",
}


class AnthropicJudge(Judge):
    """A server that speaks Messages and refuses what Anthropic refuses.

    ``async with AnthropicJudge() as judge: Anthropic("m", base_url=judge.base_url,
    api_key=judge.key)``. See `golem.testing.judge.server.Judge` for what can be asked of it. The
    model's name in a request says which models' rules go for it.

    Args:
        answers: what to answer: always the same, one item for each request, or a function of the
            request's body; beyond them, and by default, what a helpful model would.
        misbehave: what to do wrong; one for every request, or a sequence, one for each.
        key: the key that requests must carry, as ``x-api-key`` or as a Bearer token.
    """

    def __init__(
        self,
        answers: Answers = (),
        misbehave: Misbehavior | Sequence[Misbehavior | None] | None = None,
        *,
        key: str = DEFAULT_KEY,
    ) -> None:
        super().__init__(AnthropicProvider(), answers, misbehave, key=key)


class AnthropicProvider(Provider):
    """Messages as its judge sees it.

    A message to answer with that has `native` blocks of ``anthropic`` is answered by them, so
    that what server-side tools did can be played too.
    """

    path = "/messages"
    key_header = "x-api-key"
    request_id_header = "request-id"
    unreadable = UNREADABLE

    def serves(self, path: str) -> bool:
        """Whether a model answers, or counts, at this path."""
        return path in (PATH, COUNT_PATH)

    def key_of(self, headers: Mapping[str, str]) -> str:
        """The key, in the header of its own or as a Bearer token."""
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        return headers.get(self.key_header) or bearer

    def judge(self, body: Any, made_with: Mapping[str, str]) -> list[Violation]:
        """What is wrong with the body of a request for an answer."""
        return judge_anthropic(body, made_with=made_with)

    def judge_request(
        self, path: str, headers: Mapping[str, str], body: Any, made_with: Mapping[str, str]
    ) -> list[Violation]:
        """What is wrong with a request: its size, its version, and what that version has not."""
        if int(headers.get("content-length", "0")) > LARGEST:
            text = "Request exceeds the maximum size"
            return [Violation("size", "", text, failed(text, 413), 413)]
        version = headers.get("anthropic-version", "")
        if version not in VERSIONS:
            text = "is not a valid version" if version else "header is required"
            text = f"anthropic-version: {text}"
            return [Violation("version", "anthropic-version", text, failed(text, 400))]
        counts = path == COUNT_PATH
        return judge_anthropic(body, version=version, counts=counts, made_with=made_with)

    def aside(self, path: str, body: JSON) -> JSON | None:
        """The number of tokens, where they are counted."""
        if path != COUNT_PATH:
            return None
        return {"input_tokens": counted(body, Response(AssistantMessage())).input_tokens}

    def default(self, body: JSON) -> Said:
        """What a helpful model answers."""
        tools = [tool for tool in elements(body.get("tools")) if not runs_at_server(tool)]
        turns = turns_of(elements(body.get("messages")))
        wanted = members(members(body.get("output_config")).get("format"))
        return default_said(
            [{**members(tool), "parameters": members(tool).get("input_schema")} for tool in tools],
            _choice(members(body.get("tool_choice"))),
            wanted.get("schema"),
            asked=turns[-1].blocks[-1].kind != "tool_result",
            wants_json=bool(wanted),
        )

    # --- answers

    def answer(self, body: JSON, said: Response) -> JSON:
        """A message that says `said`."""
        usage = counted(body, said)
        return {
            **self._frame(body),
            "content": self._content(body, said),
            "stop_reason": _WORDS[said.finish_reason],
            "usage": {**_input(usage), **_output(usage)},
        }

    def events(self, body: JSON, said: Response) -> Sequence[bytes]:
        """The events of the same message."""
        usage = counted(body, said)
        begun = {**_input(usage), "output_tokens": 1}
        start: JSON = {**self._frame(body), "usage": begun}
        told = [_event("message_start", message=start)]
        for index, block in enumerate(self._content(body, said)):
            told.append(_event("content_block_start", index=index, content_block=_begun(block)))
            told += [PING] if index == 0 else []
            for piece in _pieces(block):
                told.append(_event("content_block_delta", index=index, delta=piece))
            told.append(_event("content_block_stop", index=index))
        delta = {"stop_reason": _WORDS[said.finish_reason], "stop_sequence": None}
        told.append(_event("message_delta", delta=delta, usage={**_input(usage), **_output(usage)}))
        return [*told, _event("message_stop")]

    def _frame(self, body: JSON) -> JSON:
        return {
            "id": f"msg_01{minted(body, 'message', 22)}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model"),
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
        }

    def _content(self, body: JSON, said: Response) -> list[JSON]:
        calls = range(len(said.message.tool_calls))
        message = with_ids(
            said, [f"toolu_01{minted(body, f'call {n}', 22)}" for n in calls]
        ).message
        native = message.native
        if native is not None and native.provider == "anthropic":
            return [json.loads(bytes(item)) for item in native.items]
        blocks = [
            _thought(thinking, minted(body, f"signature {number}", 60))
            for number, thinking in enumerate(message.thinking)
        ]
        if message.content:
            blocks.append({"type": "text", "text": message.content})
        for call in message.tool_calls:
            block = {"type": "tool_use", "id": call.id, "name": call.name}
            blocks.append({**block, "input": arguments(call)})
        return blocks

    def links(self, answer: JSON) -> Mapping[str, str]:
        """Which thinking came together, and what it said."""
        return thoughts_of(elements(answer.get("content")))

    def reply(self, body: JSON, status: int = 200) -> Reply:
        """The HTTP answer with this body, spelled as the pieces of a stream are."""
        return plain(spelled(body).encode("utf-8", "replace"), status=status)

    # --- failures

    def failure(self, message: str, status: int, code: str | None = None) -> JSON:
        """The body of an error."""
        return failed(message, status, code)

    def failing_event(self, message: str, code: str | None = None) -> bytes:
        """An ``error`` event."""
        return event(failed(message, 529, code), "error")

    def text_event(self, text: str) -> bytes:
        """A delta of the first block."""
        delta = {"type": "text_delta", "text": text}
        return _event("content_block_delta", index=0, delta=delta)

    def refused_key(self, key: str) -> Violation:
        """The answer to a wrong key."""
        return refused_key(key)


def _event(name: str, **members: Any) -> bytes:
    return event({"type": name, **members}, name)


def _choice(choice: JSON) -> object:
    """A tool choice in the words of `default_said`."""
    match choice.get("type"):
        case "tool":
            return {"name": choice.get("name")}
        case "any":
            return "any"
        case kind:
            return kind if kind == "none" else None


def _thought(thinking: Thinking, seed: str) -> JSON:
    """A block of thinking, with a signature that looks like the provider's."""
    if thinking.redacted:
        return {"type": "redacted_thinking", "data": thinking.redacted}
    signature = base64.b64encode(b"\x12" + seed.encode()).decode()
    return {"type": "thinking", "thinking": thinking.text, "signature": signature}


def _begun(block: JSON) -> JSON:
    """A block as a stream begins it."""
    empty: JSON = {"text": "", "thinking": "", "signature": "", "input": {}}
    kind = block["type"]
    if kind not in ("text", "thinking", "tool_use", "server_tool_use", "mcp_tool_use"):
        return block
    return {name: empty.get(name, value) for name, value in block.items() if name != "citations"}


def _pieces(block: JSON) -> Iterable[JSON]:
    """The deltas of a block, each of its type."""
    match block["type"]:
        case "text":
            for piece in pieces_of(block["text"]):
                yield {"type": "text_delta", "text": piece}
            for citation in elements(block.get("citations")):
                yield {"type": "citations_delta", "citation": citation}
        case "thinking":
            for piece in pieces_of(block["thinking"]):
                yield {"type": "thinking_delta", "thinking": piece}
            yield {"type": "signature_delta", "signature": block["signature"]}
        case "tool_use" | "server_tool_use" | "mcp_tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}
            for piece in pieces_of(spelled(block["input"]) if block["input"] else ""):
                yield {"type": "input_json_delta", "partial_json": piece}
        case _:
            pass  # it came whole


def _input(usage: Usage) -> JSON:
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    return {
        "input_tokens": usage.input_tokens - cached,
        "cache_creation_input_tokens": usage.cache_write_tokens,
        "cache_read_input_tokens": usage.cache_read_tokens,
    }


def _output(usage: Usage) -> JSON:
    return {
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning_tokens},
        "service_tier": "standard",
    }
