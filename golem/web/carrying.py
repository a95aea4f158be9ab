"""Carrying a run to its end: recorded as it happens, by who reads it or in the background.

Whatever happens to who reads, a run that has begun ends in exactly one terminal event, which is in
the record and has been shown to `on_end` when the run is let go.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any, Final

import anyio
import msgspec
from msgspec import Raw, Struct

from golem._run.herald import Observer
from golem.closing import CLEANUP_SECONDS
from golem.codec import dump_history
from golem.deferral import NOTHING_PENDING, Pending
from golem.errors import HistoryError, RunError
from golem.events import TERMINAL, Event, RunPaused, Terminal, encode_event
from golem.stream import RunStream
from golem.web.background import Background
from golem.web.replay import Replay
from golem.web.sealing import identity_keys, sealed

_log = logging.getLogger("golem")

_RECORD_SECONDS: Final = 30.0
"""How long keeping one event may take, before the run is ended instead."""

OnEnd = Callable[[str, Terminal], Awaitable[None] | None]
"""Called with the identity and the terminal event of every run, however it ended."""


class Paused(Struct, frozen=True):
    """What a record keeps of a paused run: the server's own conversation, and what waits."""

    history: Raw
    pending: Pending = NOTHING_PENDING


class Served:
    """One run that goes on."""

    def __init__(self, run_id: str, identity: str) -> None:
        self.run_id = run_id
        self.identity = identity
        self.stream: RunStream[Any]
        self.scope = anyio.CancelScope()
        self.recorded: Terminal | None = None  # as it is in the record
        self.ended = anyio.Event()  # that is there
        self.settling = False
        self.settled = anyio.Event()  # and everybody has been told


class Carrier:
    """Carries runs out and knows those that go on in this process."""

    def __init__(self, replay: Replay, keys: Sequence[bytes], on_end: OnEnd | None) -> None:
        self.replay = replay
        self._keys = keys
        self._on_end = on_end
        self._going_on: dict[str, Served] = {}
        self._tasks: dict[str, Background] = {}  # of the runs that nobody carries out by reading

    # Recording

    def recorder(self, served: Served, also: Observer | None) -> Callable[[Event], Awaitable[None]]:
        """Keeps every event of the run, the terminal one of a cancelled run too."""

        async def record(event: Event) -> None:
            # Shielded: what a client may be shown must be there when it comes back for it.
            with anyio.move_on_after(_RECORD_SECONDS, shield=True) as scope:
                try:
                    await self._record(served, event)
                except Exception:  # noqa: BLE001 - a run that nobody can follow is ended
                    _log.exception("event %d of run %s is lost", event.seq, served.run_id)
                    await served.stream.stop("now")
            if scope.cancelled_caught:
                _log.error("event %d of run %s is lost: too slow", event.seq, served.run_id)
                await served.stream.stop("now")
            if also is not None:
                done = also(event)
                if inspect.isawaitable(done):
                    await done

        return record

    async def _record(self, served: Served, event: Event) -> None:
        if not isinstance(event, TERMINAL):
            await self.replay.append(served.run_id, event.seq, encode_event(event))
        elif served.recorded is None:
            event = self._sealed(served, event)
            paused = b""
            if isinstance(event, RunPaused):
                result = event.result
                kept = Paused(Raw(dump_history(result.messages)), result.pending)
                paused = msgspec.json.encode(kept)
            await self.replay.finish(served.run_id, event.seq, encode_event(event), paused=paused)
            served.recorded = event
            served.ended.set()

    def _sealed(self, served: Served, event: Terminal) -> Terminal:
        if not self._keys:
            return event
        try:
            return sealed(event, identity_keys(self._keys, served.identity))
        except HistoryError:
            _log.exception("the transcript of run %s cannot be sealed", served.run_id)
            return event

    # Carrying out

    @asynccontextmanager
    async def carried(self, served: Served) -> AsyncGenerator[AsyncGenerator[Event, None], None]:
        """The run's events, which happen as they are read. Leaving the block ends the run."""
        try:
            with served.scope:
                async with aclosing(self._events(served)) as events:
                    yield events
        finally:
            await self.let_go(served)

    def detach(self, served: Served) -> None:
        """Have the run carried out in the background, whoever reads its record."""

        async def carry_out() -> None:
            try:
                async with self.carried(served) as events:
                    async for _ in events:
                        pass
            except Exception:  # noqa: BLE001 - there is nobody to raise it to
                _log.exception("run %s failed unforeseen", served.run_id)

        self._tasks[served.run_id] = Background(carry_out)

    async def _events(self, served: Served) -> AsyncGenerator[Event, None]:
        try:
            async for event in served.stream:
                yield served.recorded if isinstance(event, TERMINAL) and served.recorded else event
        except RunError:
            if served.stream.outcome is None:
                raise

    async def let_go(self, served: Served) -> None:
        """Close the run, and see that its end is recorded and told; shielded, within a deadline.

        From any task, also while another reads it.
        """
        with anyio.CancelScope(shield=True):
            if served.settling:
                await served.settled.wait()
                return
            served.settling = True
            try:
                await served.stream.aclose()
                outcome = served.stream.outcome
                if outcome is not None:
                    await self._keep_end(served, outcome)
                    await self._tell_end(served, served.recorded or outcome)
            except Exception:  # noqa: BLE001 - there is nobody to raise it to
                _log.exception("run %s failed unforeseen", served.run_id)
            finally:
                self._forget(served)

    async def _keep_end(self, served: Served, outcome: Terminal) -> None:
        """Record the end, where the observer could not."""
        with anyio.move_on_after(CLEANUP_SECONDS):
            try:
                if served.recorded is None:
                    record = await self.replay.record(served.run_id)
                    if record is not None and not record.over:
                        await self._record(served, outcome)
            except Exception:  # noqa: BLE001 - who began it is told all the same
                _log.exception("the end of run %s is not recorded", served.run_id)

    async def _tell_end(self, served: Served, outcome: Terminal | None) -> None:
        if self._on_end is None or outcome is None:
            return
        with anyio.move_on_after(CLEANUP_SECONDS) as scope:
            try:
                done = self._on_end(served.identity, outcome)
                if inspect.isawaitable(done):
                    await done
            except Exception:  # noqa: BLE001 - the application's own
                _log.exception("on_end of run %s failed", served.run_id)
        if scope.cancelled_caught:
            _log.error("on_end of run %s took more than %g s", served.run_id, CLEANUP_SECONDS)

    def _forget(self, served: Served) -> None:
        self._going_on.pop(served.run_id, None)
        self._tasks.pop(served.run_id, None)
        served.settled.set()
