"""AG-UI 1.0, the protocol between agents and applications (https://ag-ui.com/spec/1.0)."""

from __future__ import annotations

import base64
from typing import Any, Final

from golem import events as ev
from golem.codec import encode_json
from golem.deferral import PendingCall
from golem.messages import Part, Thinking, UserMessage
from golem.result import Result
from golem.usage import Usage
from golem.web.disclosure import Describe, guarded
from golem.web.frames import Encoder
from golem.web.golem_events import NO_HEADERS
from golem.web.story import Story
from golem.web.telling import Answer, Call
from golem.web.values import plain

PROTOCOL: Final = "1.0"


def agui(*, describe: Describe = guarded) -> Encoder:
    """An encoder of AG-UI events: what ``@ag-ui/client`` and its frameworks read.

    `threadId` is the conversation's id and `runId` the run's: give the run those of the client's
    input. What the protocol has no word for is a ``CUSTOM`` event named ``golem.…``.

    ======================== ==================================================================
    a turn                   ``STEP_STARTED``, ``STEP_FINISHED``, named ``turn 1`` and so on
    text, thinking           ``TEXT_MESSAGE_…``, ``REASONING_…``; a signature
                             ``REASONING_ENCRYPTED_VALUE``
    a call                   ``TOOL_CALL_START``, ``_ARGS``, ``_END``; the arguments as they are
    a call begins            ``CUSTOM`` ``golem.tool_started``
    a call's result          ``TOOL_CALL_RESULT``; a failure says so in its `metadata`
    a call without result    nothing: the run's end says why
    somebody spoke up        ``TEXT_MESSAGE_…`` of the role ``user``
    media the model made     ``CUSTOM`` ``golem.media``
    a failed attempt         ``CUSTOM`` ``golem.attempt``; a rejected answer ``golem.rejected``
    the end                  ``RUN_FINISHED``: ``success`` with the output as `result`,
                             ``interrupt`` with an interrupt for each pending call, or
                             ``cancelled``; ``RUN_ERROR``
    ======================== ==================================================================
    """
    return AGUI(describe)


