"""OpenAI Chat Completions, from the side that answers: chunks of a stream, and a whole body.

Any client of that API can talk to an agent. It sees one assistant message; the agent's own tools
are the server's business: shown as ``tool_calls`` a client would try to run them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem import events as ev
from golem.codec import encode_json
from golem.messages import AssistantMessage, Message
from golem.result import Result
from golem.usage import Usage
from golem.web.disclosure import Describe, guarded
from golem.web.frames import EncoderFactory
from golem.web.golem_events import NO_HEADERS
from golem.web.story import Story
from golem.web.values import plain

BETWEEN_TURNS: Final = "\n\n"
"""What keeps the words of several turns apart in the one message that the client sees."""

_FINISH: Final = {"length": "length", "content_filter": "content_filter"}
"""A run's ending in the API's words; whatever else ends it, to the client it just stops."""


def chat_chunks(
    *,
    model: str,
    created: int,
    include_usage: bool = False,
    describe: Describe = guarded,
) -> EncoderFactory:
    """Encoders of ``chat.completion.chunk``: what any client of Chat Completions reads.

    `model` and `created` (seconds since 1970) are repeated in every chunk, `include_usage` is the
    request's ``stream_options.include_usage``.

    Text of all turns is the one message's `content`, turns a blank line apart; thinking is
    `reasoning_content`, as other servers have it. A value of another output type than text comes
    as JSON where the model did not write it as text. Calls that wait for a result from elsewhere
    are `tool_calls`, and the stream finishes with them; approvals have no words here: the run
    just stops. A failure is an ``error`` object, which clients raise.
    """

    def encoder() -> ChatChunks:
        return ChatChunks(model, created, describe, include_usage=include_usage)

    return encoder


class ChatChunks(Story):
    """See `chat_chunks`."""

    headers: Mapping[str, str] = NO_HEADERS

    def __init__(
        self, model: str, created: int, describe: Describe, *, include_usage: bool
    ) -> None:
        super().__init__(describe)
        self._about = {"object": "chat.completion.chunk", "created": created, "model": model}
        self._include_usage = include_usage
        self._head = b""  # a content chunk up to the text
        self._thought = b""
        self._tail = b""
        self._spoken_in = self._thought_in = -1  # the step that has last said, thought something

    def run_begins(self, event: ev.RunStarted) -> None:
        """The message's role comes first."""
        name = {"id": completion_id(event.run_id)}
        self._about = {**name, **self._about}
        head = encode_json(self._about)[:-1] + b',"choices":[{"index":0,"delta":{'
        self._head = head + b'"content":'
        self._thought = head + b'"reasoning_content":'
        usage = b',"usage":null}' if self._include_usage else b"}"
        self._tail = b'},"logprobs":null,"finish_reason":null}]' + usage
        self._delta({"role": "assistant", "content": ""})

    def text_grows(self, text: str) -> None:
        """More of the content."""
        self._piece(self._head, text, self._spoken_in)
        self._spoken_in = self.step

    def thinking_grows(self, text: str) -> None:
        """More of the reasoning."""
        self._piece(self._thought, text, self._thought_in)
        self._thought_in = self.step

    def _piece(self, head: bytes, text: str, last: int) -> None:
        if last not in (-1, self.step):
            self._frame(b"%b%b%b" % (head, encode_json(BETWEEN_TURNS), self._tail))
        self._frame(b"%b%b%b" % (head, encode_json(text), self._tail))

    def finished(self, result: Result[Any]) -> None:
        """The message is whole."""
        if not isinstance(result.output, str) and self._spoken_in != self.step:
            self.text_grows(_worded(result.output))
        self._finish(_finish_reason(result), result.usage)

    def paused(self, result: Result[Any]) -> None:
        """The client is asked for the results that only it can give."""
        calls = [{"index": n, **call} for n, call in enumerate(_external(result))]
        if calls:
            self._delta({"tool_calls": calls})
        self._finish(_finish_reason(result), result.usage)

    def failed(self, event: ev.RunFailed, error: str) -> None:
        """An error inside the stream."""
        self._error(error, event.stage)
        self._frame(b"[DONE]")

    def stopped(self, event: ev.RunStopped) -> None:
        """The message stays as it is."""
        self._finish("stop", event.partial.usage if event.partial else Usage())

    def cut_off(self) -> None:
        """No `[DONE]`: the answer is not whole."""
        self._error("the stream ended before the run did", "cut_off")

    def _error(self, message: str, code: str) -> None:
        self._json(error={"message": message, "type": "server_error", "param": None, "code": code})

    def _delta(self, delta: Mapping[str, object], finish_reason: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        usage = {"usage": None} if self._include_usage else {}
        self._json(**self._about, choices=[choice], **usage)

    def _finish(self, reason: str, usage: Usage) -> None:
        self._delta({}, reason)
        if self._include_usage:
            self._json(**self._about, choices=[], usage=_usage(usage))
        self._frame(b"[DONE]")


def chat_completion(result: Result[Any], *, model: str, created: int) -> bytes:
    """The body of a ``chat.completion`` that is not streamed.

    Its `content` is the run's output: text, or JSON; of a paused run what the model said last.
    """
    message: dict[str, object] = {"role": "assistant", "content": _content(result), "refusal": None}
    if thinking := _thinking(result.new_messages):
        message["reasoning_content"] = thinking
    if calls := _external(result):
        message["tool_calls"] = calls
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(result),
    }
    return encode_json(
        {
            "id": completion_id(result.run_id),
            "object": "chat.completion",
            "created": created,
            "model": model,
            "choices": [choice],
            "usage": _usage(result.usage),
        }
    )


def completion_id(run_id: str) -> str:
    """The completion's id for a run."""
    return f"chatcmpl-{run_id}"


def _content(result: Result[Any]) -> str | None:
    if result.pending:
        said = [m.content for m in result.new_messages if isinstance(m, AssistantMessage)]
        return (said[-1] or None) if said else None
    return result.output if isinstance(result.output, str) else _worded(result.output)


def _worded(output: object) -> str:
    return bytes(plain(output)).decode()


def _thinking(messages: list[Message]) -> str:
    answers = [message for message in messages if isinstance(message, AssistantMessage)]
    texts = ("".join(block.text for block in answer.thinking) for answer in answers)
    return BETWEEN_TURNS.join(filter(None, texts))


def _external(result: Result[Any]) -> list[dict[str, object]]:
    """The calls that the client is to answer, if the run waits for nobody else."""
    if result.pending.approvals:
        return []
    return [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.tool_name, "arguments": call.args},
        }
        for call in result.pending.external
    ]


def _finish_reason(result: Result[Any]) -> str:
    if result.pending:
        return "tool_calls" if _external(result) else "stop"
    return _FINISH.get(result.finish_reason or "stop", "stop")


def _usage(usage: Usage) -> dict[str, object]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }
