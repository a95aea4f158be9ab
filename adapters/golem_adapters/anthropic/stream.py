"""From the bytes of a streamed Messages answer to deltas and the response. Pure.

How a stream ends, decided once, in `AnswerStream.close`:

* ``message_stop`` was seen: the answer is whole;
* an ``error`` event was seen: it is raised (`APIError`);
* a data line was unreadable: something is lost, so nothing after it counts (`ProtocolError`);
* another message began after something of the first was given out: a gateway lost the answer
  and asked anew (`TransportError`);
* none of these: the stream was cut (`TransportError`), even if a stop reason had come.

All errors carry what had come as `partial`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from golem.errors import TransportError
from golem.model import Delta, Request, Response
from golem.wire.sse import ServerSentEvent
from golem_adapters._toolkit.bounds import Room, bounded
from golem_adapters._toolkit.lenient import read_json
from golem_adapters._toolkit.streams import AnswerStream
from golem_adapters.anthropic.dialect import MessagesDialect
from golem_adapters.anthropic.failures import answer_id, error_within
from golem_adapters.anthropic.response import decode_response, new_turn
from golem_adapters.anthropic.shapes import Answer, Event, read_answer, read_event

_DONE: Final = b"[DONE]"


class MessagesStream(AnswerStream):
    """A `golem.wire.http.StreamDecoder` for Messages."""

    def __init__(
        self, request: Request, dialect: MessagesDialect, headers: Mapping[str, str], secret: str
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
        try:
            said = read_event(bounded(event.data))
        except ValueError as error:
            return self._goes_on(event, error)
        if said is None:
            return True
        name = "error" if event.event == "error" else said.type or event.event
        if name == "error" or (not name and bytes(said.error) != b"null"):
            value = read_json(event.data)
            return self._fail(error_within(value, self._headers, secret=self._secret))
        return self._goes(name, said, deltas)

    def _goes(self, name: str, said: Event, deltas: list[Delta]) -> bool:
        turn = self._turn
        match name:
            case "content_block_delta":
                if said.delta is not None:
                    turn.add(said.index, said.delta, deltas)
            case "content_block_start":
                self._room.take(said.content_block)
                turn.open(said.index, said.content_block, deltas)
            case "content_block_stop":
                turn.close(said.index, deltas)
            case "message_start":
                if not turn.begin(read_answer(bytes(said.message)) or Answer(), deltas):
                    reason = "the stream began another answer before the first had ended"
                    return self._fail(TransportError(reason))
            case "message_delta":
                delta = said.delta
                turn.end(
                    delta.stop_reason if delta else None,
                    delta.stop_details if delta else None,
                    said.usage,
                )
            case "message_stop":
                self._answer = turn.finished(answer_id(self._headers, self._secret), deltas)
                self.done = True
                return False
            case _:
                pass  # a ping, or an event nobody knows
        return True

    def _goes_on(self, event: ServerSentEvent, error: ValueError) -> bool:
        """Whether the stream goes on after data that is no JSON object."""
        data = event.data.strip()
        if event.event == "error":
            words = {"message": data.decode("utf-8", "replace")}
            return self._fail(error_within(words, self._headers, secret=self._secret))
        if not data or data == _DONE or event.unfinished:
            return True  # a keep-alive, an end that is none, the line the cut went through
        if event.event == "ping":
            return True
        return self._unreadable(data, self._secret, error)
