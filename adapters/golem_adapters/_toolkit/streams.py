"""What the stream decoders of all adapters have in common. Pure.

An adapter says what an event means; here is how the bytes become events, what is done with a
plain body where a stream was asked for, and the one place where a stream's end is judged.
All errors carry what had come as `partial`.
"""

from __future__ import annotations

from typing import Final, Generic, Protocol, TypeVar

from golem.errors import ProtocolError, ProviderError, TransportError
from golem.messages import AssistantMessage
from golem.model import Delta, Response
from golem.wire.sse import MAX_EVENT, ServerSentEvent, SSEDecoder
from golem_adapters._toolkit.bounds import MAX_ANSWER
from golem_adapters._toolkit.quoting import excerpt

Event = TypeVar("Event")

_LEADING: Final = b"\xef\xbb\xbf \t\r\n"
"""What may stand before anything that means something: the bytes of a BOM, blanks."""

_SLICE: Final = 64 * 1024
"""Bytes that are cut into events at once, as many as come from a socket. A compressed chunk may
unfold to a thousand times that, and an event of a few bytes costs a few hundred."""


def is_event_stream(body: bytes) -> bool:
    """Whether a plain body is one: some gateways stream whatever was asked for."""
    return body[:1024].lstrip(_LEADING).startswith((b"data:", b"event:", b"id:", b":"))


class Cutter(Protocol[Event]):
    """Cuts the bytes of a stream into events: `golem.wire.sse`, `golem.wire.eventstream`."""

    def feed(self, chunk: bytes) -> list[Event]:
        """The events that `chunk` completes; raises ProtocolError for what is none."""
        ...

    def close(self) -> list[Event]:
        """What the end completes; raises ProviderError where that cannot be the end."""
        ...


class GrowingAnswer(Protocol):
    """An answer as it comes together: an adapter's `Turn`."""

    def partial(self) -> AssistantMessage | None:
        """The message as far as it has come; None before anything."""
        ...


class PlainDecoder(Protocol):
    """Reads a plain answer: an adapter's `decode_response`, but for the body and its deltas."""

    def __call__(self, body: bytes, *, deltas: list[Delta]) -> Response:
        """The response in `body`, of which `deltas` tell too; raises ProviderError."""
        ...


class EventAnswer(Generic[Event]):
    """A `golem.wire.http.StreamDecoder`; subclasses give the two methods that raise here.

    `turn` is what the events go into, `plain` reads a body that is no stream.
    """

    def __init__(self, events: Cutter[Event], turn: GrowingAnswer, plain: PlainDecoder) -> None:
        self._events = events
        self._growing = turn
        self._decode = plain
        self._failure: ProviderError | None = None
        self._plain: bytearray | None = None
        self._size = 0
        self._begun = False
        self.done = False

    def feed(self, chunk: bytes) -> list[Delta]:
        """The deltas that `chunk` completes. What went wrong, `close` tells."""
        deltas: list[Delta] = []
        if not self._begun:
            self._begin(chunk)
        if self.done:
            return deltas
        self._size += len(chunk)
        limit = MAX_ANSWER if self._plain is None else MAX_EVENT
        if self._size > limit:
            self._fail(ProtocolError(f"the answer is larger than {limit} bytes"))
            return deltas
        if self._plain is not None:
            self._plain += chunk
            return deltas
        for start in range(0, len(chunk), _SLICE):
            if not self._cut(chunk[start : start + _SLICE], deltas):
                break
        return deltas

    def _cut(self, chunk: bytes, deltas: list[Delta]) -> bool:
        """Take in the events that `chunk` completes; whether what follows it matters."""
        try:
            for event in self._events.feed(chunk):
                if not self._takes(event, deltas):
                    return False
        except ProtocolError as error:
            return self._fail(error)
        return True

    def close(self, lost: TransportError | None = None) -> tuple[list[Delta], Response]:
        """The last deltas and the response, or the error that the stream ended with."""
        deltas: list[Delta] = []
        if self._plain is not None and lost is None and not self.done:
            return deltas, self._decode(bytes(self._plain), deltas=deltas)
        if not self.done:
            self._take_rest(lost, deltas)
        answer = self._response(deltas) if self._failure is None else None
        if answer is not None:
            return deltas, answer
        failure = self._failure or lost or TransportError("the stream ended before the answer did")
        failure.partial = self._growing.partial()
        raise failure

    def _take_rest(self, lost: TransportError | None, deltas: list[Delta]) -> None:
        """Take in what the end of the body completes, unless it cannot be the end."""
        try:
            for event in self._events.close():
                self._takes(event, deltas)
        except ProviderError as error:
            self._failure = lost if lost is not None and error.retryable else error

    def _begin(self, chunk: bytes) -> None:
        """Tell an event stream from a plain body.

        JSON, because some servers ignore that a stream was asked for, or a gateway's HTML page.
        No line of an event stream that means anything begins like one of these, and no frame:
        it would be longer than a gigabyte.
        """
        head = chunk.lstrip(_LEADING)
        if head:
            self._begun = True
            if head[:1] in (b"{", b"[", b"<"):
                self._plain = bytearray()

    def _fail(self, failure: ProviderError) -> bool:
        """End the stream with `failure`; always false: nothing that follows matters."""
        self._failure = failure
        self.done = True
        return False

    # --- the adapter's own

    def _takes(self, event: Event, deltas: list[Delta]) -> bool:
        """Take one event in, appending to `deltas`; whether what follows it matters.

        Raises ProtocolError for an event that ends the stream because it cannot be taken in.
        """
        raise NotImplementedError

    def _response(self, deltas: list[Delta]) -> Response | None:
        """The response, if the answer is whole; what only the end can tell goes to `deltas`."""
        raise NotImplementedError


class AnswerStream(EventAnswer[ServerSentEvent]):
    """An `EventAnswer` in server-sent events."""

    def __init__(self, turn: GrowingAnswer, plain: PlainDecoder) -> None:
        super().__init__(SSEDecoder(), turn, plain)

    def _unreadable(self, data: bytes, secret: str, cause: ValueError) -> bool:
        """End the stream at a line that is lost; nothing that follows it counts."""
        failure = ProtocolError(f"a line of the stream is not JSON: {excerpt(data, secret)}")
        failure.__cause__ = cause
        return self._fail(failure)
