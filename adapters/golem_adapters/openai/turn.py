"""One answer as it comes together: chunks in, deltas out, the response at the end.

A plain answer is the same thing in one chunk, so plain and streamed answers cannot differ.
Pure; knows neither SSE nor HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from golem.messages import AssistantMessage, Part
from golem.model import (
    Delta,
    Details,
    FinishReason,
    Response,
    TextDelta,
    ThinkingDelta,
)
from golem_adapters._toolkit.pieces import Mended
from golem_adapters.openai.calls import CallPieces, signature_in
from golem_adapters.openai.media import image_in, spoken
from golem_adapters.openai.reasoning import Reasoning
from golem_adapters.openai.shapes import Audio, Chunk, Said
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
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "safety": "content_filter",
    "recitation": "content_filter",
    "prohibited_content": "content_filter",
}
_CUT_SHORT: Final = ("length", "content_filter")


class Turn:
    """Collects one answer of `provider`.

    `names` maps the wire's name of each tool to the tool's own; `keeps_details`: reasoning
    details have to go back to this server.
    """

    def __init__(self, provider: str, names: Mapping[str, str], *, keeps_details: bool) -> None:
        self._keeps_details = keeps_details
        self._texts: list[str] = []
        self._refusal: list[str] = []
        self._reasoning = Reasoning(provider)
        self._calls = CallPieces(names)
        self._sounds: list[str] = []
        self._images: list[Part] = []
        self._half_thought, self._half_text, self._half_refusal = Mended(), Mended(), Mended()
        self._usage: dict[str, Any] = {}
        self._id = ""
        self._model = ""
        self._request_id = ""
        self.finish_reason = ""
        self.begun = False  # whether there was a choice at all, if only an empty one
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
        if chunk.x_groq is not None:
            self._request_id = self._request_id or chunk.x_groq.id or ""
            self._usage = self._usage or chunk.x_groq.usage or {}
        for place, choice in enumerate(chunk.choices or ()):
            if place if choice.index is None else choice.index:
                continue  # an alternative, which the settings asked for and golem has no place for
            self.begun = True
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
        return bool(self._texts or self._calls or self._reasoning)

    def _add_said(self, said: Said, deltas: list[Delta], whole: bool) -> None:
        reasoning = said.reasoning_content or said.reasoning or ""
        if said.reasoning_details:
            detailed = self._reasoning.add_details(said.reasoning_details, whole=whole)
            if detailed:
                deltas.append(ThinkingDelta(detailed))
                reasoning = ""  # the same text, without its details
        if reasoning:
            self._add_reasoning(self._half_thought.taken(reasoning), deltas)
        if said.content:
            self._add_text(self._half_text.taken(said.content), deltas)
        if said.refusal:
            self._add_refusal(self._half_refusal.taken(said.refusal), deltas)
        if said.audio is not None:
            self._add_audio(said.audio, deltas)
        if said.images:
            self._images.extend(part for item in said.images if (part := image_in(item)))
        if said.tool_calls:
            several = len(said.tool_calls) > 1
            for place, piece in enumerate(said.tool_calls):
                self._calls.add(piece, place if several else None, deltas, whole)
        if said.function_call is not None:
            self._calls.add_function(said.function_call, deltas)
        if said.extra_content is not None:
            signature = signature_in(said.extra_content)
            if signature:
                self._reasoning.add_signature(signature)

    def _add_reasoning(self, piece: str, deltas: list[Delta]) -> None:
        if piece:
            self._reasoning.add_text(piece)
            deltas.append(ThinkingDelta(piece))

    def _add_text(self, piece: str, deltas: list[Delta]) -> None:
        if piece:
            self._texts.append(piece)
            deltas.append(TextDelta(piece))

    def _add_refusal(self, piece: str, deltas: list[Delta]) -> None:
        self._add_text(piece, deltas)
        if piece:
            self._refusal.append(piece)

    def _add_halves(self, deltas: list[Delta]) -> None:
        """What is left of characters whose other half did not come."""
        self._add_reasoning(self._half_thought.rest(), deltas)
        self._add_text(self._half_text.rest(), deltas)
        self._add_refusal(self._half_refusal.rest(), deltas)

    def _add_audio(self, audio: Audio, deltas: list[Delta]) -> None:
        if audio.data:
            self._sounds.append(audio.data)
        self._add_text(audio.transcript or "", deltas)

    # --- giving out

    def partial(self) -> AssistantMessage | None:
        """The message as far as it has come, calls cut off included; None before anything."""
        message = self._message()
        return message if message != AssistantMessage() else None

    def finished(self, request_id: str, deltas: list[Delta]) -> Response:
        """The response; `deltas` get what only the end can tell."""
        self._add_halves(deltas)
        reason = self._finish()
        self._calls.finish(deltas, cut=reason in _CUT_SHORT)
        details = Details(
            response_id=self._id,
            request_id=request_id or self._request_id,
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
            tool_calls=self._calls.calls(),
            thinking=self._reasoning.thinking(),
            native=self._reasoning.native() if self._keeps_details else None,
        )
