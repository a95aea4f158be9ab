"""The Vercel AI SDK's UI message stream, as its versions 5 to 7 read it.

The chunks are those of ``ai``'s ``ui-message-chunks.ts``. What the protocol has no word for goes
into ``data-golem-…`` parts; those that are only news are transient and leave nothing in the
message.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal

import msgspec

from golem import events as ev
from golem.codec import encode_json
from golem.messages import Part, UserMessage
from golem.result import Result
from golem.usage import Usage
from golem.web.disclosure import Describe, guarded
from golem.web.frames import Encoder
from golem.web.story import Story
from golem.web.telling import Answer, Call
from golem.web.values import embedded, plain

HEADERS: Final[Mapping[str, str]] = MappingProxyType({"x-vercel-ai-ui-message-stream": "v1"})

DONE: Final = b"[DONE]"

Version = Literal[5, 6, 7]
"""Major versions of the package ``ai`` that read this stream."""

_FINISH: Final = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content-filter",
    "tool_call": "tool-calls",
}


def ui_messages(
    *, message_id: str = "", version: Version = 6, describe: Describe = guarded
) -> Encoder:
    """An encoder of the UI message stream: what ``useChat`` and ``readUIMessageStream`` read.

    The whole run is one assistant message, `message_id` its id (default: the run's). A run that
    resumes a paused one goes on with the message that asked: give that one's id.

    `version` is the reader's: each refuses chunks that are newer than itself. 5 knows no
    approvals and no denials, only 7 can take a step back; 6 is right for both 6 and 7.

    ======================== ==================================================================
    a turn                   ``start-step`` … ``finish-step``; asked again: ``reset-step``
    text, thinking           ``text-…``, ``reasoning-…``, a new part whenever the kind changes
    a call                   ``tool-input-start``, ``-delta``, ``-available``; arguments that are
                             no JSON object are the `input` as text
    a call begins            ``data-golem-tool-started``, transient
    a call's result          ``tool-output-available``; its JSON, where it is an object or array
    a failed, rejected call  ``tool-output-error``; a denied one ``tool-output-denied``
    an approval              ``tool-approval-request`` with the call's id as `approvalId`; for
                             version 5 ``data-golem-approval``
    an external result       nothing: a call with its input is what the client answers
    media                    ``file``; of a tool's result ``data-golem-part``
    somebody spoke up        ``data-golem-user``
    an output type's value   ``data-golem-output``
    a failed attempt         ``data-golem-attempt``, a rejected answer ``data-golem-rejected``,
                             both transient
    the end                  ``finish``; failed: ``error`` and ``finish``; stopped: ``abort``
    ======================== ==================================================================

    Message metadata: `runId`, `conversationId` and, at the end, `usage`. Signatures of thinking
    stay at the server.
    """
    return UIMessages(message_id, version, describe)


class UIMessages(Story):
    """See `ui_messages`."""

    headers = HEADERS

    def __init__(self, message_id: str, version: Version, describe: Describe) -> None:
        super().__init__(describe)
        self._version = version
        self._message_id = message_id
        self._delta = b""  # a delta chunk of the open block, up to the text

    def run_begins(self, event: ev.RunStarted) -> None:
        """One assistant message begins, or goes on."""
        ids = {"runId": event.run_id, "conversationId": event.conversation_id}
        message_id = self._message_id or event.run_id
        self._json(type="start", messageId=message_id, messageMetadata=ids)

    def step_begins(self) -> None:
        """A step is a turn of the model."""
        self._frame(b'{"type":"start-step"}')

    def step_ends(self) -> None:
        """The results of its calls belong to it."""
        self._frame(b'{"type":"finish-step"}')

    def step_again(self) -> None:
        """Version 7 drops the step's parts; for others a new step begins behind them.

        golem's own runs never come here: once a fragment was given out nothing is asked again.
        """
        if self._version == 7:
            self._frame(b'{"type":"reset-step"}')
        else:
            self.step_ends()
            self.step_begins()

    def text_begins(self) -> None:
        """A text part."""
        self._json(type="text-start", id=self.block)
        self._delta = b'{"type":"text-delta","id":%b,"delta":' % encode_json(self.block)

    def text_grows(self, text: str) -> None:
        """Its next piece."""
        self._frame(b"%b%b}" % (self._delta, encode_json(text)))

    def text_ends(self) -> None:
        """It is done."""
        self._json(type="text-end", id=self.block)

    def thinking_begins(self) -> None:
        """A reasoning part."""
        self._json(type="reasoning-start", id=self.block)
        self._delta = b'{"type":"reasoning-delta","id":%b,"delta":' % encode_json(self.block)

    def thinking_grows(self, text: str) -> None:
        """Its next piece."""
        self._frame(b"%b%b}" % (self._delta, encode_json(text)))

    def thinking_ends(self) -> None:
        """It is done."""
        self._json(type="reasoning-end", id=self.block)

    def call_begins(self, call: Call) -> None:
        """A tool part, its input on the way."""
        self._json(type="tool-input-start", toolCallId=call.id, toolName=call.name)

    def call_grows(self, call: Call, args: str) -> None:
        """The next piece of its input."""
        self._json(type="tool-input-delta", toolCallId=call.id, inputTextDelta=args)

    def call_ready(self, call: Call) -> None:
        """Its input is whole. One that an earlier run asked for is in the message already."""
        if not call.earlier:
            self._available(call)

    def _available(self, call: Call) -> None:
        self._json(
            type="tool-input-available",
            toolCallId=call.id,
            toolName=call.name,
            input=_input(call.args),
        )

    def call_cut(self, call: Call) -> None:
        """Its input never came whole: an error part, with what there is of it."""
        self._json(
            type="tool-input-error",
            toolCallId=call.id,
            toolName=call.name,
            input=call.args,
            errorText="the model's answer broke off inside the arguments",
        )

    def call_starts(self, call: Call) -> None:
        """The protocol does not tell running from waiting."""
        data = {"toolCallId": call.id, "toolName": call.name}
        self._json(type="data-golem-tool-started", data=data, transient=True)

    def call_ends(self, call: Call, answer: Answer) -> None:
        """Its output, or why there is none."""
        if call.earlier and call.ready:
            self._available(call)  # for readers that begin with this stream
        if answer.denied and self._version > 5:
            self._json(type="tool-output-denied", toolCallId=call.id)
        elif answer.denied or answer.failed or answer.error:
            text = answer.text or answer.error
            self._json(type="tool-output-error", toolCallId=call.id, errorText=text)
        else:
            output = embedded(answer.text)
            self._json(type="tool-output-available", toolCallId=call.id, output=output)
        for part in answer.parts:
            data = {"toolCallId": call.id, "kind": part.kind, **_file(part)}
            self._json(type="data-golem-part", data=data)

    def call_waits(self, call: Call, event: ev.ToolDeferred) -> None:
        """An approval is asked for; a result from elsewhere the client just gives."""
        if event.deferral != "approval":
            return
        asks = {"reason": event.reason} if event.reason else {}
        if self._version > 5:
            ids = {"approvalId": event.call_id, "toolCallId": call.id}
            self._json(type="tool-approval-request", **ids, **asks)
        else:
            self._json(type="data-golem-approval", data={"toolCallId": call.id, **asks})

    def media(self, part: Part) -> None:
        """A file part."""
        self._json(type="file", **_file(part))

    def said(self, message: UserMessage) -> None:
        """Inside one assistant message a user can only be quoted."""
        parts = [{"kind": part.kind, **_file(part)} for part in message.parts]
        data = {"text": message.content, **({"parts": parts} if parts else {})}
        self._json(type="data-golem-user", data=data)

    def attempt_failed(self, event: ev.ModelFinished, error: str) -> None:
        """News for who waits: the model is asked again, or the run is about to fail."""
        data = {"attempt": event.attempt, "error": error}
        self._json(type="data-golem-attempt", data=data, transient=True)

    def rejected(self, event: ev.OutputRejected) -> None:
        """News: what was shown is being corrected."""
        data = {"round": event.round, "reason": event.reason}
        self._json(type="data-golem-rejected", data=data, transient=True)

    def finished(self, result: Result[Any]) -> None:
        """The message is whole."""
        if not isinstance(result.output, str):
            self._json(type="data-golem-output", data=plain(result.output))
        self._finish(_FINISH.get(result.finish_reason or "stop", "other"), result.usage)

    def paused(self, result: Result[Any]) -> None:
        """The message goes on once its calls are answered."""
        self._finish("tool-calls", result.usage)

    def failed(self, event: ev.RunFailed, error: str) -> None:
        """The client throws at the error; `finish` is for readers that go on."""
        self._json(type="error", errorText=error)
        self._finish("error", event.partial.usage if event.partial else None)

    def stopped(self, event: ev.RunStopped) -> None:
        """The message stays as it is."""
        self._json(type="abort", reason=event.reason)
        self._frame(DONE)

    def cut_off(self) -> None:
        """No `[DONE]`: whoever can resume should."""
        self._json(type="error", errorText="the stream ended before the run did")

    def _finish(self, reason: str, usage: Usage | None) -> None:
        metadata = {"messageMetadata": {"usage": usage}} if usage else {}
        self._json(type="finish", finishReason=reason, **metadata)
        self._frame(DONE)


def _input(args: str) -> msgspec.Raw | str:
    found = embedded(args)
    return found if isinstance(found, msgspec.Raw) and bytes(found)[:1] == b"{" else args


def _file(part: Part) -> dict[str, str]:
    """The protocol's `url` and `mediaType`; inline data as a data URL."""
    media_type = part.media_type or f"{part.kind}/*"
    if part.url:
        return {"url": part.url, "mediaType": media_type}
    return {"url": data_url(part), "mediaType": media_type}


def data_url(part: Part) -> str:
    """Inline data as browsers take it for an address."""
    return f"data:{part.media_type};base64,{base64.b64encode(part.data).decode()}"
