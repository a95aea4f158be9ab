"""One answer as it comes together: chunks in, deltas out, the response at the end.

A plain answer is the same thing in one chunk, so plain and streamed answers cannot differ.
Pure; knows neither SSE nor HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem.messages import AssistantMessage, Native, ToolCall
from golem.model import (
    Delta,
    Details,
    FinishReason,
    Response,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from golem_adapters._toolkit.bounds import Room, room_for
from golem_adapters._toolkit.calls import MintedIds
from golem_adapters._toolkit.lenient import members, text
from golem_adapters._toolkit.story import Asked
from golem_adapters.gemini.dialect import PROVIDER
from golem_adapters.gemini.growing import GrowingCall, Run
from golem_adapters.gemini.parts import (
    CALL,
    SIGNATURE,
    TEXT,
    THOUGHT,
    WirePart,
    asked,
    plain,
    read_part,
    story,
)
from golem_adapters.gemini.shapes import Candidate, Chunk
from golem_adapters.gemini.usage import later, usage_of

_FINISH: Final[Mapping[str, FinishReason]] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "content_filter",
    "RECITATION": "content_filter",
    "BLOCKLIST": "content_filter",
    "PROHIBITED_CONTENT": "content_filter",
    "SPII": "content_filter",
    "MODEL_ARMOR": "content_filter",
    "IMAGE_SAFETY": "content_filter",
    "IMAGE_PROHIBITED_CONTENT": "content_filter",
    "IMAGE_RECITATION": "content_filter",
}
_ASKS: Final = frozenset({"STOP", "UNEXPECTED_TOOL_CALL"})
"""Reasons of an answer with calls that mean no more than that: the run tells an unknown tool."""

_UNSAID: Final = "FINISH_REASON_UNSPECIFIED"


class _Told:
    """A tool call that was given out; `name` is the tool's own, `args` what was told of them."""

    __slots__ = ("id", "index", "name", "source")

    def __init__(self, index: int, id: str, name: str, source: WirePart | GrowingCall) -> None:
        self.index = index
        self.id = id
        self.name = name
        self.source = source

    @property
    def part(self) -> WirePart:
        return self.source.built() if isinstance(self.source, GrowingCall) else self.source

    def call(self) -> ToolCall:
        part = self.part
        return ToolCall.of(self.id, self.name, asked(part).args, part.word(SIGNATURE))