class AGUI(Story):
    """See `agui`."""

    headers = NO_HEADERS

    def __init__(self, describe: Describe) -> None:
        super().__init__(describe)
        self._delta = b""  # a content event of the open block, up to the text
        self._parent = ""  # the turn's message, once it has said something
        self._said = self._results = 0

    def run_begins(self, event: ev.RunStarted) -> None:
        """The run, in its thread."""
        self._json(
            type="RUN_STARTED",
            threadId=event.conversation_id,
            runId=event.run_id,
            protocolVersion=PROTOCOL,
            **({"parentRunId": event.parent_run_id} if event.parent_run_id else {}),
        )

    def step_begins(self) -> None:
        """A step is a turn of the model, with what its calls come to."""
        self._parent = ""
        self._json(type="STEP_STARTED", stepName=f"turn {self.step + 1}")

    def step_ends(self) -> None:
        """All of it has been told."""
        self._json(type="STEP_FINISHED", stepName=f"turn {self.step + 1}")

    def step_again(self) -> None:
        """What was said stays: the protocol takes nothing back."""
        self._parent = ""
        self._custom("again", {"turn": self.step + 1})

    def text_begins(self) -> None:
        """A message of the assistant."""
        self._parent = self.block
        self._json(type="TEXT_MESSAGE_START", messageId=self.block, role="assistant")
        self._begin_delta("TEXT_MESSAGE_CONTENT")

    def text_grows(self, text: str) -> None:
        """More of it."""
        self._frame(b"%b%b}" % (self._delta, encode_json(text)))

    def text_ends(self) -> None:
        """It is whole."""
        self._json(type="TEXT_MESSAGE_END", messageId=self.block)

    def thinking_begins(self) -> None:
        """A phase of reasoning with one message in it."""
        self._json(type="REASONING_START", messageId=self.block)
        self._json(type="REASONING_MESSAGE_START", messageId=self.block, role="reasoning")
        self._begin_delta("REASONING_MESSAGE_CONTENT")

    def thinking_grows(self, text: str) -> None:
        """More of it."""
        self._frame(b"%b%b}" % (self._delta, encode_json(text)))

    def thinking_ends(self) -> None:
        """It is whole."""
        self._json(type="REASONING_MESSAGE_END", messageId=self.block)
        self._json(type="REASONING_END", messageId=self.block)

    def thinking_kept(
        self, shown: list[tuple[str, Thinking]], hidden: list[tuple[int, Thinking]]
    ) -> None:
        """What proves the reasoning to its maker, for the client to keep and send back.

        Packed so that a signature finds its maker again (`golem.web.messages_from_agui`). Blocks
        without words are kept with the turn's message: a reasoning message of their own would
        stand behind it, where the next turn's are.
        """
        for block, thinking in shown:
            self._encrypted("message", block, packed(thinking))
        if hidden and self._parent:
            kept = {"hidden": [[place, packed(thinking)] for place, thinking in hidden]}
            self._encrypted("message", self._parent, kept)

    def call_begins(self, call: Call) -> None:
        """A call of the turn's message."""
        self._json(
            type="TOOL_CALL_START",
            toolCallId=call.id,
            toolCallName=call.name,
            parentMessageId=self._turn_message(),
        )

    def call_grows(self, call: Call, args: str) -> None:
        """More of its arguments."""
        self._json(type="TOOL_CALL_ARGS", toolCallId=call.id, delta=args)

    def call_ready(self, call: Call) -> None:
        """Its arguments are whole."""
        if call.earlier:
            return  # in the client's messages it ended long ago
        self._json(type="TOOL_CALL_END", toolCallId=call.id)
        if call.signature:
            self._encrypted("tool-call", call.id, call.signature)

    def call_cut(self, call: Call) -> None:
        """It stays as the client has it: as text that is no JSON."""
        self._json(type="TOOL_CALL_END", toolCallId=call.id)

    def call_starts(self, call: Call) -> None:
        """The protocol does not tell running from waiting."""
        self._custom("tool_started", {"toolCallId": call.id, "toolCallName": call.name})

    def call_ends(self, call: Call, answer: Answer) -> None:
        """A message of the tool; none where there is no result."""
        if answer.error and not answer.text:
            return
        failed = {"metadata": {"failed": True}} if answer.failed else {}
        self._json(
            type="TOOL_CALL_RESULT",
            messageId=f"{self.run_id}/result/{self._results}",
            toolCallId=call.id,
            content=_content(answer.text, answer.parts),
            role="tool",
            **failed,
        )
        self._results += 1

    def media(self, part: Part) -> None:
        """An assistant's message has no parts here."""
        self._custom("media", _part(part))

    def said(self, message: UserMessage) -> None:
        """A user's message between the turns."""
        self._said += 1
        name = f"{self.run_id}/said/{self._said}"
        self._json(type="TEXT_MESSAGE_START", messageId=name, role="user")
        self._json(type="TEXT_MESSAGE_CONTENT", messageId=name, delta=message.content)
        self._json(type="TEXT_MESSAGE_END", messageId=name)
        for part in message.parts:
            self._custom("media", {"messageId": name, **_part(part)})

    def attempt_failed(self, event: ev.ModelFinished, error: str) -> None:
        """The model is asked again, or the run is about to fail."""
        self._custom("attempt", {"attempt": event.attempt, "error": error})

    def rejected(self, event: ev.OutputRejected) -> None:
        """What was said is being corrected."""
        self._custom("rejected", {"round": event.round, "reason": event.reason})

    def finished(self, result: Result[Any]) -> None:
        """The run has its answer."""
        self._finish({"type": "success"}, result.usage, result=plain(result.output))

    def paused(self, result: Result[Any]) -> None:
        """The run waits: a new one, with an answer for each interrupt, goes on."""
        pending = [*result.pending.approvals, *result.pending.external]
        outcome = {"type": "interrupt", "interrupts": [_interrupt(call) for call in pending]}
        self._finish(outcome, result.usage)

    def failed(self, event: ev.RunFailed, error: str) -> None:
        """The run failed; `code` says at which stage."""
        usage = event.partial.usage if event.partial else Usage()
        self._json(type="RUN_ERROR", message=error, code=event.stage, **_usage(usage))

    def stopped(self, event: ev.RunStopped) -> None:
        """Somebody stopped the run."""
        usage = event.partial.usage if event.partial else Usage()
        self._finish({"type": "cancelled"}, usage, metadata={"reason": event.reason})

    def cut_off(self) -> None:
        """Whoever can resume should."""
        message = "the stream ended before the run did"
        self._json(type="RUN_ERROR", message=message, code="cut_off")

    def _finish(self, outcome: object, usage: Usage, **members: object) -> None:
        self._json(
            type="RUN_FINISHED",
            threadId=self.conversation_id,
            runId=self.run_id,
            outcome=outcome,
            **_usage(usage),
            **members,
        )

    def _encrypted(self, subtype: str, entity: str, value: object) -> None:
        text = value if isinstance(value, str) else encode_json(value).decode()
        self._json(
            type="REASONING_ENCRYPTED_VALUE",
            subtype=subtype,
            entityId=entity,
            encryptedValue=text,
        )

    def _turn_message(self) -> str:
        if not self._parent:
            self._parent = f"{self.run_id}/turn {self.step + 1}"
        return self._parent

    def _begin_delta(self, kind: str) -> None:
        self._delta = b'{"type":"%b","messageId":%b,"delta":' % (
            kind.encode(),
            encode_json(self.block),
        )

    def _custom(self, name: str, value: object) -> None:
        self._json(type="CUSTOM", name=f"golem.{name}", value=value)


def packed(thinking: Thinking) -> dict[str, str]:
    """All of a block but its words."""
    names = ("signature", "redacted", "provider", "id")
    return {name: value for name in names if (value := getattr(thinking, name))}


def _interrupt(call: PendingCall) -> dict[str, object]:
    message = {"message": call.reason} if call.reason else {}
    return {"id": call.call_id, "reason": call.kind, "toolCallId": call.call_id, **message}


def _usage(usage: Usage) -> dict[str, object]:
    """The protocol's counts: all of the prompt, of which cached."""
    if not usage:
        return {}
    counts = {
        "inputTokens": usage.input_tokens,
        "outputTokens": usage.output_tokens,
        "totalTokens": usage.input_tokens + usage.output_tokens,
        "reasoningTokens": usage.reasoning_tokens,
        "cachedInputTokens": usage.cache_read_tokens,
        "cacheWriteInputTokens": usage.cache_write_tokens,
    }
    return {"usage": [{name: count for name, count in counts.items() if count}]}


def _content(text: str, parts: tuple[Part, ...]) -> object:
    if not parts:
        return text
    worded = [{"type": "text", "text": text}] if text else []
    return [*worded, *map(_part, parts)]


def _part(part: Part) -> dict[str, object]:
    media_type = {"mimeType": part.media_type} if part.media_type else {}
    if part.url:
        source = {"type": "url", "value": part.url, **media_type}
    else:
        value = base64.b64encode(part.data).decode()
        source = {"type": "data", "value": value, **media_type}
    return {"type": part.kind, "source": source}
