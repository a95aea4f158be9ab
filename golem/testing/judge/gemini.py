"""The judge of Gemini requests, at AI Studio and at Vertex AI."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec.structs import replace

from golem.messages import ToolCall
from golem.model import FinishReason, Response
from golem.testing.judge.answers import counted, default_said, minted, pieces_of
from golem.testing.judge.findings import JSON, Violation, elements, members
from golem.testing.judge.gemini_contents import signed_for
from golem.testing.judge.gemini_proto import Parser
from golem.testing.judge.gemini_rules import judge_gemini
from golem.testing.judge.gemini_servers import GeminiRules, gemini_rules
from golem.testing.judge.gemini_words import Findings, error_body, refused_key, retry_info
from golem.testing.judge.misbehave import Misbehavior
from golem.testing.judge.provider import Provider, Said
from golem.testing.judge.reply import Reply, event, json_reply
from golem.testing.judge.server import DEFAULT_KEY, Answers, Judge
from golem.usage import Usage

_ADDRESS: Final = re.compile(
    r".*/(?P<name>(?:(?:tuned)?[mM]odels|endpoints)/[^/:]+)"
    r":(?P<method>generateContent|streamGenerateContent|countTokens)"
)
_REASONS: Final[Mapping[FinishReason, str]] = {
    "stop": "STOP",
    "length": "MAX_TOKENS",
    "tool_call": "STOP",
    "content_filter": "SAFETY",
    "other": "OTHER",
}
_COUNTS_BEFORE_THE_END: Final = ("promptTokenCount", "totalTokenCount", "promptTokensDetails")


class GeminiJudge(Judge):
    """A server that speaks Gemini and refuses what Google refuses.

    It remembers which part each of its thought signatures was made for, and wants it back there.
    See `golem.testing.judge.server.Judge` for what can be asked of it; what a model takes is
    known by the name in the address.

    Args:
        answers: what to answer: always the same, one item for each request, or a function of the
            request's body; beyond them, and by default, what a helpful model would. Counts of
            tokens are none of them.
        misbehave: what to do wrong; one for every request, or a sequence, one for each.
        dialect: whose rules: ``gemini`` (AI Studio) or ``vertex``.
        key: the key (at Vertex: the token) that requests must carry.
    """

    def __init__(
        self,
        answers: Answers = (),
        misbehave: Misbehavior | Sequence[Misbehavior | None] | None = None,
        *,
        dialect: str = "gemini",
        key: str = DEFAULT_KEY,
    ) -> None:
        super().__init__(GeminiProvider(dialect), answers, misbehave, key=key)


class GeminiProvider(Provider):
    """Gemini as its judge sees it: a `model` at the server of `dialect`, asked by a `method`.

    Requests are judged by the model and the method in their address. The first call of every
    answer is signed, as all models sign that think.

    Raises ValueError for a dialect that there are no rules for.
    """

    path = "/models/gemini-3:generateContent"
    request_id_header = "x-goog-request-id"
    stream_type = "text/event-stream"

    def __init__(
        self, dialect: str = "gemini", model: str = "gemini-3", method: str = "generateContent"
    ) -> None:
        self.dialect = dialect
        self.model = model
        self.method = method
        self.rules: GeminiRules = gemini_rules(model, dialect)
        self.key_header = "authorization" if self.rules.vertex else "x-goog-api-key"

    # --- requests

    def serves(self, path: str) -> bool:
        """Whether a model or a count answers at this path."""
        return _ADDRESS.fullmatch(path) is not None

    def at(self, path: str) -> GeminiProvider:
        """The same server, for the model and the method in the address."""
        found = _ADDRESS.fullmatch(path)
        if found is None:
            return self
        return GeminiProvider(self.dialect, found["name"].partition("/")[2], found["method"])

    def judge_request(
        self, path: str, headers: Mapping[str, str], body: Any, made_with: Mapping[str, str]
    ) -> list[Violation]:
        """What is wrong with a request to the model and the method in the address."""
        return self.at(path).judge(body, made_with)

    def streams(self, path: str, body: JSON) -> bool:
        """Whether a stream is asked for: the method says so."""
        return self.at(path).method == "streamGenerateContent"

    def judge(self, body: Any, made_with: Mapping[str, str]) -> list[Violation]:
        """What is wrong with a body."""
        return judge_gemini(
            body,
            model=self.model,
            dialect=self.dialect,
            method=self.method,
            made_with=made_with,
        )

    def links(self, answer: JSON) -> Mapping[str, str]:
        """What each signature in an answer was made for."""
        found: dict[str, str] = {}
        for candidate in elements(answer.get("candidates")):
            for part in elements(members(candidate.get("content")).get("parts")):
                if "thoughtSignature" in part:
                    found[part["thoughtSignature"]] = signed_for(part)
        return found

    # --- answers

    def default(self, body: JSON) -> Said:
        """What a helpful model answers."""
        request = Parser(self.rules.messages, Findings()).read(body, "GenerateContentRequest")
        config = members(request.get("generationConfig"))
        last = elements(request.get("contents"))[-1]
        return default_said(
            list(_functions(request)),
            _choice(request),
            config.get("responseJsonSchema", config.get("responseSchema")),
            asked="text" in last["parts"][-1],
            wants_json=config.get("responseMimeType") == "application/json",
        )

    def aside(self, path: str, body: JSON) -> JSON | None:
        """A count of tokens, of which no model is asked."""
        if self.at(path).method != "countTokens":
            return None
        count = -(-len(json.dumps(body)) // 4)
        details = [{"modality": "TEXT", "tokenCount": count}]
        return {"totalTokens": count, "promptTokensDetails": details}

    def answer(self, body: JSON, said: Response) -> JSON:
        """An answer that says `said`."""
        content = {"parts": list(self._parts(body, said)), "role": "model"}
        reason = _REASONS[said.finish_reason]
        candidate = {"content": content, "finishReason": reason, "index": 0}
        return self._frame(body, candidate, _usage(counted(body, said)))

    def events(self, body: JSON, said: Response) -> Sequence[bytes]:
        """The chunks of the same answer; the last one has no more than the end, and all counts."""
        usage = _usage(counted(body, said))
        begun = {name: usage[name] for name in _COUNTS_BEFORE_THE_END}
        chunks = [
            self._frame(body, {"content": {"parts": parts, "role": "model"}, "index": 0}, begun)
            for parts in _chunked(self._parts(body, said))
        ]
        nothing = {"parts": [{"text": ""}], "role": "model"}
        reason = _REASONS[said.finish_reason]
        end = {"content": nothing, "finishReason": reason, "index": 0}
        return [*map(_event, chunks), _event(self._frame(body, end, usage))]

    def _parts(self, body: JSON, said: Response) -> Iterator[JSON]:
        message = said.message
        thought = "".join(block.text for block in message.thinking)
        if thought:
            yield {"text": thought, "thought": True}
        if message.content:
            yield {"text": message.content}
        if thought and not message.tool_calls:
            # Where a text is signed, the signature comes behind it, in a part of its own.
            yield {"text": "", "thoughtSignature": self._signature(body, "text")}
        for index, call in enumerate(message.tool_calls):
            made = "" if index else self._signature(body, "call")
            yield _call(call, call.signature or made)

    def _signature(self, body: JSON, salt: str) -> str:
        return f"Ev4K{minted(body, salt, 40)}"

    def _frame(self, body: JSON, candidate: JSON, usage: JSON) -> JSON:
        return {
            "candidates": [candidate],
            "usageMetadata": usage,
            "modelVersion": self.model,
            "responseId": minted(body, "response", 22),
        }

    # --- failures

    def failure(self, message: str, status: int, code: str | None = None) -> JSON:
        """The body of an error; a `code` of another provider's is a detail of it."""
        if code is None:
            return error_body(message, status)
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        return error_body(message, status, {"@type": kind, "reason": code})

    def to_wait(self, refusal: Reply, name: str, after: str) -> Reply:
        """The same refusal with the delay among its details: no header says it."""
        body: JSON = json.loads(refusal.body())
        said = members(body["error"])
        said["details"] = [*elements(said.get("details")), retry_info(after)]
        told = json_reply(body, status=refusal.status)
        return replace(refusal, pieces=told.pieces, length=told.length)

    def failing_event(self, message: str, code: str | None = None) -> bytes:
        """A data line with an error in place of candidates."""
        return _event(self.failure(message, 500, code))

    def text_event(self, text: str) -> bytes:
        """A chunk that brings `text`."""
        content = {"parts": [{"text": text}], "role": "model"}
        return _event({"candidates": [{"content": content, "index": 0}]})

    def refused_key(self, key: str) -> Violation:
        """The answer to a wrong key: a 400, as every other wrong argument; at Vertex a 401."""
        return refused_key(key, vertex=self.rules.vertex)


def _event(value: object) -> bytes:
    """A server-sent event whose lines end as Google ends them."""
    return event(value).removesuffix(b"\n\n") + b"\r\n\r\n"


def _chunked(parts: Iterable[JSON]) -> Iterator[list[JSON]]:
    """The parts as a stream brings them: texts in pieces, the second and third of which together.

    Pieces of one text are parts of their own also within a chunk.
    """
    for part in parts:
        pieces = pieces_of(part["text"]) if "text" in part else []
        told = [{**part, "text": piece} for piece in pieces] or [part]
        together = [told[:1], told[1:3], *([piece] for piece in told[3:])]
        yield from filter(None, together)


def _call(call: ToolCall, signature: str) -> JSON:
    args: JSON = {} if call.truncated else call.arguments()  # a model here cannot say anything else
    function: JSON = {"name": call.name, "args": args}
    if call.id:  # mostly there is none
        function["id"] = call.id
    return {"functionCall": function, **({"thoughtSignature": signature} if signature else {})}


def _functions(request: JSON) -> Iterator[JSON]:
    """What may be called, each with its schema."""
    for tool in elements(request.get("tools")):
        for function in elements(tool.get("functionDeclarations")):
            schema = function.get("parametersJsonSchema", function.get("parameters"))
            yield {"name": function.get("name"), "parameters": schema}


def _choice(request: JSON) -> object:
    calling = members(members(request.get("toolConfig")).get("functionCallingConfig"))
    allowed = elements(calling.get("allowedFunctionNames"))
    if calling.get("mode") == "ANY":
        return {"name": allowed[0]} if allowed else "any"
    return "none" if calling.get("mode") == "NONE" else None


def _usage(usage: Usage) -> JSON:
    details = [{"modality": "TEXT", "tokenCount": usage.input_tokens}]
    counts: JSON = {
        "promptTokenCount": usage.input_tokens,
        "candidatesTokenCount": usage.output_tokens - usage.reasoning_tokens,
        "totalTokenCount": usage.total_tokens,
        "promptTokensDetails": details,
    }
    if usage.cache_read_tokens:
        counts["cachedContentTokenCount"] = usage.cache_read_tokens
    if usage.reasoning_tokens:
        counts["thoughtsTokenCount"] = usage.reasoning_tokens
    return counts
