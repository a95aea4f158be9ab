"""From the bytes of a streamed Chat Completions answer to deltas and the response. Pure.

How a stream ends, decided once, in `AnswerStream.close`:

* ``[DONE]`` or a finish reason was seen: the answer is whole, whatever happened after it, unless
  there was no choice before ``[DONE]``: that ends no answer;
* an error was seen: it is raised (`APIError`), also when ``[DONE]`` follows;
* a data line was unreadable: something is lost, so nothing after it counts (`ProtocolError`);
* none of these: the stream was cut (`TransportError`).

All errors carry what had come as `partial`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Final

from golem.errors import ProviderError
from golem.model import Delta, Request, Response
from golem.wire.sse import ServerSentEvent
from golem_adapters._toolkit.bounds import bounded
from golem_adapters._toolkit.lenient import read_json
from golem_adapters._toolkit.streams import AnswerStream
from golem_adapters.openai.dialect import ChatDialect
from golem_adapters.openai.failures import answer_id, error_within
from golem_adapters.openai.response import decode_response, failure_in, new_turn
from golem_adapters.openai.shapes import read_chunk

_DONE: Final = b"[DONE]"
_NAMED_CHUNKS: Final = ("", "message")


class ChatStream(AnswerStream):
    """A `golem.wire.http.StreamDecoder` for Chat Completions."""

    def __init__(
        self, request: Request, dialect: ChatDialect, headers: Mapping[str, str], secret: str
    ) -> None:
        self._turn = new_turn(request, dialect)
        plain = partial(
            decode_response, request=request, dialect=dialect, headers=headers, secret=secret
        )
        super().__init__(self._turn, plain)
        self._headers = headers
        self._secret = secret

    def _response(self, deltas: list[Delta]) -> Response | None:
        if not (self._turn.finish_reason or (self.done and self._turn.begun)):
            return None
        return self._turn.finished(answer_id(self._headers, self._secret), deltas)

    def _takes(self, event: ServerSentEvent, deltas: list[Delta]) -> bool:
        """Take one event in; whether what follows it matters."""
        data = event.data
        if event.event == "error":
            return self._fail(self._named_error(data))
        try:
            chunk = read_chunk(bounded(data))
        except ValueError as error:
            return self._goes_on(event, error)
        if chunk is None:
            return True
        self._turn.add(chunk, deltas)
        failure = failure_in(chunk, data, self._headers, self._secret)
        return failure is None or self._fail(failure)

    def _goes_on(self, event: ServerSentEvent, error: ValueError) -> bool:
        """Whether the stream goes on after data that is no JSON."""
        data = event.data.strip()
        if data == _DONE:
            self.done = True
            return False
        idle = not data or (event.event not in _NAMED_CHUNKS and data[:1] != b"{")
        if idle or event.unfinished:
            return True  # a keep-alive under a name of its own; or the line the cut went through
        return self._unreadable(data, self._secret, error)

    def _named_error(self, data: bytes) -> ProviderError:
        try:
            value = read_json(data)
        except ValueError:
            value = data.decode("utf-8", "replace").strip()
        return error_within(value, self._headers, secret=self._secret)
