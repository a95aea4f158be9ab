"""One answer as it comes together: chunks in, deltas out, the response at the end.

A plain answer is the same thing in one chunk, so plain and streamed answers cannot differ.
Pure; knows neither SSE nor HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem import rawjson
from golem.ids import new_id
from golem.messages import AssistantMessage, Part, ToolCall
from golem.model import (
    Delta,
    Details,
    FinishReason,
    Response,
    TextDelta,
    ThinkingDelta,
    ToolCallDelta,
)
from golem_adapters._toolkit.calls import ArgumentText
from golem_adapters._toolkit.lenient import members, text
from golem_adapters.openai.media import image_in, spoken
from golem_adapters.openai.reasoning import Reasoning
from golem_adapters.openai.shapes import Audio, Call, Chunk, Function, Said, arguments_text
from golem_adapters.openai.usage import usage_of

_FINISH: Final[Mapping[str, FinishReason]] = {
    "stop": "stop",
    "eos": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "completed": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "tool_calls": "tool_call",
    "tool_call": "tool_call",
    "tool_use": "tool_call",
    "function_call": "tool_call",
    "content_filter": "content_filter",
    "safety": "content_filter",
}
_CUT_SHORT: Final = ("length", "content_filter")


class _PendingCall:
    """A tool call whose arguments are still coming."""

    __slots__ = ("_text", "given_id", "id", "index", "name", "signature")

    def __init__(self, index: int, id: str, given_id: str, name: str) -> None:
        self.index = index
        self.id = id
        self.given_id = given_id
        self.name = name
        self.signature = ""
        self._text = ArgumentText()

    def taken(self, piece: str) -> str:
        """What of `piece` to give out now."""
        return self._text.taken(piece)

    @property
    def args(self) -> str:
        return self._text.text

    @property
    def whole(self) -> bool:
        """Whether the arguments so far are a complete object."""
        return rawjson.is_object(self.args.encode("utf-8", "replace"))

    def call(self) -> ToolCall:
        return ToolCall.of(self.id, self.name, self.args, self.signature)


class Turn:
    """Collects one answer of `provider`.

    `names` maps wire tool names back to the tools' own; `keeps_details`: reasoning details
    have to go back to this server.
    """

    def __init__(self, provider: str, names: Mapping[str, str], *, keeps_details: bool) -> None:
        self._names = names
        self._keeps_details = keeps_details
        self._texts: list[str] = []
        self._refusal: list[str] = []
        self._reasoning = Reasoning(provider)
        self._calls: list[_PendingCall] = []
        self._by_index: dict[int, _PendingCall] = {}
        self._by_id: dict[str, _PendingCall] = {}
        self._function_call: _PendingCall | None = None
        self._sounds: list[str] = []
        self._images: list[Part] = []
        self._usage: dict[str, Any] = {}
        self._id = ""
        self._model = ""
        self.finish_reason = ""
        self._named = False

    # --- taking in

    def add(self, chunk: Chunk, deltas: list[Delta], *, whole: bool = False) -> None:
        """Take in a chunk, appending what it brings to `deltas`; `whole`: it is everything."""
        if not self._named and (chunk.id or chunk.model):
            self._id = self._id or chunk.id or ""
            self._model = self._model or chunk.model or ""
            self._named = bool(self._id and self._model)
        if chunk.usage:
            self._usage = chunk.usage
        elif chunk.x_groq is not None and chunk.x_groq.usage and not self._usage:
            self._usage = chunk.x_groq.usage
        for choice in chunk.choices or ():
            if choice.index:
                continue  # an alternative nobody asked for
            said = choice.delta
            if said is None and (whole or not self.said_something):
                said = choice.message
            if said is not None:
                self._add_said(said, deltas, whole)
            if choice.finish_reason and choice.finish_reason != "null":  # a server's null
                self.finish_reason = choice.finish_reason

    @property
    def said_something(self) -> bool:
        """Whether any content has come."""
        return bool(self._texts or self._calls or self._reasoning.thinking())

    def _add_said(self, said: Said, deltas: list[Delta], whole: bool) -> None:
        reasoning = said.reasoning_content or said.reasoning
        if said.reasoning_details:
            detailed = self._reasoning.add_details(said.reasoning_details, whole=whole)
            if detailed:
                deltas.append(ThinkingDelta(detailed))
                reasoning = None  # the same text, without its details
        if reasoning:
            self._reasoning.add_text(reasoning)
            deltas.append(ThinkingDelta(reasoning))
        if said.content:
            self._texts.append(said.content)
            deltas.append(TextDelta(said.content))
        if said.refusal:
            self._refusal.append(said.refusal)
            self._texts.append(said.refusal)
            deltas.append(TextDelta(said.refusal))
        if said.audio is not None:
            self._add_audio(said.audio, deltas)
        if said.images:
            self._images.extend(part for item in said.images if (part := image_in(item)))
        if said.tool_calls:
            several = len(said.tool_calls) > 1
            for place, piece in enumerate(said.tool_calls):
                self._add_call(piece, place if several else None, deltas, whole)
        if said.function_call is not None:
            self._add_function_call(said.function_call, deltas)
        if said.extra_content is not None:
            signature = _signature(said.extra_content)
            if signature:
                self._reasoning.add_signature(signature)

    def _add_audio(self, audio: Audio, deltas: list[Delta]) -> None:
        if audio.data:
            self._sounds.append(audio.data)
        if audio.transcript:
            self._texts.append(audio.transcript)
            deltas.append(TextDelta(audio.transcript))

    def _add_function_call(self, function: Function, deltas: list[Delta]) -> None:
        """A piece of a call in the form before `tool_calls`: one a turn, without an id."""
        name, args = function.name or "", arguments_text(function.arguments)
        if self._function_call is None:
            if not name and not args:
                return
            self._function_call = self._new_call("", name, deltas)
        self._give(self._function_call, args, deltas)

    def _add_call(self, piece: Call, place: int | None, deltas: list[Delta], whole: bool) -> None:
        """A piece of a call; `place`: where it stands among several of the same chunk."""
        name, args = _content(piece)
        given = piece.id or ""
        if not (name or args or given):
            return
        call = None if whole else self._continued(piece.index, given, name, place)
        if call is None:
            call = self._new_call(given, name, deltas)
            if piece.index is not None:
                self._by_index[piece.index] = call
        elif name and not call.name:
            call.name = self._names.get(name, name)
            deltas.append(ToolCallDelta(call.index, name=call.name))
        if piece.extra_content is not None:
            call.signature = _signature(piece.extra_content) or call.signature
        self._give(call, args, deltas)

    def _continued(
        self, index: int | None, id: str, name: str, place: int | None
    ) -> _PendingCall | None:
        """The call that a piece goes on with; None: it begins a new one.

        By index, else by id, else by place, else the last call. A name where one is known
        already tells more than that: servers number all their calls 0, others repeat the name
        (or a random id) in every piece of one call.
        """
        if index is not None:
            call = self._by_index.get(index)
        elif id in self._by_id or (id and name):
            call = self._by_id.get(id)
        elif place is not None and place < len(self._calls):
            call = self._calls[place]
        elif place is not None and name:
            call = None
        else:
            call = self._calls[-1] if self._calls else None
        if call is None or not name or not call.name:
            return call
        if id and call.given_id:
            return call if id == call.given_id else None
        other = index is None and self._names.get(name, name) != call.name
        return None if other or call.whole else call

    def _new_call(self, id: str, name: str, deltas: list[Delta]) -> _PendingCall:
        fresh = id if id and id not in self._by_id else new_id()
        call = _PendingCall(len(self._calls), fresh, id, self._names.get(name, name))
        self._calls.append(call)
        if id:
            self._by_id.setdefault(id, call)
        deltas.append(ToolCallDelta(call.index, call.id, call.name))
        return call

    def _give(self, call: _PendingCall, args: str, deltas: list[Delta]) -> None:
        given = call.taken(args)
        if not given:
            return
        last = deltas[-1] if deltas else None
        if type(last) is ToolCallDelta and last.index == call.index and not last.args:
            deltas[-1] = ToolCallDelta(last.index, last.id, last.name, given)
        else:
            deltas.append(ToolCallDelta(call.index, args=given))

    # --- giving out

    def partial(self) -> AssistantMessage | None:
        """The message as far as it has come, calls cut off included; None before anything."""
        message = self._message()
        return message if message != AssistantMessage() else None

    def finished(self, request_id: str, deltas: list[Delta]) -> Response:
        """The response. `deltas` get what only the end can tell: an empty call's ``{}``.

        A turn that was cut short was cut in its last call, whose arguments may have been still
        to come: without any, it stays a call that nobody may run.
        """
        reason = self._finish()
        whole = self._calls[:-1] if reason in _CUT_SHORT else self._calls
        for call in whole:
            if not call.args:
                self._give(call, "{}", deltas)
        details = Details(
            response_id=self._id,
            request_id=request_id,
            model=self._model,
            finish_reason=self.finish_reason,
            finish_message="refusal: " + "".join(self._refusal) if self._refusal else "",
        )
        return Response(self._message(), usage_of(self._usage), reason, details)

    def _finish(self) -> FinishReason:
        if self._refusal:
            return "content_filter"  # no answer to be read as one, whatever the server calls it
        reason: FinishReason = _FINISH.get(self.finish_reason.lower(), "other")
        if self._calls and (reason == "stop" or not self.finish_reason):
            return "tool_call"  # a forced tool ends with "stop" at OpenAI itself
        return reason

    def _message(self) -> AssistantMessage:
        return AssistantMessage(
            content="".join(self._texts),
            parts=(*self._images, *spoken(self._sounds)),
            tool_calls=tuple(call.call() for call in self._calls),
            thinking=self._reasoning.thinking(),
            native=self._reasoning.native() if self._keeps_details else None,
        )


def _content(piece: Call) -> tuple[str, str]:
    """Name and argument text of a piece of a call, whichever kind of tool it is for."""
    function, custom = piece.function, piece.custom
    name, args = "", ""
    if function is not None:
        name, args = function.name or "", arguments_text(function.arguments)
    if custom is not None and not name and not args:
        name, args = custom.name or "", custom.input or ""
    return name, args


def _signature(extra: Any) -> str:
    """The thought signature in Google's extra content."""
    return text(members(members(extra).get("google")).get("thought_signature"))
