"""Makes the events of one run, stamped and counted, and shows them to everyone who watches."""

from __future__ import annotations

import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import anyio

from golem import events as ev
from golem._run.cancellation import is_stray
from golem._run.transcript import Added
from golem._run.waiting import OverdueError, Waiting
from golem.carrying import cancelled_errors
from golem.model import Delta, TextDelta, ThinkingDelta
from golem.rawjson import clean_text

E = TypeVar("E", bound=ev.Event)

Observer = Callable[[ev.Event], Awaitable[None] | None]
"""Called with every event of a run; its exceptions are logged and never fail the run."""

_log = logging.getLogger("golem")


class Herald:
    """The events of one run."""

    def __init__(
        self,
        run_id: str,
        conversation_id: str,
        observers: Sequence[Observer],
        waiting: Waiting,
    ) -> None:
        self.run_id = run_id
        self.conversation_id = conversation_id
        self._observers = observers
        self._waiting = waiting
        self._seq = 0
        self._heard: Iterator[Delta] = iter(())

    def event(self, kind: type[E], *values: Any, **named: Any) -> E:
        """The next event of the run."""
        event = kind(self.run_id, self.conversation_id, self._seq, *values, **named)
        self._seq += 1
        return event

    def hear(self, deltas: Iterable[Delta]) -> None:
        """Pieces of an answer have come, which `next_heard` gives one by one."""
        self._heard = iter(deltas)

    def next_heard(self) -> ev.Event | None:
        """The next of the pieces that have come, as an event; None where there is none left."""
        delta = next(self._heard, None)
        return None if delta is None else self._delta(delta)

    def next_unobserved(self) -> ev.Event | None:
        """`next_heard` where nobody is to be shown it but who asks."""
        return None if self._observers else self.next_heard()

    def _delta(self, delta: Delta) -> ev.Event:
        if isinstance(delta, TextDelta):  # spelled out: most events by far are these
            seq, self._seq = self._seq, self._seq + 1
            text = clean_text(delta.text)
            return ev.TextDelta(self.run_id, self.conversation_id, seq, text)
        if isinstance(delta, ThinkingDelta):
            return self.event(ev.ThinkingDelta, clean_text(delta.text))
        texts = map(clean_text, (delta.id, delta.name, delta.args))
        return self.event(ev.ToolCallDelta, delta.index, *texts)

    def added(self, untold: deque[Added]) -> ev.MessageAdded:
        """The event of the first message that has joined the transcript and is untold."""
        place, message = untold.popleft()
        return self.event(ev.MessageAdded, message, place)

    async def show(self, event: ev.Event) -> None:
        """Show the event to every observer; what they raise is theirs.

        Where one is cancelled, the others still get the event: none of them misses one. Who hangs
        though the run is to be over is shown nothing more.
        """
        observers, shown = self._observers, 0
        try:
            for observer in observers:
                await self._waiting.remind()  # before he is asked, who would be left half-way
                shown += 1
                await self._show(observer, event)
        except GeneratorExit:  # thrown away with its event loop: nothing can be awaited any more
            raise
        except BaseException:
            self._waiting.run_ends()
            for observer in observers[shown:]:
                with anyio.CancelScope(shield=True):
                    await self._show(observer, event)
            raise

    async def _show(self, observer: Observer, event: ev.Event) -> None:
        try:
            done = observer(event)
            if inspect.isawaitable(done):
                await self._waiting.on_last_words(done)
        except OverdueError:  # it would hang at every event that is left
            self._observers = [other for other in self._observers if other is not observer]
            _log.exception("an observer of run %s hung at event %d", self.run_id, event.seq)
        except cancelled_errors() as error:
            if not is_stray(error):
                raise
            _log.exception("an observer of run %s failed at event %d", self.run_id, event.seq)
        except Exception:  # noqa: BLE001 - an observer must never fail the run
            _log.exception("an observer of run %s failed at event %d", self.run_id, event.seq)
