"""From the bytes of a streamed Chat Completions answer to deltas and the response. Pure.

How a stream ends, decided once, in `ChatStream.close`:

* ``[DONE]`` or a finish reason was seen: the answer is whole, whatever happened after it;
* an error was seen: it is raised (`APIError`), also when ``[DONE]`` follows;
* a data line was unreadable: something is lost, so nothing after it counts (`ProtocolError`);
* none of these: the stream was cut (`TransportError`).

All errors carry what had come as `partial`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from golem.errors import ProtocolError, ProviderError, TransportError
from golem.model import Delta, Request, Response
from golem.wire.sse import MAX_EVENT, ServerSentEvent, SSEDecoder
from golem_adapters.openai.dialect import ChatDialect
from golem_adapters.openai.failures import error_within, excerpt, request_id
from golem_adapters.openai.response import decode_response, failure_in, new_turn
from golem_adapters.openai.shapes import read_chunk, read_json

_DONE: Final = b"[DONE]"
_NAMED_CHUNKS: Final = ("", "message")


class ChatStream:
    """A `golem.wire.http.StreamDecoder` for Chat Completions."""

    def __init__(
        self, request: Request, dialect: ChatDialect, headers: Mapping[str, str], secret: str
    ) -> None:
        self._request = request
        self._dialect = dialect
        self._headers = headers
        self._secret = secret
        self._events = SSEDecoder()
        self._turn = new_turn(request, dialect)
        self._failure: ProviderError | None = None
        self._plain: list[bytes] | None = None
        self._plain_size = 0
        self._begun = False
        self.done = False

    def feed(self, chunk: bytes) -> list[Delta]:
        """The deltas that `chunk` completes. What went wrong, `close` tells."""
        deltas: list[Delta] = []
        if not self._begun:
            self._begin(chunk)
        if self.done:
            return deltas
        if self._plain is not None:
            self._plain.append(chunk)
            self._plain_size += len(chunk)
            if self._plain_size > MAX_EVENT:
                self._fail(ProtocolError(f"the answer is larger than {MAX_EVENT} bytes"))
            return deltas
        try:
            events = self._events.feed(chunk)
        except ProtocolError as error:
            self._fail(error)
            return deltas
        for event in events:
            if not self._takes(event, deltas):
                break
        return deltas

    def close(self, lost: TransportError | None = None) -> tuple[list[Delta], Response]:
        """The last deltas and the response, or the error that the stream ended with."""
        deltas: list[Delta] = []
        if self._plain is not None and lost is None and not self.done:
            return deltas, self._whole(b"".join(self._plain), deltas)
        if not self.done:
            for event in self._events.close():
                self._takes(event, deltas)
        if self._failure is None and not (self.done or self._turn.finish_reason):
            self._failure = lost or TransportError("the stream ended before the answer did")
        if self._failure is not None:
            self._failure.partial = self._turn.partial()
            raise self._failure
        response = self._turn.finished(request_id(self._headers), deltas)
        return deltas, response

    def _begin(self, chunk: bytes) -> None:
        """Tell an event stream from a plain body.

        JSON, because some servers ignore that a stream was asked for, or a gateway's HTML page.
        No line of an event stream that means anything begins like one of these.
        """
        head = chunk.lstrip()
        if head:
            self._begun = True
            if head[:1] in (b"{", b"[", b"<"):
                self._plain = []

    def _whole(self, body: bytes, deltas: list[Delta]) -> Response:
        return decode_response(
            body,
            request=self._request,
            dialect=self._dialect,
            headers=self._headers,
            secret=self._secret,
            deltas=deltas,
        )

    def _takes(self, event: ServerSentEvent, deltas: list[Delta]) -> bool:
        """Take one event in; whether what follows it matters."""
        data = event.data
        if event.event == "error":
            return self._fail(self._named_error(data))
        try:
            chunk = read_chunk(data)
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
        failure = ProtocolError(f"a line of the stream is not JSON: {excerpt(data, self._secret)}")
        failure.__cause__ = error
        return self._fail(failure)

    def _named_error(self, data: bytes) -> ProviderError:
        try:
            value = read_json(data)
        except ValueError:
            value = data.decode("utf-8", "replace").strip()
        return error_within(value, self._headers, secret=self._secret)

    def _fail(self, failure: ProviderError) -> bool:
        self._failure = failure
        self.done = True
        return False
