"""A soak: many thousand runs in one process with failures at random; memory must not grow.

Runs of every kind (tools in line, in threads and in parallel, retries, corrections, pauses and
resumptions, sub-agents, structured output), each plain or streamed, of which some fail, some are
cancelled, stopped or left. What the interpreter holds is sampled while it goes on; over the second
half of the runs it may grow by at most five percent.

    python benchmarks/soak.py [--runs 20000] [--backend asyncio|trio]
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import time
import tracemalloc
from typing import Any

import anyio
import anyio.lowlevel
import tenacity

from golem import (
    Agent,
    AssistantMessage,
    DeferredResults,
    ModelRetry,
    RunContext,
    RunError,
    ToolCall,
    ToolCanceled,
    ToolDeferred,
    TransportError,
    Usage,
    tool,
)
from golem.model import Request
from golem.testing import FunctionModel, dies

ALLOWED = 1.05
SAMPLES = 40


@tool
async def work(n: int) -> str:
    """Take a moment."""
    await anyio.lowlevel.checkpoint()
    return "x" * n


@tool
def threaded(n: int) -> str:
    """Work in a thread."""
    return "x" * n


@tool(retries=2)
async def fussy(n: int) -> str:
    """Refuse now and then."""
    if n % 3 == 0:
        raise ModelRetry("another number")
    return str(n)


@tool
async def ask(context: RunContext[Any], n: int) -> str:
    """Wait for somebody."""
    if not context.approved:
        raise ToolDeferred("approval", "sure?")
    return str(n)


@tool
async def breaks(n: int) -> str:
    """Break, or stop the run."""
    if n % 2:
        raise ToolCanceled("enough")
    raise RuntimeError("broken")


NAMES = ["work"] * 8 + ["threaded", "fussy", "fussy", "ask", "breaks", "nope", "helper"]


class Soak:
    """One agent, one stream of random numbers, and what came of the runs."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.outcomes: dict[str, int] = {}
        model = FunctionModel(self._answer, usage=Usage(100, 10))
        self.model = model
        self.helper = FunctionModel(self._help, usage=Usage(1, 1))
        helper = Agent(self.helper)
        self.agents = [
            Agent(
                model,
                tools=[work, threaded, fussy, ask, breaks, helper.as_tool("helper", "Help.")],
                parallel_tool_calls=parallel,
                max_turns=5,
                retry=tenacity.AsyncRetrying(
                    retry=tenacity.retry_if_exception_type(TransportError),
                    stop=tenacity.stop_after_attempt(3),
                    wait=tenacity.wait_none(),
                    reraise=True,
                ),
                journal=self._write,
                on_event=self._watch,
            )
            for parallel in (False, True)
        ]

    async def _write(self, message: object) -> None:
        del message

    def _watch(self, event: object) -> None:
        del event

    def _help(self, request: Request) -> Any:
        self.helper.requests.clear()  # a test double remembers; a soak must not
        return "helped"

    def _answer(self, request: Request) -> Any:
        self.model.requests.clear()
        chance = self.random.random()
        if chance < 0.08:
            return TransportError("reset")
        if chance < 0.12:
            return dies("a longer answer", 1)
        if chance < 0.5 and len(request.messages) < 20:
            calls = [
                ToolCall.of(f"c{len(request.messages)}-{n}", name, f'{{"n": {n}}}')
                for n, name in enumerate(self.random.choices(NAMES, k=self.random.randint(1, 4)))
            ]
            return AssistantMessage("let me see", tool_calls=tuple(calls))
        return "done, and that is the answer " * 5

    async def run(self) -> None:
        """One run, and its resumption where it pauses."""
        agent = self.random.choice(self.agents)
        how = self.random.choice(["run", "run", "stream", "leave", "stop", "cancel"])
        try:
            result = await (self._plain(agent, how) if how == "run" else self._streamed(agent, how))
            if result is not None and result.pending:
                calls = result.pending.approvals
                answers = DeferredResults({call.call_id: bool(len(calls) % 2) for call in calls})
                await agent.run(None, history=result.messages, deferred=answers)
            self._count(how)
        except RunError as error:
            self._count(error.stage)

    async def _plain(self, agent: Agent[Any, Any], how: str) -> Any:
        return await agent.run("hello")

    async def _streamed(self, agent: Agent[Any, Any], how: str) -> Any:
        last = self.random.randint(0, 25)
        stream = agent.stream("hello")
        with anyio.CancelScope() as scope:
            async with stream:
                async for event in stream:
                    if event.seq != last or how == "stream":
                        continue
                    if how == "leave":
                        break
                    if how == "stop":
                        await stream.stop()
                    else:
                        scope.cancel()
        return stream.result

    def _count(self, outcome: str) -> None:
        self.outcomes[outcome] = self.outcomes.get(outcome, 0) + 1


async def soak(runs: int, seed: int) -> tuple[list[int], dict[str, int]]:
    """The memory held at each sample, in bytes, and how the runs ended."""
    soaked = Soak(seed)
    samples: list[int] = []
    every = max(runs // SAMPLES, 1)
    for number in range(runs):
        await soaked.run()
        if number % every == every - 1:
            gc.collect()
            samples.append(tracemalloc.get_traced_memory()[0])
    return samples, soaked.outcomes


def main() -> None:
    """Run it, say what came of it, exit with an error where memory grew."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--runs", type=int, default=20_000)
    parser.add_argument("--backend", default="asyncio", choices=["asyncio", "trio"])
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    tracemalloc.start()
    begun = time.perf_counter()
    samples, outcomes = anyio.run(soak, options.runs, options.seed, backend=options.backend)
    seconds = time.perf_counter() - begun
    quarter = max(len(samples) // 4, 1)
    middle = samples[len(samples) // 2 :][:quarter]
    end = samples[-quarter:]
    growth = (sum(end) / len(end)) / (sum(middle) / len(middle))
    print(f"{options.runs:,} runs on {options.backend} in {seconds:.0f} s")
    print(f"how they ended: {dict(sorted(outcomes.items()))}")
    print(f"held: {middle[0] / 1e6:.2f} MB at half time, {end[-1] / 1e6:.2f} MB at the end")
    print(f"growth over the second half: {growth - 1:+.2%} (allowed {ALLOWED - 1:.0%})")
    if growth > ALLOWED:
        sys.exit("memory grows")


if __name__ == "__main__":
    main()
