"""From the bytes of a streamed Gemini answer to deltas and the response. Pure.

How a stream ends, decided once, in `AnswerStream.close`. There is no terminator: each event is a
whole answer's shape, and the body ends behind the one that says why the answer does.

* a finish reason was seen: the answer is whole, whatever else came until the body ended;
* an ``error`` was seen: it is raised (`APIError`);
* the prompt was blocked: there is no answer (`APIError`);
* a data line was unreadable: something is lost, so nothing after it counts (`ProtocolError`);
* none of these: the stream was cut (`TransportError`).

All errors carry what had come as `partial`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from golem.model import Delta, Request, Response
from golem.wire.sse import ServerSentEvent
from golem_adapters._toolkit.bounds import bounded
from golem_adapters._toolkit.lenient import read_json
from golem_adapters._toolkit.streams import AnswerStream
from golem_adapters.gemini.failures import answer_id, blocked, error_within
from golem_adapters.gemini.response import decode_response, new_turn
from golem_adapters.gemini.shapes import read_chunks

_DONE: Final = b"[DONE]"


class GeminiStream(AnswerStream):
    """A `golem.wire.http.StreamDecoder` for Gemini."""

    def __init__(self, request: Request, headers: Mapping[str, str], secret: str) -> None:
        self._turn = new_turn(request)
        plain = partial(decode_response, request=request, headers=headers, secret=secret)
        super().__init__(self._turn, plain)
        self._headers = headers
        self._secret = secret

    def _response(self, deltas: list[Delta]) -> Response | None:
        turn = self._turn
        if turn.ended:
            return turn.finished(answer_id(self._headers, self._secret), deltas)
        if turn.block_reason:
            known = answer_id(self._headers, self._secret) or turn.response_id
            self._fail(blocked(turn.block_reason, turn.block_message, known))
        return None

    def _takes(self, event: ServerSentEvent, deltas: list[Delta]) -> bool:
        try:
            chunks = read_chunks(bounded(event.data))
        except ValueError as error:
            return self._goes_on(event, error)
        for chunk in chunks:
            if chunk.error or event.event == "error":
                value = read_json(event.data)
                return self._fail(error_within(value, self._headers, secret=self._secret))
            self._turn.add(chunk, deltas)
        return True

    def _goes_on(self, event: ServerSentEvent, error: ValueError) -> bool:
        """Whether the stream goes on after data that is no JSON object."""
        data = event.data.strip()
        if event.event == "error":
            words = {"message": data.decode("utf-8", "replace")}
            return self._fail(error_within(words, self._headers, secret=self._secret))
        if not data or data == _DONE or event.unfinished or event.event == "ping":
            return True  # a keep-alive, a gateway's end, the line the cut went through
        return self._unreadable(data, self._secret, error)
