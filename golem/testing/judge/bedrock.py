"""The judge of Bedrock's Converse API, streams in binary frames and counts of tokens included."""

from __future__ import annotations

import base64
import json
import re
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
from golem.testing.judge.bedrock_blocks import RESULT, kind_of
from golem.testing.judge.bedrock_families import known_form
from golem.testing.judge.bedrock_frames import frame, large_frame
from golem.testing.judge.bedrock_rules import judge_bedrock
from golem.testing.judge.bedrock_turns import thoughts_of
from golem.testing.judge.bedrock_words import TYPES, UNREADABLE, failed, refused_key
from golem.testing.judge.findings import JSON, Violation, elements, members
from golem.testing.judge.misbehave import Misbehavior
from golem.testing.judge.provider import Provider, Said
from golem.testing.judge.reply import Reply, plain
from golem.testing.judge.server import DEFAULT_KEY, Answers, Judge
from golem.usage import Usage

_PATH: Final = re.compile(r".*/model/([^/]+)/(converse|converse-stream|count-tokens)")
_SIGNED: Final = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/,]+)/(\d{8})/([a-z0-9-]+)/bedrock/aws4_request, ?"
    r"SignedHeaders=([a-z0-9;-]+), ?Signature=[0-9a-f]{64}"
)
_ALGORITHM: Final = "AWS4-HMAC-SHA256"
_WORDS: Final[Mapping[FinishReason, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_call": "tool_use",
    "content_filter": "content_filtered",
    "other": "malformed_model_output",
}


class BedrockJudge(Judge):
    """A server that speaks Converse and refuses what Bedrock, or the model's family, refuses.

    ``async with BedrockJudge() as judge: Bedrock("m", base_url=judge.base_url,
    api_key=judge.key)``. See `golem.testing.judge.server.Judge` for what can be asked of it. The
    model in a request's path says which family's rules go for it.

    Args:
        answers: what to answer: always the same, one item for each request, or a function of the
            request's body; beyond them, and by default, what a helpful model would.
        misbehave: what to do wrong; one for every request, or a sequence, one for each.
        key: the key that requests must carry: as a Bearer token, or as the access key id of a
            signature, of which the form is judged and not the sum.
    """

    def __init__(
        self,
        answers: Answers = (),
        misbehave: Misbehavior | Sequence[Misbehavior | None] | None = None,
        *,
        key: str = DEFAULT_KEY,
    ) -> None:
        super().__init__(BedrockProvider(), answers, misbehave, key=key)


class BedrockProvider(Provider):
    """Converse as its judge sees it.

    A message to answer with that has `native` blocks of a family (``bedrock-…``) is answered by
    them, so that what the service's own tools did can be played too.
    """

    path = "/model/m/converse"
    request_id_header = "x-amzn-requestid"
    stream_type = "application/vnd.amazon.eventstream"
    unreadable = UNREADABLE

    # --- requests

    def serves(self, path: str) -> bool:
        """Whether a model answers, or counts, at this path."""
        return _PATH.fullmatch(path) is not None

    def streams(self, path: str, body: JSON) -> bool:
        """Whether a stream is asked for: the path says so."""
        return path.endswith("/converse-stream")

    def key_of(self, headers: Mapping[str, str]) -> str:
        """The Bearer token, or the access key id that a signature names."""
        sent = headers.get(self.key_header, "")
        signed = _SIGNED.fullmatch(sent)
        return signed[1] if signed else sent.removeprefix("Bearer ")

    def judge(self, body: Any, made_with: Mapping[str, str]) -> list[Violation]:
        """What is wrong with the body of a request to a model whose family nobody knows."""
        return judge_bedrock(body, made_with=made_with)

    def judge_request(
        self, path: str, headers: Mapping[str, str], body: Any, made_with: Mapping[str, str]
    ) -> list[Violation]:
        """What is wrong with a request: its signature, its model, its body."""
        if wrong := _signature_fault(headers):
            return [Violation("signature", "authorization", wrong, failed(wrong), 403)]
        model, action = _asked(path)
        if not known_form(model):
            text = "The provided model identifier is invalid."
            return [Violation("model", "", text, failed(text))]
        counts = action == "count-tokens"
        return judge_bedrock(body, model=model, counts=counts, made_with=made_with)

    def aside(self, path: str, body: JSON) -> JSON | None:
        """The number of tokens, where they are counted."""
        if _asked(path)[1] != "count-tokens":
            return None
        return {"inputTokens": counted(body, Response(AssistantMessage())).input_tokens}

    # --- answers

    def default(self, body: JSON) -> Said:
        """What a helpful model answers."""
        config = members(body.get("toolConfig"))
        specs = [members(members(t).get("toolSpec")) for t in elements(config.get("tools"))]
        tools = [
            {**spec, "parameters": members(spec.get("inputSchema")).get("json")}
            for spec in specs
            if spec
        ]
        wanted = members(members(body.get("outputConfig")).get("textFormat"))
        schema = members(members(wanted.get("structure")).get("jsonSchema")).get("schema")
        last = elements(members(elements(body.get("messages"))[-1]).get("content"))
        return default_said(
            tools,
            _choice(members(config.get("toolChoice"))),
            json.loads(schema) if isinstance(schema, str) else None,
            asked=[kind for kind in map(kind_of, last) if kind != "cachePoint"][-1:] != [RESULT],
            wants_json=bool(wanted),
        )

    def answer(self, body: JSON, said: Response) -> JSON:
        """An answer that says `said`."""
        message = {"role": "assistant", "content": self._content(body, said)}
        return {
            "output": {"message": message},
            "stopReason": _WORDS[said.finish_reason],
            "usage": _usage(counted(body, said)),
            "metrics": {"latencyMs": 564},
        }

    def events(self, body: JSON, said: Response) -> Sequence[bytes]:
        """The frames of the same answer."""
        told = [frame("messageStart", {"role": "assistant"})]
        for index, block in enumerate(self._content(body, said)):
            place = {"contentBlockIndex": index}
            (kind, value), *_ = block.items()
            if kind in ("toolUse", "toolResult"):
                named = {name: v for name, v in value.items() if name not in ("input", "content")}
                told.append(frame("contentBlockStart", {**place, "start": {kind: named}}))
            told += [
                frame("contentBlockDelta", {**place, "delta": piece})
                for piece in _pieces(kind, value)
            ]
            told.append(frame("contentBlockStop", place))
        told.append(frame("messageStop", {"stopReason": _WORDS[said.finish_reason]}))
        counts = {"usage": _usage(counted(body, said)), "metrics": {"latencyMs": 564}}
        return [*told, frame("metadata", counts)]

    def _content(self, body: JSON, said: Response) -> list[JSON]:
        calls = range(len(said.message.tool_calls))
        ids = [f"tooluse_{minted(body, f'call {number}', 22)}" for number in calls]
        message = with_ids(said, ids).message
        native = message.native
        if native is not None and native.provider.startswith("bedrock"):
            return [json.loads(bytes(item)) for item in native.items]
        blocks = [
            _thought(thinking, minted(body, f"signature {number}", 60))
            for number, thinking in enumerate(message.thinking)
        ]
        if message.content:
            blocks.append({"text": message.content})
        for call in message.tool_calls:
            use = {"toolUseId": call.id, "name": call.name, "input": arguments(call)}
            blocks.append({"toolUse": use})
        return blocks

    def links(self, answer: JSON) -> Mapping[str, str]:
        """Which thinking came together, and what it said."""
        message = members(members(answer.get("output")).get("message"))
        return thoughts_of(elements(message.get("content")))

    def reply(self, body: JSON, status: int = 200) -> Reply:
        """The HTTP answer with this body; the type of an error stands in a header."""
        found = plain(spelled(body).encode("utf-8", "replace"), status=status)
        if status < 400 or "__type" in body:
            return found
        kind = TYPES.get(status, "InternalServerException")
        return found.with_header("x-amzn-errortype", f"{kind}:http://internal.amazon.com/")

    # --- failures

    def failure(self, message: str, status: int, code: str | None = None) -> JSON:
        """The body of an error."""
        return failed(message, code)

    def failing_event(self, message: str, code: str | None = None) -> bytes:
        """An exception frame."""
        kind = code or "internalServerException"
        return frame(kind, failed(message), "exception")

    def text_event(self, text: str) -> bytes:
        """A piece of the first block."""
        return frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": text}})

    def large_event(self, size: int) -> Iterable[bytes]:
        """One frame, which tells its length before anything else and its sum at the end."""
        return large_frame(size)

    def refused_key(self, key: str) -> Violation:
        """The answer to a wrong key."""
        return refused_key(key)


def _asked(path: str) -> tuple[str, str]:
    """The model and the action in a path."""
    found = _PATH.fullmatch(path)
    return (found[1], found[2]) if found else ("", "")


def _signature_fault(headers: Mapping[str, str]) -> str:
    """What is wrong with the form of a signature; empty for a Bearer token."""
    sent = headers.get("authorization", "")
    if not sent.startswith(_ALGORITHM):
        return ""
    signed = _SIGNED.fullmatch(sent)
    date = headers.get("x-amz-date", "")
    if signed is None:
        return "Authorization header is not in the form of AWS Signature Version 4."
    if not re.fullmatch(r"\d{8}T\d{6}Z", date) or date[:8] != signed[2]:
        return f"Date in Credential scope does not match x-amz-date: '{date}'."
    lost = {"host", "x-amz-date"} - set(signed[4].split(";"))
    return f"'{lost.pop()}' must be a signed header." if lost else ""


def _choice(choice: JSON) -> object:
    """A tool choice in the words of `default_said`."""
    if "any" in choice:
        return "any"
    return choice.get("tool")


def _thought(thinking: Thinking, seed: str) -> JSON:
    """A block of thinking, with a signature that looks like a model's."""
    if thinking.redacted:
        return {"reasoningContent": {"redactedContent": thinking.redacted}}
    signature = base64.b64encode(b"\x12" + seed.encode()).decode()
    return {"reasoningContent": {"reasoningText": {"text": thinking.text, "signature": signature}}}


def _pieces(kind: str, value: Any) -> Iterable[JSON]:
    """The deltas of a block."""
    match kind:
        case "text":
            yield from ({"text": piece} for piece in pieces_of(value))
        case "toolUse":
            for piece in pieces_of(spelled(value["input"])) if value["input"] else ():
                yield {"toolUse": {"input": piece}}
        case "toolResult":
            yield {"toolResult": value["content"]}
        case "reasoningContent" if "redactedContent" in value:
            yield {"reasoningContent": value}
        case "reasoningContent":
            readable = value["reasoningText"]
            for piece in pieces_of(readable["text"]):
                yield {"reasoningContent": {"text": piece}}
            yield {"reasoningContent": {"signature": readable["signature"]}}
        case _:
            yield {kind: value}


def _usage(usage: Usage) -> JSON:
    cached = usage.cache_read_tokens + usage.cache_write_tokens
    counts = {
        "inputTokens": usage.input_tokens - cached,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.total_tokens,
    }
    if cached:
        counts["cacheReadInputTokens"] = usage.cache_read_tokens
        counts["cacheWriteInputTokens"] = usage.cache_write_tokens
    return counts
