"""Runs of every kind, for the sweeps: each with a record of what really happened in it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.lowlevel
import msgspec
import tenacity

from golem import (
    Agent,
    Approval,
    AssistantMessage,
    DeferredResults,
    Message,
    ModelRetry,
    RunContext,
    RunStream,
    Timeouts,
    ToolCanceled,
    ToolDeferred,
    ToolMessage,
    TransportError,
    Usage,
    UsageLimits,
    UserMessage,
    tool,
)
from golem.model import Delta, Request, Response, TextDelta
from golem.testing import Death, ScriptedModel, Watch, dies
from tests.run.support import asks

EACH = Usage(2, 1)
"""What every answer consumes."""


class Logged:
    """A model that notes what it has handed over, and takes a moment to close its stream."""

    def __init__(self, script: list[Any], *, native_output: bool = False) -> None:
        self.scripted = ScriptedModel(script, usage=EACH)
        self.native_output = native_output
        self.turns = 0
        self.said = ""

    async def generate(self, request: Request) -> Response:
        response = await self.scripted.generate(request)
        self.turns += 1
        return response

    async def stream(self, request: Request) -> AsyncIterator[Delta | Response]:
        self.said = ""
        async with aclosing(self.scripted.stream(request)) as items:
            async for item in items:
                if isinstance(item, Response):
                    self.turns, self.said = self.turns + 1, ""
                elif isinstance(item, TextDelta):
                    self.said += item.text
                yield item
        await anyio.lowlevel.checkpoint()


class Record(msgspec.Struct):
    """Structured output."""

    n: int


@dataclass
class World:
    """Everything around one run: what it may use, and what really happened."""

    scenario: Scenario
    finished: list[str] = field(default_factory=list)
    stream: RunStream[Any] | None = None
    attempts: int = 0

    def __post_init__(self) -> None:
        self.model = Logged(self.scenario.script, native_output=self.scenario.native)
        self.helper = Logged(["asked"], native_output=False)
        self.models = [self.model, self.helper]

    def tools(self) -> list[Any]:
        async def slow(n: str) -> str:
            await anyio.lowlevel.checkpoint()
            await anyio.lowlevel.checkpoint()
            self.finished.append(n)
            return n

        async def alone(n: str) -> str:
            await anyio.lowlevel.checkpoint()
            self.finished.append(n)
            return n

        def threaded(n: str) -> str:
            return n

        async def stop(n: str) -> str:
            await anyio.lowlevel.checkpoint()
            raise ToolCanceled("enough")

        async def boom(n: str) -> str:
            raise RuntimeError("boom")

        async def fussy(n: str) -> str:
            await anyio.lowlevel.checkpoint()
            self.attempts += 1
            if self.attempts == 1:
                raise ModelRetry("not like this")
            self.finished.append(n)
            return n

        async def ask(context: RunContext[Any], n: str) -> str:
            await anyio.lowlevel.checkpoint()
            if not context.approved:
                raise ToolDeferred("approval", "sure?")
            self.finished.append(n)
            return n

        async def later(n: str) -> str:
            raise ToolDeferred("external", "job")

        async def hang(n: str) -> str:
            await anyio.sleep_forever()
            return n

        async def says(n: str) -> str:
            if self.stream is not None:
                self.stream.enqueue("and hurry")
                self.stream.enqueue("one more thing", when="idle")
            await anyio.lowlevel.checkpoint()
            self.finished.append(n)
            return n

        options: dict[str, Any] = {"alone": {"sequential": True}, "fussy": {"retries": 1}}
        functions: list[Any] = [slow, alone, threaded, stop, boom, fussy, ask, later, hang, says]
        made: list[Any] = [
            tool(**options.get(f.__name__, {}))(f)
            for f in functions
            if f.__name__ in self.scenario.named  # making one costs more than running it
        ]
        if "helper" in self.scenario.named:
            made.append(Agent(self.helper).as_tool("helper", "Ask a helper."))
        return made

    def agent(self) -> Agent[Any, Any]:
        async def process(history: list[Message]) -> AsyncIterator[Message]:
            for message in history:
                await anyio.lowlevel.checkpoint()
                yield message

        async def instruct(context: RunContext[Any]) -> str:
            await anyio.lowlevel.checkpoint()
            return "i"

        options: dict[str, Any] = {"instructions": instruct, "history_processor": process}
        return Agent(self.model, tools=self.tools(), **(options | self.scenario.options))

    async def start(self, watch: Watch) -> object:
        """The run, plain."""
        return await self.agent().run(**self._given(watch))

    def open(self, watch: Watch) -> RunStream[Any]:
        """The run, streamed."""
        self.stream = self.agent().stream(**self._given(watch))
        return self.stream

    def _given(self, watch: Watch) -> dict[str, Any]:
        given = {"prompt": "p", "history": self.scenario.history}
        return given | self.scenario.run | {"on_event": watch, "journal": watch.write}

    def check(self, death: Death) -> None:
        """What really happened is in the evidence."""
        partial = death.partial
        turns = sum(model.turns for model in self.models)
        if partial is None:
            assert (turns, self.model.said, self.finished) == (0, "", [])
            return
        messages = [m for m in partial.new_messages if isinstance(m, AssistantMessage)]
        assert self.model.turns == len(messages)
        assert Usage(2 * turns, turns) == partial.usage
        requests = sum(len(model.scripted.requests) for model in self.models)
        assert requests == partial.requests
        assert self.model.said == partial.text
        results = [m for m in partial.new_messages if isinstance(m, ToolMessage)]
        told = {m.content for m in [*results, *partial.batch_results]}
        assert told.issuperset(self.finished)


@dataclass(frozen=True)
class Scenario:
    """A script, and how its agent and its run are made."""

    script: list[Any]
    options: dict[str, Any] = field(default_factory=dict)
    run: dict[str, Any] = field(default_factory=dict)
    history: Sequence[Message] = ()
    native: bool = False

    @property
    def named(self) -> set[str]:
        """The tools that its calls name."""
        asked = [m for m in [*self.script, *self.history] if isinstance(m, AssistantMessage)]
        return {call.name for message in asked for call in message.tool_calls}


def calls(*names: str, first: int = 0) -> list[tuple[str, str, str]]:
    """Calls of these tools, numbered."""
    return [(f"{n}", name, f'{{"n":"{n}"}}') for n, name in enumerate(names, first)]


async def waits(text: str) -> int:
    """Decode digits, taking a moment."""
    await anyio.lowlevel.checkpoint()
    if text == "broken":
        raise LookupError(text)
    if not text.isdigit():
        raise ModelRetry("want a digit")
    await anyio.lowlevel.checkpoint()
    return int(text)


async def processes(messages: list[Message]) -> list[Message]:
    """Give all of them, taking a moment."""
    await anyio.lowlevel.checkpoint()
    return messages


class Counter:
    """Counts messages, taking a moment."""

    async def count_tokens(self, messages: Sequence[Message], tools: Sequence[Any] = ()) -> int:
        await anyio.lowlevel.checkpoint()
        return len(messages)


def delegating() -> list[Any]:
    return [asks(*calls("slow"), ("1", "helper", '{"prompt":"?"}'), *calls("slow", first=2)), "ok"]


OLD: list[Message] = [UserMessage("q"), AssistantMessage("a")]
PAUSED: list[Message] = [
    UserMessage("q"),
    asks(*calls("ask", "slow", "later", "ask")),
    ToolMessage("1", tool_call_id="1", tool_name="slow"),
    UserMessage("meanwhile"),
    AssistantMessage("wait"),
]
ANSWERS = DeferredResults(
    approvals={"0": True, "3": Approval(False, "no")}, external={"2": "the job is done"}
)
RETRY = tenacity.AsyncRetrying(
    retry=tenacity.retry_if_exception(lambda error: True),
    stop=tenacity.stop_after_attempt(3),
    wait=tenacity.wait_none(),
)
RECORD = ['{"n": "x"}', '{"n": 1}']


def _output(n: str, arguments: str, *others: str) -> AssistantMessage:
    return asks(*calls(*others, first=5), (n, "final_result", arguments))


SCENARIOS: dict[str, Scenario] = {
    "answer": Scenario(["a longer answer"], history=OLD),
    "tools, one by one": Scenario(
        [asks(*calls("slow", "threaded", "slow"), text="let me see"), "done"], history=OLD
    ),
    "tools, in parallel": Scenario(
        [asks(*calls("slow", "threaded", "slow", "alone", "slow", "slow")), "done"],
        {"parallel_tool_calls": True},
    ),
    "calls corrected": Scenario(
        [asks(*calls("fussy"), ("1", "nope"), ("2", "slow", '{"n":')), asks(*calls("fussy")), "ok"]
    ),
    "a tool stops the run": Scenario([asks(*calls("slow", "stop", "slow"))]),
    "a tool stops a parallel group": Scenario(
        [asks(*calls("slow", "stop", "slow", "alone"))], {"parallel_tool_calls": True}
    ),
    "a tool fails": Scenario([asks(*calls("slow", "boom"))]),
    "a tool fails in a parallel group": Scenario(
        [asks(*calls("slow", "boom", "slow", "alone"))], {"parallel_tool_calls": True}
    ),
    "a tool's timeout": Scenario(
        [asks(*calls("slow", "hang"))], {"timeout": Timeouts(tool=0.001, total=60)}
    ),
    "paused": Scenario([asks(*calls("slow", "ask", "later", "slow"))]),
    "resumed": Scenario(["done"], run={"deferred": ANSWERS}, history=PAUSED),
    "resumed and stopped": Scenario(
        ["done"],
        run={"deferred": DeferredResults(approvals={"0": True, "1": True, "2": True})},
        history=[UserMessage("q"), asks(*calls("ask", "stop", "ask"))],
    ),
    "resumed and paused again": Scenario(
        ["done"],
        run={"deferred": DeferredResults(approvals={"0": True, "1": True}), "prompt": None},
        history=[UserMessage("q"), asks(*calls("later", "ask"))],
    ),
    "output, native": Scenario(
        list(RECORD), {"output_type": Record, "output_retries": 1}, native=True
    ),
    "output, by tool": Scenario(
        [_output("9", '{"n": "x"}', "slow"), _output("9", '{"n": 1}', "slow")],
        {"output_type": Record, "output_retries": 1, "output_mode": "tool"},
    ),
    "output, by prompt": Scenario(
        list(RECORD), {"output_type": Record, "output_retries": 1, "output_mode": "prompt"}
    ),
    "output rejected for good": Scenario(list(RECORD[:1]), {"output_type": Record}, native=True),
    "retries": Scenario(
        [TransportError("reset"), TransportError("reset"), "a longer answer"], {"retry": RETRY}
    ),
    "a stream that dies": Scenario(
        [asks(*calls("slow")), dies("a longer answer", 1)], {"retry": None}
    ),
    "a sub-agent": Scenario(delegating()),
    "a sub-agent in a parallel group": Scenario(delegating(), {"parallel_tool_calls": True}),
    "steered": Scenario([asks(*calls("says")), "first", "second"]),
    "output, by a decoder that waits": Scenario(
        ["seven", "7"], {"decoder": waits, "output_retries": 1}
    ),
    "a decoder breaks": Scenario(["broken"], {"decoder": waits}),
    "requests processed and counted": Scenario(
        [asks(*calls("slow")), "done"],
        {
            "request_processor": processes,
            "counter": Counter(),
            "limits": UsageLimits(per_request_input_tokens=1000),
        },
    ),
    "a request too big": Scenario(
        [asks(*calls("slow")), "done"],
        {"counter": Counter(), "limits": UsageLimits(per_request_input_tokens=3)},
    ),
    "too many turns": Scenario([asks(*calls("slow")), asks(*calls("slow"))], {"max_turns": 2}),
}

Attempt = Callable[[], World]
