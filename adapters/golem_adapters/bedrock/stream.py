"""From the bytes of a streamed Converse answer to deltas and the response. Pure.

How a stream ends, decided once, in `EventAnswer.close`:

* ``metadata`` was seen behind ``messageStop``: the answer is whole, and counted;
* the body ended well between two frames behind ``messageStop``: whole too, without a count (not
  every gateway sends one);
* an exception or error frame was seen: it is raised (`APIError`);
* a frame was damaged, or its payload unreadable: something is lost, so nothing after it counts
  (`ProtocolError`);
* none of these: the stream was cut (`TransportError`), even if ``messageStop`` had come.

All errors carry what had come as `partial`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from golem.errors import ProtocolError, TransportError
from golem.model import Delta, Request, Response
from golem.wire.eventstream import EventStreamDecoder, Frame
from golem_adapters._toolkit.bounds import bounded
from golem_adapters._toolkit.quoting import Secrets, excerpt
from golem_adapters._toolkit.streams import EventAnswer
from golem_adapters.bedrock.dialect import ConverseDialect
from golem_adapters.bedrock.failures import answer_id, frame_error
from golem_adapters.bedrock.response import decode_response, new_turn
from golem_adapters.bedrock.shapes import Event, read_event


class ConverseStream(EventAnswer[Frame]):
    """A `golem.wire.http.StreamDecoder` for ConverseStream."""

    def __init__(
        self,
        request: Request,
        dialect: ConverseDialect,
        headers: Mapping[str, str],
        secrets: Secrets,
    ) -> None:
        self._turn = new_turn(request, dialect)
        plain = partial(
            decode_response, request=request, dialect=dialect, headers=headers, secrets=secrets
        )
        super().__init__(EventStreamDecoder(), self._turn, plain)
        self._headers = headers
        self._secrets = secrets
        self._stopped = False
        self._whole_now = False

    def close(self, lost: TransportError | None = None) -> tuple[list[Delta], Response]:
        """The last deltas and the response, or the error that the stream ended with."""
        self._whole_now = self._whole_now or (self._stopped and lost is None)
        return super().close(lost)

    def _response(self, deltas: list[Delta]) -> Response | None:
        return (
            self._turn.finished(answer_id(self._headers, self._secrets), deltas)
            if self._whole_now
            else None
        )

    def _takes(self, event: Frame, deltas: list[Delta]) -> bool:
        if event.kind != "event":
            return self._fail(frame_error(event, self._headers, secrets=self._secrets))
        try:
            said = read_event(bounded(event.payload))
        except ValueError as error:
            data = excerpt(event.payload, self._secrets)
            failure = ProtocolError(f"an event of the stream is not JSON: {data}")
            failure.__cause__ = error
            return self._fail(failure)
        return self._goes(event, said, deltas)

    def _goes(self, event: Frame, said: Event, deltas: list[Delta]) -> bool:
        turn = self._turn
        match event.name:
            case "contentBlockDelta":
                turn.add(said.contentBlockIndex, said.delta, deltas)
            case "contentBlockStart":
                turn.open(said.contentBlockIndex, said.start, deltas)
            case "contentBlockStop":
                turn.close(said.contentBlockIndex, deltas)
            case "messageStop":
                turn.end(said.stopReason)
                self._stopped = True
            case "metadata":
                turn.measure(said.usage, said.trace)
                self._whole_now = self.done = self._stopped
                return not self.done
            case name if name.endswith("Exception"):
                return self._fail(frame_error(event, self._headers, secrets=self._secrets))
            case _:
                pass  # messageStart, or an event nobody knows
        return True
