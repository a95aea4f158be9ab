"""From the bytes of a streamed Responses answer to deltas and the response. Pure.

How a stream ends, decided once, in `AnswerStream.close`:

* ``response.completed`` or ``response.incomplete`` was seen: the answer is whole;
* ``response.failed`` or an error event was seen: it is raised (`APIError`);
* a data line was unreadable: something is lost, so nothing after it counts (`ProtocolError`);
* none of these: the stream was cut (`TransportError`). ``[DONE]`` is no end: OpenAI sends none.

All errors carry what had come as `partial`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final, NamedTuple

from msgspec import Raw

from golem.model import Delta, Request, Response
from golem.wire.sse import ServerSentEvent
from golem_adapters._toolkit.bounds import Room, bounded
from golem_adapters._toolkit.lenient import read_json
from golem_adapters._toolkit.streams import AnswerStream
from golem_adapters.openai.failures import answer_id, error_within
from golem_adapters.openai_responses.dialect import ResponsesDialect
from golem_adapters.openai_responses.items import CUSTOM_CALL, FUNCTION_CALL, MESSAGE, REASONING
from golem_adapters.openai_responses.response import decode_response, failure_in, new_turn
from golem_adapters.openai_responses.shapes import (
    Answer,
    Event,
    read_answer,
    read_event,
    read_item,
)

_DONE: Final = b"[DONE]"


class _Piece(NamedTuple):
    """What an event brings a piece of, and under which member the whole comes at the end."""

    kind: str
    part: str
    whole: str


_PIECES: Final[Mapping[str, _Piece]] = {
    "response.output_text": _Piece(MESSAGE, "output_text", "text"),
    "response.refusal": _Piece(MESSAGE, "refusal", "refusal"),
    "response.reasoning_summary_text": _Piece(REASONING, "summary_text", "text"),
    "response.reasoning_text": _Piece(REASONING, "reasoning_text", "text"),
    "response.function_call_arguments": _Piece(FUNCTION_CALL, "arguments", "arguments"),
    "response.custom_tool_call_input": _Piece(CUSTOM_CALL, "input", "input"),
}
_ENDS: Final[Mapping[str, str]] = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "response.cancelled": "cancelled",
    "response.done": "completed",
}
"""The last event of a stream, and the status it means where the response names none."""

_BEGINNINGS: Final = ("response.created", "response.queued", "response.in_progress")


class ResponsesStream(AnswerStream):
    """A `golem.wire.http.StreamDecoder` for Responses."""

    def __init__(
        self, request: Request, dialect: ResponsesDialect, headers: Mapping[str, str], secret: str
    ) -> None:
        self._turn = new_turn(request, dialect)
        plain = partial(
            decode_response, request=request, dialect=dialect, headers=headers, secret=secret
        )
        super().__init__(self._turn, plain)
        self._headers = headers
        self._secret = secret
        self._answer: Response | None = None
        self._room = Room()

    def _response(self, deltas: list[Delta]) -> Response | None:
        return self._answer

    def _takes(self, event: ServerSentEvent, deltas: list[Delta]) -> bool:
        data = event.data
        try:
            said = read_event(bounded(data))
        except ValueError as error:
            return self._goes_on(event, error)
        if said is None:
            return True
        name = "error" if event.event == "error" else said.type or event.event
        family, _, suffix = name.rpartition(".")
        piece = _PIECES.get(family)
        if piece is not None:
            self._take_piece(piece, suffix, said, deltas)
        elif name == "response.output_item.added":
            self._room.take(said.item)
            if item := read_item(said.item):
                self._turn.opened(said.output_index, item, deltas)
        elif name == "response.output_item.done":
            self._room.take(said.item)
            self._turn.closed(said.output_index, said.item, deltas)
        elif name in _ENDS:
            return self._end(name, said, deltas)
        elif name in _BEGINNINGS:
            self._turn.begun(_answer_in(said.response) or Answer())
        elif name == "error" or (not name and bytes(said.error) != b"null"):
            return self._fail(error_within(read_json(data), self._headers, secret=self._secret))
        return True

    def _take_piece(self, piece: _Piece, suffix: str, said: Event, deltas: list[Delta]) -> None:
        words: str | None = said.delta if suffix == "delta" else getattr(said, piece.whole)
        if words is None or suffix not in ("delta", "done"):
            return
        place = said.summary_index if piece.part == "summary_text" else said.content_index
        self._turn.piece(
            piece.kind,
            said.output_index,
            said.item_id or "",
            piece.part,
            place or 0,
            words,
            deltas,
            whole=suffix == "done",
        )

    def _end(self, name: str, said: Event, deltas: list[Delta]) -> bool:
        answer = _answer_in(said.response) or Answer()
        status = answer.status or _ENDS[name]
        failure = failure_in(answer, status, self._headers, self._secret)
        if failure is not None:
            return self._fail(failure)
        self._answer = self._turn.end(
            answer, status, answer_id(self._headers, self._secret), deltas
        )
        self.done = True
        return False

    def _goes_on(self, event: ServerSentEvent, error: ValueError) -> bool:
        """Whether the stream goes on after data that is no JSON object."""
        data = event.data.strip()
        if event.event == "error":
            words = data.decode("utf-8", "replace")
            return self._fail(error_within(words, self._headers, secret=self._secret))
        if not data or data == _DONE or event.unfinished:
            return True  # a keep-alive, an end that is none, the line the cut went through
        if event.event and not event.event.startswith("response.") and data[:1] != b"{":
            return True  # a keep-alive under a name of its own
        return self._unreadable(data, self._secret, error)


def _answer_in(raw: Raw) -> Answer | None:
    return read_answer(bytes(raw))
