"""Messages that a client of the Vercel AI SDK has posted (``UIMessage``), as golem's own.

The inverse of ``golem.web.ui_messages``, for what any version of that client keeps. Untrusted:
give the result to `golem.sanitize_history`.
"""

from __future__ import annotations

from msgspec.structs import replace

from golem.deferral import Approval, DeferredResults, Pending, denial
from golem.history.repair import NO_RESULT
from golem.messages import (
    AssistantMessage,
    Message,
    Part,
    SystemMessage,
    Thinking,
    ToolCall,
    ToolMessage,
    UserMessage,
)
from golem.web.untrusted import Document, Item, document, media


def messages_from_ui(messages: Document) -> list[Message]:
    """The messages of a ``useChat`` request: its ``messages``, or the whole body.

    An assistant message becomes one turn for each of its steps, with the results of its calls
    behind it. Files become parts. What says nothing to a model (sources, data of others, ids,
    metadata) is left out, and so is a signature: none was sent (`golem.web.ui_messages`).
    A call that waits, or was never finished, has no result.

    Raises HistoryError, naming the message and the member, for what is no such conversation.
    """
    found: list[Message] = []
    for message in _listed(messages).messages():
        role = message.at("role").text()
        if role == "assistant":
            found += _Assistant().read(message)
        elif role == "user":
            found.append(_user(message))
        elif role == "system":
            found.append(SystemMessage(_texts(message)))
        else:
            raise message.at("role").error(f"unknown role {role[:64]!r}")
    return found


def answers_from_ui(messages: Document, pending: Pending) -> DeferredResults:
    """What the client says to the calls that the server knows to be `pending`.

    Approvals and outputs of the last message are looked up by the pending calls' ids; whatever
    else the client claims is ignored. A call that it does not answer stays unanswered.
    """
    parts: dict[str, Item] = {}
    for message in _listed(messages).messages():
        parts = {
            part.at("toolCallId").text(): part
            for part in message.at("parts").items()
            if _tool_name(part)
        }
    approvals: dict[str, bool | Approval] = {}
    for call in pending.approvals:
        part = parts.get(call.call_id)
        if part is not None and part.at("approval").value is not None:
            approval = part.at("approval")
            approved = approval.at("approved")
            if isinstance(approved.value, bool):
                reason = approval.at("reason").optional_text()
                approvals[call.call_id] = Approval(approved.value, reason)
    external = {
        call.call_id: part.at("output").json()
        for call in pending.external
        if (part := parts.get(call.call_id)) and part.at("state").value == "output-available"
    }
    return DeferredResults(approvals=approvals, external=external)


def _listed(given: Document) -> Item:
    found = document(given)
    return found if isinstance(found.value, list) else found.at("messages")


def _texts(message: Item) -> str:
    parts = message.at("parts").items()
    return "\n".join(p.at("text").text() for p in parts if p.at("type").text() == "text")


def _user(message: Item) -> UserMessage:
    files = [p for p in message.at("parts").items() if p.at("type").text() == "file"]
    return UserMessage(_texts(message), parts=tuple(map(_file, files)))


def _file(part: Item) -> Part:
    return media(part.at("url"), part.at("mediaType").optional_text())


def _tool_name(part: Item) -> str:
    """The tool whose call the part is; empty for a part that is none."""
    kind = part.at("type").text()
    if kind == "dynamic-tool":
        return part.at("toolName").text()
    return kind.removeprefix("tool-") if kind.startswith("tool-") else ""


class _Assistant:
    """One assistant message on its way to turns and results."""

    def __init__(self) -> None:
        self._made: list[Message] = []
        self._begin()

    def _begin(self) -> None:
        self._text: list[str] = []
        self._thinking: list[Thinking] = []
        self._parts: list[Part] = []
        self._calls: list[ToolCall] = []
        self._results: dict[str, ToolMessage] = {}
        self._media: dict[str, list[Part]] = {}

    def read(self, message: Item) -> list[Message]:
        for part in message.at("parts").items():
            kind = part.at("type").text()
            if name := _tool_name(part):
                self._call(part, name)
            elif kind == "step-start":
                self._end()
            elif kind == "text":
                self._text.append(part.at("text").text())
            elif kind == "reasoning":
                self._think(part)
            elif kind == "file":
                self._parts.append(_file(part))
            elif kind == "data-golem-part":
                self._attach(part.at("data"))
            elif kind == "data-golem-user":
                self._quote(part.at("data"))
        self._end()
        return self._made

    def _think(self, part: Item) -> None:
        if text := part.at("text").text():
            self._thinking.append(Thinking(text))

    def _attach(self, data: Item) -> None:
        part = media(data.at("url"), data.at("mediaType").optional_text(), data.at("kind").text())
        self._media.setdefault(data.at("toolCallId").text(), []).append(part)

    def _quote(self, data: Item) -> None:
        self._end()
        parts = tuple(
            media(p.at("url"), p.at("mediaType").optional_text(), p.at("kind").text())
            for p in data.at("parts").items()
        )
        self._made.append(UserMessage(data.at("text").optional_text(), parts=parts))

    def _call(self, part: Item, name: str) -> None:
        call_id, state = part.at("toolCallId").text(), part.at("state").text()
        args = part.at("input").json() or part.at("rawInput").json()
        self._calls.append(ToolCall.of(call_id, name, args))
        if state == "output-available":
            text, failed = part.at("output").json(), False
        elif state == "output-error":
            text = part.at("errorText").text()
            failed = text != NO_RESULT  # which only says that it never ran
        elif state == "output-denied":
            text, failed = _denial(part), False
        else:
            return
        self._results[call_id] = ToolMessage(
            text, tool_call_id=call_id, tool_name=name, failed=failed
        )

    def _end(self) -> None:
        if self._text or self._thinking or self._parts or self._calls:
            self._made.append(
                AssistantMessage(
                    "".join(self._text),
                    parts=tuple(self._parts),
                    thinking=tuple(self._thinking),
                    tool_calls=tuple(self._calls),
                )
            )
            for call_id, result in self._results.items():
                parts = tuple(self._media.get(call_id, ()))
                self._made.append(replace(result, parts=parts) if parts else result)
        self._begin()


def _denial(part: Item) -> str:
    approval = part.at("approval")
    return denial(approval.at("reason").optional_text() if approval.value is not None else "")
