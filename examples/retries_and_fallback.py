"""A provider that fails: what is asked again, and who is asked instead. Needs no network."""

from __future__ import annotations

import asyncio
from time import monotonic

import tenacity

from golem import Agent, APIError, Event, FallbackModel, RunError, TransportError
from golem.events import ModelFinished
from golem.model import Delta, TextDelta
from golem.testing import Fragments, ScriptedModel

OVERLOADED = APIError("overloaded", status=529, retryable=True)
BUSY = APIError("slow down", status=429, retryable=True, retry_after=0.2)
FORBIDDEN = APIError("no such key", status=401)


def watch(event: Event) -> None:
    """Every attempt has its events."""
    if isinstance(event, ModelFinished):
        print(f"  attempt {event.attempt}: {event.error or event.finish_reason}")


async def as_told() -> None:
    """The default: three attempts, as long apart as the provider says."""
    agent: Agent = Agent(ScriptedModel([BUSY, BUSY, "At last."]), on_event=watch)
    begun = monotonic()
    result = await agent.run("hello")
    print(
        f"answered: {result.output} {result.requests} requests, waited {monotonic() - begun:.1f} s"
    )


async def a_policy_of_your_own() -> None:
    """Any tenacity policy; what is worth asking again is `retryable`, by the adapter's word."""
    patient = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_exception(lambda error: getattr(error, "retryable", False)),
        stop=tenacity.stop_after_attempt(5),
        wait=tenacity.wait_fixed(0.01),
    )
    agent: Agent = Agent(ScriptedModel([OVERLOADED] * 4 + ["hi"]), retry=patient, on_event=watch)
    print("answered:", (await agent.run("hello")).output)


async def not_worth_it() -> None:
    """What asking again cannot mend fails at once."""
    agent: Agent = Agent(ScriptedModel([FORBIDDEN]), on_event=watch)
    try:
        await agent.run("hello")
    except RunError as error:
        print("failed:", error)


async def never_after_the_first_word() -> None:
    """What a reader has seen is not taken back: a stream that dies is evidence."""
    died: list[Delta | Exception] = [TextDelta("It is "), TransportError("connection reset")]
    agent: Agent = Agent(ScriptedModel([Fragments(died), "never asked"]), on_event=watch)
    stream = agent.stream("What is it?")
    try:
        async with stream:
            async for _ in stream:
                pass
    except RunError as error:
        print("failed:", error, "|", stream.partial.text if stream.partial else "")


async def somebody_else() -> None:
    """A FallbackModel asks the next model, with the same history."""
    down, up = ScriptedModel([OVERLOADED]), ScriptedModel(["From the other one."])
    agent: Agent = Agent(FallbackModel([down, up]), on_event=watch)
    result = await agent.run("hello")
    print("answered:", result.output)
    print("  asked:", len(down.requests), "and", len(up.requests))


async def main() -> None:
    """One failure after the other."""
    await as_told()
    await a_policy_of_your_own()
    await not_worth_it()
    await never_after_the_first_word()
    await somebody_else()


if __name__ == "__main__":
    asyncio.run(main())