class Turn:
    """Collects one answer; `names` maps wire tool names back, `ids` names what has no id."""

    def __init__(self, names: Mapping[str, str], ids: MintedIds) -> None:
        self._names = names
        self._ids = ids
        self._id = ""
        self._model = ""
        self._usage: dict[str, Any] = {}
        self._finish_reason = ""
        self._finish_message = ""
        self._items: list[Run | WirePart | GrowingCall] = []
        self._calls: list[_Told] = []
        self._asked: set[Asked] = set()
        self._given: set[str] = set()
        self._room = Room()
        self.block_reason = ""
        self.block_message = ""

    # --- taking in

    def add(self, chunk: Chunk, deltas: list[Delta]) -> None:
        """Take in a chunk, appending what it brings to `deltas`."""
        self._id = chunk.response_id or self._id
        self._model = chunk.model_version or self._model
        if chunk.usage_metadata:
            self._usage = later(self._usage, chunk.usage_metadata)
        if chunk.prompt_feedback is not None:
            self.block_reason = chunk.prompt_feedback.block_reason or self.block_reason
            self.block_message = chunk.prompt_feedback.block_reason_message or self.block_message
        for candidate in chunk.candidates or ():
            if not candidate.index:  # others are alternatives that nobody asked for
                self._add_candidate(candidate, deltas)

    def _add_candidate(self, candidate: Candidate, deltas: list[Delta]) -> None:
        content = candidate.content
        for raw in (content.parts if content is not None else None) or ():
            part = read_part(raw)
            if part is not None:
                self._add(part, deltas)
        if candidate.finish_reason and candidate.finish_reason != _UNSAID:
            self._finish_reason = candidate.finish_reason
        self._finish_message = candidate.finish_message or self._finish_message

    def _add(self, part: WirePart, deltas: list[Delta]) -> None:
        room_for(len(self._items), "parts")
        if part.bare:
            self._say(part, deltas)
            return
        self._settle(deltas)
        self._room.take(part.raw)
        if part.kind == CALL:
            self._add_call(part, deltas)
            return
        self._items.append(part)
        _tell(part.kind, part.word("text"), deltas)

    def _say(self, part: WirePart, deltas: list[Delta]) -> None:
        """A piece of text or thought without a signature goes on with the one before it.

        The last chunk of a stream may hold an empty one, which says nothing.
        """
        words = part.members["text"]
        if not words:
            return
        run = self._items[-1] if self._items else None
        if not isinstance(run, Run) or run.kind != part.kind:
            self._settle(deltas)
            run = Run(part)
            self._items.append(run)
        _tell(run.kind, run.added(words), deltas)

    def _settle(self, deltas: list[Delta]) -> None:
        """Half a character does not wait for what comes behind another part."""
        run = self._items[-1] if self._items else None
        if isinstance(run, Run):
            _tell(run.kind, run.rest(), deltas)

    # --- calls

    def _add_call(self, part: WirePart, deltas: list[Delta]) -> None:
        call = asked(part)
        open_call = self._open_call()
        if open_call is not None and not call.name:
            open_call.add(part)
            self._close(open_call, deltas)
            return
        called = members(part.members.get("functionCall"))
        if called.get("willContinue") or called.get("partialArgs"):
            growing = GrowingCall(part)
            told = self._begin(call, growing, deltas)
            growing.add(part)
            self._close(growing, deltas)
            self._items.append(told.source)
        elif not call.id or call not in self._asked:
            told = self._begin(call, part, deltas, args=call.args)
            self._items.append(told.source)

    def _open_call(self) -> GrowingCall | None:
        last = self._calls[-1].source if self._calls else None
        return last if isinstance(last, GrowingCall) and not last.closed else None

    def _begin(
        self, call: Asked, source: WirePart | GrowingCall, deltas: list[Delta], args: str = ""
    ) -> _Told:
        """Give out a call, under its own id or under one that is made for it."""
        index = len(self._calls)
        new = bool(call.id) and call.id not in self._given
        given = self._ids.taken(call.id) if new else self._ids.minted(index)
        self._asked.add(call)
        self._given.add(given)
        told = _Told(index, given, self._names.get(call.name, call.name), source)
        self._calls.append(told)
        deltas.append(ToolCallDelta(index, given, told.name, args))
        return told

    def _close(self, growing: GrowingCall, deltas: list[Delta]) -> None:
        if growing.closed:
            deltas.append(ToolCallDelta(self._calls[-1].index, args=growing.built().args))

    # --- giving out

    @property
    def ended(self) -> bool:
        """Whether the provider said why the answer ends."""
        return bool(self._finish_reason)

    @property
    def answered(self) -> bool:
        """Whether anything of an answer has come."""
        return self.ended or bool(self._items)

    @property
    def response_id(self) -> str:
        """The provider's id of the answer."""
        return self._id

    def partial(self) -> AssistantMessage | None:
        """The message as far as it has come, calls cut off included; None before anything."""
        message = self._message(self._built(), None)
        return message if message != AssistantMessage() else None

    def finished(self, request_id: str, deltas: list[Delta]) -> Response:
        """The response. `deltas` get what only the end can tell."""
        self._settle(deltas)
        if (growing := self._open_call()) is not None:
            deltas.append(ToolCallDelta(self._calls[-1].index, args=growing.built().args))
        parts = self._built()
        native = None if plain(parts) else Native(PROVIDER, tuple(part.raw for part in parts))
        details = Details(
            response_id=self._id,
            request_id=request_id or self._id,
            model=self._model,
            finish_reason=self._finish_reason,
            finish_message=self._finish_message,
        )
        return Response(
            self._message(parts, native), usage_of(self._usage), self._finish(), details
        )

    def _built(self) -> list[WirePart]:
        return [item if isinstance(item, WirePart) else item.built() for item in self._items]

    def _finish(self) -> FinishReason:
        reason = self._finish_reason
        if self._calls and (not reason or reason in _ASKS):
            return "tool_call"
        return _FINISH.get(reason, "other")

    def _message(self, parts: list[WirePart], native: Native | None) -> AssistantMessage:
        told = story(parts)
        return AssistantMessage(
            content=told.content,
            parts=told.parts,
            tool_calls=tuple(call.call() for call in self._calls),
            thinking=told.thinking,
            native=native,
        )


def _tell(kind: str, words: str, deltas: list[Delta]) -> None:
    if not words:
        return
    if kind == TEXT:
        deltas.append(TextDelta(words))
    elif kind == THOUGHT:
        deltas.append(ThinkingDelta(text(words)))
