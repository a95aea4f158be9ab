"""A run's events told as what a chat shows: steps, blocks of text and thinking, calls and results.

In order and whole, whatever the events are: streamed or not, retried, resumed, with ids that
repeat or are missing. What there is to tell stands in ``golem.web.telling``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final

from golem import events as ev
from golem.deferral import DENIED
from golem.events import UnknownEvent
from golem.history.repair import NO_RESULT
from golem.messages import AssistantMessage, Thinking, ToolCall, ToolMessage, UserMessage
from golem.web.disclosure import Describe
from golem.web.frames import AnyEvent, Frame
from golem.web.telling import Answer, Call, Telling

NO_FRAMES: Final[list[Frame]] = []


class Story(Telling):
    """Reads the events of one run, as an `Encoder`; a subclass writes what they tell."""

    def __init__(self, describe: Describe) -> None:
        super().__init__()
        self.describe = describe
        self._kind = ""
        self._blocks = 0
        self._text: list[str] = []  # of the turn, as streamed
        self._thoughts: list[tuple[str, list[str]]] = []  # of the turn: blocks and their pieces
        self._step_open = False
        self._streamed: dict[int, Call] = {}  # calls of the turn that is being answered, by index
        self._calls: list[Call] = []  # calls of the turn whose results come
        self._waiting: list[tuple[Call, ev.ToolDeferred]] = []
        self._shown: set[str] = set()
        self._correcting = False
        self._ended = False

    # As an encoder

    def feed(self, event: AnyEvent) -> list[Frame]:
        """The frames of this event."""
        read = self._readers.get(type(event))
        if read is None or self._ended:
            return NO_FRAMES
        self._out = []
        if not self.run_id and not isinstance(event, (ev.RunStarted, UnknownEvent)):
            # A run whose history could not be prepared ends before it has started.
            self._run_started(ev.RunStarted(event.run_id, event.conversation_id, 0, 0, 0, 0))
        read(self, event)
        return self._out

    def close(self) -> list[Frame]:
        """What tells that the events ended before the run did."""
        self._out = []
        if not self._ended:
            self._end()
            self.cut_off()
        return self._out

    # Reading

    def _run_started(self, event: ev.RunStarted) -> None:
        self.run_id, self.conversation_id = event.run_id, event.conversation_id
        self.run_begins(event)

    def _model_started(self, event: ev.ModelStarted) -> None:
        if event.attempt > 1 and self._step_open:
            if self._text or self._thoughts or self._streamed:
                self._end_block()
                self._cut_calls()
                self.step_again()
        else:
            self._end_step()
            self.step += 1
            self._step_open = True
            self.step_begins()
        self._text, self._thoughts = [], []
        self._streamed, self._calls = {}, []
        self._correcting = False

    def _model_finished(self, event: ev.ModelFinished) -> None:
        if event.error:
            self.attempt_failed(event, self.describe(event))

    def _text_delta(self, event: ev.TextDelta) -> None:
        self._text.append(event.text)
        self._say(event.text)

    def _thinking_delta(self, event: ev.ThinkingDelta) -> None:
        self._think(event.text)

    def _say(self, text: str) -> None:
        if self._kind != "text":
            self._begin_block("text")
            self.text_begins()
        self.text_grows(text)

    def _think(self, text: str) -> None:
        if self._kind != "thinking":
            self._begin_block("thinking")
            self._thoughts.append((self.block, []))
            self.thinking_begins()
        self._thoughts[-1][1].append(text)
        self.thinking_grows(text)

    def _begin_block(self, kind: str) -> None:
        self._end_block()
        self._kind = kind
        self.block = f"{self.run_id}/{self._blocks}"
        self._blocks += 1

    def _end_block(self) -> None:
        kind, self._kind = self._kind, ""
        if kind == "text":
            self.text_ends()
        elif kind == "thinking":
            self.thinking_ends()

    def _end_step(self) -> None:
        self._end_block()
        if self._step_open:
            self._step_open = False
            self.step_ends()

    # Calls

    def _tool_call_delta(self, event: ev.ToolCallDelta) -> None:
        call = self._streamed.get(event.index)
        if call is None:
            call = self._streamed[event.index] = Call("", "")
        call.call_id = call.call_id or event.id
        call.name = call.name or event.name
        call.args += event.args
        # One whose id or name has not come is shown once its message says them.
        if not call.begun and call.call_id and call.name:
            self._begin_call(call)
            self._grow_call(call, call.args)
        elif call.begun and event.args:
            self._grow_call(call, event.args)

    def _begin_call(self, call: Call) -> None:
        self._end_block()
        call.begun = True
        call.id = self._unique(call.call_id)
        self.call_begins(call)

    def _grow_call(self, call: Call, args: str) -> None:
        if args:
            call.streamed += args
            self.call_grows(call, args)

    def _unique(self, call_id: str) -> str:
        shown, n = call_id, len(self._shown)
        while not shown or shown in self._shown:
            shown, n = f"{call_id or 'call'}/{self.run_id}/{n}", n + 1
        self._shown.add(shown)
        return shown

    def _complete_call(self, call: Call, asked: ToolCall) -> None:
        call.call_id, call.name = asked.id, asked.name
        if not call.begun:
            self._begin_call(call)
        if asked.args.startswith(call.streamed):
            self._grow_call(call, asked.args[len(call.streamed) :])
        call.args, call.signature = asked.args, asked.signature
        self._ready(call)

    def _ready(self, call: Call) -> None:
        call.ready = True
        self.call_ready(call)

    def _first(self, call_id: str, name: str, wanted: Callable[[Call], bool]) -> Call | None:
        """The first such call of the turn with that id; of those without id, by name."""
        for call in self._calls:
            same = call.call_id == call_id and (call_id or call.name == name)
            if same and not call.settled and wanted(call):
                return call
        return None

    def _taken_up(self, event: ev.ToolStarted | ev.ToolDeferred | ev.ToolFinished) -> Call:
        """The call of an event; one that an earlier run has asked for is told here."""
        starts = isinstance(event, ev.ToolStarted)
        call = self._first(event.call_id, event.name, _not_started if starts else _runs)
        if call is None:
            call = self._foreign(event.call_id, event.name)
            call.args = event.args
            self._ready(call)
        return call

    def _foreign(self, call_id: str, name: str) -> Call:
        """A call that an earlier run has asked for, and whose reader may know it by its id."""
        self._end_block()
        shown = self._unique(call_id)
        call = Call(shown, name, call_id=call_id, begun=True, earlier=True)
        self._calls.append(call)
        return call

    def _tool_started(self, event: ev.ToolStarted) -> None:
        call = self._taken_up(event)
        call.started = True
        self.call_starts(call)

    def _tool_finished(self, event: ev.ToolFinished) -> None:
        call = self._taken_up(event)
        call.settled = True
        error = self.describe(event) if event.error else ""
        self.call_ends(call, Answer(event.result, event.parts, event.failed, error))

    def _tool_deferred(self, event: ev.ToolDeferred) -> None:
        call = self._taken_up(event)
        call.waits = True
        self._waiting.append((call, event))  # asked for once it is known that the run waits

    # Messages

    def _message_added(self, event: ev.MessageAdded) -> None:
        message = event.message
        if isinstance(message, AssistantMessage):
            self._answered(message)
        elif isinstance(message, ToolMessage):
            self._result(message)
        elif isinstance(message, UserMessage):
            correction, self._correcting = self._correcting, False
            if not correction and self.step >= 0:  # what is said before that began the run
                self._end_block()
                self.said(message)

    def _answered(self, message: AssistantMessage) -> None:
        """The turn's answer is whole: what was not streamed of it is told now."""
        thought = "".join(piece for _, pieces in self._thoughts for piece in pieces)
        if rest := _rest("".join(block.text for block in message.thinking), thought):
            self._think(rest)
        if rest := _rest(message.content, "".join(self._text)):
            self._say(rest)
        self._end_block()
        for part in message.parts:
            self.media(part)
        streamed = [self._streamed[index] for index in sorted(self._streamed)]
        self._calls = []
        for place, asked in enumerate(message.tool_calls):
            call = streamed[place] if place < len(streamed) else Call("", "")
            self._calls.append(call)
            self._complete_call(call, asked)
        self._streamed = {}
        self._keep(message.thinking)

    def _keep(self, thinking: tuple[Thinking, ...]) -> None:
        """Signatures, where the blocks that were shown are those that were signed."""
        worded = [block for block in thinking if block.text]
        told = ["".join(pieces) for _, pieces in self._thoughts]
        pairs = zip([name for name, _ in self._thoughts], worded, strict=False)
        alike = told == [block.text for block in worded]
        shown = [(name, block) for name, block in pairs if alike and block.signature]
        hidden = [(place, block) for place, block in enumerate(thinking) if not block.text]
        if shown or hidden:
            self.thinking_kept(shown, hidden)

    def _result(self, message: ToolMessage) -> None:
        for told in self._calls:
            same = (told.call_id, told.name) == (message.tool_call_id, message.tool_name)
            if same and told.settled and not told.recorded:
                told.recorded = True  # as its event came
                return
        call = self._first(message.tool_call_id, message.tool_name, _any)
        if call is None:
            if not message.tool_call_id or message.tool_call_id in self._shown:
                return  # of ids that repeat in a turn that waited: nobody knows which it is
            call = self._foreign(message.tool_call_id, message.tool_name)
        call.recorded = True
        call.settled = True
        text = message.content
        closed = NO_RESULT if text == NO_RESULT else ""  # by a stop, without having run
        denied = text.startswith(DENIED)
        self.call_ends(call, Answer(text, message.parts, message.failed, closed, denied))

    def _output_rejected(self, event: ev.OutputRejected) -> None:
        self._correcting = True
        self.rejected(event)

    # Endings

    def _run_finished(self, event: ev.RunFinished) -> None:
        self._end()
        self.finished(event.result)

    def _run_paused(self, event: ev.RunPaused) -> None:
        self._end_block()
        for call, deferred in self._waiting:
            self.call_waits(call, deferred)
        self._end()
        self.paused(event.result)

    def _run_failed(self, event: ev.RunFailed) -> None:
        self._end()
        self.failed(event, self.describe(event))

    def _run_stopped(self, event: ev.RunStopped) -> None:
        self._end()
        self.stopped(event)

    def _end(self) -> None:
        self._ended = True
        self._end_block()
        self._cut_calls()
        self._end_step()

    def _cut_calls(self) -> None:
        for call in self._streamed.values():
            if call.begun and not call.ready:
                self.call_cut(call)
        self._streamed = {}

    _readers: ClassVar[Mapping[type, Callable[[Any, Any], None]]] = {
        ev.RunStarted: _run_started,
        ev.ModelStarted: _model_started,
        ev.ModelFinished: _model_finished,
        ev.TextDelta: _text_delta,
        ev.ThinkingDelta: _thinking_delta,
        ev.ToolCallDelta: _tool_call_delta,
        ev.ToolStarted: _tool_started,
        ev.ToolFinished: _tool_finished,
        ev.ToolDeferred: _tool_deferred,
        ev.OutputRejected: _output_rejected,
        ev.MessageAdded: _message_added,
        ev.RunFinished: _run_finished,
        ev.RunPaused: _run_paused,
        ev.RunFailed: _run_failed,
        ev.RunStopped: _run_stopped,
    }
    """How each kind of event is read: method of event. `RunCanceled` says nothing that `RunStopped`
    does not, and what an `UnknownEvent` holds nobody here can vouch for."""


def _not_started(call: Call) -> bool:
    return not call.started


def _runs(call: Call) -> bool:
    return not call.waits


def _any(call: Call) -> bool:
    return True


def _rest(whole: str, told: str) -> str:
    return whole[len(told) :] if whole.startswith(told) else ""
