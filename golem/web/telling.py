"""What there is to tell of a run, and nothing of how it is found out: one method for each thing.

Protocols for browsers differ in words and agree in this: a block begins before it grows and ends
before another begins, a call is known before its result is, ids are unique. ``golem.web.story``
sees to all of that; an encoder fills in how each of it is spelled.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from golem import events as ev
from golem.codec import encode_json
from golem.messages import Part, Thinking, UserMessage
from golem.result import Result
from golem.web.frames import Frame


class Call(Struct):
    """A tool call as far as it has been told. `id` is the shown one, unique in the run."""

    id: str
    name: str
    args: str = ""
    call_id: str = ""  # the model's, which may repeat or be empty
    streamed: str = ""
    signature: str = ""
    begun: bool = False
    ready: bool = False
    started: bool = False
    waits: bool = False
    settled: bool = False
    recorded: bool = False  # its result has joined the transcript
    earlier: bool = False  # an earlier run has asked for it: the reader knows it by its id


class Answer(Struct, frozen=True):
    """What a call came to. `failed`: definitively; `error`: no result, or one that asks again."""

    text: str
    parts: tuple[Part, ...] = ()
    failed: bool = False
    error: str = ""
    denied: bool = False


class Telling:
    """One method for each thing to tell; none does anything here. They call `_frame` or `_json`."""

    def __init__(self) -> None:
        self.run_id = ""
        self.conversation_id = ""
        self.step: int = -1  # steps count over the whole run
        self.block = ""  # the id of the text or thinking that is open
        self._out: list[Frame] = []

    def run_begins(self, event: ev.RunStarted) -> None:
        """The run goes on its way."""

    def step_begins(self) -> None:
        """A turn of the model: its answer and what its calls come to."""

    def step_ends(self) -> None:
        """Everything of the turn has been told."""

    def step_again(self) -> None:
        """What the step has shown is void: the model is asked again."""

    def text_begins(self) -> None:
        """A block of text, `block`."""

    def text_grows(self, text: str) -> None:
        """More of the block."""

    def text_ends(self) -> None:
        """The block is whole."""

    def thinking_begins(self) -> None:
        """A block of reasoning, `block`."""

    def thinking_grows(self, text: str) -> None:
        """More of the block."""

    def thinking_ends(self) -> None:
        """The block is whole."""

    def thinking_kept(
        self, shown: list[tuple[str, Thinking]], hidden: list[tuple[int, Thinking]]
    ) -> None:
        """What of the turn's reasoning is for its maker alone, once everything else is told.

        Signed blocks that were shown, by their ids, and blocks without words, by their places
        among the turn's.
        """

    def call_begins(self, call: Call) -> None:
        """The model asks for a tool; its arguments follow."""

    def call_grows(self, call: Call, args: str) -> None:
        """More of the argument text."""

    def call_ready(self, call: Call) -> None:
        """The arguments are whole."""

    def call_cut(self, call: Call) -> None:
        """The arguments will never be whole: the model's answer broke off."""

    def call_starts(self, call: Call) -> None:
        """The call is taken up."""

    def call_ends(self, call: Call, answer: Answer) -> None:
        """The call has its result, or will have none."""

    def call_waits(self, call: Call, event: ev.ToolDeferred) -> None:
        """The call waits for somebody: told at the end of a run that really pauses."""

    def media(self, part: Part) -> None:
        """Media that the model made."""

    def said(self, message: UserMessage) -> None:
        """Somebody spoke up while the run went on."""

    def attempt_failed(self, event: ev.ModelFinished, error: str) -> None:
        """A request to the model failed; another may follow."""

    def rejected(self, event: ev.OutputRejected) -> None:
        """The answer has to be corrected."""

    def finished(self, result: Result[Any]) -> None:
        """The end: the run has its answer."""

    def paused(self, result: Result[Any]) -> None:
        """The end, for now: calls wait for somebody."""

    def failed(self, event: ev.RunFailed, error: str) -> None:
        """The end: the run failed."""

    def stopped(self, event: ev.RunStopped) -> None:
        """The end: the run was stopped."""

    def cut_off(self) -> None:
        """The events ended before the run did."""

    def _frame(self, data: bytes) -> None:
        self._out.append(Frame(data))

    def _json(self, **members: Any) -> None:
        self._out.append(Frame(encode_json(members)))
